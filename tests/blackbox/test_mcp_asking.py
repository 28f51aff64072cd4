"""Servers that ask a person in the middle of a call, in both eras of the protocol, with servers of the official SDK."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from executor import Config, Conflict, Executor, Forbidden, InvalidRequest, ToolError
from executor.mcp.caller import Caller
from executor.mcp.server import Door
from tests.blackbox.processes import until

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
SETTINGS = Config(workers=1, search="words")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def added(ex: Executor, folder: Path, era: str) -> None:
    command = [sys.executable, "-m", "tests.blackbox.mcp_asking", str(folder), era]
    await ex.add_mcp("ask", command=command, cwd=str(ROOT))
    await ex.toolbox.add_policy("ask", "*", "approve")


class Hall:
    """An Executor with a server of one era, and what its tools did since the last time that this was asked."""

    def __init__(self, ex: Executor, folder: Path, era: str) -> None:
        self.ex = ex
        self.era = era
        self._log = folder / "log"
        self._read = 0

    def did(self) -> list[str]:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        new, self._read = lines[self._read :], len(lines)
        return new

    async def asked(self, tool: str, guest: str = "Ada") -> Any:
        """A run that waits for the answer to what the tool asks."""
        run = await self.ex.run(f"await tools.ask.org.main.{tool}({{guest: input}})", input=guest)
        assert run.status == "waiting", (run.status, run.error)
        assert [one["kind"] for one in run.interactions] == ["input"]
        return run

    async def answer(self, run: Any, action: str = "approve", content: Any = None) -> Any:
        return await self.ex.resume(run.run_id, run.interactions[0]["id"], action, content)


@pytest.fixture(scope="module", params=["newer", "older"])
async def opened(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    async with Executor.open(config=SETTINGS) as ex:
        await added(ex, folder, request.param)
        yield Hall(ex, folder, request.param)


@pytest.fixture
def hall(opened: Hall) -> Hall:
    opened.did()
    return opened


async def test_a_question_is_put_with_the_words_of_the_server_and_its_answer_goes_back(hall: Hall):
    run = await hall.asked("book")
    (one,) = run.interactions
    assert (one["path"], one["arguments"], one["side_effect"]) == ("ask.org.main.book", {"guest": "Ada"}, "write")
    question = one["question"]
    assert (question["server"], question["message"]) == ("ask", "How many seats for Ada?")
    assert question["schema"]["properties"]["seats"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 8,
        "title": "Seats",
    }
    assert "no password" in question["note"]
    assert run.calls[0]["outcome"] == "waiting"
    assert hall.did() == ["began book Ada"]
    done = await hall.answer(run, content={"seats": 3})
    assert (done.status, done.result) == ("completed", "Ada: accept 3")
    assert (done.calls[0]["outcome"], done.calls[0]["answered"]) == ("done", one["id"])
    (did,) = hall.did()
    assert "did book Ada" in did


@pytest.mark.parametrize(("action", "told"), [("deny", "decline None"), ("dismiss", "cancel None")])
async def test_a_no_and_no_choice_are_told_to_the_server_as_what_they_are(hall: Hall, action: str, told: str):
    done = await hall.answer(await hall.asked("book"), action)
    assert (done.status, done.result) == ("completed", f"Ada: {told}")


async def test_an_answer_that_does_not_fit_the_form_is_refused_and_the_question_stays(hall: Hall):
    run = await hall.asked("book")
    for content in ({"seats": 99}, {"seats": "three"}, {}, None, {"seats": 1, "extra": 1}):
        with pytest.raises(InvalidRequest) as caught:
            await hall.answer(run, content=content)
        assert "seats" in caught.value.message or "extra" in caught.value.message
    assert hall.did() == ["began book Ada"]
    assert (await hall.answer(run, content={"seats": 1})).result == "Ada: accept 1"


async def test_a_call_may_ask_twice_also_once_its_run_has_left_its_isolate(hall: Hall):
    run = await hall.asked("twice")
    await until(lambda: run.run_id not in hall.ex._parts.runs._live)
    again = await hall.answer(run, content={"seats": 2})
    assert again.status == "waiting"
    assert again.interactions[0]["id"] != run.interactions[0]["id"]
    done = await hall.answer(again, "deny")
    assert done.result == "Ada: accept 2; decline None"
    assert [line.split(" [")[0] for line in hall.did()] == ["began twice Ada", "did twice Ada"]


async def test_answers_to_two_runs_of_the_same_tool_do_not_cross(hall: Hall):
    ada, bob = await asyncio.gather(hall.asked("twice", "Ada"), hall.asked("twice", "Bob"))
    for run, guest in ((ada, "Ada"), (bob, "Bob")):
        assert run.interactions[0]["question"]["message"] == f"How many seats for {guest}?"
    bob, ada = await asyncio.gather(hall.answer(bob, content={"seats": 5}), hall.answer(ada, content={"seats": 3}))
    assert ada.interactions[0]["question"]["message"] == "How many seats for Ada? (1)"
    bob, ada = await asyncio.gather(hall.answer(bob, content={"seats": 6}), hall.answer(ada, content={"seats": 4}))
    assert (ada.result, bob.result) == ("Ada: accept 3; accept 4", "Bob: accept 5; accept 6")


async def test_calls_that_do_not_ask_are_answered_while_others_wait(hall: Hall):
    run = await hall.asked("book")
    assert await hall.ex.call("ask.org.main.plain", {"guest": "Eve"}) == "plain Eve"
    assert (await hall.answer(run, content={"seats": 1})).status == "completed"


async def test_of_two_answers_at_once_one_is_given(hall: Hall):
    run = await hall.asked("book")
    answers = await asyncio.gather(*(hall.answer(run, content={"seats": n}) for n in (1, 2)), return_exceptions=True)
    (refused,) = [one for one in answers if isinstance(one, Conflict)]
    (done,) = [one for one in answers if not isinstance(one, Conflict)]
    assert refused.code == "already_decided"
    assert done.result in ("Ada: accept 1", "Ada: accept 2")
    assert len([line for line in hall.did() if line.startswith("did")]) == 1
    seats = int(done.result[-1])
    assert (await hall.answer(run, content={"seats": seats})).result == done.result


async def test_a_run_that_is_cancelled_takes_its_question_along(hall: Hall):
    for leaves in (False, True):
        run = await hall.asked("book")
        if leaves:
            await until(lambda id=run.run_id: id not in hall.ex._parts.runs._live)
        over = await hall.ex.cancel_run(run.run_id)
        assert (over.status, over.calls[0]["outcome"], over.interactions) == ("cancelled", "unknown", [])
        with pytest.raises(Conflict):
            await hall.answer(run, content={"seats": 1})
    assert not hall.ex._parts.runs._life._held
    assert not [line for line in hall.did() if "accept" in line]
    assert await hall.ex.call("ask.org.main.plain", {"guest": "Eve"}) == "plain Eve"


@pytest.mark.parametrize("tool", ["refs", "giant", "nested", "password"])
async def test_a_form_that_is_not_put_to_anybody_fails_the_call_and_says_why(hall: Hall, tool: str):
    """MCP-15"""
    run = await hall.ex.run(f"await tools.ask.org.main.{tool}({{}})")
    assert run.status == "failed"
    assert run.error["details"]["code"] == "upstream_error"
    assert "and was refused: its f" in run.error["message"]


async def test_a_server_that_asks_without_end_is_stopped(hall: Hall):
    run = await hall.asked("endless")
    for _ in range(12):
        run = await hall.answer(run, content={"seats": 1})
        if run.status != "waiting":
            break
    assert run.status == "failed"
    assert "more than 10" in run.error["message"]


async def test_a_page_to_be_opened_is_named_and_not_opened(hall: Hall):
    run = await hall.ex.run("await tools.ask.org.main.page({}).catch(e => [e.code, e.details.pages])")
    assert run.result == ["upstream_error", [{"url": "https://example.com/in", "message": "Sign in"}]]


async def test_a_direct_call_does_not_wait_and_one_that_may_ask_does(hall: Hall):
    if hall.era == "newer":
        with pytest.raises(ToolError) as caught:
            await hall.ex.call("ask.org.main.book", {"guest": "Ada"})
        assert caught.value.code == "input_required"
        assert caught.value.details["message"] == "How many seats for Ada?"
    else:
        assert await hall.ex.call("ask.org.main.book", {"guest": "Ada"}) == "Ada: cancel None"
        with pytest.raises(ToolError) as caught:
            await hall.ex.call("ask.org.main.look", {"guest": "Ada"})
        assert caught.value.code == "input_required"
    run = await hall.ex.call_or_ask("ask.org.main.book", {"guest": "Ada"})
    assert run.status == "waiting"
    assert (await hall.answer(run, content={"seats": 8})).result == "Ada: accept 8"
    assert await hall.ex.call_or_ask("ask.org.main.plain", {"guest": "Ada"}) == "plain Ada"


async def test_who_may_not_approve_may_not_answer(hall: Hall):
    rule = await hall.ex.toolbox.add_policy("ask", "book", "require_approval", approver="another")
    try:
        waiting = await hall.ex.run("await tools.ask.org.main.book({guest: 'Ada'})", principal="ada")
        asked = await hall.ex.resume(waiting.run_id, waiting.interactions[0]["id"], "approve", principal="bob")
        assert asked.interactions[0]["kind"] == "input"
        id = asked.interactions[0]["id"]
        with pytest.raises(Forbidden) as caught:
            await hall.ex.resume(asked.run_id, id, "approve", {"seats": 1}, principal="ada")
        assert caught.value.code == "own_approval"
        done = await hall.ex.resume(asked.run_id, id, "approve", {"seats": 1}, principal="bob")
        assert done.result == "Ada: accept 1"
        assert len([line for line in hall.did() if line.startswith("began")]) == 1
    finally:
        await hall.ex.toolbox.remove_policy(rule["id"])


async def test_an_answer_is_not_given_once_the_tool_is_blocked(hall: Hall):
    run = await hall.asked("book")
    rule = await hall.ex.toolbox.add_policy("ask", "book", "block")
    try:
        with pytest.raises(Conflict) as caught:
            await hall.answer(run, content={"seats": 1})
        assert caught.value.code == "approval_void"
        over = await hall.ex.wait_run(run.run_id)
        assert over.error["details"]["code"] == "outcome_unknown"
        assert not [line for line in hall.did() if "accept" in line]
    finally:
        await hall.ex.toolbox.remove_policy(rule["id"])


async def test_the_person_at_a_client_fills_in_the_form(hall: Hall):
    asked: list[Any] = []

    async def person(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content={"seats": 4})

    async def nobody(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="cancel")

    call = {"path": "ask.org.main.book", "arguments": {"guest": "Ada"}}
    for mode in ("legacy", "2026-07-28"):
        door = Door(hall.ex, lambda _: Caller()).server()
        async with Client(door, mode=mode, elicitation_callback=person) as client:
            answer = await client.call_tool("execute", call)
            assert answer.structured_content["value"] == "Ada: accept 4"
        async with Client(door, mode=mode, elicitation_callback=nobody) as client:
            answer = await client.call_tool("execute", call)
            assert answer.structured_content["value"] == "Ada: cancel None"
    assert asked[0].requested_schema["required"] == ["seats"]
    assert "> How many seats for Ada?" in asked[0].message


async def test_a_secret_that_the_server_says_back_is_shown_and_kept_by_nobody(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
):
    """SEC-25"""
    monkeypatch.setenv("TOKEN_OF_ASK", "cnry-0123456789abcdef")
    auth = {"type": "env", "name": "TOKEN", "secret": "env:TOKEN_OF_ASK"}
    await hall.ex.connect("ask", connection="guest", auth=auth)
    run = await hall.ex.run("await tools.ask.org.guest.leak({})")
    (one,) = run.interactions
    assert one["question"]["message"] == "How many seats for [secret]?"
    assert not one["question"]["lasting"]
    row = await hall.ex._parts.store.runs.interactions.get(one["id"])
    assert "cnry" not in json.dumps(row)
    # What could not be kept is still there in the call that is under way.
    await until(lambda: run.run_id not in hall.ex._parts.runs._live)
    assert (await hall.answer(run, content={"seats": 2})).result == "[secret]: accept 2"


async def test_a_question_that_nobody_answers_in_time_is_told_to_the_server(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hall.ex._parts.runs._patience.approvals, "_seconds", 0.1)
    run = await hall.asked("book")
    with anyio.fail_after(20):
        assert (await hall.ex.wait_run(run.run_id)).result == "Ada: cancel None"
    with pytest.raises(Conflict) as caught:
        await hall.answer(run, content={"seats": 1})
    assert caught.value.code == "approval_expired"


async def test_a_server_that_ends_while_it_waits(hall: Hall):
    run = await hall.asked("leave")
    if hall.era == "newer":
        # What it needs to go on is in the question.
        await until(lambda: "left" in hall.did())
        assert (await hall.answer(run, content={"seats": 2})).result == "Ada: accept 2"
        return
    with anyio.fail_after(20):
        over = await hall.ex.wait_run(run.run_id)
    assert over.calls[0]["outcome"] == "unknown"
    assert over.error["details"]["code"] == "upstream_unreachable"
    with pytest.raises(Conflict) as caught:
        await hall.answer(run, content={"seats": 2})
    assert caught.value.code == "approval_void"


async def test_a_question_that_is_taken_back_lets_the_run_go_on(hall: Hall):
    if hall.era == "newer":
        # Only the older era can take one back.
        return
    with anyio.fail_after(20):
        run = await hall.ex.run("await tools.ask.org.main.changes_mind({})", wait=False)
        over = await hall.ex.wait_run(run.run_id)
    assert (over.result, over.error) == ("never mind", None)


HOST = """
import asyncio, json, os, sys
from pathlib import Path
from executor import Executor
from tests.blackbox.test_mcp_asking import SETTINGS, added

async def main(home, folder, era):
    async with Executor.open(home, config=SETTINGS) as ex:
        await added(ex, Path(folder), era)
        runs = []
        for tool in ("book", "look"):
            run = await ex.run(f"await tools.ask.org.main.{tool}({{guest: 'Ada'}})")
            runs.append([run.run_id, run.interactions[0]["id"]])
        print(json.dumps(runs), flush=True)
        os._exit(9)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("era", ["newer", "older"])
async def test_after_the_death_of_the_host_a_question_is_answered_or_said_to_be_lost(tmp_path: Path, era: str):
    """A call that writes is never begun again; one that reads is."""
    home, folder = tmp_path / "home", tmp_path / "server"
    folder.mkdir()
    command = [sys.executable, "-c", HOST, str(home), str(folder), era]
    host = await asyncio.to_thread(
        subprocess.run, command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    assert host.returncode == 9, host.stderr.decode()
    (book, asked), (look, looking) = json.loads(host.stdout)
    async with Executor.open(home, config=SETTINGS) as ex:
        hall = Hall(ex, folder, era)
        assert hall.did() == ["began book Ada", "began look Ada"]
        if era == "newer":
            done = await ex.resume(book, asked, "approve", {"seats": 3})
            assert (done.status, done.result) == ("completed", "Ada: accept 3")
            seen = await ex.resume(look, looking, "approve", {"seats": 1})
            assert (seen.status, seen.result) == ("completed", "Ada: accept 1")
            assert [line.split(" [")[0] for line in hall.did()] == ["did book Ada", "did look Ada"]
            return
        # Before anything was taken up the question is still there, and nobody is there any more to give the answer to.
        with pytest.raises(Conflict) as caught:
            await ex.resume(book, asked, "approve", {"seats": 3})
        assert caught.value.code == "approval_void"
        with anyio.fail_after(30):
            ex.take_up()
            over = await ex.wait_run(book)
            assert (over.calls[0]["outcome"], over.error["details"]["code"]) == ("unknown", "outcome_unknown")
            again = await ex.wait_run(look, rest=True)
            while again.interactions and again.interactions[0]["id"] == looking:
                again = await ex.wait_run(look, rest=True)
                await anyio.sleep(0.01)
        assert (await hall.answer(again, content={"seats": 1})).result == "Ada: accept 1"
        assert [line.split(" [")[0] for line in hall.did()] == ["began look Ada", "did look Ada"]
