"""What a guest says is understood whole, or it is a FrameError; nothing in between, and nothing else."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.errors import FrameError
from bridge.wire.frames import Answer, Call, Failure, Limits, Log
from runtime.engine import protocol

LIMITS = Limits(1, 2, 3, 4, 5, 6, 7)
FAILURE = ["script_error", "TypeError", "no", 1, 2, "at script:1:2", None]

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def said(status: Any, payload: Any, calls: Any = (), logs: Any = (), emitted: Any = (), wake: Any = None) -> bytes:
    packed: bytes = msgpack.packb([status, payload, calls, logs, emitted, wake])
    return packed


def test_a_start_is_told_its_own_limits_and_no_others() -> None:
    told = msgpack.unpackb(protocol.start_input("1", b"\xc0", 9, LIMITS))
    assert told == ["1", b"\xc0", 9, [2, 4, 5, 6, 7]]


def test_answers_may_be_tuples_or_lists() -> None:
    assert protocol.resume_input([Answer(1, True, b"\xc0")]) == protocol.resume_input([[1, True, b"\xc0"]])


def test_a_result_is_kept_unread() -> None:
    output = protocol.read_output(said(0, b"not even msgpack", [], [["log", "x"]], [b"\x01"]))
    assert output == protocol.Output(b"not even msgpack", None, [], [Log("log", "x")], [b"\x01"], None)


def test_a_pause_has_its_calls_and_the_time_it_waits_for() -> None:
    output = protocol.read_output(said(1, None, [[3, "a.b", b"\x80", True]], wake=70))
    assert (output.calls, output.wake_us) == ([Call(3, "a.b", b"\x80", True)], 70)
    assert output.result is output.failure is None


def test_a_failure_is_read_field_by_field_and_cut_to_size() -> None:
    assert protocol.read_output(said(2, FAILURE)).failure == Failure(*FAILURE)
    failure = protocol.read_output(said(2, ["script_error", "n" * 999, "m" * 99_999, 0, 0, "s" * 99_999, "p" * 9_999]))
    assert failure.failure is not None
    assert [len(text or "") for text in failure.failure if type(text) is str][1:] == [256, 16_384, 65_536, 1024]


@pytest.mark.parametrize("code", sorted(protocol.GUEST_CODES))
def test_a_guest_may_give_the_codes_that_are_its_own(code: str) -> None:
    failure = protocol.read_output(said(2, [code, *FAILURE[1:]])).failure
    assert failure is not None
    assert failure.code == code


@pytest.mark.parametrize(
    "code", ["fuel_exhausted", "deadline_exceeded", "cancelled", "worker_lost", "expired", "internal"]
)
def test_a_guest_cannot_give_a_code_that_is_the_hosts(code: str) -> None:
    with pytest.raises(FrameError):
        protocol.read_output(said(2, [code, *FAILURE[1:]]))


@given(st.binary(max_size=80))
def test_any_bytes_are_output_or_a_frame_error(data: bytes) -> None:
    try:
        output = protocol.read_output(data)
    except FrameError:
        return
    assert (output.result is not None) + (output.failure is not None) <= 1


@given(st.lists(anything, min_size=6, max_size=6))
def test_any_six_values_are_output_or_a_frame_error(fields: list[Any]) -> None:
    try:
        output = protocol.read_output(msgpack.packb(fields))
    except FrameError:
        return
    assert output.failure is None or output.failure.code in protocol.GUEST_CODES


@given(st.data())
def test_output_with_one_changed_byte_is_output_or_a_frame_error(data: st.DataObject) -> None:
    whole = said(1, None, [[1, "a.b", b"\x80", False]], [["log", "hello"]], [b"\x01"], 5)
    raw = bytearray(data.draw(st.sampled_from([whole, said(0, b"\x02"), said(2, FAILURE)])))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        protocol.read_output(bytes(raw))
    except FrameError:
        return


@given(st.lists(st.tuples(st.sampled_from(["log", "warn"]), st.text(max_size=20)), max_size=5), st.integers(0, 60))
def test_of_half_written_log_lines_the_whole_ones_are_kept(lines: list[tuple[str, str]], cut: int) -> None:
    packed = [msgpack.packb(line) for line in lines]
    data = b"".join(packed)[:cut]
    kept = protocol.saved_logs(data, len(lines) + 3)
    whole = 0
    while whole < len(packed) and sum(map(len, packed[: whole + 1])) <= cut:
        whole += 1
    assert kept == [Log(*line) for line in lines[:whole]]


@given(st.binary(max_size=200), st.integers(0, 2**32 - 1))
def test_any_bytes_in_a_tail_are_survived(data: bytes, count: int) -> None:
    assert all(type(log) is Log for log in protocol.saved_logs(data, count))
    assert all(type(value) is bytes for value in protocol.saved_values(data, count))


def test_a_stripper_answers_with_a_list_or_not_at_all() -> None:
    assert protocol.read_strip(msgpack.packb([True, "1", []])) == [True, "1", []]
    for bad in (b"\xc1", msgpack.packb({"ok": True}), msgpack.packb("1")):
        with pytest.raises(FrameError):
            protocol.read_strip(bad)
