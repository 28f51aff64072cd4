"""A person's yes is to one call: the proxy makes no other for it, whoever brings it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bridge.approvals import NeedsApproval
from bridge.calls import CallContext
from bridge.toolbox import Toolbox
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
