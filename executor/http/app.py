"""The HTTP door put together: the edge outermost, then starlette's router over the operations."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from executor.http import openapi
from executor.http.edge import Edge
from executor.http.metrics import Metrics
from executor.http.operation import Operation, routes_of
from executor.http.routes.integrations import Integrations
from executor.http.routes.meta import Meta
from executor.http.routes.policies import Policies
from executor.http.routes.runs import Runs
from executor.http.routes.tools import Tools
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
        *Policies(executor).operations(),
        *Meta(executor, metrics, document).operations(),
    ]
    return operations


def build_app(executor: Executor, settings: EdgeSettings) -> ASGIApp:
    """The ASGI application that serves `executor`. It has no lifespan: whoever opened the executor closes it."""
    metrics = Metrics()
    router = Router(routes_of(operations_of(executor, metrics)), redirect_slashes=False)
    return Edge(_Routed(router), executor.keys, settings, metrics)


class _Routed:
    """starlette's router, told to raise for an unknown path instead of answering in its own words."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        await self._router(scope, receive, send)
