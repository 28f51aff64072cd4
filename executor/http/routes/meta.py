"""The server about itself: health, metrics, its own description."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

import executor as product
from executor.http import schemas, tpmjs
from executor.http.answers import json_answer
from executor.http.metrics import Metrics
from executor.http.operation import Answer, Call, Operation

if TYPE_CHECKING:
    from executor.executor import Executor


class Meta:
    """`document` gives the OpenAPI document, which needs every operation, these included."""

    def __init__(self, executor: Executor, metrics: Metrics, document: Callable[[], dict[str, Any]]) -> None:
        self.executor = executor
        self.metrics = metrics
        self.document = document

    async def health(self, call: Call) -> Response:
        facts = self.executor.health()
        if not call.access.allows("read"):
            facts = {"status": facts["status"], "isolation": {"level": facts["isolation"].get("level")}}
        facts |= {"protocolVersion": tpmjs.PROTOCOL, "implementationVersion": product.__version__}
        return json_answer(facts, 200 if facts["status"] == "ok" else 503, {"cache-control": "no-store"})

    async def show_metrics(self, call: Call) -> Response:
        return Response(self.metrics.text(self.executor.health()), media_type="text/plain; version=0.0.4")

    async def openapi(self, call: Call) -> Response:
        return json_answer(self.document())

    def operations(self) -> list[Operation]:
        health = {
            200: Answer("All is well.", schemas.Health),
            503: Answer("Something the service needs is not there.", schemas.Health),
        }
        about = "Without a key: the status and the isolation level. With one that may read: everything."
        return [
            Operation(
                "health", "GET", "/health", "Health", self.health, health, description=about, public=True, needs=()
            ),
            Operation(
                "healthz", "GET", "/healthz", "Health", self.health, health, description=about, public=True, needs=()
            ),
            Operation(
                "metrics",
                "GET",
                "/metrics",
                "Metrics for Prometheus",
                self.show_metrics,
                {200: Answer("Text exposition format.", media_type="text/plain")},
                needs=("read",),
            ),
            Operation(
                "openapi",
                "GET",
                "/openapi.json",
                "This description",
                self.openapi,
                {200: Answer("OpenAPI 3.1.")},
                needs=(),
            ),
        ]
