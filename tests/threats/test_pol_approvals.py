"""The POL group of the threat catalogue, as far as people who approve go."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bridge.policy import Policy, decide, new_rule
from bridge.wire.errors import Forbidden, InvalidRequest, ToolError
from catalog.model import Tool, ToolSpec
from executor import Config, Conflict, Executor
from runtime import interactions
from runtime.store.store import Store
from tests.blackbox.command import cli
from tests.blackbox.server import serving

pytestmark = pytest.mark.anyio

PAY = "try { await tools.p.org.main.pay({n: 1}) } catch (e) { e.code }"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def ex() -> AsyncIterator[Executor]:
    async with Executor.open(config=Config(workers=1)) as ex:
        ex.tool("p.org.main.pay", lambda args: "paid", side_effect="write")
        yield ex


def _tool() -> Tool:
    return Tool("p.org.main.pay", "p", "org", "main", ToolSpec("pay", side_effect="write"), {})


def test_of_rules_that_ask_a_person_the_one_that_asks_another_is_stricter() -> None:
    """POL-15"""
    anyone = new_rule("p", "pay", "require_approval", scope="org")
    another = new_rule("p", "pay", "require_approval", scope="org", approver="another")
    outer = new_rule("p", "*", "require_approval", scope="user", approver="another")
    exact = new_rule("p", "*", "block", scope="user")
    for rules, approver in (([anyone], "anyone"), ([anyone, another], "another"), ([anyone, outer], "another")):
        for order in (rules, rules[::-1]):
            assert decide(_tool(), order).approver == approver
    assert decide(_tool(), [another, exact]).effect == "block"
    assert Policy([anyone], approver="another").decide(_tool()).approver == "another"
    assert Policy([], approver="another").decide(_tool()).approver == "another"


@pytest.mark.parametrize(("effect", "approver"), [("approve", "another"), ("block", "another"), ("approve", "me")])
def test_only_a_rule_that_asks_a_person_says_who(effect: str, approver: str) -> None:
    with pytest.raises(InvalidRequest):
        new_rule("*", "*", effect, scope="org", approver=approver)


@pytest.mark.parametrize("by", ["rule", "setting"])
async def test_whoever_asks_does_not_approve_where_it_takes_another(by: str) -> None:
    """POL-15"""
    config = Config(workers=1, approver="another" if by == "setting" else "anyone")
    async with Executor.open(config=config) as ex:
        ex.tool("p.org.main.pay", lambda args: "paid", side_effect="write")
        if by == "rule":
            rule = await ex.toolbox.add_policy("p", "pay", "require_approval", approver="another")
            assert (rule["approver"], ex.toolbox.policies()[0]["approver"]) == ("another", "another")
        assert ex.toolbox.explain("p.org.main.pay")["approver"] == "another"
        run = await ex.run(PAY, principal="ann")
        (asked,) = run.interactions
        assert asked["approver"] == "another"
        for _ in range(2):
            with pytest.raises(Forbidden) as refused:
                await ex.resume(run.run_id, asked["id"], "approve", principal="ann")
            assert refused.value.code == "own_approval"
        still = await ex.get_run(run.run_id)
        assert (still.status, still.interactions) == ("waiting", [asked])
        ended = await ex.resume(run.run_id, asked["id"], "approve", principal="bob")
        assert (ended.status, ended.result) == ("completed", "paid")


async def test_whoever_asks_may_deny_and_cancel_what_another_must_approve(ex: Executor) -> None:
    """POL-15"""
    await ex.toolbox.add_policy("*", "*", "require_approval", approver="another")
    denied = await ex.run(PAY, principal="ann")
    ended = await ex.resume(denied.run_id, denied.interactions[0]["id"], "deny", principal="ann")
    assert ended.result == "approval_denied"
    rule = ex.toolbox.policies()[0]["id"]
    assert ended.calls[0].items() >= {"side_effect": "write", "decision": "require_approval", "rule": rule}.items()
    left = await ex.run(PAY, principal="ann")
    gone = await ex.resume(left.run_id, left.interactions[0]["id"], "cancel", principal="ann")
    assert gone.status == "cancelled"


async def test_a_question_put_before_it_took_another_is_void_and_put_anew(ex: Executor) -> None:
    """POL-15, POL-19"""
    run = await ex.run(PAY, principal="ann")
    assert run.interactions[0]["approver"] == "anyone"
    await ex.toolbox.add_policy("p", "*", "require_approval", approver="another")
    with pytest.raises(Conflict) as void:
        await ex.resume(run.run_id, run.interactions[0]["id"], "approve", principal="ann")
    assert void.value.code == "approval_void"
    again = await ex.wait_run(run.run_id, rest=True)
    assert again.interactions[0]["approver"] == "another"
    with pytest.raises(Forbidden):
        await ex.resume(run.run_id, again.interactions[0]["id"], "approve", principal="ann")


async def test_who_approves_is_kept_with_the_rule(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    rule = new_rule("*", "*", "require_approval", scope="org", approver="another")
    await store.policies.put_rule(rule.row())
    await store.close()
    store = await Store.open(tmp_path)
    assert [row.approver for row in await store.policies.rules()] == ["another"]
    await store.close()


def _key(home: Path, name: str, *options: str) -> str:
    done = cli(home, "key", "create", name, *options, "--json")
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["key"])


def test_another_key_approves_over_http_and_one_that_only_runs_does_not(tmp_path: Path) -> None:
    """POL-15: neither the requester nor a key without the permission."""
    ann, bob, runner = (_key(tmp_path, *given) for given in (("ann",), ("bob",), ("runner", "--access", "run")))
    with serving(tmp_path) as server:
        added = {"kind": "http", "name": "web", "allow": ["http://127.0.0.1:9"], "allow_private": ["127.0.0.1"]}
        assert server.ask("POST", "/integrations", added).status == 201
        rule = {"target": "web", "effect": "require_approval", "approver": "another"}
        assert server.ask("POST", "/policies", rule).json["approver"] == "another"
        wrong = server.ask("POST", "/policies", rule | {"effect": "block"})
        assert (wrong.status, wrong.code) == (400, "invalid_request")
        code = "try { await tools.web.org.main.http.request({method: 'POST', path: '/'}) } catch (e) { e.code }"
        run = server.ask("POST", "/run", {"code": code}, key=ann).json
        (asked,) = run["interactions"]

        def answer(key: str, action: str = "approve") -> Any:
            path = f"/runs/{run['run_id']}/resume"
            return server.ask("POST", path, {"interaction": asked["id"], "action": action}, key=key)

        own, lesser = answer(ann), answer(runner)
        assert (own.status, own.code) == (403, "own_approval")
        assert (lesser.status, lesser.code) == (403, "forbidden")
        done = answer(bob)
        assert (done.status, done.json["result"]) == (200, "upstream_unreachable")


def test_the_command_line_sets_who_approves_and_says_so(tmp_path: Path) -> None:
    added = cli(tmp_path, "add", "http", "web", "--allow", "http://127.0.0.1:9", "--allow-private", "127.0.0.1")
    assert added.returncode == 0, added.stderr
    done = cli(tmp_path, "policy", "set", "web", "*", "require_approval", "--approver", "another")
    assert "require_approval by another person web *" in done.stderr, done.stderr
    script = tmp_path / "post.js"
    script.write_text("await tools.web.org.main.http.request({method: 'POST', path: '/'})")
    ran = cli(tmp_path, "run", str(script))
    assert (ran.returncode, "by somebody else than the one who ran it" in ran.stderr) == (3, True), ran.stderr
    run_id = json.loads(cli(tmp_path, "runs", "list", "--json").stdout)["runs"][0]["run_id"]
    refused = cli(tmp_path, "runs", "resume", run_id, "--approve")
    assert (refused.returncode, "approval of another" in refused.stderr) == (1, True), refused.stderr


async def _denied(ex: Executor, code: str, principal: str) -> str:
    run = await ex.run(code, principal=principal)
    if run.status != "waiting":
        return str(run.result)
    ended = await ex.resume(run.run_id, run.interactions[0]["id"], "deny")
    return f"asked, {ended.result}"


async def test_who_is_denied_again_and_again_is_not_asked_about_for_a_while(ex: Executor) -> None:
    """POL-18: with other arguments each time, in other runs, by the same caller."""
    ex.tool("p.org.main.other", lambda args: "done", side_effect="write")
    for n in range(5):
        code = f"try {{ await tools.p.org.main.pay({{n: {n}}}) }} catch (e) {{ e.code }}"
        assert await _denied(ex, code, "ann") == "asked, approval_denied"
    told = "try { await tools.p.org.main.pay({n: 6}) } catch (e) { [e.code, e.details.denials, e.retry_after_ms > 0] }"
    refused = await ex.run(told, principal="ann")
    assert (refused.status, refused.result) == ("completed", ["approval_denied", 5, True])
    assert refused.calls[0]["decision"] == "require_approval"
    assert await _denied(ex, PAY, "bob") == "asked, approval_denied"
    assert (await ex.run(PAY.replace("pay", "other"), principal="ann")).status == "waiting"


async def test_a_script_that_asks_on_after_each_no_ends_at_the_limit(ex: Executor) -> None:
    """POL-18"""
    run = await ex.run(
        "let told; for (let n = 0; n < 100; n++)\n"
        "  try { await tools.p.org.main.pay({n}) } catch (e) { told = e.message }\n"
        "told"
    )
    asked = 0
    record: Any = run
    while record.status == "waiting":
        asked += 1
        record = await ex.resume(record.run_id, record.interactions[0]["id"], "deny")
    assert (asked, record.status, len(record.calls)) == (5, "completed", 100)
    assert "nobody is asked" in record.result


async def test_a_yes_ends_the_row_of_denials(ex: Executor) -> None:
    """POL-18"""
    for n in range(12):
        run = await ex.run(PAY.replace("n: 1", f"n: {n}"))
        assert run.status == "waiting"
        await ex.resume(run.run_id, run.interactions[0]["id"], "approve" if n % 4 == 3 else "deny")


async def test_denials_of_long_ago_do_not_count(ex: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """POL-18"""
    for n in range(5):
        await _denied(ex, PAY.replace("n: 1", f"n: {n}"), "ann")
    assert await _denied(ex, PAY, "ann") == "approval_denied"
    monkeypatch.setattr(interactions, "DENIALS_S", 0.0)
    assert await _denied(ex, PAY, "ann") == "asked, approval_denied"


async def test_a_direct_call_may_wait_in_a_run_of_its_own(ex: Executor) -> None:
    with pytest.raises(ToolError) as refused:
        await ex.call("p.org.main.pay", {"n": 1})
    assert refused.value.code == "approval_required"
    run = await ex.ask("p.org.main.pay", {"n": 1})
    ended = await ex.resume(run.run_id, run.interactions[0]["id"], "approve")
    assert (run.status, ended.result) == ("waiting", "paid")
