# ruff: noqa: E501 (a row of a table is read across)
"""The guest's own edges: malformed steps, tampered input, protocol misuse. It never reads beyond what it was given."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from guest_host import Isolate, Trapped
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.wire import codec
from tests.examples import examples

LIMITS = [64 << 20, 256, 1 << 20, 1 << 20, 65536]


def start(*fields: Any) -> bytes:
    data = msgpack.packb(list(fields))
    assert isinstance(data, bytes)
    return data


GOOD = start("1", codec.encode(None), 1, LIMITS)

MALFORMED = [
    b"",
    b"\xc0",
    b"\xc1",
    b"\x94",
    GOOD[:-1],
    GOOD + b"\xc0",
    start("1", codec.encode(None), 1),
    start("1", codec.encode(None), -1, LIMITS),
    start("1", codec.encode(None), 1, LIMITS[:4]),
    start("1", codec.encode(None), 1, [*LIMITS, 1]),
    start("1", codec.encode(None), 1, ["x"] * 5),
    start(1, codec.encode(None), 1, LIMITS),
    start("1", b"", 1, LIMITS),
    start("1", b"\xc1", 1, LIMITS),
    start("1", b"\xc0\xc0", 1, LIMITS),
    start("1", b"\xdd\xff\xff\xff\xff", 1, LIMITS),
    start("1", b"\xdf\xff\xff\xff\xff\xa1a", 1, LIMITS),
    start("1", b"\xdb\xff\xff\xff\xffabc", 1, LIMITS),
    start("1", b"\xc6\xff\xff\xff\xffabc", 1, LIMITS),
    start("1", b"\xdc\xff\xff" + b"\xc0" * 100, 1, LIMITS),
    start("1", b"\x91" * 200 + b"\xc0", 1, LIMITS),
    start("1", b"\x81\x01\x02", 1, LIMITS),
    start("1", b"\x81\xc0\x02", 1, LIMITS),
    start("1", b"\xd6\xff\x00\x00\x00\x00", 1, LIMITS),
    start("1", b"\xc7\x03\x05abc", 1, LIMITS),
    b"\xdd\x7f\xff\xff\xff" + b"\xc0" * 50,
    b"\x94\xdb\xff\xff\xff\xff",
]


@pytest.mark.parametrize("data", MALFORMED)
def test_a_malformed_start_ends_the_run_and_nothing_runs(data: bytes) -> None:
    """MSG-03, MSG-04, MSG-05, MSG-08, MSG-12, MSG-17, MSG-18"""
    failure = Isolate().step("start", data, 0).failure
    assert failure["code"] == "internal"
    assert failure["stack"] is None


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xc0", b"\x91", b"\x91\xc0", b"\x91\x93\x01\xc3", b"\x91\x93\x01\x01\xc4\x01\xc0", b"\x91\x92\x01\xc3",
        b"\x91\x93\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xc3\xc4\x01\xc0", b"\x91\x93\x01\xc3\xc4\x01\xc1", b"\xdd\xff\xff\xff\xff",
        b"\x91\x93\xff\xc3\xc4\x01\xc0", b"\x91\x93\x01\xc3\xc4\x05\xdb\xff\xff\xff\xff",
    ],
)  # fmt: skip
def test_a_malformed_answer_ends_the_run(data: bytes) -> None:
    isolate = Isolate()
    isolate.start("await tools.a({})")
    assert isolate.step("resume", data, 0).failure["code"] == "internal"


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_no_bytes_make_the_guest_trap(data: st.DataObject) -> None:
    """MSG-02: anything is a result, a failure, or fuel that ran out."""
    whole = start("await tools.a({}); input", codec.encode({"a": [1, "x", b"y", 2**60]}), 1, LIMITS)
    body = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    isolate = Isolate(fuel=10**9)
    try:
        step = isolate.step("start", bytes(body[: data.draw(st.integers(0, len(body)))]), 0)
    except Trapped as trap:
        assert "fuel" in str(trap)  # noqa: PT017
    else:
        assert step.status in ("done", "pending", "failed")


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=60))
def test_no_answer_makes_the_guest_trap(data: bytes) -> None:
    isolate = Isolate(fuel=10**9)
    isolate.start("await tools.a({})")
    assert isolate.step("resume", data, 0).status in ("done", "pending", "failed")
    value = msgpack.packb([[1, True, data]])
    assert isinstance(value, bytes)
    isolate = Isolate(fuel=10**9)
    isolate.start("await tools.a({})")
    assert isolate.step("resume", value, 0).status in ("done", "pending", "failed")


@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda t: t.encode("utf-8", "surrogatepass")))
def test_no_source_makes_the_guest_trap(source: bytes) -> None:
    """ESC-28"""
    isolate = Isolate(fuel=10**9)
    try:
        step = isolate.step("start", start(source, codec.encode(None), 1, LIMITS), 0)
    except Trapped as trap:
        assert "fuel" in str(trap)  # noqa: PT017
    else:
        assert step.status in ("done", "pending", "failed")


def test_limits_of_nothing_are_the_least_there_is() -> None:
    """BUD-29"""
    for limits in ([0] * 5, [1] * 5, [2**63] * 5, [2**32 - 1] * 5):
        step = Isolate().step("start", start("console.log(1); [1, 2]", codec.encode(None), 1, limits), 0)
        assert step.status in ("done", "failed")


def test_a_large_source_and_input_arrive_whole() -> None:
    source = f"/* {'x' * 200_000} */ input.length"
    assert Isolate().start(source, "é" * 400_000).payload == 400_000


def test_an_input_larger_than_the_memory_is_memory_exhausted() -> None:
    isolate = Isolate(memory=4 << 20)
    assert isolate.start("1", ["x" * 10] * 100_000).failure["code"] == "memory_exhausted"


def test_an_answer_larger_than_the_memory_is_memory_exhausted() -> None:
    isolate = Isolate(memory=6 << 20)
    isolate.start("await tools.a({})")
    assert isolate.resume({1: [["x"]] * 100_000}).failure["code"] == "memory_exhausted"


def test_the_alloc_export_gives_nothing_when_there_is_nothing() -> None:
    isolate = Isolate(memory=4 << 20)
    for size in (5 << 20, 2**31, 2**32 - 1):
        assert isolate.call("alloc", size - (1 << 32) if size >= 2**31 else size) == 0


def test_the_tail_says_what_was_output_before_a_trap_in_any_step() -> None:
    isolate = Isolate(fuel=10**9)
    isolate.start("console.log('one'); await tools.a({}); console.warn('two'); emit([2]); for (;;);")
    assert isolate.tail() == ([], [])
    with pytest.raises(Trapped):
        isolate.resume({1: None})
    assert isolate.tail() == ([["warn", "two"]], [[2]])


def test_output_that_grows_while_fuel_runs_out_is_always_whole() -> None:
    for fuel in range(20_000_000, 22_000_000, 40_001):
        isolate = Isolate(fuel=fuel)
        with pytest.raises(Trapped):
            isolate.start(
                "for (let i = 0; ; i++) { console.log('line ' + i); emit({ i, pad: 'x'.repeat(i % 50) }) }",
                log_bytes=1 << 20,
            )
        logs, emitted = isolate.tail()
        assert [text for _, text in logs] == [f"line {i}" for i in range(len(logs))]
        assert [item["i"] for item in emitted] == list(range(len(emitted)))
