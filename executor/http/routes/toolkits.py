"""Toolkits: named subsets of the tools, to run with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from executor.http import schemas
from executor.http.answers import json_answer
from executor.http.operation import Answer, Call, Operation

if TYPE_CHECKING:
    from executor.executor import Executor


class Toolkits:
    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    async def index(self, call: Call) -> Response:
        return json_answer({"toolkits": self.executor.toolbox.toolkits.all()})

    async def create(self, call: Call) -> Response:
        body: schemas.ToolkitRequest = call.body
        rules = [(rule.pattern, rule.effect) for rule in body.rules]
        made = await self.executor.toolbox.toolkits.create(
            body.name, body.tools, description=body.description, rules=rules
        )
        return json_answer(made, 201, {"location": f"/toolkits/{body.name}"})

    async def show(self, call: Call) -> Response:
        return json_answer(self.executor.toolbox.toolkits.show(call.params["name"]))

    async def update(self, call: Call) -> Response:
        body: schemas.ToolkitUpdate = call.body
        return json_answer(await self.executor.toolbox.toolkits.update(call.params["name"], **body.options()))

    async def remove(self, call: Call) -> Response:
        await self.executor.toolbox.toolkits.remove(call.params["name"])
        return Response(status_code=204)

    def operations(self) -> list[Operation]:
        told = Answer("The toolkit.", schemas.ToolkitFacts)
        one = "/toolkits/{name}"
        return [
            Operation(
                "listToolkits",
                "GET",
                "/toolkits",
                "List the toolkits",
                self.index,
                {200: Answer("Every toolkit.", schemas.ToolkitList)},
                needs=("read",),
            ),
            Operation(
                "createToolkit",
                "POST",
                "/toolkits",
                "Make a toolkit",
                self.create,
                {201: told},
                (409,),
                body=schemas.ToolkitRequest,
            ),
            Operation("getToolkit", "GET", one, "Look at a toolkit", self.show, {200: told}, (404,), needs=("read",)),
            Operation(
                "updateToolkit",
                "PUT",
                one,
                "Replace parts of a toolkit",
                self.update,
                {200: told},
                (404,),
                body=schemas.ToolkitUpdate,
            ),
            Operation("removeToolkit", "DELETE", one, "Remove a toolkit", self.remove, {204: Answer("Done.")}, (404,)),
        ]
