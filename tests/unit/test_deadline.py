"""The time limit around a call: it ends what waits, and nothing else."""

import asyncio

import pytest

from bridge.deadline import Deadline, Deadlines

pytestmark = pytest.mark.anyio


def soon() -> float:
    return asyncio.get_running_loop().time()


def limit(when: float) -> Deadline:
    return Deadlines().until(when)


async def test_what_waits_past_the_deadline_is_ended_and_the_task_goes_on():
    reached = False
    with limit(soon()) as deadline:
        await asyncio.Event().wait()
        reached = True
    assert deadline.passed
    assert not reached
    await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_is_over_in_time_is_left_alone():
    with limit(soon() + 60) as deadline:
        await asyncio.sleep(0)
    assert not deadline.passed


async def test_an_error_of_the_block_goes_through():
    with pytest.raises(KeyError), limit(soon() + 60):
        raise KeyError


async def test_a_cancellation_from_outside_goes_through():
    async def wait() -> None:
        with limit(soon() + 60):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_wins_over_a_deadline_of_the_same_moment():
    async def wait() -> None:
        with limit(soon()):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_of_two_deadlines_the_inner_one_ends_the_inner_block_alone():
    with limit(soon() + 60) as outer:
        with limit(soon()) as inner:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
    assert (inner.passed, outer.passed) == (True, False)


async def test_limits_that_share_a_timer_each_end_their_own_block_in_their_order():
    deadlines, ended = Deadlines(), []

    async def wait(name: str, left: float) -> None:
        with deadlines.until(began + left) as deadline:
            await asyncio.Event().wait()
        ended.append((name, deadline.passed))

    began = soon()
    late, never = asyncio.create_task(wait("late", 0.03)), asyncio.create_task(wait("never", 60))
    await asyncio.sleep(0)
    with deadlines.until(began + 90):
        await asyncio.sleep(0)
    await asyncio.gather(late, *(wait(name, left) for name, left in (("soon", 0.01), ("sooner", 0))))
    assert ended == [("sooner", True), ("soon", True), ("late", True)]
    never.cancel()
    with pytest.raises(asyncio.CancelledError):
        await never


async def test_a_limit_that_passed_before_its_block_waits_ends_it_at_its_first_wait():
    with limit(soon() - 1) as deadline:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.Event().wait()
    assert deadline.passed
