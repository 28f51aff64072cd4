"""The one import: a guest, written by hand here, that waits in the middle of a step."""

from __future__ import annotations

import struct
from typing import Any

import pytest
import wasmtime

from bridge.wire.errors import FrameError
from runtime.engine import settings, waiting
from runtime.engine.image import Image
from runtime.engine.instance import Unusable
from runtime.engine.settings import Mode
from runtime.isolate import Isolate

IO = 65536
ROOM = 262144
"""Where the guest puts a message that is larger than its input buffer."""


def guest(body: str, imports: str = '(import "env" "wait" (func $wait (param i32 i32) (result i32)))') -> bytes:
    """A module of the protocol whose `start` runs `body`, with one local $n."""
    return bytes(
        wasmtime.wat2wasm(f"""(module {imports}
          (memory (export "memory") 16) (global (export "__stack_pointer") (mut i32) (i32.const 1024))
          (data (i32.const 2048) "said")
          (func (export "io") (result i32) (i32.const {IO}))
          (func (export "tail") (result i32) (i32.const 4096))
          (func (export "alloc") (param i32) (result i32) (i32.const {ROOM}))
          (func (export "dealloc") (param i32))
          (func (export "start") (param i32 i32 i64) (result i64) (local $n i32) {body})
          (func (export "resume") (param i32 i32 i64) (result i64) (i64.const 0)))""")
    )


WAITS = f"""(local.set $n (call $wait (i32.const 2048) (i32.const 4)))
  (i64.or (i64.shl (i64.const {IO}) (i64.const 32)) (i64.extend_i32_u (local.get $n)))"""
"""Waits once, then returns what it was given in the input buffer."""

TAKES_LARGE = f"""(local.set $n (call $wait (i32.const 2048) (i32.const 4)))
  (drop (call $wait (i32.const {ROOM}) (i32.const 0)))
  (i64.or (i64.shl (i64.const {ROOM}) (i64.const 32)) (i64.extend_i32_u (local.get $n)))"""


def started(body: str, mode: Mode = "fibers") -> tuple[Isolate, Any]:
    isolate = Isolate(Image.compile(settings.engine(mode), guest(body), mode), fuel=10**6, memory_bytes=1 << 20)
    return isolate, isolate.run("start", b"x", 7)


def test_a_guest_that_waits_gives_what_it_said_and_goes_on_with_the_answer() -> None:
    isolate, said = started(WAITS)
    with isolate:
        assert said == b"said"
        assert not isolate.stepping
        used = isolate.fuel_used
        assert isolate.run("resume", b"the answer", 99) == struct.pack("<q", 99) + b"the answer"
        assert isolate.fuel_used > used


def test_a_message_larger_than_the_buffer_is_handed_over_where_the_guest_wants_it() -> None:
    isolate, _ = started(TAKES_LARGE)
    with isolate:
        assert isolate.run("resume", b"y" * 100_000, 5) == struct.pack("<q", 5) + b"y" * 100_000


def test_a_guest_that_waits_twice_is_answered_twice() -> None:
    isolate, said = started(f"(drop (call $wait (i32.const 2048) (i32.const 2))) {WAITS}")
    with isolate:
        assert said == b"sa"
        assert isolate.run("resume", b"1", 1) == b"said"
        assert isolate.run("resume", b"2", 2) == struct.pack("<q", 2) + b"2"


def test_a_guest_that_waits_can_be_dropped_at_any_time() -> None:
    for _ in range(50):
        isolate, _ = started(WAITS)
        isolate.close()
        isolate.close()
    assert not waiting.by_store


@pytest.mark.parametrize(("pointer", "size"), [(-1, 4), (1048572, 5), (2048, -1), (0x7FFFFFFF, 0x7FFFFFFF)])
def test_what_a_waiting_guest_points_at_must_be_in_its_memory(pointer: int, size: int) -> None:
    with pytest.raises(FrameError):
        started(f"(drop (call $wait (i32.const {pointer}) (i32.const {size}))) (i64.const 0)")


@pytest.mark.parametrize("pointer", [-8, 0, 1048570])
def test_a_message_is_never_written_outside_of_the_guests_memory(pointer: int) -> None:
    body = f"""(drop (call $wait (i32.const 2048) (i32.const 4)))
      (local.set $n (call $wait (i32.const {pointer}) (i32.const 0)))
      (i32.store (i32.const {IO}) (local.get $n)) (i64.const {(IO << 32) | 4})"""
    isolate, _ = started(body)
    with isolate:
        assert struct.unpack("<i", isolate.run("resume", b"y" * 100_000, 5)) == (-1,)


def test_asking_for_a_message_that_is_not_there_is_refused_without_waiting() -> None:
    body = f"(i32.store (i32.const {IO}) (call $wait (i32.const {ROOM}) (i32.const 0))) (i64.const {(IO << 32) | 4})"
    isolate, said = started(body)
    with isolate:
        assert struct.unpack("<i", said) == (-1,)


def test_where_calls_are_no_fibers_a_guest_is_told_that_it_cannot_wait() -> None:
    body = f"(i32.store (i32.const {IO}) (call $wait (i32.const 0) (i32.const 4))) (i64.const {(IO << 32) | 4})"
    isolate, said = started(body, "calls")
    with isolate:
        assert struct.unpack("<i", said) == (-1,)


@pytest.mark.parametrize(
    "imports",
    [
        '(import "env" "other" (func $wait (param i32 i32) (result i32)))',
        '(import "wasi" "wait" (func $wait (param i32 i32) (result i32)))',
        '(import "env" "wait" (func $wait (param i32 i64) (result i32)))',
        '(import "env" "wait" (func $wait (param i32 i32) (result i32)))'
        '(import "env" "wait" (func (param i32 i32) (result i32)))',
    ],
)
def test_no_other_import_is_given_to_a_guest(imports: str) -> None:
    with pytest.raises(Unusable, match=r"may import nothing but env\.wait"):
        Image.compile(settings.engine(), guest("(i64.const 0)", imports))
