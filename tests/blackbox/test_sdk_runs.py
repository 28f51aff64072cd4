"""Runs through the SDK, through real workers: answers, records, refusals, cancellation, admission."""

import asyncio
import gc
import itertools

import anyio
import pytest

from executor import (
    Config,
    Conflict,
    Executor,
    InvalidRequest,
    NotFound,
    Overloaded,
    PayloadTooLarge,
    RunFailed,
)
from runtime.live import Live

pytestmark = pytest.mark.anyio

NAP = "await new Promise(done => setTimeout(done, 600000))"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Hanging:
    """A tool that never answers, and says when it was called and when it was cancelled."""

    numbers = itertools.count()

    def __init__(self) -> None:
        self.path = f"test{next(self.numbers)}.org.main.hang"
        self.called = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, args: dict) -> None:
        self.called.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.fixture(scope="module")
async def ex():
    async with Executor.open(config=Config(workers=2)) as executor:
        yield executor


@pytest.fixture(scope="module")
async def small():
    """One place, and one to wait in."""
    async with Executor.open(config=Config(workers=1, max_running=1, max_queued=1)) as executor:
        yield executor


@pytest.fixture
def hang(ex: Executor) -> Hanging:
    tool = Hanging()
    ex.tool(tool.path, tool, side_effect="read")
    return tool


def script(tool: Hanging) -> str:
    return f"await tools.{tool.path}({{}})"


async def test_the_last_expression_is_the_result(ex: Executor):
    answer = await ex.run("const a = 20; a + 22")
    assert (answer.status, answer.result, answer.unwrap()) == ("completed", 42, 42)


async def test_an_answer_has_exactly_the_documented_keys(ex: Executor):
    answer = await ex.run("console.log('hello'); emit({n: 1}); [1, new Uint8Array([104, 105])]")
    data = answer.as_dict()
    assert set(data) == {"run_id", "status", "result", "logs", "emitted", "calls", "usage"}
    assert data["result"] == [1, {"$bytes": "aGk="}]
    assert answer.result == [1, b"hi"]
    assert data["emitted"] == [{"n": 1}]
    assert data["logs"] == [{"level": "log", "text": "hello"}]
    assert set(data["usage"]) == {
        "fuel",
        "wall_ms",
        "memory_bytes",
        "bridge_calls",
        "bridge_calls_in_flight",
        "call_args_bytes",
        "call_value_bytes",
        "source_bytes",
        "input_bytes",
        "result_bytes",
        "log_bytes",
        "cpu_ms",
        "waited_ms",
    }


async def test_a_script_that_throws_is_an_answer_with_its_place(ex: Executor):
    answer = await ex.run("let x = 1\nthrow new TypeError('no')")
    assert answer.status == "failed"
    assert answer.error is not None
    assert (answer.error["code"], answer.error["message"], answer.error["line"]) == ("script_error", "no", 2)
    with pytest.raises(RunFailed, match="no") as failure:
        answer.unwrap()
    assert failure.value.run_id == answer.run_id


async def test_whoever_calls_what_a_call_gave_back_is_told_how_tools_are_called(ex: Executor):
    answer = await ex.run("(await tools.search('x'))()")
    assert answer.error is not None
    assert "tools[item.path](args)" in answer.error["hint"]
    other = await ex.run("const found = {}; found()")
    assert other.error is not None
    assert "hint" not in other.error


async def test_what_was_said_before_a_failure_is_kept(ex: Executor):
    answer = await ex.run("console.log('before'); emit(7); throw new Error('x')")
    assert answer.logs == [{"level": "log", "text": "before"}]
    assert answer.emitted == [7]


@pytest.mark.parametrize("code", ["", "   \n", "// nothing", "undefined"])
async def test_code_without_a_value_gives_null(ex: Executor, code: str):
    answer = await ex.run(code)
    assert (answer.status, answer.result) == ("completed", None)
    assert answer.as_dict()["result"] is None


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1, 2**53, 2**63, -(2**63), 1.5, "", "ü€😀", [], {}, {"a": [1, {"b": None}]}, b"\x00\xff", [b"x"]],
)
async def test_an_input_comes_back_as_it_went_in(ex: Executor, value: object):
    assert (await ex.run("input", input=value)).unwrap() == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), {1: 2}, "\ud800", 2**64, -(2**63) - 1])
async def test_an_input_that_cannot_cross_is_refused_before_anything_runs(ex: Executor, value: object):
    with pytest.raises(InvalidRequest, match="input cannot cross"):
        await ex.run("input", input={"part": [value]})


@pytest.mark.parametrize("language", ["cobol", "", 7, "Python3"])
async def test_an_unknown_language_is_refused_naming_the_known_ones(ex: Executor, language: object):
    with pytest.raises(InvalidRequest) as refusal:
        await ex.run("1", language=language)  # type: ignore[arg-type]
    assert "javascript" in str(refusal.value.hint)


@pytest.mark.parametrize("code", [None, 7, b"1+1", ["1"]])
async def test_code_that_is_no_string_is_refused(ex: Executor, code: object):
    with pytest.raises(InvalidRequest, match="code must be a string"):
        await ex.run(code)  # type: ignore[arg-type]


async def test_code_with_a_lone_surrogate_is_refused(ex: Executor):
    with pytest.raises(InvalidRequest, match="lone surrogate"):
        await ex.run("'\ud800'")


async def test_code_above_its_budget_is_too_large_and_leaves_no_record(ex: Executor):
    before = (await ex.list_runs(limit=1)).items
    with pytest.raises(PayloadTooLarge) as refusal:
        await ex.run("/*" + "x" * 100 + "*/", budgets={"source_bytes": 100})
    assert refusal.value.details == {"name": "source_bytes", "limit": 100, "used": 104}
    with pytest.raises(PayloadTooLarge):
        await ex.run("1", input="x" * 200, budgets={"input_bytes": 100})
    assert (await ex.list_runs(limit=1)).items == before


@pytest.mark.parametrize(
    "labels", ["tag", [1], {"a": 1}, {"": "x"}, {"a=b": "x"}, {str(n): "x" for n in range(33)}, {"k": "v" * 129}]
)
async def test_labels_that_are_none_are_refused(ex: Executor, labels: object):
    with pytest.raises(InvalidRequest):
        await ex.run("1", labels=labels)  # type: ignore[arg-type]


async def test_nothing_of_a_run_is_left_for_the_next(ex: Executor):
    await ex.run("globalThis.secret = 1; Array.prototype.map = () => 'mine'; Object.prototype.x = 1; 0")
    seen = await ex.run("[typeof secret, [1].map(v => v + 1), ({}).x ?? null]")
    assert seen.result == ["undefined", [2], None]


@pytest.mark.parametrize("isolation", ["shared", "run"])
async def test_a_run_has_the_same_answer_at_both_isolation_levels(ex: Executor, isolation: str):
    answer = await ex.run("input.a * 2", input={"a": 21}, isolation=isolation)
    assert answer.unwrap() == 42
    assert (await ex.get_run(answer.run_id)).isolation == isolation


async def test_a_record_has_what_was_asked_and_what_came_of_it(ex: Executor):
    answer = await ex.run(
        "console.log('x'); input.n", input={"n": 5}, labels={"team": "blue"}, budgets={"fuel": 10**9}, principal="ada"
    )
    record = await ex.get_run(answer.run_id)
    assert (record.code, record.input, record.labels, record.principal) == (
        "console.log('x'); input.n",
        {"n": 5},
        {"team": "blue"},
        "ada",
    )
    assert record.budgets["fuel"] == 10**9
    assert (record.status, record.result, record.logs, record.usage) == (
        "completed",
        5,
        answer.logs,
        answer.usage,
    )
    assert record.started_at is not None
    assert record.ended_at is not None
    assert record.created_at <= record.started_at <= record.ended_at


async def test_an_unknown_run_is_not_found(ex: Executor):
    for ask in (ex.get_run, ex.cancel_run, ex.run_result, ex.wait_run):
        with pytest.raises(NotFound):
            await ask("run_" + "0" * 32)


async def test_runs_are_listed_newest_first_filtered_and_paged(ex: Executor):
    ids = [(await ex.run(str(n), labels={"page": "yes", "n": str(n)})).run_id for n in range(5)]
    failed = (await ex.run("throw 1", labels=["page"])).run_id
    page = await ex.list_runs(label="page", limit=4)
    assert [run.run_id for run in page.items] == [failed, *ids[:1:-1]]
    rest = await ex.list_runs(label="page", limit=4, cursor=page.next)
    assert ([run.run_id for run in rest.items], rest.next) == (ids[1::-1], None)
    assert [run.run_id for run in (await ex.list_runs(label="n=3")).items] == [ids[3]]
    assert [run.run_id for run in (await ex.list_runs(label="page", status="failed")).items] == [failed]
    assert page.as_dict()["runs"][0]["error"]["code"] == "script_error"


@pytest.mark.parametrize(
    "query", [{"status": "done"}, {"limit": 0}, {"limit": 501}, {"limit": "5"}, {"cursor": "x"}, {"cursor": "-1"}]
)
async def test_a_query_that_makes_no_sense_is_refused(ex: Executor, query: dict):
    with pytest.raises(InvalidRequest):
        await ex.list_runs(**query)


async def test_a_run_that_is_not_waited_for_is_recorded_and_goes_on(ex: Executor):
    queued = await ex.run("1 + 1", wait=False)
    assert (queued.status, queued.result) == ("queued", None)
    record = await ex.wait_run(queued.run_id)
    assert (record.status, record.result) == ("completed", 2)


async def test_cancelling_a_run_ends_it_and_reaches_its_call(ex: Executor, hang: Hanging):
    """BUD-28"""
    started = await ex.run(f"try {{ {script(hang)} }} catch {{}} finally {{ while (true) await 0 }}", wait=False)
    await hang.called.wait()
    record = await ex.cancel_run(started.run_id)
    assert record.status == "cancelled"
    assert record.error is not None
    assert record.error["code"] == "cancelled"
    assert [call["code"] for call in record.calls] == ["cancelled"]
    with anyio.fail_after(1):
        await hang.cancelled.wait()
    assert (await ex.cancel_run(started.run_id)).ended_at == record.ended_at


async def test_cancelling_the_task_that_waits_cancels_the_run(ex: Executor, hang: Hanging):
    """BUD-28"""
    task = asyncio.create_task(ex.run(script(hang), labels=["gone"]))
    await hang.called.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (record,) = (await ex.list_runs(label="gone")).items
    assert record.status == "cancelled"
    assert ex.health()["runs"]["running"] == 0


async def test_a_scope_that_times_out_cancels_the_run_inside(ex: Executor, hang: Hanging):
    async def cancel_when_called(scope: anyio.CancelScope) -> None:
        await hang.called.wait()
        scope.cancel()

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(cancel_when_called, scope)
            await ex.run(script(hang), labels=["scoped"])
    assert [run.status for run in (await ex.list_runs(label="scoped")).items] == ["cancelled"]


async def test_a_busy_loop_is_cancelled_too(ex: Executor):
    started = await ex.run("for (;;);", wait=False)
    async for event in ex.events(started.run_id):
        if event.data == {"status": "running"}:
            break
    assert (await ex.cancel_run(started.run_id)).status == "cancelled"


async def test_above_the_queue_runs_are_refused_and_a_place_comes_back(small: Executor):
    """BUD-24"""
    first = await small.run(NAP, wait=False)
    second = await small.run(NAP, wait=False)
    with pytest.raises(Overloaded) as refusal:
        await small.run("1")
    assert refusal.value.retry_after_s >= 1
    with pytest.raises(Overloaded):
        await small.run("1", wait=False)
    assert (await small.cancel_run(second.run_id)).status == "cancelled"
    assert (await small.cancel_run(first.run_id)).status == "cancelled"
    assert (await small.run("2")).result == 2


async def test_a_queued_run_that_is_cancelled_never_ran(small: Executor):
    first = await small.run(NAP, wait=False)
    second = await small.run("1", wait=False)
    record = await small.cancel_run(second.run_id)
    assert (record.status, record.started_at, record.usage["fuel"]) == ("cancelled", None, 0)
    await small.cancel_run(first.run_id)


async def test_a_queued_run_waits_and_says_how_long(small: Executor):
    first = await small.run("await new Promise(done => setTimeout(done, 50)); 1", wait=False)
    second = await small.run("2")
    assert second.result == 2
    assert second.usage["waited_ms"] > second.usage["wall_ms"]
    assert (await small.wait_run(first.run_id)).result == 1


async def test_a_run_with_a_known_key_is_the_same_run(ex: Executor):
    first = await ex.run("Math.random()", idempotency_key="once")
    again = await ex.run("Math.random()", idempotency_key="once")
    assert (again.run_id, again.result) == (first.run_id, first.result)
    other = await ex.run("Math.random()", idempotency_key="once", principal="somebody else")
    assert other.run_id != first.run_id
    with pytest.raises(Conflict):
        await ex.run("Math.random()", idempotency_key="once", input=1)
    assert set(again.as_dict()) == set(first.as_dict())


async def test_a_hundred_requests_with_one_key_make_one_run(ex: Executor):
    calls = []
    ex.tool("test.org.main.count", lambda args: calls.append(1), side_effect="read")
    answers = await asyncio.gather(
        *(ex.run("await tools.test.org.main.count({}); 1", idempotency_key="burst") for _ in range(100))
    )
    assert len({answer.run_id for answer in answers}) == 1
    assert {answer.result for answer in answers} == {1}
    assert calls == [1]


async def test_an_exception_in_the_block_comes_out_as_itself():
    async def block() -> None:
        async with Executor.open(config=Config(workers=1)) as ex:
            await ex.run("1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await block()


async def test_closing_cancels_what_runs_and_refuses_what_comes():
    async with Executor.open(config=Config(workers=1)) as ex:
        waiting = asyncio.create_task(ex.run(NAP))
        started = await ex.run(NAP, wait=False)
        async for event in ex.events(started.run_id):
            if event.data == {"status": "running"}:
                break
        events = asyncio.create_task(anext(ex.events(started.run_id, after=2)))
        await ex.close()
        assert (await waiting).status == "cancelled"
        assert (await events).data == {"status": "cancelled"}
        with pytest.raises(Overloaded):
            await ex.run("1")
        await ex.close()


async def test_a_caller_that_goes_away_while_its_run_is_being_accepted_leaves_a_cancelled_run(ex: Executor):
    task = asyncio.create_task(ex.run(NAP, wait=False, labels=["early"]))
    await asyncio.sleep(0)
    (accepting,) = [live for live in ex._parts.runs._live.values() if "early" in live.request.labels]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await ex.wait_run(accepting.id)).status == "cancelled"


async def test_nothing_of_a_run_is_left_in_the_host(ex: Executor):
    """PER-20"""
    ex.tool("left.org.main.echo", lambda args: args, side_effect="read")
    for _ in range(50):
        await ex.run("emit(1); console.log(2); await tools.left.org.main.echo({})")
        await ex.run("throw 1")
        await ex.cancel_run((await ex.run(NAP, wait=False)).run_id)
    gc.collect()
    assert [type(thing) for thing in gc.get_objects() if isinstance(thing, Live)] == []
