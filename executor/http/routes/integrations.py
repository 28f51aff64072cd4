"""Integrations, the connections to them, and the secrets that connections use. A secret is set and never read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bridge.wire.errors import Forbidden, NotFound
from executor.http import schemas
from executor.http.answers import json_answer
from executor.http.operation import Answer, Call, Operation
from executor.http.presence import while_present

if TYPE_CHECKING:
    from executor.executor import Executor


class Integrations:
    def __init__(self, executor: Executor) -> None:
        self.toolbox = executor.toolbox

    async def index(self, call: Call) -> Response:
        return json_answer({"integrations": self.toolbox.integrations()})

    async def add(self, call: Call) -> Response:
        request: schemas.IntegrationRequest = call.body
        body = request.root
        options = _options(body) | {"allow_private": body.allow_private}
        if isinstance(body, schemas.OpenApiIntegration):
            adding = self.toolbox.add_openapi(body.name, body.source, base_url=body.base_url, **options)
        else:
            adding = self.toolbox.add_http(body.name, body.allow, **options)
        report = await while_present(call.receive, adding)
        return json_answer(report.as_dict(), 201, {"location": f"/integrations/{body.name}"})

    async def show(self, call: Call) -> Response:
        return json_answer(self._find(call.params["name"]))

    async def remove(self, call: Call) -> Response:
        await self.toolbox.remove(call.params["name"])
        return Response(status_code=204)

    async def connect(self, call: Call) -> Response:
        body: schemas.ConnectionRequest = call.body
        report = await self.toolbox.connect(body.integration, **_options(body))
        return json_answer(report.as_dict(), 201)

    async def disconnect(self, call: Call) -> Response:
        params = call.params
        await self.toolbox.disconnect(params["integration"], scope=params["scope"], connection=params["connection"])
        return Response(status_code=204)

    async def secrets(self, call: Call) -> Response:
        query: schemas.ScopeQuery = call.query
        return json_answer({"secrets": await self.toolbox.secret_names(scope=query.scope)})

    async def set_secret(self, call: Call) -> Response:
        query: schemas.ScopeQuery = call.query
        body: schemas.SecretRequest = call.body
        await self.toolbox.set_secret(call.params["name"], body.value, scope=query.scope)
        return Response(status_code=204)

    async def delete_secret(self, call: Call) -> Response:
        query: schemas.ScopeQuery = call.query
        if not await self.toolbox.delete_secret(call.params["name"], scope=query.scope):
            raise NotFound("there is no secret of that name")
        return Response(status_code=204)

    def _find(self, name: str) -> dict[str, Any]:
        for each in self.toolbox.integrations():
            if each["name"] == name:
                return each
        raise NotFound(f"there is no integration {name!r}")

    def operations(self) -> list[Operation]:
        added = Answer("What was added, and what was left out and why.", schemas.AddAnswer)
        gone = Answer("Done.")
        return [
            Operation(
                "listIntegrations",
                "GET",
                "/integrations",
                "List integrations",
                self.index,
                {200: Answer("Every integration and its connections.", schemas.IntegrationList)},
            ),
            Operation(
                "addIntegration",
                "POST",
                "/integrations",
                "Add an API",
                self.add,
                {201: added},
                (403, 409, 422, 502, 504),
                body=schemas.IntegrationRequest,
            ),
            Operation(
                "getIntegration",
                "GET",
                "/integrations/{name}",
                "Look at an integration",
                self.show,
                {200: Answer("The integration.", schemas.IntegrationFacts)},
                (404,),
            ),
            Operation(
                "removeIntegration",
                "DELETE",
                "/integrations/{name}",
                "Remove an integration and its connections",
                self.remove,
                {204: gone},
                (404,),
            ),
            Operation(
                "addConnection",
                "POST",
                "/connections",
                "Connect another account to an integration",
                self.connect,
                {201: added},
                (403, 404, 409),
                body=schemas.ConnectionRequest,
            ),
            Operation(
                "removeConnection",
                "DELETE",
                "/connections/{integration}/{scope}/{connection}",
                "Remove a connection",
                self.disconnect,
                {204: gone},
                (404,),
            ),
            Operation(
                "listSecrets",
                "GET",
                "/secrets",
                "List the names of secrets",
                self.secrets,
                {200: Answer("Names, never values.", schemas.SecretList)},
                query=schemas.ScopeQuery,
            ),
            Operation(
                "setSecret",
                "PUT",
                "/secrets/{name}",
                "Set a secret",
                self.set_secret,
                {204: gone},
                (409,),
                body=schemas.SecretRequest,
                query=schemas.ScopeQuery,
            ),
            Operation(
                "deleteSecret",
                "DELETE",
                "/secrets/{name}",
                "Delete a secret",
                self.delete_secret,
                {204: gone},
                (404,),
                query=schemas.ScopeQuery,
            ),
        ]


def _options(
    body: schemas.OpenApiIntegration | schemas.HttpIntegration | schemas.ConnectionRequest,
) -> dict[str, Any]:
    """The part that both requests share.

    A key may use what is kept in the store, not what lies in the server's environment or files: those are for whoever
    can start the server.
    """
    if body.secret is not None and not body.secret.startswith("local:"):
        raise Forbidden(
            "over HTTP a secret reference must be `local:NAME`",
            hint="PUT /secrets/NAME first; `env:` and `file:` references are made with the CLI on the server's machine",
        )
    return {
        "scope": body.scope,
        "connection": body.connection,
        "auth": body.auth.as_dict() if isinstance(body.auth, schemas.Placement) else body.auth,
        "secret": body.secret,
        "replace": body.replace,
    }
