"""The HTTP door put together: the edge outermost, then starlette's router over the operations."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from executor.http import openapi, tpmjs
from executor.http.edge import Edge
from executor.http.mcp import McpEndpoint, door_of
from executor.http.metrics import Metrics
from executor.http.operation import Operation, routes_of
from executor.http.routes.integrations import Integrations
from executor.http.routes.meta import Meta
from executor.http.routes.oauth import OAuth
from executor.http.routes.policies import Policies
from executor.http.routes.runs import Runs
from executor.http.routes.toolkits import Toolkits
from executor.http.routes.tools import Tools
from executor.http.routes.tpmjs import Tpmjs
from executor.http.settings import EdgeSettings

if TYPE_CHECKING:
    from executor.executor import Executor


def operations_of(executor: Executor, metrics: Metrics) -> list[Operation]:
    """Every operation of the API."""

    @cache
    def document() -> dict[str, Any]:
        return openapi.document(operations)

    operations = [
        *Runs(executor).operations(),
        *Tools(executor).operations(),
        *Integrations(executor).operations(),
        *OAuth(executor).operations(),
        *Policies(executor).operations(),
        *Toolkits(executor).operations(),
        *Tpmjs(executor).operations(),
        *Meta(executor, metrics, document).operations(),
    ]
    return operations


def build_app(executor: Executor, settings: EdgeSettings) -> App:
    """The ASGI application that serves `executor`; whoever opened the executor closes it, after the application."""
    metrics = Metrics()
    mcp = McpEndpoint(door_of(executor))
    served = routes_of(operations_of(executor, metrics))
    routes = [
        *served,
        *(Route(tpmjs.PREFIX + one.path, one.endpoint, methods=None) for one in served if one.path in tpmjs.PATHS),
        *(Route(path, mcp, methods=None) for path in ("/mcp", "/mcp/{toolkit}")),
    ]
    router = Router(routes, redirect_slashes=False)
    return App(Edge(_Routed(router), executor.keys, settings, metrics), mcp)


class App:
    """The application, and what it holds open between requests. It has no lifespan of its own: `close` ends it."""

    def __init__(self, edge: Edge, mcp: McpEndpoint) -> None:
        self._edge = edge
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._edge(scope, receive, send)

    async def close(self) -> None:
        """End the sessions of the MCP door. Safe to call again."""
        await self._mcp.close()


class _Routed:
    """starlette's router, told to raise for an unknown path instead of answering in its own words."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        await self._router(scope, receive, send)
