"""What the tests of the MCP door speak with: messages, sessions, and an upstream that waits."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import time
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.blackbox.command import cli
from tests.blackbox.server import Server

CANARY = "cnry_mcp_0123456789abcdef01234567"


PLACE = "shop.org.main.http.request"
"""A call that needs approval: it writes."""


ORDER = {"code": f"await tools.{PLACE}({{method: 'POST', path: '/orders', body: {{id: 1}}}})"}


class Upstream:
    """An API on loopback that answers what writes, and lets what reads hang until the caller goes away."""

    def __init__(self) -> None:
        self.posts: list[bytes] = []
        self.hanging = asyncio.Event()
        self.aborted = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"POST"):
                self.posts.append(head)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
                await writer.drain()
            else:
                self.hanging.set()
                await reader.read()
                self.aborted.set()
        writer.close()


@asynccontextmanager
async def connected(server: Server, era: str = "auto", path: str = "/mcp", key: str | None = None, person=None):
    headers = {"authorization": f"Bearer {key or server.key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http_client,
        Client(
            streamable_http_client(f"{server.url}{path}", http_client=http_client),
            mode=era,
            elicitation_callback=person,
        ) as client,
    ):
        yield client


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


def message(**parts) -> bytes:
    return json.dumps(INITIALIZE | parts).encode()


async def newest(server: Server, status: str) -> str:
    """The id of the newest run once it has this status."""
    for _ in range(300):
        reply = await asyncio.to_thread(server.ask, "GET", "/runs?limit=1")
        runs = reply.json["runs"]
        if runs and runs[0]["status"] == status:
            return str(runs[0]["run_id"])
        await asyncio.sleep(0.1)
    raise AssertionError(runs)


HEAD = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    # So that an answer that was read to its end has closed its connection.
    "Connection": "close",
}


MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


class Session:
    """A session of the protocol of 2025-11-25, opened by `key`, whose client can ask its user."""

    def __init__(self, server: Server, key: str) -> None:
        self.server = server
        self.key = key
        opening = INITIALIZE | {"params": INITIALIZE["params"] | {"capabilities": {"elicitation": {"form": {}}}}}
        reply = self.post(opening, session=None)
        self.id = reply.getheader("mcp-session-id")
        reply.read()
        self.status({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message: dict, key: str | None = None, session: str | None = "own") -> http.client.HTTPResponse:
        headers = HEAD | {"Authorization": f"Bearer {key or self.key}", "MCP-Protocol-Version": "2025-11-25"}
        if session is not None:
            headers["Mcp-Session-Id"] = self.id if session == "own" else session
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request("POST", "/mcp", body=json.dumps(message).encode(), headers=headers)
        return connection.getresponse()

    def status(self, message: dict, key: str | None = None, session: str | None = "own") -> int:
        with self.post(message, key, session) as reply:
            reply.read()
            return reply.status

    def delete(self) -> int:
        headers = {"Mcp-Session-Id": self.id}
        return self.server.ask("DELETE", "/mcp", headers=headers, key=self.key).status


def events(reply: http.client.HTTPResponse):
    """The messages of a stream as they come."""
    while line := reply.readline():
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])


def first(messages, wanted):
    """The first message that is wanted."""
    seen = []
    for message in messages:
        if wanted(message):
            return message
        seen.append(message)
    raise AssertionError(seen)


def call(id: int | str, name: str, arguments: dict, **params) -> dict:
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments} | params,
    }


def key_of(server: Server, name: str, **options: str) -> str:
    """A new key, once the server knows it: a second later at the latest."""
    extra = [part for option, value in options.items() for part in (f"--{option}", value)]
    made = cli(server.home, "key", "create", name, "--json", *extra)
    key = json.loads(made.stdout)["key"]
    for _ in range(100):
        if server.ask("GET", "/runs?limit=1", key=key).status == 200:
            return key
        time.sleep(0.05)
    raise AssertionError("the key is not known")


def count(server: Server) -> int:
    """Every run there is."""
    return len(server.ask("GET", "/runs?limit=500").json["runs"])
