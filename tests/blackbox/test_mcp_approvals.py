"""Approvals through the MCP door: the person at the client is asked where there is one, and nobody else decides."""

import asyncio
import json
from contextlib import asynccontextmanager

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from executor import Config, Executor
from executor.mcp.caller import Caller
from executor.mcp.people import MOST_SHOWN
from executor.mcp.server import Door

pytestmark = pytest.mark.anyio

DROP = {"code": "await tools.shop.org.main.orders.drop({id: 3}); 'dropped'"}
TWO = {"code": "(await Promise.all([1, 2].map(id => tools.shop.org.main.orders.drop({id})))).length"}
CALL = {"path": "shop.org.main.orders.drop", "arguments": {"id": 7}}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["legacy", "2026-07-28"])
def era(request) -> str:
    return request.param


class Shop:
    def __init__(self, ex: Executor) -> None:
        self.dropped: list[dict] = []
        ex.tool("shop.org.main.orders.drop", self.drop, description="Delete an order", side_effect="delete")

    async def drop(self, args: dict) -> dict:
        self.dropped.append(args)
        return {"gone": args["id"]}


@pytest.fixture(scope="module")
async def opened():
    async with Executor.open(config=Config(workers=1)) as ex:
        yield ex, Shop(ex)


@pytest.fixture
def shop(opened) -> Shop:
    opened[1].dropped.clear()
    return opened[1]


class Person:
    """Answers what it is asked with its answers, in turn."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, context, params) -> types.ElicitResult:
        self.asked.append(params.message)
        action = self.answers.pop(0)
        return types.ElicitResult(action=action, content={} if action == "accept" else None)


@asynccontextmanager
async def connected(ex: Executor, era: str, person: Person | None = None, caller: Caller | None = None):
    who = caller or Caller()
    async with Client(Door(ex, lambda _: who).server(), mode=era, elicitation_callback=person) as client:
        yield client


def text_of(answer) -> str:
    return next(block.text for block in answer.content if block.type == "text")


async def test_the_person_at_the_client_approves_and_the_call_goes_on(opened, shop, era):
    person = Person("accept")
    async with connected(opened[0], era, person) as client:
        answer = await client.call_tool("run_code", DROP)
    assert (answer.structured_content["status"], answer.structured_content["result"]) == ("completed", "dropped")
    assert shop.dropped == [{"id": 3}]
    (asked,) = person.asked
    assert asked.startswith("shop.org.main.orders.drop needs your approval (delete).")
    assert '"id": 3' in asked


async def test_a_call_that_the_person_declines_is_not_made(opened, shop, era):
    async with connected(opened[0], era, Person("decline", "decline")) as client:
        ran = await client.call_tool("run_code", DROP)
        called = await client.call_tool("execute", CALL)
    assert ran.is_error
    assert ran.structured_content["calls"][0]["code"] == "approval_denied"
    assert called.structured_content["error"]["code"] == "approval_denied"
    assert text_of(called).startswith("approval_denied: A person denied this call")
    assert shop.dropped == []


async def test_calls_that_wait_together_are_decided_each_for_itself(opened, shop, era):
    code = {
        "code": "(await Promise.allSettled([1, 2].map(id => tools.shop.org.main.orders.drop({id})))).map(x => x.status)"
    }
    async with connected(opened[0], era, Person("accept", "decline")) as client:
        answer = await client.call_tool("run_code", code)
    assert answer.structured_content["result"] == ["fulfilled", "rejected"]
    assert shop.dropped == [{"id": 1}]


async def test_one_run_asks_as_often_as_it_needs_to(opened, shop, era):
    code = {"code": "for (const id of [1, 2, 3]) await tools.shop.org.main.orders.drop({id}); 'all'"}
    async with connected(opened[0], era, Person("accept", "accept", "accept")) as client:
        answer = await client.call_tool("run_code", code)
    assert answer.structured_content["result"] == "all"
    assert len(shop.dropped) == 3


async def test_a_single_call_is_asked_about_in_the_same_way(opened, shop, era):
    async with connected(opened[0], era, Person("accept")) as client:
        answer = await client.call_tool("execute", CALL)
    assert answer.structured_content == {"value": {"gone": 7}}
    assert shop.dropped == [{"id": 7}]


async def test_a_question_that_is_put_away_stays_open_for_every_other_door(opened, shop, era):
    ex, _ = opened
    async with connected(ex, era, Person("cancel")) as client:
        answer = await client.call_tool("run_code", DROP)
    assert not answer.is_error
    assert answer.structured_content["status"] == "waiting"
    (interaction,) = answer.structured_content["interactions"]
    record = await ex.resume(answer.structured_content["run_id"], interaction["id"], "approve")
    assert record.result == "dropped"


async def test_a_client_that_cannot_ask_gets_a_waiting_run_and_resume_gives_its_outcome(opened, shop, era):
    ex, _ = opened
    async with connected(ex, era) as client:
        waiting = (await client.call_tool("execute", CALL)).structured_content
        early = await client.call_tool("resume", {"run_id": waiting["run_id"], "wait_s": 0})
        listed = await client.call_tool("resume", {})
        assert early.structured_content["status"] == "waiting"
        assert waiting["run_id"] in [run["run_id"] for run in listed.structured_content["runs"]]
        assert shop.dropped == []
        coming = asyncio.create_task(client.call_tool("resume", {"run_id": waiting["run_id"], "wait_s": 60}))
        await ex.resume(waiting["run_id"], waiting["interactions"][0]["id"], "approve")
        late = await coming
    assert late.structured_content["result"] == {"gone": 7}
    assert shop.dropped == [{"id": 7}]


async def test_resume_takes_no_decision(opened, shop, era):
    async with connected(opened[0], era) as client:
        waiting = (await client.call_tool("run_code", DROP)).structured_content
        interaction = waiting["interactions"][0]["id"]
        for forged in ({"action": "approve"}, {"decision": "approve"}, {"interaction": interaction}):
            answer = await client.call_tool("resume", {"run_id": waiting["run_id"], "wait_s": 0} | forged)
            assert "unknown argument" in text_of(answer)
        still = await client.call_tool("resume", {"run_id": waiting["run_id"], "wait_s": 0})
    assert still.structured_content["status"] == "waiting"
    assert shop.dropped == []


async def test_resume_asks_the_person_where_the_client_can(opened, shop, era):
    ex, _ = opened
    async with connected(ex, era) as client:
        waiting = (await client.call_tool("run_code", DROP)).structured_content
    async with connected(ex, era, Person("accept")) as client:
        answer = await client.call_tool("resume", {"run_id": waiting["run_id"], "wait_s": 0})
    assert answer.structured_content["result"] == "dropped"


async def test_a_run_of_somebody_else_is_not_there(opened, shop, era):
    """MCP-24"""
    ex, _ = opened
    async with connected(ex, era) as client:
        waiting = (await client.call_tool("run_code", DROP)).structured_content
    for stranger in (Caller(principal="other"), Caller(toolkit="t")):
        async with connected(ex, era, Person("accept", "accept"), stranger) as client:
            answer = await client.call_tool("resume", {"run_id": waiting["run_id"], "wait_s": 0})
            listed = await client.call_tool("resume", {})
        assert answer.structured_content["error"]["code"] == "not_found"
        assert waiting["run_id"] not in text_of(listed)
    assert shop.dropped == []


async def test_a_caller_that_may_not_decide_is_not_asked(opened, shop, era):
    """MCP-24: what a key cannot approve over HTTP, its client cannot approve by an elicitation."""
    person = Person()
    async with connected(opened[0], era, person, Caller(decides=False)) as client:
        answer = await client.call_tool("run_code", DROP)
    assert answer.structured_content["status"] == "waiting"
    assert person.asked == []


async def test_a_call_that_nobody_could_see_in_full_is_not_put_to_them(opened, shop, era):
    person = Person()
    code = {"code": f"await tools.shop.org.main.orders.drop({{id: 1, note: 'x'.repeat({MOST_SHOWN})}})"}
    async with connected(opened[0], era, person) as client:
        answer = await client.call_tool("run_code", code)
    assert answer.structured_content["status"] == "waiting"
    assert person.asked == []


async def test_characters_that_hide_others_are_shown_as_escapes(opened, shop, era):
    person = Person("decline")
    code = {"code": "await tools.shop.org.main.orders.drop({id: 'Grüße \\u202e\\u200b\\u0007 \\u{e0041}'})"}
    async with connected(opened[0], era, person) as client:
        await client.call_tool("run_code", code)
    assert "Grüße \\u202e\\u200b\\u0007 \\udb40\\udc41" in person.asked[0]


async def test_who_asks_is_not_asked_where_it_takes_another(shop, era):
    """POL-15"""
    async with Executor.open(config=Config(workers=1, approver="another")) as ex:
        Shop(ex)
        person = Person()
        async with connected(ex, era, person) as client:
            answer = await client.call_tool("run_code", DROP)
            assert (answer.structured_content["status"], person.asked) == ("waiting", [])
            run_id = answer.structured_content["run_id"]
        (asked,) = (await ex.get_run(run_id)).interactions
        assert (await ex.resume(run_id, asked["id"], "approve", principal="bob")).result == "dropped"


async def test_a_decision_through_another_door_ends_the_question(opened, shop):
    ex, _ = opened
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    async def thinking(context, params):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()

    async with connected(ex, "legacy", thinking) as client:
        call = asyncio.create_task(client.call_tool("run_code", DROP))
        await asyncio.wait_for(asked.wait(), 20)
        (run,) = (await ex.list_runs(status="waiting", limit=1)).items
        (interaction,) = (await ex.get_run(run.run_id)).interactions
        await ex.resume(run.run_id, interaction["id"], "approve")
        answer = await asyncio.wait_for(call, 20)
        await asyncio.wait_for(withdrawn.wait(), 20)
    assert answer.structured_content["result"] == "dropped"


# The protocol of 2026-07-28: the state that the client carries


async def required(client, arguments=DROP) -> types.InputRequiredResult:
    got = await client.session.call_tool("run_code", arguments, allow_input_required=True)
    assert isinstance(got, types.InputRequiredResult)
    return got


def accepted(required: types.InputRequiredResult) -> dict:
    return {id: types.ElicitResult(action="accept", content={}) for id in required.input_requests}


async def again(client, required, state, arguments=DROP, name="run_code"):
    return await client.session.call_tool(
        name, arguments, input_responses=accepted(required), request_state=state, allow_input_required=True
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: state[:-4] + ("AAAA" if not state.endswith("AAAA") else "BBBB"),
        lambda state: state[: len(state) // 2],
        lambda state: "",
        lambda state: "v1." + "A" * 200,
        lambda state: json.dumps({"run": "run_1", "asked": [], "once": "x"}),
    ],
    ids=["altered", "cut", "empty", "made up", "plain"],
)
async def test_a_state_that_was_not_given_like_this_is_refused(opened, shop, spoil):
    """MCP-10"""
    async with connected(opened[0], "2026-07-28", Person()) as client:
        asked = await required(client)
        with pytest.raises(MCPError) as refused:
            await again(client, asked, spoil(asked.request_state))
    assert refused.value.error.code == types.INVALID_PARAMS
    assert shop.dropped == []


async def test_a_state_is_good_for_its_caller_its_call_and_its_server_alone(opened, shop):
    """MCP-10, MCP-24"""
    ex, _ = opened
    callers = [Caller()]
    server = Door(ex, lambda _: callers[-1]).server()
    async with Client(server, mode="2026-07-28", elicitation_callback=Person()) as client:
        asked = await required(client)
        refused = [
            {"arguments": {"code": "1"}},
            {"name": "execute", "arguments": CALL},
        ]
        for other in refused:
            with pytest.raises(MCPError, match="requestState"):
                await again(client, asked, asked.request_state, **other)
        for stranger in (Caller(principal="other"), Caller(toolkit="t"), Caller(tied="t")):
            callers.append(stranger)
            with pytest.raises(MCPError, match="requestState"):
                await again(client, asked, asked.request_state)
        callers.append(Caller())
        async with connected(ex, "2026-07-28", Person()) as elsewhere:
            with pytest.raises(MCPError, match="requestState"):
                await again(elsewhere, asked, asked.request_state)
        assert shop.dropped == []
        assert (await again(client, asked, asked.request_state)).structured_content["result"] == "dropped"


async def test_a_state_is_good_once(opened, shop):
    """MCP-10"""
    async with connected(opened[0], "2026-07-28", Person()) as client:
        asked = await required(client)
        await again(client, asked, asked.request_state)
        with pytest.raises(MCPError, match="answered already") as refused:
            await again(client, asked, asked.request_state)
    assert refused.value.error.code == types.INVALID_PARAMS
    assert shop.dropped == [{"id": 3}]


async def test_an_answer_that_is_missing_is_asked_for_again(opened, shop):
    async with connected(opened[0], "2026-07-28", Person()) as client:
        asked = await required(client, TWO)
        first = next(iter(asked.input_requests))
        half = await client.session.call_tool(
            "run_code",
            TWO,
            input_responses={first: types.ElicitResult(action="accept", content={})},
            request_state=asked.request_state,
            allow_input_required=True,
        )
        assert set(half.input_requests) == set(asked.input_requests) - {first}
        whole = await again(client, half, half.request_state, TWO)
    assert whole.structured_content["result"] == 2
    assert len(shop.dropped) == 2
