"""Tasks with an owner: they start at once where they can, and end with it."""

import asyncio
import contextvars

import pytest

from runtime.tasks import Tasks

pytestmark = pytest.mark.anyio


async def spawned_from_the_loop(tasks: Tasks, work) -> asyncio.Task:
    """The task, spawned as frames of a worker do it: by a callback of the loop."""
    made: asyncio.Future[asyncio.Task] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(lambda: made.set_result(tasks.spawn(work)))
    return await made


async def test_what_does_not_wait_is_over_when_it_was_spawned():
    async def at_once() -> int:
        return 7

    task = await spawned_from_the_loop(Tasks(), at_once())
    assert task.done()
    assert task.result() == 7


async def test_what_waits_goes_on_later_in_a_task_of_its_own():
    release = asyncio.Event()
    seen: list[object] = []

    async def waits() -> str:
        seen.append(asyncio.current_task())
        await release.wait()
        seen.append(asyncio.current_task())
        return "done"

    tasks = Tasks()
    task = await spawned_from_the_loop(tasks, waits())
    assert not task.done()
    assert seen == [task]
    release.set()
    assert await task == "done"
    assert seen == [task, task]
    await tasks.close()


async def test_a_task_sees_a_copy_of_the_context():
    place = contextvars.ContextVar("place", default="outside")

    async def moves() -> None:
        place.set("inside")

    await spawned_from_the_loop(Tasks(), moves())
    assert place.get() == "outside"


async def test_the_loop_schedules_as_before():
    async def at_once() -> None:
        pass

    await spawned_from_the_loop(Tasks(), at_once())
    assert "call_soon" not in vars(asyncio.get_running_loop())


async def test_within_a_task_another_starts_at_the_next_turn():
    began = False

    async def begins() -> None:
        nonlocal began
        began = True

    task = Tasks().spawn(begins())
    assert not began
    await task
    assert began


async def test_closing_ends_what_still_waits():
    tasks = Tasks()
    task = await spawned_from_the_loop(tasks, asyncio.Event().wait())
    await tasks.close()
    assert task.cancelled()
