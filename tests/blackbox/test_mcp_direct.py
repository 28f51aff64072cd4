"""The tools of a small toolkit, listed one by one."""

from contextlib import asynccontextmanager

import jsonschema
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from executor import Config, Executor
from executor.mcp import direct
from executor.mcp.caller import Caller
from executor.mcp.server import Door

pytestmark = pytest.mark.anyio

LONG = "shop.org.main.orders.with_a_name_that_is_far_too_long_for_what_most_clients_take"
ORDER = {
    "type": "object",
    "properties": {"id": {"type": "integer", "x-mcp-header": "Order"}, "x-mcp-header": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}
DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "t", "version": "1"},
    "servers": [{"url": "https://api.example.com"}],
    "paths": {
        "/trees/{id}": {
            "get": {
                "operationId": "getTree",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {
                    "200": {
                        "description": "A tree",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}},
                    }
                },
            }
        }
    },
    "components": {
        "schemas": {
            "Tree": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}},
            }
        }
    },
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["legacy", "2026-07-28"])
def era(request) -> str:
    return request.param


@pytest.fixture(scope="module")
async def opened():
    async with Executor.open(config=Config(workers=1)) as ex:
        ex.tool("shop.org.main.orders.get", lambda args: {"id": args["id"]}, input_schema=ORDER, side_effect="read")
        ex.tool("shop.org.main.orders.drop", lambda args: {"gone": args}, side_effect="delete")
        ex.tool("shop.org.main.orders_drop", lambda args: "the other one", side_effect="read")
        ex.tool(LONG, lambda args: "long", side_effect="read")
        for number in range(direct.MOST + 1):
            ex.tool(f"many.org.main.t{number}", lambda args: 1, side_effect="read")
        await ex.add_openapi("forest", DOCUMENT)
        await ex.toolbox.toolkits.create("small", tools=["shop.*", "forest.*"])
        await ex.toolbox.add_policy("shop", "orders.hidden", "block")
        yield ex


@asynccontextmanager
async def connected(ex: Executor, era: str, toolkit: str | None = "small", answer: str | None = None):
    async def person(context, params) -> types.ElicitResult:
        return types.ElicitResult(action=answer, content={})

    caller = Caller(toolkit=toolkit, direct=True)
    server = Door(ex, lambda _: caller).server()
    async with Client(server, mode=era, elicitation_callback=person if answer else None) as client:
        yield client


async def test_each_tool_has_a_name_that_every_client_takes_its_schemas_and_hints(opened, era):
    async with connected(opened, era) as client:
        tools = {tool.title: tool for tool in (await client.list_tools()).tools}
    names = [tool.name for tool in tools.values()]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 64 and name.replace("_", "a").replace("-", "a").isalnum() for name in names)
    assert tools["shop.org.main.orders.get"].name == "shop_org_main_orders_get"
    assert tools["shop.org.main.orders.get"].annotations.read_only_hint
    assert tools["shop.org.main.orders.drop"].annotations.destructive_hint
    assert "A person is asked" in tools["shop.org.main.orders.drop"].description
    for tool in tools.values():
        assert tool.input_schema["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
    tree = tools["forest.org.main.getTree"]
    jsonschema.validate({"value": {"children": [{"children": []}]}}, tree.output_schema)
    assert "Tree" in tree.output_schema["$defs"]


async def test_where_arguments_travel_is_not_for_a_description_to_say(opened, era):
    async with connected(opened, era) as client:
        (tool,) = [tool for tool in (await client.list_tools()).tools if tool.title == "shop.org.main.orders.get"]
    assert tool.input_schema["properties"] == {"id": {"type": "integer"}, "x-mcp-header": {"type": "string"}}


async def test_a_call_by_name_reaches_the_tool_and_no_other(opened, era):
    async with connected(opened, era) as client:
        names = {tool.title: tool.name for tool in (await client.list_tools()).tools}
        got = await client.call_tool("shop_org_main_orders_get", {"id": 4})
        wrong = await client.call_tool("shop_org_main_orders_get", {"number": 4})
        other = await client.call_tool(names["shop.org.main.orders_drop"], {})
        long = await client.call_tool(names[LONG], {})
        for unlisted in ("run_code", "execute", "many_org_main_t1", "shop.org.main.orders.get"):
            with pytest.raises(MCPError, match="there is no tool"):
                await client.call_tool(unlisted, {})
    assert got.structured_content == {"value": {"id": 4}}
    assert wrong.structured_content["error"]["code"] == "invalid_arguments"
    assert (other.structured_content["value"], long.structured_content["value"]) == ("the other one", "long")


async def test_approvals_are_the_same(opened, era):
    async with connected(opened, era, answer="accept") as client:
        names = {tool.title: tool.name for tool in (await client.list_tools()).tools}
        allowed = await client.call_tool(names["shop.org.main.orders.drop"], {"id": 1})
    async with connected(opened, era) as client:
        waiting = await client.call_tool(names["shop.org.main.orders.drop"], {"id": 2})
        looked = await client.call_tool("resume", {"run_id": waiting.structured_content["run_id"], "wait_s": 0})
    assert allowed.structured_content == {"value": {"gone": {"id": 1}}}
    assert waiting.structured_content["status"] == looked.structured_content["status"] == "waiting"


async def test_too_many_tools_are_an_error_that_says_what_to_do(opened, era):
    async with connected(opened, era, toolkit=None) as client:
        with pytest.raises(MCPError, match=r"at most 64 tools, and here are \d+: make a toolkit"):
            await client.list_tools()


async def test_a_toolkit_that_there_is_not_is_told(opened, era):
    async with connected(opened, era, toolkit="nowhere") as client:
        with pytest.raises(MCPError, match="nowhere"):
            await client.list_tools()
