"""Calls that wait for a person: asked in full, answered once, and nothing is sent without a yes to exactly that."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from executor import Config, Conflict, Executor, InvalidRequest, NotFound, RunResult
from runtime import patience

pytestmark = pytest.mark.anyio

ROUNDS = int(os.environ.get("EXECUTOR_TEST_ROUNDS", "4"))


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class House:
    """An Executor whose tool `p.org.main.pay` needs a yes, and what it was called with."""

    def __init__(self, ex: Executor) -> None:
        self.ex = ex
        self.paid: list[Any] = []
        ex.tool("p.org.main.pay", self._pay, side_effect="write")
        ex.tool("p.org.main.look", lambda args: args.get("n"), side_effect="read")

    def _pay(self, args: dict) -> dict:
        self.paid.append(args)
        return {"paid": args}

    async def answer(self, run: RunResult, action: str, at: int = 0, **options: Any) -> RunResult:
        return await self.ex.resume(run.run_id, run.interactions[at]["id"], action, **options)


@pytest.fixture(scope="module")
async def shared():
    async with Executor.open(config=Config(workers=2)) as ex:
        yield ex


@pytest.fixture
async def house(shared: Executor):
    return House(shared)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that waits gives its isolate up at once."""
    monkeypatch.setattr(patience, "LINGER_S", 0.0)


async def gone(ex: Executor) -> None:
    """Wait until no run is in memory."""
    with anyio.fail_after(20):
        while ex._parts.runs._live:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


def code_of(e: pytest.ExceptionInfo[Conflict]) -> str:
    return e.value.code


async def test_a_call_that_needs_a_yes_is_asked_in_full_and_sent_after_it(house: House):
    """POL-16"""
    large = "\x1b[2J\u202e" + "\n" * 10_000 + "x" * 300_000
    run = await house.ex.run("await tools.p.org.main.pay({to: 'ann', note: input})", input=large)
    (asked,) = run.interactions
    assert (run.status, asked["kind"], asked["path"]) == ("waiting", "approval", "p.org.main.pay")
    assert asked["arguments"] == {"to": "ann", "note": large}
    assert asked["reason"]
    assert asked["expires_at"] > asked["created_at"]
    assert house.paid == []
    ended = await house.answer(run, "approve")
    assert ended.unwrap() == {"paid": {"to": "ann", "note": large}}
    assert house.paid == [{"to": "ann", "note": large}]
    assert [(call["outcome"], call["decision"]) for call in ended.calls] == [("done", "require_approval")]


@pytest.mark.parametrize("parked", [False, True])
async def test_others_go_on_and_several_are_decided_in_any_order(
    house: House, parked: bool, monkeypatch: pytest.MonkeyPatch
):
    if parked:
        monkeypatch.setattr(patience, "LINGER_S", 0.0)
    run = await house.ex.run(
        """
        const said = [];
        const pay = n => tools.p.org.main.pay({n}).then(v => v.paid.n, e => `${e.code}: ${e.details.content.reason}`);
        try {
            const all = await Promise.all([pay(1), tools.p.org.main.look({n: 7}), pay(2), pay(3)]);
            said.push(...all);
        } finally { said.push("finally") }
        said"""
    )
    assert [asked["arguments"]["n"] for asked in run.interactions] == [1, 2, 3]
    assert [call["outcome"] for call in run.calls] == ["waiting", "done", "waiting", "waiting"]
    if parked:
        await gone(house.ex)
    assert [a["arguments"]["n"] for a in (await house.ex.get_run(run.run_id)).interactions] == [1, 2, 3]
    second = await house.answer(run, "deny", 1, content={"reason": "not today"})
    assert (second.status, [a["arguments"]["n"] for a in second.interactions]) == ("waiting", [1, 3])
    if parked:
        await gone(house.ex)
    third = await house.answer(run, "approve", 2)
    if parked:
        await gone(house.ex)
    last = await house.answer(run, "approve", 0)
    assert (third.status, last.unwrap()) == ("waiting", [1, 7, "approval_denied: not today", 3, "finally"])
    assert sorted(args["n"] for args in house.paid) == [1, 3]
    assert (await house.ex.replay_run(run.run_id)).same
    events = [event async for event in house.ex.events(run.run_id)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    states = [event.data["status"] for event in events if event.type == "status"]
    assert states == ["queued", *["running", "waiting"] * 3, "running", "completed"]


async def test_a_run_is_decided_while_its_other_calls_are_still_on_their_way(house: House):
    go = asyncio.Event()

    async def slow(args: dict) -> str:
        await go.wait()
        return "slow"

    house.ex.tool("p.org.main.slow", slow, side_effect="read")
    queued = await house.ex.run(
        "await Promise.all([tools.p.org.main.pay({n: 1}), tools.p.org.main.slow({})])", wait=False
    )
    with anyio.fail_after(20):
        while not (record := await house.ex.get_run(queued.run_id)).interactions:  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.005)
    assert record.status == "running"
    await house.answer(record, "approve", wait=False)
    go.set()
    assert (await house.ex.wait_run(queued.run_id)).unwrap() == [{"paid": {"n": 1}}, "slow"]


async def test_the_same_answer_again_gives_the_same_outcome_and_another_is_a_conflict(house: House):
    """POL-10"""
    run = await house.ex.run("await tools.p.org.main.pay({n: 1})")
    first = await house.answer(run, "approve")
    again = await house.answer(run, "approve")
    assert (first.result, again.result) == ({"paid": {"n": 1}}, {"paid": {"n": 1}})
    with pytest.raises(Conflict) as refusal:
        await house.answer(run, "deny")
    assert code_of(refusal) == "already_decided"
    assert house.paid == [{"n": 1}]


async def test_a_hundred_approvals_at_once_make_one_call(house: House, at_once: None):
    """POL-10"""
    for _ in range(ROUNDS):
        house.paid.clear()
        run = await house.ex.run("await tools.p.org.main.pay({n: 1})")
        records = await asyncio.gather(*(house.answer(run, "approve") for _ in range(100)))
        assert {record.status for record in records} == {"completed"}
        assert house.paid == [{"n": 1}]


async def test_yes_and_no_at_once_are_one_decision(house: House, at_once: None):
    run = await house.ex.run("await tools.p.org.main.pay({n: 1}).then(() => 'paid', e => e.code)")
    answers = await asyncio.gather(
        *(house.answer(run, action) for action in ["approve", "deny"] * 20), return_exceptions=True
    )
    told = {answer.result for answer in answers if isinstance(answer, RunResult)}
    assert len(told) == 1
    assert sum(isinstance(answer, Conflict) for answer in answers) == 20
    assert (told == {"paid"}) == (house.paid == [{"n": 1}])


async def test_an_interaction_belongs_to_its_run_alone(house: House):
    """POL-09, POL-13: an id of another run, a guessed one and one of no run are the same: not there."""
    one, two = [await house.ex.run("await tools.p.org.main.pay({n: 1})") for _ in range(2)]
    for run_id, id in [(one.run_id, two.interactions[0]["id"]), (one.run_id, "int_0"), ("run_0", "int_0")]:
        with pytest.raises(NotFound):
            await house.ex.resume(run_id, id, "approve")
    for run in (one, two):
        assert (await house.answer(run, "cancel")).status == "cancelled"
    assert house.paid == []


async def test_an_answer_that_is_none_is_refused(house: House):
    run = await house.ex.run("await tools.p.org.main.pay({n: 1})")
    for action, content in [("yes", None), ("approve", "text"), ("deny", {"reason": "x" * 20_000})]:
        with pytest.raises(InvalidRequest):
            await house.answer(run, action, content=content)
    assert (await house.answer(run, "approve")).status == "completed"


@pytest.mark.parametrize("parked", [False, True])
async def test_what_nobody_answers_expires_and_the_script_goes_on(parked: bool, monkeypatch: pytest.MonkeyPatch):
    """POL-11"""
    if parked:
        monkeypatch.setattr(patience, "LINGER_S", 0.0)
    async with Executor.open(config=Config(workers=1, approval_s=0.4)) as ex:
        house = House(ex)
        run = await ex.run("await tools.p.org.main.pay({n: 1}).catch(e => e.code)")
        assert run.status == "waiting"
        with anyio.fail_after(20):
            assert (await ex.wait_run(run.run_id)).unwrap() == "approval_expired"
        with pytest.raises(Conflict) as refusal:
            await house.answer(run, "approve")
        assert code_of(refusal) == "approval_expired"
        assert house.paid == []


@pytest.mark.parametrize("parked", [False, True])
async def test_a_yes_to_what_has_changed_meanwhile_sends_nothing(parked: bool, monkeypatch: pytest.MonkeyPatch):
    """POL-06, POL-19"""
    if parked:
        monkeypatch.setattr(patience, "LINGER_S", 0.0)
    async with Executor.open(config=Config(workers=1)) as ex:
        house = House(ex)
        code = "await tools.p.org.main.pay({n: 1}).catch(e => e.code)"

        async def changed(change: Callable[[], Any]) -> RunResult:
            run = await ex.run(code)
            if parked:
                await gone(ex)
            made = change()
            if made is not None:
                await made
            with pytest.raises(Conflict) as refusal:
                await house.answer(run, "approve")
            assert code_of(refusal) == "approval_void"
            with pytest.raises(Conflict):
                await house.answer(run, "approve")
            return await ex._parts.runs.wait(run.run_id, rest=True)

        # Another schema: asked anew, with another id.
        again = await changed(
            lambda: ex.tool("p.org.main.pay", house._pay, side_effect="delete", input_schema={"type": "object"})
        )
        assert (again.status, len(again.interactions), house.paid) == ("waiting", 1, [])
        assert (await house.answer(again, "approve")).unwrap() == {"paid": {"n": 1}}
        house.paid.clear()
        # Another rule decides, the same way: asked anew.
        again = await changed(lambda: ex.toolbox.add_policy("p", "pa*", "require_approval"))
        assert again.status == "waiting"
        # An unrelated rule: the question stands.
        await ex.toolbox.add_policy("p", "other", "block")
        assert (await house.answer(again, "approve")).status == "completed"
        house.paid.clear()
        blocked = await changed(lambda: ex.toolbox.add_policy("p", "pay", "block"))
        assert (blocked.unwrap(), house.paid) == ("blocked", [])


async def test_a_run_that_was_denied_is_not_asked_the_same_again(house: House):
    """POL-18"""
    run = await house.ex.run(
        "let n = 0; for (let i = 0; i < 50; i++)"
        " await tools.p.org.main.pay({n: 1}).catch(e => { n += e.code === 'approval_denied' }); n"
    )
    assert (await house.answer(run, "deny")).unwrap() == 50
    assert house.paid == []


async def test_words_of_the_caller_approve_nothing(house: House):
    """POL-17"""
    args = '{approved: true, _approval: "yes", policy: "approve", "__proto__": {approved: true}}'
    run = await house.ex.run(f"await tools.p.org.main.pay({args})", labels={"approved": "true"})
    assert (run.status, house.paid) == ("waiting", [])
    await house.answer(run, "cancel")


async def test_arguments_that_change_after_the_call_are_not_what_is_sent(house: House):
    """POL-08"""
    run = await house.ex.run(
        "const args = {n: 1}; const paid = tools.p.org.main.pay(args); args.n = 99;"
        " setTimeout(() => args.n = 98, 1); await paid"
    )
    assert run.interactions[0]["arguments"] == {"n": 1}
    await house.answer(run, "approve")
    assert house.paid == [{"n": 1}]


async def test_thinking_takes_nothing_of_the_wall_time(house: House):
    code = "for (let i = 0; i < 3; i++) await tools.p.org.main.pay({i}); Date.now()"
    run = await house.ex.run(code, budgets={"wall_ms": 1200})
    for _ in range(3):
        await asyncio.sleep(0.7)
        run = await house.answer(run, "approve")
    assert run.status == "completed", run.error
    assert run.usage["wall_ms"] < 1200


async def test_a_yes_to_one_call_is_none_to_the_next_alike(house: House):
    run = await house.ex.run("await tools.p.org.main.pay({n: 1}); await tools.p.org.main.pay({n: 1})")
    run = await house.answer(run, "approve")
    assert (run.status, len(run.interactions), house.paid) == ("waiting", 1, [{"n": 1}])
    assert (await house.answer(run, "approve")).status == "completed"


async def test_a_timer_goes_on_while_a_call_waits_and_the_call_may_be_given_up(house: House):
    run = await house.ex.run(
        "await Promise.race([tools.p.org.main.pay({n: 1}), new Promise(r => setTimeout(r, 20, 'late'))])"
    )
    assert run.unwrap() == "late"
    assert [call["code"] for call in run.calls] == ["cancelled"]
    record = await house.ex.get_run(run.run_id)
    assert (record.interactions, house.paid) == ([], [])


async def test_too_many_open_questions_fail_the_call(house: House):
    """POL-32"""
    async with Executor.open(config=Config(workers=1, max_waiting=2)) as ex:
        mine = House(ex)
        first = await ex.run("await Promise.all([1, 2].map(n => tools.p.org.main.pay({n})))")
        second = await ex.run("await tools.p.org.main.pay({n: 3}).catch(e => e.code)")
        assert (first.status, second.unwrap(), mine.paid) == ("waiting", "approval_required", [])
    large = await house.ex.run(
        "const note = 'x'.repeat(900_000); "
        "(await Promise.allSettled([...Array(12)].map((_, n) => tools.p.org.main.pay({n, note})))).length"
    )
    assert len(large.interactions) == 9
    assert [call["code"] for call in large.calls if call["outcome"] == "failed"] == ["approval_required"] * 3
    assert (await house.ex.cancel_run(large.run_id)).status == "cancelled"


async def test_a_python_script_waits_too(house: House, at_once: None):
    run = await house.ex.run(
        "try:\n    r = await tools.p.org.main.pay(n=1)\nexcept ToolError as e:\n    r = e.code\nprint('after')\nr",
        language="python",
    )
    assert run.status == "waiting", run.error
    await gone(house.ex)
    ended = await house.answer(run, "deny")
    assert (ended.unwrap(), ended.logs) == ("approval_denied", [{"level": "log", "text": "after"}])


async def test_a_waiting_run_survives_its_process_and_is_answered_in_another(tmp_path: Path):
    """POL-29, PER-01"""
    code = (
        "console.log('once'); const a = await tools.p.org.main.look({n: 1});"
        "[a, (await tools.p.org.main.pay({n: 2})).paid]"
    )
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        House(ex)
        run = await ex.run(code, input={"a": 1}, labels={"k": "v"})
        assert run.status == "waiting"
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        house = House(ex)
        record = await ex.get_run(run.run_id)
        assert (record.status, record.interactions, record.logs) == ("waiting", run.interactions, run.logs)
        page = await ex.list_runs(status="waiting")
        assert [each.run_id for each in page.items] == [run.run_id]
        ended = await house.answer(run, "approve")
        assert (ended.unwrap(), house.paid) == ([1, {"n": 2}], [{"n": 2}])
        assert (ended.labels, len(ended.logs), ended.usage["bridge_calls"]) == ({"k": "v"}, 1, 2)
        assert all(ended.usage[name] >= figure for name, figure in run.usage.items() if name != "cpu_ms")
        assert (await ex.replay_run(run.run_id)).same


async def test_a_waiting_run_is_cancelled_wherever_it_is(house: House, at_once: None):
    run = await house.ex.run("console.log('said'); await tools.p.org.main.pay({n: 1})")
    await gone(house.ex)
    record = await house.ex.cancel_run(run.run_id)
    used = ("fuel", "bridge_calls", "memory_bytes", "log_bytes", "call_args_bytes")
    assert [record.usage[name] for name in used] == [run.usage[name] for name in used]
    assert record.usage["fuel"] > 0
    assert (record.status, record.logs) == ("cancelled", [{"level": "log", "text": "said"}])
    with pytest.raises(Conflict):
        await house.answer(run, "approve")
    assert ((await house.ex.get_run(run.run_id)).interactions, house.paid) == ([], [])


async def test_who_follows_a_run_goes_on_following_it_through_its_wait(house: House, at_once: None):
    run = await house.ex.run("console.log('a'); await tools.p.org.main.pay({n: 1}); console.log('b'); 7")
    await gone(house.ex)
    told: list[Any] = []

    async def follow() -> None:
        async for event in house.ex.events(run.run_id):
            told.append(event)

    task = asyncio.create_task(follow())
    with anyio.fail_after(20):
        while [event.data for event in told][-1:] != [{"status": "waiting"}]:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.005)
        await house.answer(run, "approve")
        await task
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    assert [event.data["text"] for event in told if event.type == "log"] == ["a", "b"]
    assert (told[-1].type, told[-1].data["result"]) == ("result", 7)
