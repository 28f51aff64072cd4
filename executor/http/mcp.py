"""`/mcp`, and `/mcp/{toolkit}` with its tools alone: the MCP door over HTTP, behind the same edge as every other path.

The protocol's package takes a second to import, so it is loaded when the first request comes.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

from starlette.types import Message, Receive, Scope, Send

from executor.http.edge import ADMITTED, Admitted
from executor.http.operation import permit

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from executor.executor import Executor

MAX_SESSIONS = 1000
"""Open sessions of clients that speak the protocol of 2025; later ones have none."""


class McpEndpoint:
    """An ASGI endpoint with sessions behind it, which `close` ends."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["operation"] = "mcp"
        admitted: Admitted = scope[ADMITTED]
        permit(admitted.access, ("run",))
        manager = await self._started()
        scope["user"] = _user(admitted.principal)
        await manager.handle_request(scope, _replayed(admitted.body, receive), send)

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
            manager = _manager(self._executor)
            async with manager.run():
                started.set_result(manager)
                await self._stop.wait()
        except Exception as e:
            if started.done():
                raise
            started.set_exception(e)


def _manager(executor: Executor) -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from executor.http.settings import RUN_BODY_BYTES
    from executor.mcp.server import Caller, Door

    def caller(ctx: Any) -> Caller:
        admitted: Admitted = ctx.request.scope[ADMITTED]
        return Caller(admitted.principal, ctx.request.path_params.get("toolkit"), admitted.access.toolkit)

    # Host and Origin were checked at the edge, with the names that the operator allowed.
    return StreamableHTTPSessionManager(
        Door(executor, caller).server(), max_request_body_size=RUN_BODY_BYTES, max_sessions=MAX_SESSIONS
    )


def _user(principal: str) -> object:
    """Who opened a session: the protocol's package lets nobody else use it."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token=principal, client_id=principal, scopes=[]))


def _replayed(body: Any, receive: Receive) -> Receive:
    """`receive` as it was before the edge read the body."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body if isinstance(body, bytes) else b"", "more_body": False}

    return again
