"""Guests that lie, in real workers: whatever they send, the run ends with an honest code and the next one is served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgpack
import pytest

from bridge.wire.frames import Ended, Log
from runtime.dispatcher import Dispatcher, DispatcherSettings
from tests.blackbox import rogue
from tests.blackbox.rogue import DONE, OUT, SIZE, answer, failed, guest
from tests.blackbox.runs import LIMITS, Inbox, Outcome, begin, run

pytestmark = pytest.mark.anyio


def output(
    status: Any = 0, payload: Any = b"\x02", calls: Any = (), logs: Any = (), emitted: Any = (), wake: Any = None
) -> bytes:
    packed: bytes = msgpack.packb([status, payload, calls, logs, emitted, wake])
    return packed


CALL = [1, "a.org.b.c", b"\x80", False]

LYING_POINTERS: dict[str, str] = {
    "nothing at all, 4 GiB of it": answer(0, 2**32 - 1),
    "one byte past the end": answer(SIZE - 1, 2),
    "a pointer of minus one": answer(2**32 - 1, 16),
    "a pointer of 2 GiB": answer(2**31, 16),
    "a length that wraps round": answer(0xFFFFFFF0, 0x20),
    "just past the end": answer(SIZE, 1),
    "a length of zero": answer(OUT, 0),
    "an unaligned pointer to nothing": answer(3, 1),
}
"""ESC-32."""

LYING_BYTES: dict[str, bytes] = {
    "MSG-02 nested maps": b"\x81\xa1a" * 5_000,
    "nested arrays": b"\x91" * 60_000,
    "MSG-03 an array of 4 billion": b"\xdd\xff\xff\xff\xff",
    "MSG-03 a map of 4 billion": b"\xdf\xff\xff\xff\xff",
    "MSG-05 a string of 4 GiB": b"\xdb\xff\xff\xff\xff" + b"abc",
    "MSG-05 bytes of 4 GiB": b"\xc6\xff\xff\xff\xff" + b"abc",
    "MSG-05 an ext of 4 GiB": b"\xc9\xff\xff\xff\xff" + b"abc",
    "MSG-08 the reserved byte": b"\xc1",
    "MSG-17 an ext type": output()[:-1] + b"\xd4\x05\x00",
    "MSG-17 a timestamp": output()[:-1] + b"\xd6\xff\x00\x00\x00\x01",
    "two values": output() + b"\x00",
    "half a value": output()[:-2],
    "a map": msgpack.packb({"status": 0}),
    "a field short": msgpack.packb([0, b"\x02", [], [], []]),
    "a field more": msgpack.packb([0, b"\x02", [], [], [], None, None]),
    "MSG-18 a status of true": output(status=True),
    "an unknown status": output(status=3),
    "a status of minus one": output(status=-1),
    "done without a result": output(payload=None),
    "a result that is text": output(payload="x"),
    "a result of no bytes": output(payload=b""),
    "pending with a result": output(status=1),
    "failed with bytes": output(status=2),
    "calls that are a map": output(status=1, payload=None, calls={}),
    "a call with a path of bytes": output(status=1, payload=None, calls=[[1, b"a", b"", False]]),
    "a call with text for arguments": output(status=1, payload=None, calls=[[1, "a", "b", False]]),
    "a call with meta of one": output(status=1, payload=None, calls=[[1, "a", b"", 1]]),
    "a call with a negative number": output(status=1, payload=None, calls=[[-1, "a", b"", False]]),
    "a call with a number of 64 bits": output(status=1, payload=None, calls=[[2**32, "a", b"", False]]),
    "a call with a path of 2 KiB": output(status=1, payload=None, calls=[[1, "a" * 2048, b"", False]]),
    "MSG-13 a path that is no UTF-8": output(status=1, payload=None, calls=[[1, "a", b"", False]]).replace(
        b"\xa1a", b"\xa1\xff"
    ),
    "the same call twice": output(status=1, payload=None, calls=[CALL, CALL]),
    "calls out of order": output(status=1, payload=None, calls=[[2, "a", b"", False], [1, "a", b"", False]]),
    "more calls than the budget": output(
        status=1, payload=None, calls=[[number, "a", b"", False] for number in range(LIMITS.bridge_calls + 1)]
    ),
    "a log level that is none": output(logs=[["owned", "x"]]),
    "a log line of bytes": output(logs=[["log", b"x"]]),
    "more log text than the budget": output(logs=[["log", "x" * 1000]] * 80),
    "an emitted text": output(emitted=["x"]),
    "a wake-up time of a float": output(status=1, payload=None, wake=1.5),
    "a wake-up time before time": output(status=1, payload=None, wake=-1),
    "a wake-up time after all time": output(status=1, payload=None, wake=2**63),
    "a wake-up time when done": output(wake=5),
    "a failure that is a map": output(status=2, payload={}),
    "a failure of six fields": output(status=2, payload=["script_error"] * 6),
    "a failure with a message of bytes": failed("script_error", message=b"x"),
    "a failure with a line of text": failed("script_error", line="1"),
    "a failure with a negative line": failed("script_error", line=-1),
    "a code of null": failed(None),
    "a code that is none": failed("owned"),
    "a syntax error after output": msgpack.packb(
        [2, ["syntax_error", None, "m", 1, 1, None, None], [], [["log", "x"]], [], None]
    ),
}

FORGED_CODES = ["fuel_exhausted", "deadline_exceeded", "cancelled", "expired", "worker_lost", "internal"]

TRAPS = {
    "unreachable": "unreachable",
    "a division by zero": "(i64.div_s (i64.const 1) (i64.const 0))",
    "a load out of bounds": "(i64.load (i32.const -8))",
    "a null call": "(drop (i32.const 0)) (i64.trunc_f32_s (f32.const nan))",
}

WAITS_FOR_NOTHING = output(status=1, payload=None)
HELD = output(status=1, payload=None, calls=[CALL])
ENDLESS = "(loop $l (br $l)) (i64.const 0)"
SWELLING = f"(loop $l (br_if $l (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0)))) {answer(OUT, len(DONE))}"

GUESTS: dict[str, bytes] = {
    **{f"pointer: {name}": guest(body) for name, body in LYING_POINTERS.items()},
    **{f"bytes: {name}": guest(data) for name, data in LYING_BYTES.items()},
    **{f"code: {code}": guest(failed(code)) for code in FORGED_CODES},
    **{f"trap: {name}": guest(body) for name, body in TRAPS.items()},
    "honest": guest(),
    "endless": guest(ENDLESS),
    "endless resume": guest(HELD, ENDLESS),
    "endless alloc": guest(alloc=ENDLESS.replace("i64", "i32")),
    "endless dealloc": guest(HELD, HELD, dealloc="(loop $l (br $l))"),
    "alloc says null": guest(alloc="(i32.const 0)"),
    "alloc points outside": guest(alloc=f"(i32.const {SIZE - 10})"),
    "alloc points far outside": guest(alloc="(i32.const -1)"),
    "recursion": guest(
        "(call $f (i64.const 0))",
        globals_="(func $f (param i64) (result i64) (i64.add (call $f (local.get 0)) (i64.const 1)))",
    ),
    "swelling": guest(SWELLING),
    "swelling then a trap": guest(SWELLING + " unreachable"),
    "large at birth": guest(pages=2000),
    "waits for nothing": guest(WAITS_FOR_NOTHING),
    "a syntax error in a resume": guest(HELD, failed("syntax_error")),
    "the same call again": guest(HELD, HELD),
}


def traps_after_logging() -> bytes:
    """Logs and emits into its tail, half a line more, then runs for ever."""
    logs = msgpack.packb(["log", "kept"]) + b"\x92\xa3log\xd9\xff"
    emitted = msgpack.packb(b"\x07") + b"\xc4"
    tail = b"".join(number.to_bytes(4, "little") for number in (1000, len(logs), 2, 1000 + len(logs), len(emitted), 2))
    data = f'(data (i32.const 1000) "{rogue.as_text(logs + emitted)}")'
    return guest(ENDLESS, tail=tail, globals_=data)


def lying_tail(*numbers: int) -> bytes:
    return guest(ENDLESS, tail=b"".join(number.to_bytes(4, "little") for number in numbers))


GUESTS["logs, then runs for ever"] = traps_after_logging()
GUESTS["tail far outside"] = lying_tail(2**32 - 1, 2**32 - 1, 2**32 - 1, 2**31, 2**31, 2**32 - 1)
GUESTS["tail over the end"] = lying_tail(SIZE - 4, 8, 1, SIZE, 1, 1)
GUESTS["tail of its whole memory"] = lying_tail(0, SIZE, 2**32 - 1, 0, SIZE, 2**32 - 1)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def dispatcher() -> AsyncIterator[Dispatcher]:
    async with Dispatcher(DispatcherSettings(workers=2, images=GUESTS), cache=rogue.CompiledHere()) as running:
        yield running


async def rogue_run(dispatcher: Dispatcher, name: str, source: str = "", **limits: int) -> Outcome:
    return await run(dispatcher, source, language=name, limits=LIMITS._replace(**limits))


async def the_next_run_is_served(dispatcher: Dispatcher) -> None:
    assert (await rogue_run(dispatcher, "honest")).result == b"\x02"


@pytest.mark.parametrize("name", [name for name in GUESTS if name.startswith(("pointer:", "bytes:", "code:"))])
async def test_a_guest_that_breaks_the_protocol_ends_as_internal_and_its_worker_is_replaced(
    dispatcher: Dispatcher, name: str
) -> None:
    """ESC-32, ESC-33, MSG-02, MSG-03, MSG-05, MSG-08, MSG-13, MSG-17, MSG-18."""
    outcome = await rogue_run(dispatcher, name)
    assert outcome.code == "internal"
    assert outcome.ended.recycle
    assert not outcome.calls
    await the_next_run_is_served(dispatcher)


@pytest.mark.parametrize("name", [name for name in GUESTS if name.startswith("trap:")])
async def test_a_trap_ends_as_internal_and_its_worker_is_replaced(dispatcher: Dispatcher, name: str) -> None:
    """ESC-34."""
    outcome = await rogue_run(dispatcher, name)
    assert (outcome.code, outcome.ended.recycle) == ("internal", True)
    await the_next_run_is_served(dispatcher)


@pytest.mark.parametrize("name", ["endless", "endless resume", "endless dealloc", "logs, then runs for ever"])
async def test_a_loop_ends_at_its_fuel_whichever_call_it_is_in(dispatcher: Dispatcher, name: str) -> None:
    source = "x" * 70_000 if name == "endless dealloc" else ""
    outcome = await rogue_run(dispatcher, name, source, fuel=50_000_000)
    assert outcome.code == "fuel_exhausted"
    assert outcome.ended.usage.fuel == 50_000_000
    assert not outcome.ended.recycle


@pytest.mark.parametrize("name", ["endless", "endless alloc"])
async def test_a_loop_ends_at_its_deadline_whichever_call_it_is_in(dispatcher: Dispatcher, name: str) -> None:
    outcome = await rogue_run(dispatcher, name, "x" * 70_000, wall_ms=50, fuel=10**12)
    assert outcome.code == "deadline_exceeded"
    assert not outcome.ended.recycle


@pytest.mark.parametrize("name", ["alloc points outside", "alloc points far outside"])
async def test_an_input_is_never_written_outside_the_guests_memory(dispatcher: Dispatcher, name: str) -> None:
    """ESC-32."""
    outcome = await rogue_run(dispatcher, name, "x" * 70_000)
    assert outcome.code == "internal"
    await the_next_run_is_served(dispatcher)


async def test_a_guest_without_room_for_its_input_is_out_of_memory(dispatcher: Dispatcher) -> None:
    outcome = await rogue_run(dispatcher, "alloc says null", "x" * 70_000)
    assert (outcome.code, outcome.ended.recycle) == ("memory_exhausted", False)


async def test_endless_recursion_is_stack_exhausted(dispatcher: Dispatcher) -> None:
    assert (await rogue_run(dispatcher, "recursion")).code == "stack_exhausted"
    await the_next_run_is_served(dispatcher)


async def test_a_memory_bomb_stops_at_its_limit(dispatcher: Dispatcher) -> None:
    outcome = await rogue_run(dispatcher, "swelling", memory_bytes=8 << 20)
    assert outcome.result == b"\x02"
    assert outcome.ended.usage.memory_bytes == 8 << 20


async def test_a_trap_at_the_memory_limit_is_memory_exhausted(dispatcher: Dispatcher) -> None:
    outcome = await rogue_run(dispatcher, "swelling then a trap", memory_bytes=8 << 20)
    assert (outcome.code, outcome.ended.recycle) == ("memory_exhausted", True)


async def test_a_guest_larger_than_the_limit_does_not_start(dispatcher: Dispatcher) -> None:
    outcome = await rogue_run(dispatcher, "large at birth", memory_bytes=8 << 20)
    assert (outcome.code, outcome.ended.recycle) == ("memory_exhausted", False)


async def test_a_guest_that_waits_for_nothing_never_settles(dispatcher: Dispatcher) -> None:
    assert (await rogue_run(dispatcher, "waits for nothing")).code == "never_settles"


@pytest.mark.parametrize("name", ["the same call again", "a syntax error in a resume"])
async def test_a_guest_that_breaks_the_order_of_things_ends_as_internal(dispatcher: Dispatcher, name: str) -> None:
    """ESC-33."""
    outcome = await rogue_run(dispatcher, name)
    assert outcome.code == "internal"
    assert len(outcome.calls) == 1


async def test_what_was_logged_before_a_loop_is_kept_and_half_lines_are_not(dispatcher: Dispatcher) -> None:
    outcome = await rogue_run(dispatcher, "logs, then runs for ever", fuel=50_000_000)
    assert outcome.logs == [Log("log", "kept")]
    assert outcome.emitted == [b"\x07"]


@pytest.mark.parametrize("name", ["tail far outside", "tail over the end", "tail of its whole memory"])
async def test_a_tail_that_lies_yields_nothing_and_harms_nothing(dispatcher: Dispatcher, name: str) -> None:
    """ESC-32."""
    outcome = await rogue_run(dispatcher, name, fuel=50_000_000)
    assert (outcome.code, outcome.logs, outcome.emitted) == ("fuel_exhausted", [], [])
    assert not outcome.ended.recycle


async def test_arguments_over_the_budget_do_not_leave_the_worker(dispatcher: Dispatcher) -> None:
    outcome = await rogue_run(dispatcher, "the same call again", call_args_bytes=0)
    assert (outcome.code, outcome.calls) == ("internal", [])


async def test_a_result_over_the_budget_does_not_leave_the_worker(dispatcher: Dispatcher) -> None:
    assert (await rogue_run(dispatcher, "honest", result_bytes=0)).code == "internal"


async def test_the_other_runs_of_a_worker_outlive_a_trap_in_it(dispatcher: Dispatcher) -> None:
    inboxes = [Inbox() for _ in range(4)]
    slots = [await dispatcher.acquire(inbox) for inbox in inboxes]
    for slot in slots:
        begin(slot, "", language="endless resume")
    for inbox in inboxes:
        await inbox.paused()
    assert (await rogue_run(dispatcher, "trap: unreachable")).code == "internal"
    for slot, inbox in zip(slots, inboxes, strict=True):
        slot.cancel()
        frame = await inbox.next()
        assert isinstance(frame, Ended)
        assert frame.failure is not None
        assert frame.failure.code == "cancelled"
        slot.release()
