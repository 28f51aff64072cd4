"""The events of a run: as they happen, and told again from the record."""

import asyncio

import anyio
import pytest

from executor import Config, Executor, InvalidRequest, NotFound, RunEvent

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex():
    async with Executor.open(config=Config(workers=1)) as executor:
        executor.tool("e.org.main.echo", lambda args: args, side_effect="read")
        yield executor


SCRIPT = "console.log('one'); await tools.e.org.main.echo({n: 1}); emit(new Uint8Array([1])); console.warn('two'); 3"


async def collect(ex: Executor, run_id: str, after: int = 0) -> list[RunEvent]:
    with anyio.fail_after(30):
        return [event async for event in ex.events(run_id, after=after)]


async def test_events_come_in_order_and_end_with_the_answer(ex: Executor):
    answer = await ex.run(SCRIPT)
    events = await collect(ex, answer.run_id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [(event.type, event.data.get("status") or event.data.get("text")) for event in events] == [
        ("status", "queued"),
        ("status", "running"),
        ("log", "one"),
        ("call", None),
        ("call", None),
        ("log", "two"),
        ("emit", None),
        ("status", "completed"),
        ("result", "completed"),
    ]
    assert [event.data["state"] for event in events if event.type == "call"] == ["started", "done"]
    assert events[-1].data == answer.as_dict()


async def test_a_live_subscriber_and_a_late_one_see_the_same(ex: Executor):
    release = asyncio.Event()

    async def wait(args: dict) -> None:
        await release.wait()

    ex.tool("e.org.main.wait", wait, side_effect="read")
    started = await ex.run(f"await tools.e.org.main.wait({{}}); {SCRIPT}", wait=False)
    live: list[RunEvent] = []
    async for event in ex.events(started.run_id):
        live.append(event)
        if event.type == "call":
            release.set()
    assert await collect(ex, started.run_id) == live
    assert await collect(ex, started.run_id, after=4) == live[4:]
    assert await collect(ex, started.run_id, after=1000) == []


async def test_many_subscribers_each_see_everything(ex: Executor):
    started = await ex.run(f"await new Promise(done => setTimeout(done, 20)); {SCRIPT}", wait=False)
    seen = await asyncio.gather(*(collect(ex, started.run_id) for _ in range(10)))
    assert all(events == seen[0] for events in seen)
    assert seen[0][-1].type == "result"


async def test_a_failed_run_ends_with_its_failure(ex: Executor):
    answer = await ex.run("throw new Error('x')")
    events = await collect(ex, answer.run_id)
    assert events[-2].data == {"status": "failed"}
    assert events[-1].data["error"]["message"] == "x"


async def test_the_result_event_comes_after_the_record_is_kept(ex: Executor):
    started = await ex.run("1", wait=False)
    async for event in ex.events(started.run_id):
        if event.type == "result":
            assert (await ex.get_run(started.run_id)).status == "completed"


async def test_events_of_no_run_are_not_found(ex: Executor):
    with pytest.raises(NotFound):
        await collect(ex, "run_none")


@pytest.mark.parametrize("after", [-1, "1", None, 1.5])
async def test_a_place_that_is_none_is_refused(ex: Executor, after: object):
    with pytest.raises(InvalidRequest):
        await anext(ex.events("run_x", after=after))  # type: ignore[arg-type]
