"""TPMJS: an export of an npm package, run as a tool; and what this executor says of itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from starlette.responses import Response

import executor as product
from bridge.wire.errors import Forbidden
from executor.http import schemas, tpmjs
from executor.http.answers import json_answer
from executor.http.operation import Answer, Call, Operation
from executor.http.presence import while_present
from executor.http.settings import TOOL_BODY_BYTES

if TYPE_CHECKING:
    from executor.executor import Executor


class Tpmjs:
    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    async def execute(self, call: Call) -> Response:
        body: schemas.ToolRequest = call.body
        if call.access.toolkit is not None:
            raise Forbidden("a key that is tied to a toolkit runs no other tools")
        working = self.executor.execute_tool(
            body.packageName,
            body.name,
            version=body.version or "latest",
            params=body.params,
            env=body.env,
            principal=call.principal,
            door="http",
        )
        answer = await while_present(call.receive, working)
        return json_answer(answer.as_dict(), 500 if answer.code == "INTERNAL_ERROR" else 200)

    async def info(self, call: Call) -> Response:
        return json_answer(
            {
                "name": "executor",
                "version": product.__version__,
                "protocolVersion": tpmjs.PROTOCOL,
                "implementationVersion": product.__version__,
                "capabilities": {
                    # Tools run in worker processes, each call in a WebAssembly isolate of its own; the protocol has no
                    # word for that.
                    "isolation": "process",
                    "sandbox": "wasm",
                    "executionModes": ["sync"],
                    "maxExecutionTimeMs": self.executor.package_wall_ms,
                    "maxRequestBodyBytes": TOOL_BODY_BYTES,
                    "supportsStreaming": False,
                    "supportsCallbacks": False,
                    "supportsCaching": True,
                },
                "runtime": {"platform": sys.platform if sys.platform in ("darwin", "win32") else "linux"},
            }
        )

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "execute_tool",
                "POST",
                tpmjs.EXECUTE,
                "Run an export of an npm package as a tool (TPMJS)",
                self.execute,
                {200: Answer("What became of it, also where the package or the tool failed.", schemas.ToolOutcome)},
                refusals=(500, 503),
                body=schemas.ToolRequest,
                description=(
                    "The TPMJS executor protocol 1.0. Refusals have its form: "
                    '`{"success": false, "error": {"code", "message"}}`.'
                ),
                needs=("run",),
            ),
            Operation(
                "info",
                "GET",
                "/info",
                "What this executor can do (TPMJS)",
                self.info,
                {200: Answer("Its name, versions and limits.", schemas.ExecutorInfo)},
                public=True,
                needs=(),
            ),
        ]
