"""A person's yes is to one call: the proxy makes no other for it, whoever brings it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.approvals import Ask, Binder, NeedsApproval
from bridge.calls import CallContext
from bridge.policy import Decision, new_rule
from bridge.toolbox import Toolbox
from catalog.model import Connection, Tool, ToolSpec
from tests.unit.upstream import Upstream, call, document, operation, parameter, toolbox, upstream

pytestmark = pytest.mark.anyio

CTX = CallContext(run_id="run_1", principal="key_1")
PATH = "api.org.main.op"


async def asked(box: Toolbox, ctx: CallContext = CTX, args: Any = None, call_id: int = 1) -> str:
    """The binding of what a person would be asked."""
    with pytest.raises(NeedsApproval) as caught:
        await call(box, PATH, args, ctx=ctx, waits=True, call_id=call_id)
    return caught.value.ask.binding


async def prepared(box: Toolbox, server: Upstream) -> None:
    described = document({"/x": {"get": operation(parameter("q"))}}, server.base)
    await box.add_openapi("api", described, allow_private=["127.0.0.1"])
    await box.add_policy("api", "*", "require_approval")


async def test_a_yes_makes_exactly_its_own_call() -> None:
    """POL-09"""
    async with upstream() as server, toolbox() as box:
        await prepared(box, server)
        binding = await asked(box, args={"q": "a"})
        await call(box, PATH, {"q": "a"}, ctx=CTX, waits=True, call_id=1, approved=binding)
        assert [one.target for one in server.seen] == ["/x?q=a"]


@pytest.mark.parametrize(
    "other",
    [
        {"args": {"q": "b"}},
        {"args": {}},
        {"call_id": 2},
        {"ctx": replace(CTX, run_id="run_2")},
        {"ctx": replace(CTX, principal="key_2")},
    ],
    ids=["other arguments", "none", "another call", "another run", "somebody else"],
)
async def test_a_yes_makes_no_other_call(other: dict[str, Any]) -> None:
    """POL-09, POL-13"""
    async with upstream() as server, toolbox() as box:
        await prepared(box, server)
        binding = await asked(box, args={"q": "a"})
        meant: dict[str, Any] = {"args": {"q": "a"}, "ctx": CTX, "call_id": 1} | other
        with pytest.raises(NeedsApproval):
            await call(box, PATH, meant.pop("args"), waits=True, approved=binding, **meant)
        assert server.seen == []


async def test_a_yes_is_void_once_rule_or_connection_or_tool_changed() -> None:
    """POL-09, POL-19"""
    async with upstream() as server, toolbox() as box:
        await prepared(box, server)
        binding = await asked(box, args={"q": "a"})
        await box.add_policy("api", "op", "require_approval")
        with pytest.raises(NeedsApproval) as caught:
            await call(box, PATH, {"q": "a"}, ctx=CTX, waits=True, call_id=1, approved=binding)
        binding = caught.value.ask.binding
        await box.add_openapi(
            "api",
            document({"/y": {"get": operation(parameter("q"))}}, server.base),
            allow_private=["127.0.0.1"],
            replace=True,
        )
        with pytest.raises(NeedsApproval):
            await call(box, PATH, {"q": "a"}, ctx=CTX, waits=True, call_id=1, approved=binding)
        assert server.seen == []


async def test_a_yes_is_void_once_another_person_has_to_say_it() -> None:
    """POL-15"""
    async with upstream() as server, toolbox() as box:
        await prepared(box, server)
        before = await asked(box, args={"q": "a"})
        rule = (await box.add_policy("api", "op", "require_approval", approver="another"))["id"]
        with pytest.raises(NeedsApproval) as caught:
            await call(box, PATH, {"q": "a"}, ctx=CTX, waits=True, call_id=1, approved=before)
        assert (caught.value.ask.approver, caught.value.ask.rule) == ("another", rule)


def shared(kind: str) -> dict[str, Any]:
    """An operation whose argument is described elsewhere in the document."""
    body = {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}}}
    inner = {"type": "object", "properties": {"n": {"$ref": "#/components/schemas/N"}}}
    answers = {"200": {"description": "fine"}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "T", "version": "1"},
        "paths": {"/x": {"post": {"operationId": "op", "requestBody": body, "responses": answers}}},
        "components": {"schemas": {"S": inner, "N": {"type": kind, "nullable": True}}},
    }


async def test_a_yes_is_void_once_what_an_argument_refers_to_changed() -> None:
    """POL-09"""
    bindings = []
    async with upstream() as server, toolbox() as box:
        for kind in ("string", "string", "integer"):
            described = shared(kind) | {"servers": [{"url": server.base}]}
            await box.add_openapi("api", described, allow_private=["127.0.0.1"], replace=True)
            if not bindings:
                await box.add_policy("api", "*", "require_approval")
            bindings.append(await asked(box, args={"body": {"n": None}}))
    assert bindings[0] == bindings[1]
    assert bindings[1] != bindings[2]


RULE = new_rule("api", "*", "require_approval", scope="org")
CONFIG = {"a": 1, "b": 2}
DEFINITIONS = {"x": {"type": "string"}, "y": {"type": "integer"}}
SPEC = ToolSpec("op", input_schema={"type": "object"}, side_effect="write", binding={"method": "POST", "path": "/x"})


def bound(
    *,
    ctx: CallContext = CTX,
    call_id: int = 1,
    spec: ToolSpec = SPEC,
    definitions: Any = DEFINITIONS,
    args: Any = None,
    config: Any = CONFIG,
    connection: Connection | None = None,
    decision: Decision | None = None,
    kind: str = "openapi",
    reach: tuple[str, ...] = ("https://a.test",),
    integration: str = "api",
) -> Ask:
    tool = Tool(f"{integration}.org.main.{spec.name}", integration, "org", "main", spec, definitions)
    installed: Any = SimpleNamespace(integration=None, kind=kind, config=config, manifest=SimpleNamespace(reach=reach))
    made = Decision("require_approval", RULE, "a rule says so") if decision is None else decision
    account = connection or Connection("api", "org", "main")
    return Binder().ask(ctx, call_id, tool, {"q": "a"} if args is None else args, installed, account, made)


@pytest.mark.parametrize(
    "other",
    [
        {"ctx": replace(CTX, run_id="run_2")},
        {"ctx": replace(CTX, principal="key_2")},
        {"ctx": replace(CTX, toolkit="kit")},
        {"call_id": 2},
        {"integration": "api2"},
        {"kind": "http"},
        {"spec": replace(SPEC, name="op2")},
        {"spec": replace(SPEC, side_effect="delete")},
        {"spec": replace(SPEC, input_schema={"type": "array"})},
        {"spec": replace(SPEC, output_schema={"type": "array"})},
        {"spec": replace(SPEC, binding={"method": "POST", "path": "/y"})},
        {"definitions": DEFINITIONS | {"y": {"type": "number"}}},
        {"reach": ("https://b.test",)},
        {"config": CONFIG | {"b": 3}},
        {"config": CONFIG | {"b": object()}},
        {"connection": Connection("api", "org", "other")},
        {"connection": Connection("api", "org", "main", probe="op")},
        {"decision": Decision("require_approval", new_rule("api", "*", "require_approval", scope="org"), "")},
        {"decision": Decision("require_approval", None, "")},
        {"decision": Decision("require_approval", RULE, "", "another")},
        {"args": {"q": "b"}},
        {"args": {"q": b"a"}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_each_fact_of_a_call_is_bound(other: dict[str, Any]) -> None:
    """POL-09, POL-19: the last word on the rule's approver as well (POL-15)."""
    assert bound(**other).binding != bound().binding


def test_the_order_in_which_settings_are_written_is_no_fact() -> None:
    def turned(one: dict[str, Any]) -> dict[str, Any]:
        return dict(reversed(one.items()))

    assert bound(config=turned(CONFIG), definitions=turned(DEFINITIONS)) == bound()


def test_what_has_no_json_is_bound_by_what_it_is() -> None:
    one, other = (
        bound(config={"code": made}, definitions={"code": made}).binding for made in (object(), SimpleNamespace())
    )
    assert one != other
    assert one == bound(config={"code": object()}, definitions={"code": object()}).binding


def test_what_is_asked_says_who_may_answer_and_which_rule_asks() -> None:
    asked = bound(decision=Decision("require_approval", RULE, "why", "another"))
    assert (asked.path, asked.arguments, asked.reason, asked.side_effect) == (
        "api.org.main.op",
        {"q": "a"},
        "why",
        "write",
    )
    assert (asked.approver, asked.rule) == ("another", RULE.id)
    assert bound(decision=Decision("require_approval", None, "")).rule is None


def test_definitions_are_hashed_again_once_they_are_others() -> None:
    binder = Binder()
    installed: Any = SimpleNamespace(integration=None, kind="openapi", config={}, manifest=SimpleNamespace(reach=()))

    def of(definitions: Any) -> str:
        tool = Tool("api.org.main.op", "api", "org", "main", SPEC, definitions)
        decision = Decision("require_approval", RULE, "")
        return binder.ask(CTX, 1, tool, {}, installed, Connection("api", "org", "main"), decision).binding

    first = of(DEFINITIONS)
    assert of(DEFINITIONS) == first
    assert of({"x": 1}) != first
    assert of(dict(DEFINITIONS)) == first
