"""Sessions of MCP clients of 2025: bounded for each key, so that none keeps others out."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from bridge.wire.errors import Overloaded
from executor import Config, Executor
from executor.http.edge import ADMITTED, Admitted
from executor.http.mcp import McpEndpoint, door_of
from executor.http.sessions import Sessions
from executor.keys import Access

pytestmark = pytest.mark.anyio

HEAD = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Clients:
    """Clients of several keys of one endpoint, which admits whoever says a key."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        self.endpoint = endpoint
        self.http = httpx2.AsyncClient(transport=httpx2.ASGITransport(self._app), base_url="http://localhost")

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        key = dict(scope["headers"])[b"x-key"].decode()
        scope[ADMITTED] = Admitted(key, True, Access(), body)
        scope["path_params"] = {}
        try:
            await self.endpoint(scope, receive, send)
        except Overloaded:
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def open(self, key: str) -> str:
        answer = await self.http.post("/mcp", headers=HEAD | {"x-key": key}, content=json.dumps(HELLO))
        return answer.headers["mcp-session-id"] if answer.status_code == 200 else f"refused {answer.status_code}"

    async def ping(self, key: str, session: str) -> int:
        head = HEAD | {"x-key": key, "mcp-session-id": session}
        return (await self.http.post("/mcp", headers=head, content=json.dumps(PING))).status_code

    async def end(self, key: str, session: str) -> int:
        return (await self.http.delete("/mcp", headers={"x-key": key, "mcp-session-id": session})).status_code


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    async with Executor.open(config=Config(workers=1, search="words")) as ex:
        endpoint = McpEndpoint(door_of(ex), Sessions(per_key=2, total=5))
        made = Clients(endpoint)
        async with made.http:
            yield made
        await endpoint.close()


async def test_a_key_that_opens_too_many_ends_its_own_longest_idle_session(clients: Clients):
    first, second = await clients.open("ada"), await clients.open("ada")
    other = await clients.open("bob")
    assert await clients.ping("ada", first) == 200
    third = await clients.open("ada")
    assert [await clients.ping("ada", one) for one in (first, second, third)] == [200, 404, 200]
    assert await clients.ping("bob", other) == 200


async def test_where_all_have_too_many_the_key_with_the_most_makes_room(clients: Clients):
    mine = [await clients.open("ada") for _ in range(2)]
    for key in ("bob", "cyd", "dan"):
        await clients.open(key)
    late = await clients.open("eve")
    assert await clients.ping("eve", late) == 200
    assert [await clients.ping("ada", one) for one in mine] == [404, 200]
    assert len(clients.endpoint.sessions) == 5


async def test_a_session_that_its_client_ended_takes_no_place(clients: Clients):
    first, second = await clients.open("ada"), await clients.open("ada")
    assert await clients.end("bob", second) == 404
    assert await clients.end("ada", second) == 200
    await clients.open("ada")
    assert await clients.ping("ada", first) == 200


async def test_many_that_open_at_once_keep_within_the_bound(clients: Clients):
    opened = await asyncio.gather(*(clients.open("ada") for _ in range(12)))
    alive = [one for one in opened if not one.startswith("refused") and await clients.ping("ada", one) == 200]
    assert 1 <= len(alive) <= 2
    assert {one for one in opened if one.startswith("refused")} <= {"refused 503"}
    assert len(clients.endpoint.sessions) <= 2


def test_a_session_in_use_is_not_ended_and_where_all_are_nobody_opens_another():
    sessions = Sessions(per_key=2, total=3)
    for id in ("a", "b"):
        sessions.opened(id, "ada")
    with sessions.using("a", "ada"):
        with sessions.opening("ada") as ended:
            assert ended == [("b", "ada")]
        sessions.opened("c", "ada")
        with sessions.using("c", "ada"), pytest.raises(Overloaded), sessions.opening("ada"):
            pass
        with sessions.using("c", "bob"), sessions.opening("ada") as ended:
            assert ended == [("c", "ada")]
