"""`/mcp` of a real server, and `executor mcp` as a client starts it."""

import asyncio
import http.client
import json
import os
import signal
import subprocess
import time
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from executor import Executor
from tests.blackbox.server import COMMAND, Server

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


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_over_standard_input_runs_a_script(home, era):
    command = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp", "--home", str(home)])
    async with Client(command, mode=era) as client:
        answer = await client.call_tool("run_code", {"code": "console.log('said'); 6 * 7"})
    assert answer.structured_content["result"] == 42
    assert "said" in answer.content[0].text


def post(server: Server, body: bytes, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    sent = {
        "Authorization": f"Bearer {server.key}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    } | {name.replace("_", "-"): value for name, value in headers.items() if value}
    for name, value in headers.items():
        if not value:
            sent.pop(name.replace("_", "-"), None)
    connection.request("POST", "/mcp", body=body, headers=sent)
    reply = connection.getresponse()
    answer = reply.status, reply.read()
    connection.close()
    return answer


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.test"}, 421),
        ({"Host": "evil.test", "Origin": "https://evil.test"}, 421),
        ({}, 200),
    ],
)
def test_a_page_of_another_origin_gets_nowhere(server: Server, headers, status):
    """MCP-02, MCP-03"""
    assert post(server, json.dumps(INITIALIZE).encode(), **headers)[0] == status


def test_without_a_key_there_is_nothing(server: Server):
    """MCP-04"""
    assert post(server, json.dumps(INITIALIZE).encode(), Authorization="")[0] == 401
    assert post(server, json.dumps(INITIALIZE).encode(), Authorization="Bearer exk_wrong")[0] == 401


def message(**parts) -> bytes:
    return json.dumps(INITIALIZE | parts).encode()


MALFORMED = [
    (b"nonsense", -32700),
    (b"\xff\xfe", -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": NaN}}', -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\\ud800"}}', -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", -32700),
    (b"", -32700),
    (b"[]", -32600),
    (b"{}", -32600),
    (b"null", -32600),
    (json.dumps([INITIALIZE]).encode(), -32600),
    (message(id=None), -32600),
    (message(id=1.5), -32600),
    (message(id=True), -32600),
    (message(id={"a": 1}), -32600),
    (message(id=2**64), -32600),
    (message(jsonrpc="1.0"), -32600),
    (message(params=[1, 2]), -32600),
    (message(method="m" * 10_240), -32600),
    (message(method=7), -32600),
    (b'{"jsonrpc": "2.0", "id": 1}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": ' + b"[" * 600 + b"]" * 600 + b"}}", -32600),
]


@pytest.mark.parametrize("version", ["", "2025-11-25", "2026-07-28"])
def test_what_is_no_message_is_a_json_rpc_error_in_our_words(server: Server, version):
    """MCP-06"""
    for body, code in MALFORMED:
        status, answer = post(server, body, MCP_Protocol_Version=version)
        told = json.loads(answer)
        assert (status, told["jsonrpc"], told["error"]["code"]) == (400, "2.0", code), body[:80]
        assert told["id"] in (None, 1)
        assert "pydantic" not in answer.decode()
        assert "input_value" not in answer.decode()


async def test_malformed_requests_leave_the_server_well(server: Server):
    """MCP-06, MCP-07"""
    stray = [
        b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
        b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "run_code"}}',
    ]
    for _ in range(20):
        for body in [*(body for body, _ in MALFORMED), *stray]:
            status, _ = post(server, body)
            assert 400 <= status < 500, (status, body[:80])
    async with connected(server) as client:
        assert (await client.call_tool("run_code", {"code": "1"})).structured_content["result"] == 1


def test_a_session_belongs_to_the_key_that_opened_it(server: Server):
    """MCP-09"""
    other = subprocess.run(
        [*COMMAND, "key", "create", "other", "--home", str(server.home), "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    stranger = json.loads(other.stdout)["key"]
    # A server knows a new key a second later at the latest.
    for _ in range(100):
        if server.ask("GET", "/runs?limit=1", key=stranger).status == 200:
            break
        time.sleep(0.05)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    head = {
        "Authorization": f"Bearer {server.key}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    connection.request("POST", "/mcp", body=json.dumps(INITIALIZE), headers=head)
    reply = connection.getresponse()
    session = reply.getheader("mcp-session-id")
    reply.read()
    connection.close()
    assert session
    ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
    version = {"Mcp_Session_Id": session, "MCP_Protocol_Version": "2025-11-25"}
    assert post(server, ping, **version)[0] == 200
    assert post(server, ping, **version, Authorization=f"Bearer {stranger}")[0] == 404
    assert post(server, ping, Mcp_Session_Id="0" * 32, MCP_Protocol_Version="2025-11-25")[0] == 404


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_client_that_leaves_cancels_its_run(server: Server, era):
    """MCP-11"""
    async with connected(server, era) as client:
        code = {"code": "await new Promise(r => setTimeout(r, 50000))"}
        call = asyncio.create_task(client.call_tool("run_code", code))
        run_id = await newest(server, "running")
        call.cancel()
        await asyncio.wait([call])
        assert await newest(server, "cancelled") == run_id


async def newest(server: Server, status: str) -> str:
    """The id of the newest run once it has this status."""
    for _ in range(300):
        reply = await asyncio.to_thread(server.ask, "GET", "/runs?limit=1")
        runs = reply.json["runs"]
        if runs and runs[0]["status"] == status:
            return str(runs[0]["run_id"])
        await asyncio.sleep(0.1)
    raise AssertionError(runs)


def lines(home, sent: bytes) -> tuple[list[dict], int]:
    """What `executor mcp` writes for what it reads, until its input ends; and its exit status."""
    done = subprocess.run([*COMMAND, "mcp", "--home", str(home)], input=sent, capture_output=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


def test_standard_output_holds_the_protocol_alone_whatever_comes_in(home):
    """MCP-12"""
    good = json.dumps(INITIALIZE).encode()
    hostile = [b"{", b"\xff\xfe\xfd", b"x" * 1_000_000, b"", b"[1, 2", b'{"jsonrpc": "2.0"}']
    answers, status = lines(home, b"\n".join([*hostile, good]) + b"\n")
    assert status == 0
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    refused = [answer["error"]["code"] for answer in answers if answer.get("id", "none") is None]
    assert refused == [-32700, -32700, -32700, -32700, -32700, -32600]
    assert next(answer for answer in answers if answer.get("id") == 1)["result"]["serverInfo"]["name"] == "executor"


def test_it_ends_with_its_input_and_on_a_signal(home):
    """MCP-12"""
    for end in ("input", "signal"):
        with subprocess.Popen(
            [*COMMAND, "mcp", "--home", str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 1
            if end == "signal":
                os.kill(process.pid, signal.SIGTERM)
            else:
                process.stdin.close()
            assert process.wait(30) == 0


async def test_what_a_script_did_is_in_the_home(home):
    answers, _ = lines(home, json.dumps(INITIALIZE).encode() + b"\n")
    assert answers
    async with Executor.open(home) as ex:
        assert (await ex.list_runs()).items == []
