"""The pool: who gets a place when, and what happens to runs when workers wear out, stop or die."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import subprocess
import sys
import textwrap

import pytest

from bridge.wire.errors import ConfigError, Overloaded
from bridge.wire.frames import Ended, Pending
from runtime import link as link_module
from runtime.dispatcher import Dispatcher, Lost
from runtime.link import Link
from tests.blackbox.runs import LIMITS, Inbox, begin, run
from tests.unit.pools import finish, held, links, pool, worker_ids

pytestmark = pytest.mark.anyio


async def test_places_are_given_in_the_order_of_asking() -> None:
    async with pool(max_running=1) as dispatcher:
        first = await held(dispatcher)
        order: list[int] = []

        async def ask(number: int) -> None:
            slot = await dispatcher.acquire(Inbox())
            order.append(number)
            slot.release()

        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(ask(number))
                await asyncio.sleep(0)
            assert dispatcher.level()["queued"] == 5
            await finish(*first)
        assert order == [0, 1, 2, 3, 4]
        assert dispatcher.level()["running"] == 0


async def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    async with pool(max_running=1, max_queued=1) as dispatcher:
        first = await held(dispatcher)
        waiting = asyncio.create_task(dispatcher.acquire(Inbox()))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as refused:
            await dispatcher.acquire(Inbox())
        assert refused.value.retry_after_s >= 1
        await finish(*first)
        (await waiting).release()


async def test_whoever_stops_waiting_leaves_the_queue() -> None:
    async with pool(max_running=1) as dispatcher:
        first = await held(dispatcher)
        waiting = asyncio.create_task(dispatcher.acquire(Inbox()))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert dispatcher.level()["queued"] == 0
        await finish(*first)
        assert (await run(dispatcher, "", language="quick")).result == b"\x02"


async def test_a_place_given_to_one_who_has_just_left_goes_to_the_next() -> None:
    async with pool(max_running=1) as dispatcher:
        first = await held(dispatcher)
        leaving = asyncio.create_task(dispatcher.acquire(Inbox()))
        await asyncio.sleep(0)
        await finish(*first)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        assert dispatcher.level()["running"] == 0
        assert (await run(dispatcher, "", language="quick")).result == b"\x02"


async def test_a_slot_gives_its_place_back_once() -> None:
    async with pool(max_running=2) as dispatcher:
        slot = await dispatcher.acquire(Inbox())
        assert dispatcher.level()["running"] == 1
        slot.release()
        slot.release()
        assert dispatcher.level()["running"] == 0


async def test_a_released_run_is_stopped_unheard_and_keeps_its_place_until_then() -> None:
    async with pool(max_running=1) as dispatcher:
        inbox = Inbox()
        slot = await dispatcher.acquire(inbox)
        begin(slot, "", language="endless", limits=LIMITS._replace(fuel=10**12))
        slot.release()
        assert dispatcher.level()["running"] == 1
        assert (await run(dispatcher, "", language="quick")).result == b"\x02"
        assert inbox.empty


@pytest.mark.parametrize("language", ["held", "endless"])
async def test_a_cancelled_run_ends_as_cancelled(language: str) -> None:
    async with pool() as dispatcher:
        inbox = Inbox()
        slot = await dispatcher.acquire(inbox)
        begin(slot, "", language=language, limits=LIMITS._replace(fuel=10**12))
        if language == "held":
            await inbox.paused()
        slot.cancel()
        slot.cancel()
        frame = await inbox.next()
        assert isinstance(frame, Ended)
        assert frame.failure is not None
        assert frame.failure.code == "cancelled"
        slot.resume(0, [])
        slot.release()
        assert [link.gone for link in links(dispatcher)] == [None]


async def test_runs_are_spread_over_the_workers() -> None:
    async with pool(workers=2) as dispatcher:
        runs = [await held(dispatcher) for _ in range(4)]
        assert [link.load for link in links(dispatcher)] == [2, 2]
        for each in runs:
            await finish(*each)


async def test_a_worker_is_replaced_after_its_number_of_runs_while_old_ones_finish() -> None:
    async with pool(recycle_after_runs=3) as dispatcher:
        [worn] = links(dispatcher)
        old = await held(dispatcher)
        for _ in range(2):
            assert (await run(dispatcher, "", language="quick")).result == b"\x02"
        [second] = await worker_ids(dispatcher, 1)
        assert second != worn.pid
        assert (await run(dispatcher, "", language="quick")).result == b"\x02"
        await finish(*old)
        await worn.ended()


async def test_a_worker_whose_guest_trapped_takes_no_new_run() -> None:
    async with pool() as dispatcher:
        [first] = await worker_ids(dispatcher, 1)
        assert (await run(dispatcher, "", language="trapping")).code == "internal"
        assert (await run(dispatcher, "", language="quick")).result == b"\x02"
        assert first not in await worker_ids(dispatcher, 1)


async def test_isolation_run_gives_each_run_a_worker_of_its_own_that_ends_with_it() -> None:
    """WRK-05."""
    async with pool() as dispatcher:
        seen: set[int] = set()
        for _ in range(3):
            slot, inbox = await held(dispatcher, isolation="run")
            own = slot._line
            assert isinstance(own, Link)
            assert own.pid not in seen
            assert own not in links(dispatcher)
            seen.add(own.pid)
            await finish(slot, inbox)
            await own.ended()


async def test_runs_with_a_worker_of_their_own_wait_when_there_are_too_many() -> None:
    async with pool(max_fresh=1, max_queued=1) as dispatcher:
        first = await held(dispatcher, isolation="run")
        second = asyncio.create_task(held(dispatcher, isolation="run"))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await dispatcher.acquire(Inbox(), isolation="run")
        await finish(*first)
        await finish(*await second)


async def test_closing_ends_every_run_and_every_process_and_can_be_done_twice() -> None:
    before = open_descriptors()
    async with pool(workers=2) as dispatcher:
        runs = [await held(dispatcher), await held(dispatcher, isolation="run")]
        waiting = asyncio.create_task(Dispatcher.acquire(dispatcher, Inbox(), isolation="run"))
        pids = [link.pid for link in links(dispatcher)]
        (await waiting).release()
        await dispatcher.aclose()
        for _, inbox in runs:
            assert isinstance(await inbox.next(), Lost)
        for slot, _ in runs:
            slot.release()
        with pytest.raises(Overloaded):
            await dispatcher.acquire(Inbox())
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    gc.collect()
    assert open_descriptors() == before


async def test_those_who_wait_are_refused_when_the_pool_closes() -> None:
    async with pool(max_running=1) as dispatcher:
        slot, _ = await held(dispatcher)
        waiting = asyncio.create_task(dispatcher.acquire(Inbox()))
        await asyncio.sleep(0)
        await dispatcher.aclose()
        with pytest.raises(Overloaded):
            await waiting
        slot.release()


async def test_a_level_that_cannot_be_reached_is_refused_at_the_start() -> None:
    """WRK-02."""
    with pytest.raises(ConfigError, match="isolation layers"):
        async with pool(require="more than there is"):
            pytest.fail("the pool opened")


async def test_a_guest_that_is_none_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match="image"):
        async with pool(images={"quick": b"\0asm\x01\0\0\0"}):
            pytest.fail("the pool opened")


async def test_where_the_c_api_is_not_as_known_the_public_one_gives_the_same_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = link_module.worker_command

    def command(mode: str) -> list[str]:
        wanting = [sys.executable, "-c", f"import os; os._exit({link_module.EXIT_FIBERS})"]
        return wanting if mode == "fibers" else real(mode)

    monkeypatch.setattr(link_module, "worker_command", command)
    async with pool() as dispatcher:
        assert dispatcher.level()["mode"] == "calls"
        assert dispatcher.level()["level"] == "full"
        assert (await run(dispatcher, "", language="quick")).result == b"\x02"
        assert (await run(dispatcher, "x" * 70_000, language="held")).result == b"\x02"
        exhausted = await run(dispatcher, "", language="endless", limits=LIMITS._replace(fuel=10**7))
        assert (exhausted.code, exhausted.ended.usage.fuel) == ("fuel_exhausted", 10**7)
        late = await run(dispatcher, "", language="endless", limits=LIMITS._replace(fuel=10**12, wall_ms=100))
        assert late.code == "deadline_exceeded"
        assert (await run(dispatcher, "", language="trapping")).code == "internal"


def test_workers_die_with_the_host_however_it_ends() -> None:
    """PER-25."""
    host = textwrap.dedent(
        """
        import asyncio, os, sys
        from runtime.dispatcher import Dispatcher, DispatcherSettings
        from tests.blackbox.rogue import CompiledHere, guest
        from tests.blackbox.runs import Inbox, begin, LIMITS
        async def main():
            images = {"endless": guest("(loop $l (br $l)) (i64.const 0)")}
            async with Dispatcher(DispatcherSettings(workers=2, images=images), cache=CompiledHere()) as d:
                slot = await d.acquire(Inbox())
                begin(slot, "", language="endless", limits=LIMITS._replace(fuel=10**12, wall_ms=600_000))
                print(*[link.pid for link in d._links], flush=True)
                sys.stdin.read()
        asyncio.run(main())
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", host], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        watched = [os.pidfd_open(pid) for pid in pids]
        process.kill()
    assert len(watched) == 2
    for descriptor in watched:
        assert select.select([descriptor], [], [], 10)[0]
        os.close(descriptor)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_a_pause_is_told_before_the_end_that_cancels_it() -> None:
    async with pool() as dispatcher:
        slot, inbox = await held(dispatcher)
        slot.cancel()
        frame = await inbox.next()
        assert isinstance(frame, Ended)
        assert not isinstance(frame, Pending)
        assert inbox.empty
        slot.release()
