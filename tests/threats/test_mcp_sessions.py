"""Group MCP of the threat catalogue: what belongs to one session, one key, one question."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os

import httpx2
import mcp_types as types
import pytest

from tests.blackbox.server import Server
from tests.threats.mcp_door import (
    CANARY,
    HEAD,
    MODERN_META,
    ORDER,
    Session,
    Upstream,
    call,
    connected,
    events,
    first,
    key_of,
    newest,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def upstream(server: Server):
    made = Upstream()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    kept = await asyncio.to_thread(server.ask, "PUT", "/secrets/shop", {"value": CANARY})
    assert kept.status < 300, kept.body
    added = await asyncio.to_thread(
        server.ask,
        "POST",
        "/integrations",
        {
            "kind": "http",
            "name": "shop",
            "allow": [f"GET http://127.0.0.1:{port}", f"POST http://127.0.0.1:{port}"],
            "allow_private": ["127.0.0.1"],
            "auth": "bearer",
            "secret": "local:shop",
        },
    )
    assert added.status == 201, added.body
    yield made
    listening.close()


async def test_equal_ids_of_two_clients_never_cross(server: Server, long: bool):
    """MCP-08: 10 000 calls in the long form."""
    rounds = 5000 if long else 100
    keys = [server.key, await asyncio.to_thread(key_of, server, "second")]
    limits = httpx2.Limits(max_connections=8)

    async def modern(number: int, who: int) -> None:
        asked = call(number % 7, "search", {"query": f"nothing{who}{number}x", "limit": 1})
        asked["params"]["_meta"] = MODERN_META
        asked["params"]["name"], asked["params"]["arguments"] = "describe", {"path": f"is.org.not.there{who}_{number}"}
        headers = HEAD | {
            "Authorization": f"Bearer {keys[who]}",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "describe",
        }
        answer = (await clients[who].post(f"{server.url}/mcp", json=asked, headers=headers)).json()
        assert answer["id"] == number % 7
        assert f"there{who}_{number}'" in answer["result"]["content"][0]["text"], answer

    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(httpx2.AsyncClient(timeout=60, limits=limits)) for _ in keys]
        for start in range(0, rounds, 25):
            numbers = range(start, min(start + 25, rounds))
            await asyncio.gather(*(modern(number, who) for number in numbers for who in (0, 1)))

    sessions = [await asyncio.to_thread(Session, server, key) for key in keys]

    def legacy(number: int, who: int) -> None:
        reply = sessions[who].post(call(number, "run_code", {"code": "input", "input": [who, number]}))
        (message,) = events(reply)
        assert message["id"] == number
        assert message["result"]["structuredContent"]["result"] == [who, number]

    for start in range(0, rounds // 5, 5):
        numbers = range(start, start + 5)
        await asyncio.gather(*(asyncio.to_thread(legacy, number, who) for number in numbers for who in (0, 1)))


def test_a_session_that_was_ended_guessed_or_made_up_is_not_there(server: Server):
    """MCP-09"""
    session = Session(server, server.key)
    ping = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
    assert session.status(ping) == 200
    for made_up in ("0" * 32, "mine", session.id[:-1], f"{session.id}0", "../../x"):
        assert session.status(ping, session=made_up) == 404
    assert session.delete() == 200
    assert session.status(ping) == 404


async def test_an_answer_to_a_question_counts_from_the_one_who_was_asked_alone(server: Server, upstream: Upstream):
    """MCP-24, SEC-25"""
    before = len(upstream.posts)
    stranger = await asyncio.to_thread(key_of, server, "stranger24")

    def drive() -> dict:
        session = Session(server, server.key)
        told = events(session.post(call(9, "run_code", ORDER)))
        question = first(told, lambda message: message.get("method") == "elicitation/create")
        assert CANARY not in json.dumps(question)
        assert "needs your approval" in question["params"]["message"]
        yes = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}}
        assert session.status(yes, key=stranger) == 404
        assert Session(server, stranger).status(yes) == 202
        assert Session(server, server.key).status(yes) == 202
        assert len(upstream.posts) == before
        assert session.status(yes) == 202
        return first(told, lambda message: message.get("id") == 9)

    answer = await asyncio.to_thread(drive)
    assert answer["result"]["structuredContent"]["status"] == "completed"
    assert len(upstream.posts) == before + 1
    assert CANARY.encode() in upstream.posts[-1]
    assert CANARY not in json.dumps(answer)


async def test_a_state_of_one_key_is_nothing_to_another_and_to_another_endpoint(server: Server, upstream: Upstream):
    """MCP-10, MCP-24"""
    before = len(upstream.posts)
    stranger = await asyncio.to_thread(key_of, server, "stranger10")
    made = await asyncio.to_thread(server.ask, "POST", "/toolkits", {"name": "all", "tools": ["*"]})
    assert made.status in (200, 201), made.body

    def send(asked: dict, key: str = server.key, path: str = "/mcp") -> dict:
        headers = HEAD | {
            "Authorization": f"Bearer {key}",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "run_code",
        }
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", path, body=json.dumps(asked).encode(), headers=headers)
        with connection.getresponse() as reply:
            return json.loads(reply.read())

    def drive() -> None:
        first = send(call(1, "run_code", ORDER, _meta=MODERN_META))["result"]
        assert first["resultType"] == "input_required"
        assert CANARY not in json.dumps(first)
        answers = {id: {"action": "accept", "content": {}} for id in first["inputRequests"]}
        state = first["requestState"]
        again = call(2, "run_code", ORDER, _meta=MODERN_META, inputResponses=answers, requestState=state)
        for refused in (send(again, key=stranger), send(again, path="/mcp/all")):
            assert refused["error"]["code"] == -32602
        assert len(upstream.posts) == before
        assert send(again)["result"]["structuredContent"]["status"] == "completed"
        assert send(again)["error"]["code"] == -32602

    await asyncio.to_thread(drive)
    assert len(upstream.posts) == before + 1


async def test_a_key_that_may_only_run_approves_nothing_through_its_client(server: Server, upstream: Upstream):
    """MCP-24: what takes another access over HTTP takes it here."""
    before, asked = len(upstream.posts), []

    async def person(context, params):
        asked.append(params)
        return types.ElicitResult(action="accept", content={})

    runner = await asyncio.to_thread(key_of, server, "runner", access="run")
    for era in ("legacy", "2026-07-28"):
        async with connected(server, era, key=runner, person=person) as client:
            answer = await client.call_tool("run_code", ORDER)
            look = await client.call_tool("resume", {"run_id": answer.structured_content["run_id"], "wait_s": 0})
        assert answer.structured_content["status"] == look.structured_content["status"] == "waiting"
    assert asked == []
    assert len(upstream.posts) == before


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_stream_that_is_closed_takes_its_run_and_the_upstream_call_along(server: Server, upstream, era):
    """MCP-11"""
    upstream.hanging.clear()
    upstream.aborted.clear()
    asked = call(3, "run_code", {"code": "await tools.shop.org.main.http.get({path: '/slow'})"})
    headers = HEAD | {"Authorization": f"Bearer {server.key}", "Host": f"127.0.0.1:{server.port}"}
    if era == "legacy":
        session = await asyncio.to_thread(Session, server, server.key)
        headers |= {"Mcp-Session-Id": session.id, "MCP-Protocol-Version": "2025-11-25"}
    else:
        asked["params"]["_meta"] = MODERN_META
        headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "run_code"}
    body = json.dumps(asked).encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | {"Content-Length": len(body)}).items())
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body)
    await asyncio.wait_for(upstream.hanging.wait(), 60)
    run_id = await newest(server, "running")
    writer.close()
    await asyncio.wait_for(upstream.aborted.wait(), 60)
    assert await newest(server, "cancelled") == run_id


async def test_sessions_that_come_and_go_leave_nothing_open(server: Server, long: bool):
    """1 000 sessions in the long form: ended, abandoned in a call, cut off in the middle of a message."""

    def used() -> int:
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    def visit(number: int) -> None:
        session = Session(server, server.key)
        reply = session.post(call(1, "run_code", {"code": "1"}))
        if number % 3:
            list(events(reply))
        reply.close()
        if number % 3 == 2:
            with server.connect() as cut:
                cut.sendall(b"POST /mcp HTTP/1.1\r\nContent-Length: 500\r\n\r\n{")
        assert session.delete() == 200

    await asyncio.to_thread(visit, 1)
    before = used()
    for start in range(0, 1000 if long else 40, 10):
        await asyncio.gather(*(asyncio.to_thread(visit, start + number) for number in range(10)))
    for _ in range(300):
        if used() <= before + 2:
            break
        await asyncio.sleep(0.1)
    assert used() <= before + 2
    assert server.alive()
