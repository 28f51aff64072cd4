"""How long a worker may take to stop a run: as long as it does what it can."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest

from runtime.grace import PATIENCE, Grace, cpu_seconds

pytestmark = pytest.mark.anyio

SECONDS = 0.001


class Worker:
    """A worker that is looked at: `does` says what it has done by the time of each look."""

    def __init__(self, does: Callable[[int], tuple[int, float | None]]) -> None:
        self._does = does
        self.looks = -1

    @property
    def heard(self) -> int:
        return self._does(self.looks + 1)[0]

    def cpu_s(self) -> float | None:
        self.looks += 1
        return self._does(self.looks)[1]


async def graces(does: Callable[[int], tuple[int, float | None]]) -> int:
    """How many graces such a worker gets."""
    worker = Worker(does)
    overran = asyncio.Event()
    Grace(worker, SECONDS, overran.set)
    await overran.wait()
    return worker.looks


async def test_a_worker_that_neither_speaks_nor_computes_gets_one() -> None:
    assert await graces(lambda look: (0, 0.0)) == 1


async def test_a_worker_that_computes_all_the_time_without_a_word_gets_one() -> None:
    assert await graces(lambda look: (0, look * 2 * SECONDS)) == 1


async def test_a_worker_that_gets_little_of_the_processor_gets_more_until_it_has_had_its_share() -> None:
    assert await graces(lambda look: (0, look * 0.5 * SECONDS)) == 4


async def test_a_worker_that_speaks_gets_more_but_not_for_ever() -> None:
    assert await graces(lambda look: (look, look * 9.0)) == PATIENCE - 1


async def test_a_worker_that_falls_silent_is_judged_from_its_last_word() -> None:
    assert await graces(lambda look: (min(look, 3), look * 2 * SECONDS)) == 4


async def test_where_the_system_tells_nothing_a_silent_worker_gets_one() -> None:
    assert await graces(lambda look: (0, None)) == 1


async def test_a_grace_that_has_ended_calls_nobody() -> None:
    called: list[bool] = []
    grace = Grace(Worker(lambda look: (0, 0.0)), 0, lambda: called.append(True))
    grace.end()
    for _ in range(3):
        await asyncio.sleep(0)
    assert called == []


def test_the_processor_time_of_a_process_is_read_and_of_none_is_none() -> None:
    seconds = cpu_seconds(os.getpid())
    assert seconds is not None
    assert 0 < seconds <= sum(os.times()[:2]) + 0.02
    assert cpu_seconds(2**22 + 1) is None
