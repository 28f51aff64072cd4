"""Policies: the rules that decide calls, and which of them decides for one tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from executor.http import schemas
from executor.http.answers import json_answer
from executor.http.operation import Answer, Call, Operation

if TYPE_CHECKING:
    from executor.executor import Executor


class Policies:
    def __init__(self, executor: Executor) -> None:
        self.toolbox = executor.toolbox

    async def index(self, call: Call) -> Response:
        return json_answer({"policies": self.toolbox.policies()})

    async def add(self, call: Call) -> Response:
        body: schemas.PolicyRequest = call.body
        rule = await self.toolbox.add_policy(
            body.target,
            body.pattern,
            body.effect,
            scope=body.scope,
            reason=body.reason,
            approver=body.approver,
        )
        return json_answer(rule, 201)

    async def remove(self, call: Call) -> Response:
        await self.toolbox.remove_policy(call.params["rule_id"])
        return Response(status_code=204)

    async def explain(self, call: Call) -> Response:
        body: schemas.ExplainRequest = call.body
        return json_answer(self.toolbox.explain(body.path, toolkit=body.toolkit))

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "listPolicies",
                "GET",
                "/policies",
                "List the rules",
                self.index,
                {200: Answer("Every rule.", schemas.PolicyList)},
                needs=("read",),
            ),
            Operation(
                "addPolicy",
                "POST",
                "/policies",
                "Add a rule",
                self.add,
                {201: Answer("The rule.", schemas.PolicyFacts)},
                body=schemas.PolicyRequest,
            ),
            Operation(
                "removePolicy",
                "DELETE",
                "/policies/{rule_id}",
                "Remove a rule",
                self.remove,
                {204: Answer("Done.")},
                (404,),
            ),
            Operation(
                "explainPolicy",
                "POST",
                "/policies/explain",
                "Say which rule decides for a tool",
                self.explain,
                {200: Answer("The decision and the rules that apply.", schemas.Explanation)},
                (404,),
                body=schemas.ExplainRequest,
                needs=("read",),
            ),
        ]
