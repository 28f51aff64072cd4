"""Executor as an MCP server, driven by the official client in both eras of the protocol."""

import asyncio
from contextlib import asynccontextmanager

import jsonschema
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from executor import Config, Executor
from executor.mcp import watching
from executor.mcp.caller import Caller
from executor.mcp.server import Door

pytestmark = pytest.mark.anyio

ERAS = ["legacy", "2026-07-28"]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Shop:
    """Tools in this process, and what became of their calls."""

    def __init__(self, ex: Executor) -> None:
        self.hanging = asyncio.Event()
        self.cancelled = asyncio.Event()
        ex.tool("shop.org.main.orders.list", self.orders, description="List the open orders", side_effect="read")
        ex.tool("shop.org.main.orders.hang", self.hang, description="Wait for ever", side_effect="read")
        ex.tool("shop.org.main.orders.drop", self.orders, description="Delete an order", side_effect="delete")

    async def orders(self, args: dict) -> list[dict]:
        return [{"id": number, "total": number * 10} for number in range(1, 4)]

    async def hang(self, args: dict) -> None:
        self.hanging.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()


@pytest.fixture(scope="module")
async def opened():
    async with Executor.open(config=Config(workers=1)) as ex:
        yield ex, Shop(ex)


@asynccontextmanager
async def connected(ex: Executor, era: str):
    async with Client(Door(ex, lambda _: Caller()).server(), mode=era) as client:
        yield client


@pytest.fixture(params=ERAS)
def era(request) -> str:
    return request.param


def text_of(answer) -> str:
    return next(block.text for block in answer.content if block.type == "text")


async def test_the_tools_are_few_short_and_name_the_integrations(opened, era):
    async with connected(opened[0], era) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == ["run_code", "search", "describe", "execute", "resume"]
    assert "shop" in tools[0].description
    assert len(tools[0].description) < 700
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert tool.annotations.read_only_hint == (tool.name in ("search", "describe", "resume"))


async def test_a_script_runs_and_its_answer_is_text_and_data(opened, era):
    async with connected(opened[0], era) as client:
        answer = await client.call_tool(
            "run_code",
            {
                "code": "const orders = await tools.shop.org.main.orders.list(); console.log('seen', orders.length);"
                "orders.reduce((sum, one) => sum + one.total, 0) + input.extra",
                "input": {"extra": 5},
            },
        )
    assert not answer.is_error
    assert text_of(answer) == "65\n\nconsole:\nseen 3"
    data = answer.structured_content
    assert (data["status"], data["result"]) == ("completed", 65)
    assert [(call["path"], call["outcome"]) for call in data["calls"]] == [("shop.org.main.orders.list", "done")]


async def test_python_runs_too(opened, era):
    async with connected(opened[0], era) as client:
        answer = await client.call_tool(
            "run_code",
            {"code": "sum(o['total'] for o in await tools.shop.org.main.orders.list())", "language": "python"},
        )
    assert answer.structured_content["result"] == 60


async def test_a_script_that_fails_is_an_error_with_its_place(opened, era):
    async with connected(opened[0], era) as client:
        answer = await client.call_tool("run_code", {"code": "let a = 1;\na.b.c"})
    assert answer.is_error
    assert text_of(answer).startswith("script_error: TypeError:")
    assert "line 2" in text_of(answer)
    assert answer.structured_content["error"]["code"] == "script_error"


async def test_a_call_that_a_script_swallowed_is_told(opened, era):
    async with connected(opened[0], era) as client:
        answer = await client.call_tool(
            "run_code", {"code": "try { await tools.shop.org.main.orders.lost() } catch { 'went on' }"}
        )
    assert not answer.is_error
    assert "shop.org.main.orders.lost: tool_not_found" in text_of(answer)


async def test_what_waits_for_a_person_is_told_and_is_not_the_models_to_allow(opened, era):
    ex, _ = opened
    async with connected(ex, era) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool(
            "run_code", {"code": "await tools.shop.org.main.orders.drop({id: 3}); 'dropped'"}
        )
    assert not answer.is_error
    assert not {"approve", "deny", "decide"} & set(tools)
    run_id = answer.structured_content["run_id"]
    (interaction,) = answer.structured_content["interactions"]
    assert 'shop.org.main.orders.drop({"id": 3})' in text_of(answer)
    assert f"executor runs resume {run_id} {interaction['id']}" in text_of(answer)
    record = await ex.resume(run_id, interaction["id"], "approve")
    assert record.result == "dropped"


async def test_an_emitted_image_becomes_a_content_block(opened, era):
    code = f"emit({{type: 'image', mimeType: 'image/png', data: new Uint8Array({list(PNG)})}}); emit({{a: 1}}); 1"
    async with connected(opened[0], era) as client:
        answer = await client.call_tool("run_code", {"code": code})
    (image,) = [block for block in answer.content if block.type == "image"]
    assert image.mime_type == "image/png"
    assert image.data == "iVBORw0KGgo="
    assert answer.structured_content["emitted"] == [
        {"type": "image", "mimeType": "image/png", "in_content": True},
        {"a": 1},
    ]


async def test_an_emitted_file_becomes_a_resource_with_a_harmless_name(opened, era):
    code = "emit({type: 'file', name: '../../etc/passwd', mimeType: 'text/csv', data: new Uint8Array([97])}); 1"
    async with connected(opened[0], era) as client:
        answer = await client.call_tool("run_code", {"code": code})
    (file,) = [block for block in answer.content if block.type == "resource"]
    assert str(file.resource.uri) == "executor://emitted/.._.._etc_passwd"
    assert file.resource.blob == "YQ=="


async def test_search_and_describe_and_execute(opened, era):
    async with connected(opened[0], era) as client:
        found = await client.call_tool("search", {"query": "open orders"})
        path = found.structured_content["items"][0]["path"]
        described = await client.call_tool("describe", {"path": path})
        called = await client.call_tool("execute", {"path": path, "arguments": {}})
    assert path == "shop.org.main.orders.list"
    assert text_of(found).startswith(f"{path}: List the open orders")
    assert "side effect: read; policy: approve" in text_of(described)
    assert called.structured_content["value"][0] == {"id": 1, "total": 10}


async def test_an_empty_search_lists_every_tool(opened, era):
    async with connected(opened[0], era) as client:
        found = await client.call_tool("search", {"limit": 2})
        rest = await client.call_tool("search", {"limit": 2, "cursor": found.structured_content["next"]})
    assert found.structured_content["total"] == 3
    assert len(found.structured_content["items"] + rest.structured_content["items"]) == 3


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("run_code", {}, "'code' is missing"),
        ("run_code", {"code": 1}, "'code' must be a string"),
        ("run_code", {"code": "1", "speed": 9}, "unknown argument 'speed'"),
        ("run_code", {"code": "1", "language": "ruby"}, "'language' must be"),
        ("run_code", {"code": "1", "budgets": {"fuel": -1}}, "fuel"),
        ("describe", {"path": "shop.org.main.orders.lst"}, "shop.org.main.orders.list"),
        ("search", {"query": "x", "limit": 1000}, "'limit' must be"),
    ],
)
async def test_what_is_wrong_with_a_call_is_told_to_the_model(opened, era, name, arguments, said):
    async with connected(opened[0], era) as client:
        answer = await client.call_tool(name, arguments)
    assert answer.is_error
    assert said in text_of(answer)
    assert answer.structured_content["error"]["code"]


async def test_an_unknown_tool_is_a_protocol_error_that_names_the_tools(opened, era):
    async with connected(opened[0], era) as client:
        with pytest.raises(MCPError, match="run_code, search"):
            await client.call_tool("rm", {})


async def test_the_guide_is_a_resource_and_part_of_the_prompt(opened, era):
    async with connected(opened[0], era) as client:
        (resource,) = (await client.list_resources()).resources
        (contents,) = (await client.read_resource(resource.uri)).contents
        (prompt,) = (await client.list_prompts()).prompts
        given = await client.get_prompt(prompt.name, {"task": "Count the orders"})
        with pytest.raises(MCPError):
            await client.read_resource("file:///etc/passwd")
    assert "Promise.all" in contents.text
    assert "Count the orders" in given.messages[0].content.text


async def test_cancelling_a_call_cancels_its_run_and_the_calls_within(opened, era):
    """MCP-11"""
    ex, shop = opened
    shop.hanging.clear()
    shop.cancelled.clear()
    async with connected(ex, era) as client:
        call = asyncio.create_task(client.call_tool("run_code", {"code": "await tools.shop.org.main.orders.hang()"}))
        await shop.hanging.wait()
        call.cancel()
        await asyncio.wait([call])
        await asyncio.wait_for(shop.cancelled.wait(), 20)
    page = await ex.list_runs(limit=1)
    record = await ex.wait_run(page.items[0].run_id)
    assert record.status == "cancelled"


async def test_a_client_that_asked_for_progress_hears_that_a_run_goes_on(opened, era, monkeypatch):
    ex, shop = opened
    monkeypatch.setattr(watching, "PROGRESS_S", 0.01)
    shop.hanging.clear()
    heard: asyncio.Queue = asyncio.Queue()

    async def tell(progress, total, message):
        await heard.put((progress, message))

    async with connected(ex, era) as client:
        code = {"code": "await tools.shop.org.main.orders.hang()"}
        call = asyncio.create_task(client.call_tool("run_code", code, progress_callback=tell))
        told = [await asyncio.wait_for(heard.get(), 20) for _ in range(3)]
        call.cancel()
        await asyncio.wait([call])
    assert [progress for progress, _ in told] == sorted({progress for progress, _ in told})
    assert told[0][1].startswith("running for")


async def test_what_a_client_is_told_names_only_what_it_can_see(opened, era):
    ex, _ = opened
    # A client that was told the version does not ask for instructions.
    mode = "legacy" if era == "legacy" else "auto"
    ex.tool("vault.org.main.secret.get", lambda args: 1, side_effect="read")
    await ex.toolbox.toolkits.create(f"narrow{era[0]}", tools=["shop.*"])
    try:
        for caller in (Caller(toolkit=f"narrow{era[0]}"), Caller(tied=f"narrow{era[0]}")):
            async with Client(Door(ex, lambda _, who=caller: who).server(), mode=mode) as client:
                told = [client.instructions or "", *(tool.description for tool in (await client.list_tools()).tools)]
            assert any("shop" in text for text in told[:1])
            assert not any("vault" in text for text in told)
        async with connected(ex, mode) as client:
            assert "vault" in client.instructions
            assert "vault" in (await client.list_tools()).tools[0].description
    finally:
        await ex.remove("vault")


async def test_many_clients_at_once_get_their_own_answers(opened, era):
    """MCP-08"""
    ex, _ = opened
    async with connected(ex, era) as one, connected(ex, era) as two:
        asked = [(client, number) for number in range(20) for client in (one, two)]
        answers = await asyncio.gather(
            *(
                client.call_tool("run_code", {"code": "input", "input": [id(client), number]})
                for client, number in asked
            )
        )
    assert [answer.structured_content["result"] for answer in answers] == [[id(client), n] for client, n in asked]
