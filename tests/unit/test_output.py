"""The output of a run: caps, markers, and the timeline that tells events again."""

import asyncio

import msgpack
import pytest

from bridge.wire.errors import Unserializable
from bridge.wire.frames import Log
from runtime import output
from runtime.output import LINE_COST, MARKER, Output, OutputTooLarge

pytestmark = pytest.mark.anyio


def texts(out: Output) -> list[str]:
    return [line["text"] for line in out.logs]


def test_a_log_ends_with_one_marker_at_its_limit():
    """BUD-16"""
    out = Output(log_bytes=8 + 2 * LINE_COST, inline_bytes=100)
    out.log([Log("log", "1234"), Log("log", "123456789"), Log("log", "more")])
    out.log([Log("log", "and more")])
    assert texts(out) == ["1234", "1234", MARKER[1]]
    assert out.logs[-1] == {"level": "warn", "text": MARKER[1], "truncated": True}
    assert out.log_bytes == 8 + 2 * LINE_COST


def test_a_limit_too_small_for_the_guests_own_marker_leaves_one_marker():
    """BUD-16"""
    out = Output(log_bytes=2 + LINE_COST + 10, inline_bytes=100)
    out.log([Log("log", "ab"), Log(*MARKER)])
    assert texts(out) == ["ab", MARKER[1]]


def test_a_log_is_cut_between_characters():
    out = Output(log_bytes=5 + LINE_COST, inline_bytes=100)
    out.log([Log("log", "€€€€")])
    assert texts(out) == ["€", MARKER[1]]


def test_empty_lines_end_too():
    """BUD-16"""
    out = Output(log_bytes=100 * LINE_COST, inline_bytes=100)
    out.log([Log("log", "")] * 100_000)
    assert len(out.logs) == 101


def test_emitted_values_above_what_the_answer_holds_are_kept_aside():
    out = Output(log_bytes=0, inline_bytes=20)
    large = msgpack.packb("x" * 50)
    out.emit([msgpack.packb("small"), large, msgpack.packb("more")])
    assert out.emitted == ["small", {"$ref": {"emitted": 1, "bytes": 52}}, "more"]
    assert out.large == {1: large}


def test_emitted_values_are_bounded_in_number():
    out = Output(log_bytes=0, inline_bytes=1_000_000)
    out.emit([b"\x01"] * output.MAX_EMITTED)
    with pytest.raises(OutputTooLarge):
        out.emit([b"\x01"])


def test_emitted_values_are_bounded_in_parts_where_bytes_do_not_bound_them():
    """BUD-17"""
    out = Output(log_bytes=0, inline_bytes=64 * 1024 * 1024)
    part = msgpack.packb([0] * 400_000)
    out.emit([part, part])
    with pytest.raises(OutputTooLarge):
        out.emit([part])


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x01\x01", msgpack.packb(float("nan")), b"\x81\x01\x02"])
def test_what_is_no_value_is_not_emitted(data: bytes):
    with pytest.raises(output.NotAValue):
        Output(log_bytes=0, inline_bytes=100).emit([data])


def test_not_a_value_covers_what_json_lacks():
    assert Unserializable in output.NotAValue


def test_events_are_the_timeline_in_order():
    out = Output(log_bytes=100, inline_bytes=100)
    out.status("running")
    out.log([Log("log", "hello")])
    out.emit([msgpack.packb(b"hi")])
    call = out.call_started({"id": 1, "path": "a.b.c.d", "outcome": "sending"})
    out.call_ended(call, {"id": 1, "path": "a.b.c.d", "outcome": "done"})
    out.close("completed")
    out.close("completed")
    events = [
        output.event(seq, mark, out.logs, out.emitted, out.calls, {"run_id": "r"})
        for seq, mark in enumerate(out.timeline, 1)
    ]
    assert events == [
        (1, "status", {"status": "running"}),
        (2, "log", {"level": "log", "text": "hello"}),
        (3, "emit", {"value": {"$bytes": "aGk="}}),
        (4, "call", {"id": 1, "path": "a.b.c.d", "state": "started"}),
        (5, "call", {"id": 1, "path": "a.b.c.d", "outcome": "done", "state": "done"}),
        (6, "status", {"status": "completed"}),
        (7, "result", {"run_id": "r"}),
    ]


async def test_a_listener_is_told_until_it_is_forgotten():
    out = Output(log_bytes=100, inline_bytes=100)
    listener = out.listen()
    out.status("running")
    async with asyncio.timeout(1):
        await listener.wait()
    listener.clear()
    out.forget(listener)
    out.status("completed")
    assert not listener.is_set()
