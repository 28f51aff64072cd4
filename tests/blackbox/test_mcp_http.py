"""`/mcp` of a real server, and `executor mcp` as a client starts it."""

import asyncio
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from executor import Executor
from tests.blackbox.server import COMMAND, Server, serving

pytestmark = pytest.mark.anyio

ERAS = ["legacy", "auto", "2026-07-28"]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def connected(server: Server, era: str = "auto", path: str = "/mcp"):
    headers = {"authorization": f"Bearer {server.key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http_client,
        Client(streamable_http_client(f"{server.url}{path}", http_client=http_client), mode=era) as client,
    ):
        yield client


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_over_http_runs_a_script_under_its_key(server: Server, era):
    async with connected(server, era) as client:
        answer = await client.call_tool("run_code", {"code": "[6 * 7, 'Grüße']"})
    assert answer.structured_content["result"] == [42, "Grüße"]
    record = server.ask("GET", f"/runs/{answer.structured_content['run_id']}").json
    assert record["principal"] == server.ask("GET", f"/runs/{server.run('1')['run_id']}").json["principal"]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_the_endpoint_of_a_toolkit_narrows(server: Server, era):
    made = server.ask(
        "POST", "/integrations", {"kind": "http", "name": f"web{era[:1]}", "allow": ["https://example.com"]}
    )
    assert made.status == 201, made.body
    made = server.ask("POST", "/toolkits", {"name": f"none{era[:1]}", "tools": ["other.*"]})
    assert made.status in (200, 201), made.body
    path = f"web{era[:1]}.org.main.http.get"
    async with connected(server, era) as client:
        wide = await client.call_tool("describe", {"path": path})
    async with connected(server, era, path=f"/mcp/none{era[:1]}") as client:
        narrow = await client.call_tool("describe", {"path": path})
        found = await client.call_tool("search", {})
        ran = await client.call_tool("run_code", {"code": f"await tools.{path}({{path: '/'}})"})
    async with connected(server, era, path="/mcp/nowhere") as client:
        lost = await client.call_tool("run_code", {"code": "1"})
    assert not wide.is_error
    assert narrow.structured_content["error"]["code"] == "tool_not_found"
    assert found.structured_content["items"] == []
    assert "tool_not_found" in ran.content[0].text
    assert lost.structured_content["error"]["code"] == "invalid_request"


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_an_endpoint_that_is_asked_for_it_lists_tools_one_by_one(server: Server, era):
    name = f"sky{era[:1]}"
    place = {"kind": "http", "name": name, "allow": ["https://example.com"]}
    assert server.ask("POST", "/integrations", place).status == 201
    assert server.ask("POST", "/toolkits", {"name": name, "tools": [f"{name}.*"]}).status in (200, 201)
    async with connected(server, era, path=f"/mcp/{name}?direct=true") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        refused = await client.call_tool(f"{name}_org_main_http_get", {"path": "http://127.0.0.1/"})
    assert tools == [f"{name}_org_main_http_get", f"{name}_org_main_http_request", "resume"]
    assert refused.is_error
    assert server.ask("POST", f"/mcp/{name}?direct=perhaps", {}).code == "invalid_request"


@pytest.mark.parametrize("direct", [False, True])
async def test_standard_input_serves_a_toolkit_alone(home, direct):
    async with Executor.open(home) as ex:
        await ex.add_http("web", ["https://example.com"])
        await ex.add_http("other", ["https://example.org"])
        await ex.toolbox.toolkits.create("small", tools=["web.*"])
    args = ["mcp", "--home", str(home), "--toolkit", "small", *(["--direct"] if direct else [])]
    async with Client(StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], *args])) as client:
        tools = (await client.list_tools()).tools
    assert ("web_org_main_http_get" in [tool.name for tool in tools]) == direct
    assert not any("other" in f"{tool.name} {tool.description}" for tool in tools)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_over_standard_input_runs_a_script(home, era):
    command = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp", "--home", str(home)])
    async with Client(command, mode=era) as client:
        answer = await client.call_tool("run_code", {"code": "console.log('said'); 6 * 7"})
    assert answer.structured_content["result"] == 42
    assert "said" in answer.content[0].text


def test_a_waiting_run_is_resumed_from_another_session_after_a_crash(tmp_path):
    script = {"code": "await tools.web.org.main.http.request({method: 'POST', path: '/x'})"}
    place = {"kind": "http", "name": "web", "allow": ["POST http://127.0.0.1:9"], "allow_private": ["127.0.0.1"]}
    home = tmp_path / "home"

    async def ask(server: Server, tool: str, arguments: dict) -> dict:
        async with connected(server) as client:
            return (await client.call_tool(tool, arguments)).structured_content

    with serving(home) as server:
        assert server.ask("POST", "/integrations", place).status == 201
        waiting = asyncio.run(ask(server, "run_code", script))
        assert waiting["status"] == "waiting"
        server.process.kill()
        server.process.wait(30)
        key = server.key
    with serving(home) as server:
        server.key = key
        (listed,) = asyncio.run(ask(server, "resume", {}))["runs"]
        assert listed["run_id"] == waiting["run_id"]
        answer = {"interaction": listed["interactions"][0]["id"], "action": "deny"}
        assert server.ask("POST", f"/runs/{listed['run_id']}/resume", answer).status == 200
        ended = asyncio.run(ask(server, "resume", {"run_id": listed["run_id"]}))
    assert ended["status"] == "failed"
    assert ended["calls"][0]["code"] == "approval_denied"


async def test_what_a_script_did_is_in_the_home(home):
    command = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp", "--home", str(home)])
    async with Client(command) as client:
        answer = await client.call_tool("run_code", {"code": "1"})
    async with Executor.open(home) as ex:
        (run,) = (await ex.list_runs()).items
    assert (run.run_id, run.principal) == (answer.structured_content["run_id"], "mcp")
