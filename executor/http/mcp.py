"""`/mcp`, and `/mcp/{toolkit}` with its tools alone: the MCP door over HTTP, behind the same edge as every other path.

The protocol's package takes a second to import, so it is loaded when the first request comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from bridge.wire.errors import InvalidRequest
from catalog.large import LARGE, beside
from executor.http.edge import ADMITTED, Admitted
from executor.http.operation import permit
from executor.http.sessions import Sessions

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from executor.executor import Executor
    from executor.mcp.caller import Caller

DIRECT: Final = "executor.mcp.direct"
GONE: Final = "executor.mcp.gone"
SESSION: Final = b"mcp-session-id"
VERSION: Final = b"mcp-protocol-version"
FIRST_WITHOUT_SESSIONS: Final = b"2026-"

Build = Callable[[Callable[[Any], "Caller"]], "Server[Any]"]
"""Makes the server that answers, given what tells who is behind a request."""


class McpEndpoint:
    """An ASGI endpoint with sessions behind it, which `close` ends."""

    def __init__(self, build: Build, sessions: Sessions | None = None) -> None:
        self._build = build
        self.sessions = Sessions() if sessions is None else sessions
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["operation"] = "mcp"
        admitted: Admitted = scope[ADMITTED]
        permit(admitted.access, ("run",))
        scope[DIRECT] = _direct(scope["query_string"])
        manager = await self._started()
        body = admitted.body if isinstance(admitted.body, bytes) else b""
        if scope["method"] == "POST" and (refusal := await _refusal(body)) is not None:
            await refusal(scope, receive, send)
            return
        scope["user"] = _user(admitted.principal)
        gone = scope[GONE] = asyncio.Event()
        try:
            await self._handled(manager, scope, _replayed(body, receive, gone), send)
        finally:
            gone.set()

    async def _handled(self, manager: StreamableHTTPSessionManager, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Overloaded for a session that there is no room for."""
        principal, method = scope[ADMITTED].principal, scope["method"]
        headers = dict(scope["headers"])
        session = headers.get(SESSION, b"").decode("latin-1")
        if session:
            if method == "DELETE":
                self.sessions.closed(session, principal)
            # A standing stream is no use that keeps a session open: it is there as long as its client is.
            with self.sessions.using(session, principal) if method == "POST" else contextlib.nullcontext():
                await manager.handle_request(scope, receive, send)
            return
        if method != "POST" or headers.get(VERSION, b"") >= FIRST_WITHOUT_SESSIONS:
            await manager.handle_request(scope, receive, send)
            return

        async def heard(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = dict(message["headers"]).get(SESSION)
                if given is not None and message["status"] < 300:
                    self.sessions.opened(given.decode("latin-1"), principal)
            await send(message)

        with self.sessions.opening(principal) as ended:
            for id, whose in ended:
                await _end(manager, scope, id, whose)
            await manager.handle_request(scope, receive, heard)

    async def close(self) -> None:
        """End every session. Later requests are refused."""
        self._stop.set()
        if self._keeper is not None:
            await asyncio.wait([self._keeper])

    async def _started(self) -> StreamableHTTPSessionManager:
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._manager))
        return await asyncio.shield(self._manager)

    async def _keep(self, started: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Hold the sessions' task group open: it must be left by the task that entered it."""
        try:
            await asyncio.to_thread(importlib.import_module, "executor.mcp.server")
            manager = _manager(self._build)
            async with manager.run():
                started.set_result(manager)
                await self._stop.wait()
        except Exception as e:
            if started.done():
                raise
            started.set_exception(e)


def door_of(executor: Executor) -> Build:
    """What makes the server of `executor`."""

    def build(caller: Callable[[Any], Caller]) -> Server[Any]:
        from executor.mcp.server import Door

        return Door(executor, caller).server()

    return build


def _manager(build: Build) -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from executor.http.settings import RUN_BODY_BYTES
    from executor.mcp.caller import Caller

    def caller(ctx: Any) -> Caller:
        scope: Scope = ctx.request.scope
        admitted: Admitted = scope[ADMITTED]
        return Caller(
            admitted.principal,
            ctx.request.path_params.get("toolkit"),
            admitted.access.toolkit,
            decides=admitted.access.allows("admin"),
            direct=scope[DIRECT],
            gone=scope[GONE],
        )

    # Host and Origin were checked at the edge, with the names that the operator allowed.
    return StreamableHTTPSessionManager(build(caller), max_request_body_size=RUN_BODY_BYTES)


async def _end(manager: StreamableHTTPSessionManager, scope: Scope, id: str, principal: str) -> None:
    """End a session as its own client would."""
    headers = [(SESSION, id.encode("latin-1")), (b"host", b"localhost")]
    asked: Scope = {**scope, "method": "DELETE", "headers": headers, "query_string": b"", "user": _user(principal)}

    async def nothing() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def ignored(message: Message) -> None:
        pass

    await manager.handle_request(asked, nothing, ignored)


def _user(principal: str) -> object:
    """Who opened a session: the protocol's package lets nobody else use it."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token=principal, client_id=principal, scopes=[]))


def _direct(query: bytes) -> bool:
    """Whether the query asks for `direct`. Raises InvalidRequest for a value that says neither yes nor no."""
    asked = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)).get("direct", "false")
    if asked not in ("true", "1", "false", "0"):
        raise InvalidRequest("direct is true or false")
    return asked in ("true", "1")


async def _refusal(body: bytes) -> Response | None:
    """The answer to a body that is no JSON-RPC message; None for one that is."""
    from executor.mcp import envelope

    error = envelope.fault(body) if len(body) <= LARGE else await beside(envelope.fault, body)
    return None if error is None else Response(envelope.wire(error), 400, media_type="application/json")


def _replayed(body: bytes, receive: Receive, gone: asyncio.Event) -> Receive:
    """`receive` as it was before the edge read the body; `gone` is set when the client has left."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
