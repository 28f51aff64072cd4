"""An MCP server of the older era over HTTP, written by hand on bare sockets so that it can misbehave.

It runs on a thread of this process. Its tools misbehave by their names; attributes say how it does as a whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ANY = {"type": "object"}
READ = {"readOnlyHint": True}
NAMES = (
    "abandon",
    "away",
    "echo",
    "fail",
    "headers",
    "huge",
    "nan",
    "never",
    "parts",
    "retired",
    "says",
    "slow",
    "sse",
)


class Rogue:
    """`token` is what a request must carry, where there is one; `heard` are the messages, `headers` each request's."""

    def __init__(self) -> None:
        self.token: str | None = None
        self.tools: list[dict[str, Any]] = [
            *({"name": name, "inputSchema": ANY, "annotations": READ} for name in NAMES),
            {"name": "write", "inputSchema": ANY},
            {"name": "lose", "inputSchema": ANY},
        ]
        self.sessions: set[str] = set()
        self.heard: list[dict[str, Any]] = []
        self.headers: list[tuple[str, dict[str, str]]] = []
        self.streams: list[asyncio.StreamWriter] = []
        self.opened = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def methods(self) -> list[str]:
        return [str(message.get("method")) for message in self.heard]

    def forget(self) -> None:
        """Know no session any more."""
        self.sessions.clear()

    def announce(self) -> None:
        """Say on every open stream that the list has changed."""
        message = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        for writer in self.streams:
            self._loop.call_soon_threadsafe(writer.write, _chunk(f"data: {message}\n\n"))

    @contextmanager
    def running(self) -> Iterator[Rogue]:
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            self._do(self._start())
            yield self
        finally:
            self._do(self._stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)
            self._loop.close()

    def restart(self) -> None:
        """Stop, forget everything, and listen again on the same port."""
        self._do(self._stop())
        self.forget()
        self._do(self._start())

    def _do(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)
        while self._writers:  # noqa: ASYNC110 - the connections end by themselves
            await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                    line, *fields = head.strip().split("\r\n")
                    pairs = [each.partition(":") for each in fields]
                    headers = {name.lower(): value.strip() for name, _, value in pairs}
                    body = await reader.readexactly(int(headers.get("content-length", "0")))
                    self.headers.append((line.split()[0], headers))
                    await self._answer(line.split()[0], headers, body, writer)
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, method: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> None:
        if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
            return _plain(writer, 401, {"error": "invalid_token"})
        session = headers.get("mcp-session-id")
        message = json.loads(body) if body else {}
        if method == "POST":
            self.heard.append(message)
        if message.get("method") == "server/discover":
            return _plain(writer, 400, {"error": "what is that?"})
        if message.get("method") == "initialize":
            self.opened += 1
            self.sessions.add(f"s{self.opened}")
            abilities = {"tools": {"listChanged": True}}
            info = {"name": "rogue", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": abilities, "serverInfo": info}
            return _result(writer, message["id"], result, [f"mcp-session-id: s{self.opened}"])
        if session not in self.sessions:
            return _plain(writer, 404, {"error": "no such session"})
        if method == "DELETE":
            self.sessions.discard(str(session))
            return _plain(writer, 200, {})
        if method == "GET":
            _head(writer, 200, "text/event-stream", ["transfer-encoding: chunked"])
            self.streams.append(writer)
            return None
        if "id" not in message or "method" not in message:
            return _plain(writer, 202, None)
        if message["method"] == "tools/list":
            return _result(writer, message["id"], {"tools": self.tools})
        return await self._call(writer, message, headers)

    async def _call(self, writer: asyncio.StreamWriter, message: dict[str, Any], headers: dict[str, str]) -> None:
        id, name, args = message["id"], message["params"]["name"], message["params"].get("arguments") or {}
        answer = json.dumps({"jsonrpc": "2.0", "id": id, "result": _text(name)})
        if name == "headers":
            _result(writer, id, _text(json.dumps(headers)))
        elif name == "echo":
            _result(writer, id, _text(str(args.get("text"))))
        elif name == "fail":
            _plain(writer, 503, {"error": {"message": "come back later"}}, ["retry-after: 7"])
        elif name == "away":
            _plain(writer, 307, {}, ["location: http://169.254.169.254/latest"])
        elif name == "huge":
            _head(writer, 200, "application/json", ["transfer-encoding: chunked"])
            with contextlib.suppress(OSError):
                for _ in range(64):
                    writer.write(_chunk("x" * 1024 * 1024))
                    await writer.drain()
        elif name == "parts":
            _result(writer, id, {"content": [None] * 10_001})
        elif name == "nan":
            _result(writer, id, {"content": [], "structuredContent": {"rows": [1, float("nan")]}})
        elif name == "says":
            text = "p" * args["before"] + headers.get("authorization", "") + "q" * 100
            if args["how"] == "error":
                error = {"code": -32000, "message": text}
                _plain(writer, 200, {"jsonrpc": "2.0", "id": id, "error": error})
            else:
                _result(writer, id, {"content": [{"type": "text", "text": text}], "isError": True})
        elif name == "sse":
            other = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": 7}})
            _events(writer, [": hello\n\n", f"data: {other}\n\n", f"event: message\ndata: {answer}\n\n"])
        elif name == "slow":
            _head(writer, 200, "text/event-stream", ["transfer-encoding: chunked"])
            for piece in f"id: 1\ndata: {answer}\n\n":
                writer.write(_chunk(piece))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        elif name in ("abandon", "lose"):
            _events(writer, [": I am going\n\n"])
        elif name == "retired":
            self.tools = [tool for tool in self.tools if tool["name"] != "retired"]
            _result(writer, id, {"content": [{"type": "text", "text": "Tool retired not found"}], "isError": True})
        elif name != "never":
            _result(writer, id, _text(f"did {name}"))


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _chunk(text: str) -> bytes:
    data = text.encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def _head(writer: asyncio.StreamWriter, status: int, media: str, more: list[str]) -> None:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {media}", *more, "", ""]
    writer.write("\r\n".join(lines).encode())


def _plain(writer: asyncio.StreamWriter, status: int, body: Any, more: list[str] | None = None) -> None:
    data = b"" if body is None else json.dumps(body).encode()
    _head(writer, status, "application/json", [f"content-length: {len(data)}", *(more or [])])
    writer.write(data)


def _result(writer: asyncio.StreamWriter, id: Any, result: Any, more: list[str] | None = None) -> None:
    _plain(writer, 200, {"jsonrpc": "2.0", "id": id, "result": result}, more)


def _events(writer: asyncio.StreamWriter, events: list[str]) -> None:
    _head(writer, 200, "text/event-stream", ["transfer-encoding: chunked"])
    writer.write(b"".join(map(_chunk, events)) + b"0\r\n\r\n")
