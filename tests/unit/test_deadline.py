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


async def test_work_that_never_waits_is_not_watched():
    deadlines = Deadlines()

    async def watched() -> int:
        return len(deadlines._open)

    assert await deadlines.until(soon() - 1).over(watched()) == 0


async def test_work_that_waits_is_watched_until_it_is_over_and_gives_its_result():
    deadlines = Deadlines()
    until = deadlines.until(soon() + 60)

    async def work() -> int:
        await asyncio.sleep(0)
        seen = len(deadlines._open)
        await asyncio.sleep(0)
        return seen

    assert await until.over(work()) == 1
    assert not deadlines._open
    assert not until.passed


async def test_work_past_its_deadline_is_ended_where_it_waits():
    ended = []

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("there")
        return "late"

    until = limit(soon())
    assert await until.over(work()) is None
    assert until.passed
    assert ended == ["there"]


async def test_work_may_catch_what_it_awaits_and_go_on():
    async def work() -> str:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, KeyError())
        with pytest.raises(KeyError):
            await future
        await asyncio.sleep(0)
        return "went on"

    assert await limit(soon() + 60).over(work()) == "went on"


@pytest.mark.parametrize("waits", [False, True])
async def test_an_error_of_the_work_goes_through(waits: bool):
    async def work() -> None:
        if waits:
            await asyncio.sleep(0)
        raise KeyError

    deadlines = Deadlines()
    with pytest.raises(KeyError):
        await deadlines.until(soon() + 60).over(work())
    assert not deadlines._open


async def test_a_cancellation_from_outside_reaches_the_work_and_goes_through():
    reached = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            reached.append(True)
            raise

    async def wait() -> None:
        await limit(soon() + 60).over(work())

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reached == [True]


async def test_time_that_is_stopped_before_the_work_has_waited_is_not_lost():
    until = limit(soon() + 60)

    async def work() -> float:
        until.stop()
        later = until.go_on()
        await asyncio.sleep(0)
        return later

    began = soon()
    assert began + 59 < (await until.over(work()) or 0) < began + 61
    assert not until.passed
