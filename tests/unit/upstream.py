"""A real server on loopback that answers exactly the bytes it is told to, and a toolbox in front of it."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from bridge.calls import CallContext, CallOutcome, CallRecord
from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import ToolError

Script = Callable[["Seen", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass
class Upstream:
    """`answers` maps a path, or `*` for every other, to raw response bytes or to a coroutine function that writes them;
    else it echoes."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    answers: dict[str, bytes | Script] = field(default_factory=dict)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reply(self, path: str, body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.answers[path] = response(body, status=status, headers=headers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (seen := await self._request(reader)) is not None:
                self.seen.append(seen)
                self.reached.set()
                answer = self.answers.get(seen.target.partition("?")[0], self.answers.get("*"))
                if answer is None:
                    writer.write(response(echoed(seen)))
                elif isinstance(answer, bytes):
                    writer.write(answer)
                else:
                    await answer(seen, reader, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _request(self, reader: asyncio.StreamReader) -> Seen | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return None
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _ = first.split(" ", 2)
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        return Seen(method, target, headers, await reader.readexactly(length))


def echoed(seen: Seen) -> dict[str, Any]:
    return {
        "method": seen.method,
        "target": seen.target,
        "headers": {name.lower(): value for name, value in seen.headers},
        "body": seen.body.decode("latin-1"),
    }


def response(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> bytes:
    """A complete HTTP/1.1 response; `body` is bytes, text, or JSON data."""
    fields = {"content-type": "application/json"} | {name.lower(): value for name, value in (headers or {}).items()}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields["content-length"] = str(len(data))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Said\r\n{lines}\r\n".encode() + data


def redirect(to: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} Elsewhere\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n".encode()


def bomb(mebibytes: int) -> bytes:
    """A gzip body that unfolds to so many MiB."""
    return gzip.compress(b"\0" * (mebibytes << 20), 9, mtime=0)


@asynccontextmanager
async def upstream() -> AsyncIterator[Upstream]:
    one = Upstream()
    tasks: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(one.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accepted, "127.0.0.1", 0, limit=1 << 20)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        one.released.set()
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


class Resolver:
    """A scripted resolver: each name has a list of answers, the last of which is repeated."""

    def __init__(self, **names: list[list[str]]) -> None:
        self.names = {name.replace("_", "."): answers for name, answers in names.items()}
        self.asked: list[str] = []

    async def __call__(self, name: str, port: int) -> list[str]:
        self.asked.append(name)
        answers = self.names.get(name)
        if not answers:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


@asynccontextmanager
async def toolbox(resolver: Any = None, **settings: Any) -> AsyncIterator[Toolbox]:
    """A toolbox in memory where everything is approved."""
    async with Toolbox(ToolboxSettings(**settings), resolver=resolver) as box:
        await box.add_policy("*", "*", "approve")
        yield box


def document(paths: dict[str, Any], base: str, **more: Any) -> dict[str, Any]:
    return {
        "openapi": "3.0.3",
        "info": {"title": "T", "version": "1"},
        "servers": [{"url": base}],
        "paths": paths,
    } | more


def operation(*parameters: dict[str, Any], body: Any = None, **more: Any) -> dict[str, Any]:
    """An operation named `op` that answers JSON of any shape."""
    node: dict[str, Any] = {"operationId": "op", "responses": {"200": {"description": "fine"}}}
    if parameters:
        node["parameters"] = list(parameters)
    if body is not None:
        node["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return node | more


def parameter(name: str, place: str = "query", **more: Any) -> dict[str, Any]:
    node = {"name": name, "in": place, "schema": {"type": "string"}} | more
    return node | {"required": True} if place == "path" else node


async def call(box: Toolbox, path: str, args: Any = None, **more: Any) -> CallOutcome:
    return await box.proxy.call(more.pop("ctx", CallContext()), path, args, **more)


async def refusal(box: Toolbox, path: str, args: Any = None) -> str:
    try:
        await call(box, path, args)
    except ToolError as e:
        return e.code
    return "done"


class Journal:
    """Keeps what it hears: the outcome of a record at each notice."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.records: list[CallRecord] = []

    async def sending(self, record: CallRecord) -> None:
        self.heard.append(("sending", record.outcome))

    def finished(self, record: CallRecord) -> None:
        self.heard.append(("finished", record.outcome))
        self.records.append(record)
