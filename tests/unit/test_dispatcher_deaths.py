"""What happens to runs and to the pool when workers die or do not stop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

import pytest

from runtime import dispatcher as dispatcher_module
from runtime.dispatcher import Lost
from runtime.link import Link
from tests.blackbox.runs import LIMITS, Inbox, begin, run
from tests.unit.pools import finish, held, links, pool, worker_ids

pytestmark = pytest.mark.anyio


async def test_a_killed_worker_loses_its_runs_alone_and_is_replaced() -> None:
    """PER-18."""
    async with pool(workers=2) as dispatcher:
        before = await worker_ids(dispatcher, 2)
        runs = [await held(dispatcher) for _ in range(4)]
        victim = links(dispatcher)[0].pid
        os.kill(victim, signal.SIGKILL)
        ends = [inbox for slot, inbox in runs if slot._line.pid == victim]  # type: ignore[attr-defined]
        for inbox in ends:
            assert isinstance(await inbox.next(), Lost)
        for slot, inbox in runs:
            if inbox in ends:
                slot.release()
            else:
                await finish(slot, inbox)
        after = await worker_ids(dispatcher, 2)
        assert victim not in after
        assert len(before & after) == 1


async def test_runs_that_a_worker_had_said_nothing_of_are_told_apart_from_the_one_that_it_died_of() -> None:
    """PER-19."""
    endless = LIMITS._replace(fuel=10**12)
    async with pool() as dispatcher:
        paused = await held(dispatcher)
        alone = Inbox()
        slots = [paused[0], await dispatcher.acquire(alone)]
        begin(slots[1], "", language="endless", limits=endless)
        links(dispatcher)[0].kill("gone")
        assert [await inbox.next() for inbox in (paused[1], alone)] == [
            Lost("gone", innocent=True),
            Lost("gone"),
        ]
        inboxes = [Inbox() for _ in range(2)]
        for inbox in inboxes:
            slots.append(await dispatcher.acquire(inbox))
            begin(slots[-1], "", language="endless", limits=endless)
        links(dispatcher)[0].kill("gone", slots[2])
        assert [await inbox.next() for inbox in inboxes] == [
            Lost("gone"),
            Lost("gone", untouched=True, innocent=True),
        ]
        for slot in slots:
            slot.release()


async def test_workers_killed_again_and_again_come_back() -> None:
    """PER-18."""
    async with pool(workers=2) as dispatcher:
        for _ in range(6):
            for pid in await worker_ids(dispatcher, 2):
                os.kill(pid, signal.SIGKILL)
            outcome = await run(dispatcher, "", language="quick")
            assert isinstance(outcome.ending, Lost) or outcome.result == b"\x02"
        await worker_ids(dispatcher, 2)
        assert (await run(dispatcher, "", language="quick")).result == b"\x02"
        assert dispatcher.level()["running"] == 0


async def test_workers_killed_as_soon_as_they_have_come_are_replaced_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """PER-18."""
    async with pool(workers=2) as dispatcher:
        tidied = threading.Event()
        monkeypatch.setattr(dispatcher_module, "give_back", tidied.wait)
        try:
            for _ in range(2):
                for pid in await worker_ids(dispatcher, 2):
                    os.kill(pid, signal.SIGKILL)
                await worker_ids(dispatcher, 0)
        finally:
            tidied.set()
        await worker_ids(dispatcher, 2)


async def test_a_worker_that_is_gone_before_it_joins_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """PER-18."""
    async with pool(workers=1) as dispatcher:
        spawn, died = dispatcher._spawn, asyncio.Event()

        async def dying(closed: Any) -> Link:
            link = await spawn(closed)
            if not died.is_set():
                await link.close()
                died.set()
            return link

        monkeypatch.setattr(dispatcher, "_spawn", dying)
        [pid] = await worker_ids(dispatcher, 1)
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            await died.wait()
        await worker_ids(dispatcher, 1)
        assert len(links(dispatcher)) == 1


async def test_a_stopped_worker_is_killed_when_it_does_not_answer_a_cancel() -> None:
    async with pool(grace_ms=100) as dispatcher:
        slot, inbox = await held(dispatcher)
        [pid] = await worker_ids(dispatcher, 1)
        os.kill(pid, signal.SIGSTOP)
        slot.cancel()
        assert isinstance(await inbox.next(), Lost)
        slot.release()
        assert (await run(dispatcher, "", language="quick")).result == b"\x02"
        assert pid not in await worker_ids(dispatcher, 1)


async def test_bulk_memory_operations_that_outlast_the_grace_end_with_their_worker() -> None:
    limits = LIMITS._replace(memory_bytes=512 << 20, fuel=10**12)
    async with pool(grace_ms=1) as dispatcher:
        inbox = Inbox()
        slot = await dispatcher.acquire(inbox)
        begin(slot, "", language="filling", limits=limits)
        slot.cancel()
        frame = await inbox.next()
        assert isinstance(frame, Lost) or (frame.failure is not None and frame.failure.code == "cancelled")  # type: ignore[union-attr]
        slot.release()
        assert (await run(dispatcher, "", language="quick")).result == b"\x02"
