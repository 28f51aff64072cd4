"""Tools: find, describe, and call one directly, by the same path that a script's call takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from executor.http import schemas
from executor.http.answers import json_answer
from executor.http.operation import Answer, Call, Operation
from executor.http.presence import while_present
from executor.http.routes.within import within
from runtime.results import RunResult

if TYPE_CHECKING:
    from executor.executor import Executor


class Tools:
    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    async def index(self, call: Call) -> Response:
        query: schemas.ToolsQuery = call.query
        if query.query:
            found = await within(self.executor, call).search(
                query.query,
                limit=query.limit,
                cursor=query.cursor,
                integration=query.integration,
                toolkit=query.toolkit,
            )
        else:
            found = await within(self.executor, call).tools(
                integration=query.integration, limit=query.limit, cursor=query.cursor, toolkit=query.toolkit
            )
        return json_answer(found)

    async def show(self, call: Call) -> Response:
        query: schemas.ToolQuery = call.query
        caller = within(self.executor, call)
        return json_answer(await caller.describe(call.params["path"], schemas=query.schemas, toolkit=query.toolkit))

    async def call(self, call: Call) -> Response:
        body: schemas.CallRequest = call.body
        caller, path, args = within(self.executor, call), call.params["path"], call.value(body.args)
        whose: dict[str, Any] = {"meta": body.meta, "principal": call.principal, "toolkit": body.toolkit}
        make = caller.call_or_ask if body.ask else caller.call
        value = await while_present(call.receive, make(path, args, door="http", **whose))
        if isinstance(value, RunResult):
            return json_answer(value.as_dict(), 202, {"location": f"/runs/{value.run_id}"})
        return json_answer(value if body.meta else {"value": value})

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "listTools",
                "GET",
                "/tools",
                "Search the tools, or list them",
                self.index,
                {200: Answer("Tools, ranked when there is a query, else by path.", schemas.ToolList)},
                (403,),
                query=schemas.ToolsQuery,
                needs=(),
            ),
            Operation(
                "describeTool",
                "GET",
                "/tools/{path}",
                "Describe a tool",
                self.show,
                {200: Answer("Signature, schemas and docs.", schemas.ToolFacts)},
                (404,),
                query=schemas.ToolQuery,
                needs=(),
            ),
            Operation(
                "callTool",
                "POST",
                "/tools/{path}/call",
                "Call a tool",
                self.call,
                {
                    200: Answer("The value that the tool gave.", schemas.CallAnswer),
                    202: Answer("A person must allow it (`ask: true`): the run that waits for one.", schemas.RunAnswer),
                },
                (403, 404, 409, 502, 503, 504),
                body=schemas.CallRequest,
                needs=("run",),
                description="Policy, credentials, egress and limits are those of a script's call.",
            ),
        ]
