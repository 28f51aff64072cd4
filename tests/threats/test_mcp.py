"""The MCP group, as far as Executor is the server: hostile pages, strangers, malformed messages, clients that vanish.

MCP-01 is the conformance suite, tests/blackbox/test_mcp_conformance.py; what a state that a client carries is good for
(MCP-10) is tried out in full in tests/blackbox/test_mcp_approvals.py. Sessions are in test_mcp_sessions.py, standard
input and output in test_mcp_stdio.py.
"""

from __future__ import annotations

import asyncio
import http.client
import json

import pytest

from tests.blackbox.server import Server
from tests.threats.mcp_door import (
    HEAD,
    INITIALIZE,
    Session,
    call,
    connected,
    count,
    events,
    key_of,
    message,
    newest,
    post,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


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


MALFORMED = [
    (b"nonsense", -32700),
    (b"\xff\xfe", -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": NaN}}', -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\\ud800"}}', -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "method": "tools/list"}', -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": {"b": 1, "c": 2, "\\u0062": 3}}}', -32700),
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
    stranger = key_of(server, "other")
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


def test_a_rebound_name_is_refused_before_anything_is_read(server: Server):
    """MCP-03"""
    for host in (f"rebind.test:{server.port}", "rebind.test", "127.0.0.1.rebind.test", "localhost.rebind.test"):
        status, answer = post(server, b"{ not json", Host=host)
        assert status == 421
        assert b"jsonrpc" not in answer


def test_nothing_is_executed_by_a_get(server: Server):
    """MCP-04: what a page can do with a script tag or an image."""
    before = count(server)
    for path in ("/mcp", "/mcp/any", "/mcp?direct=true"):
        assert server.ask("GET", path, key=None).status == 401
    for version in ({}, {"MCP-Protocol-Version": "2026-07-28"}):
        assert 400 <= server.ask("GET", "/mcp", headers=HEAD | version).status < 500
    assert count(server) == before


def test_a_notification_and_a_stray_response_have_no_effect(server: Server):
    """MCP-06"""
    session, before = Session(server, server.key), count(server)
    quiet = call(1, "run_code", {"code": "1"})
    del quiet["id"]
    assert session.status(quiet) == 202
    assert session.status({"jsonrpc": "2.0", "id": 77, "result": {"action": "accept", "content": {}}}) == 202
    alive = session.post(call(2, "run_code", {"code": "40 + 2"}))
    assert [message["id"] for message in events(alive)] == [2]
    assert count(server) == before + 1
