"""Scripts in real workers with the real guests: codes, positions, output, time, fairness, the same fuel everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgpack
import pytest

from bridge.wire.frames import Answer, Ended
from guest import images
from runtime.dispatcher import Dispatcher, DispatcherSettings
from tests.blackbox.runs import LIMITS, Inbox, begin, run

pytestmark = pytest.mark.anyio

ENDLESS = "for (;;) {}"
LONG = "let s = 0; for (let i = 0; i < 3e5; i++) s += i; s"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def dispatcher() -> AsyncIterator[Dispatcher]:
    images.build()
    async with Dispatcher(DispatcherSettings(workers=1)) as running:
        yield running


CODES = {
    "script_error": "null.x",
    "syntax_error": "const = 1",
    "never_settles": "await new Promise(() => {})",
    "stack_exhausted": "function f() { return f() + 1 } f()",
    "unserializable": "({ a: [1, () => 1] })",
    "memory_exhausted": "const all = []; for (;;) all.push(new Uint8Array(1e6))",
    "calls_exhausted": "for (;;) tools.a.org.b.c({})",
}


@pytest.mark.parametrize("code", CODES)
async def test_a_guests_code_comes_through_and_its_worker_stays(dispatcher: Dispatcher, code: str) -> None:
    outcome = await run(dispatcher, CODES[code], language="typescript")
    assert outcome.code == code
    assert not outcome.ended.recycle
    assert (await run(dispatcher, "1 + 1")).result == b"\x02"


async def test_a_result_over_its_limit_is_named(dispatcher: Dispatcher) -> None:
    outcome = await run(dispatcher, "Array(20_000).fill('text')", limits=LIMITS._replace(result_bytes=50_000))
    assert outcome.code == "result_too_large"


@pytest.mark.parametrize(
    "source",
    [
        ENDLESS,
        "try { for (;;) {} } catch {} finally { for (;;) {} }",
        "for (;;) { try { null.x } catch {} }",
        "const f = () => Promise.resolve().then(f); await f()",
        "for (;;) await null",
        "/^(a+)+$/.test('a'.repeat(40) + '!')",
    ],
)
async def test_fuel_ends_what_no_script_can_catch(dispatcher: Dispatcher, source: str) -> None:
    outcome = await run(dispatcher, source, limits=LIMITS._replace(fuel=200_000_000))
    assert outcome.code == "fuel_exhausted"
    assert outcome.ended.usage.fuel == 200_000_000
    assert not outcome.ended.recycle


async def test_time_ends_a_step_between_two_slices(dispatcher: Dispatcher) -> None:
    outcome = await run(dispatcher, f"console.log('on'); {ENDLESS}", limits=LIMITS._replace(wall_ms=50, fuel=10**12))
    assert outcome.code == "deadline_exceeded"
    assert [log.text for log in outcome.logs] == ["on"]


async def test_a_step_in_its_slices_is_cancelled_and_keeps_its_output(dispatcher: Dispatcher) -> None:
    inbox = Inbox()
    slot = await dispatcher.acquire(inbox)
    begin(slot, f"console.log('on'); emit(1); {ENDLESS}", limits=LIMITS._replace(fuel=10**12))
    assert (await run(dispatcher, "1 + 1")).result == b"\x02"
    slot.cancel()
    frame = await inbox.next()
    assert isinstance(frame, Ended)
    assert frame.failure is not None
    assert (frame.failure.code, [log.text for log in frame.logs], frame.emitted) == ("cancelled", ["on"], [b"\x01"])
    slot.release()


async def test_output_comes_with_the_step_that_made_it(dispatcher: Dispatcher) -> None:
    source = "console.log('one'); emit('a'); await tools.a.org.b.c({}); console.warn('two'); emit('b'); 1"
    outcome = await run(dispatcher, source)
    assert [(log.level, log.text) for log in outcome.logs] == [("log", "one"), ("warn", "two")]
    assert outcome.emitted == [msgpack.packb("a"), msgpack.packb("b")]
    assert outcome.ended.usage.log_bytes >= len("onetwo")


async def test_a_timer_is_a_time_to_wake_up_at(dispatcher: Dispatcher) -> None:
    inbox = Inbox()
    slot = await dispatcher.acquire(inbox)
    begin(slot, "await new Promise(r => setTimeout(r, 50)); Date.now()")
    paused = await inbox.paused()
    assert paused.wake_us is not None
    assert 50_000 <= paused.wake_us < 51_000
    slot.resume(paused.wake_us, [])
    frame = await inbox.next()
    assert isinstance(frame, Ended)
    assert frame.result == msgpack.packb(50)
    slot.release()


async def test_answers_may_come_one_by_one_in_any_order(dispatcher: Dispatcher) -> None:
    inbox = Inbox()
    slot = await dispatcher.acquire(inbox)
    begin(slot, "(await Promise.all([1, 2, 3].map(n => tools.a.org.b.c({ n })))).join()")
    calls = (await inbox.paused()).calls
    for call in reversed(calls[1:]):
        slot.resume(0, [Answer(call.id, True, msgpack.packb(f"v{call.id}"))])
        await inbox.paused()
    slot.resume(0, [Answer(calls[0].id, True, msgpack.packb("first"))])
    frame = await inbox.next()
    assert isinstance(frame, Ended)
    assert frame.result == msgpack.packb(f"first,v{calls[1].id},v{calls[2].id}")
    slot.release()


async def test_typescript_and_fenced_text_run_and_errors_are_where_they_were_sent(dispatcher: Dispatcher) -> None:
    typed = await run(dispatcher, "const n: number = 20;\nenum E { A = 22 }\nn + E.A", language="typescript")
    assert typed.result == msgpack.packb(42)
    fenced = "Here you are:\n```ts\nconst n: number = 1;\nnull!.x\n```\n"
    outcome = await run(dispatcher, fenced, language="typescript")
    assert outcome.ended.failure is not None
    assert (outcome.code, outcome.ended.failure.line) == ("script_error", 4)


async def test_stripping_types_is_paid_from_the_runs_own_fuel(dispatcher: Dispatcher) -> None:
    plain = await run(dispatcher, "const n = 1; n", language="typescript")
    typed = await run(dispatcher, "const n: number = 1; n", language="typescript")
    assert typed.ended.usage.fuel > plain.ended.usage.fuel
    fuel = plain.ended.usage.fuel * 2
    short = await run(dispatcher, "const n: number = 1; n", language="typescript", limits=LIMITS._replace(fuel=fuel))
    assert (short.code, short.ended.usage.fuel) == ("fuel_exhausted", fuel)


@pytest.mark.parametrize("size", [70_000, 1_000_000])
async def test_large_values_cross_both_ways(dispatcher: Dispatcher, size: int) -> None:
    value = msgpack.packb("é" * (size // 2))
    source = "const back = await tools.a.org.b.c({ input }); back.input === input ? back.input : 'changed'"
    outcome = await run(dispatcher, source, value=value, limits=LIMITS._replace(call_args_bytes=4 << 20))
    assert outcome.result == value


async def test_lone_surrogates_in_a_source_do_no_harm(dispatcher: Dispatcher) -> None:
    assert (await run(dispatcher, "'\ud800'.length")).result == b"\x01"


async def test_the_same_run_uses_the_same_fuel_in_every_process(dispatcher: Dispatcher) -> None:
    source = "const r = await tools.a.org.b.c({ n: Math.random(), at: Date.now() }); JSON.stringify(r)"
    async with Dispatcher(DispatcherSettings(workers=1)) as other:
        outcomes = [await run(where, source) for where in (dispatcher, other, dispatcher)]
        outcomes.append(await run(other, source, isolation="run"))
    assert len({(outcome.ended.usage.fuel, outcome.result) for outcome in outcomes}) == 1


async def test_a_short_run_does_not_wait_behind_long_ones(dispatcher: Dispatcher) -> None:
    """Ten runs that need hundreds of slices each are under way: short ones come and go before any of them ends."""
    inboxes = [Inbox() for _ in range(10)]
    slots = [await dispatcher.acquire(inbox) for inbox in inboxes]
    for slot in slots:
        begin(slot, ENDLESS, limits=LIMITS._replace(fuel=10**12))
    for _ in range(20):
        assert (await run(dispatcher, "1 + 1")).result == b"\x02"
    assert all(inbox.empty for inbox in inboxes)
    for slot in slots:
        slot.release()


async def test_runs_that_outlive_a_slice_take_turns(dispatcher: Dispatcher) -> None:
    """One run of many slices began first; another of a few slices still ends before it."""
    first, second = Inbox(), Inbox()
    slots = [await dispatcher.acquire(inbox) for inbox in (first, second, Inbox(), Inbox())]
    for slot in slots[2:]:
        begin(slot, ENDLESS, limits=LIMITS._replace(fuel=10**12))
    begin(slots[0], ENDLESS, limits=LIMITS._replace(fuel=10**12))
    begin(slots[1], LONG)
    frame = await second.next()
    assert isinstance(frame, Ended)
    assert frame.result == msgpack.packb(44999850000)
    assert frame.usage.fuel > 50_000_000
    assert first.empty
    for slot in slots:
        slot.release()


async def test_a_thousand_runs_can_be_paused_in_one_worker() -> None:
    async with Dispatcher(DispatcherSettings(workers=1, max_running=1000)) as roomy:
        inboxes = [Inbox() for _ in range(1000)]
        slots = [await roomy.acquire(inbox) for inbox in inboxes]
        for slot in slots:
            begin(slot, "const r = await tools.a.org.b.c({}); r + 1")
        for inbox in inboxes:
            await inbox.paused()
        for number, slot in enumerate(slots):
            slot.resume(0, [Answer(1, True, msgpack.packb(number))])
        for number, inbox in enumerate(inboxes):
            frame = await inbox.next()
            assert isinstance(frame, Ended)
            assert frame.result == msgpack.packb(number + 1)
        for slot in slots:
            slot.release()
        assert roomy.level()["running"] == 0


async def test_cancelling_while_answers_are_on_their_way_ends_each_run_once(dispatcher: Dispatcher) -> None:
    """A cancel crosses a resume and the pause that follows it, in every order that happens."""
    for _ in range(30):
        inbox = Inbox()
        slot = await dispatcher.acquire(inbox)
        begin(slot, "for (;;) await tools.a.org.b.c({})")
        call = (await inbox.paused()).calls[0]
        slot.resume(0, [Answer(call.id, True, b"\xc0")])
        slot.cancel()
        frame = await inbox.next()
        assert isinstance(frame, Ended)
        assert frame.failure is not None
        assert frame.failure.code == "cancelled"
        slot.release()
        await asyncio.sleep(0)
        assert inbox.empty
