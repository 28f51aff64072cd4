"""Integrations, the connections to them, and the secrets that connections use. A secret is set and never read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bridge.accounts import references
from bridge.calls import CallContext
from bridge.documents import is_url
from bridge.wire.errors import NotFound
from executor.http import integration_schemas as schemas
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
        options = dict(body) | self._options(body, kind=body.kind)
        if isinstance(body, schemas.GraphQLIntegration):
            options["source"] = _document(body.source)
        report = await while_present(call.receive, self.toolbox.add(**options, host=False))
        return json_answer(report.as_dict(), 201, {"location": f"/integrations/{body.name}"})

    async def show(self, call: Call) -> Response:
        return json_answer(self._find(call.params["name"]))

    async def remove(self, call: Call) -> Response:
        query: schemas.RemoveQuery = call.query
        gone = await self.toolbox.remove(call.params["name"], connections=query.connections)
        return json_answer(gone.as_dict()) if gone.unrevoked else Response(status_code=204)

    async def refresh(self, call: Call) -> Response:
        body: schemas.RefreshRequest = call.body
        source = None if body.source is None else _document(body.source)
        report = await while_present(call.receive, self.toolbox.refresh(call.params["name"], source))
        return json_answer(report.as_dict())

    async def awaiting(self, call: Call) -> Response:
        return json_answer(self.toolbox.awaiting_review(call.params["name"]))

    async def review(self, call: Call) -> Response:
        body: schemas.ReviewRequest = call.body
        return json_answer(await self.toolbox.review(call.params["name"], body.accept, host=False))

    async def connections(self, call: Call) -> Response:
        query: schemas.ConnectionsQuery = call.query
        return json_answer({"connections": self.toolbox.connections.all(query.integration, query.scope)})

    async def connection(self, call: Call) -> Response:
        return json_answer(await self.toolbox.account_facts(*_label(call)))

    async def check(self, call: Call) -> Response:
        integration, scope, connection = _label(call)
        ctx = CallContext(principal=call.principal, door="http")
        checking = self.toolbox.check_connection(integration, scope=scope, connection=connection, ctx=ctx)
        return json_answer(await while_present(call.receive, checking))

    async def rotate(self, call: Call) -> Response:
        body: schemas.RotateRequest = call.body
        return json_answer(await self.toolbox.local.rotate(forget=body.forget_old))

    async def connect(self, call: Call) -> Response:
        body: schemas.ConnectionRequest = call.body
        options = self._options(body, kind=self._kind(body.integration))
        connecting = self.toolbox.connect(body.integration, **options)
        report = await while_present(call.receive, connecting)
        return json_answer(report.as_dict(), 201)

    async def disconnect(self, call: Call) -> Response:
        integration, scope, connection = _label(call)
        gone = await self.toolbox.disconnect(integration, scope=scope, connection=connection)
        return Response(status_code=204) if gone.unrevoked is None else json_answer(gone.as_dict())

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

    def _kind(self, name: str) -> str:
        return next((str(one["kind"]) for one in self.toolbox.integrations() if one["name"] == name), "")

    def _options(self, body: schemas.WithAccount | schemas.ConnectionRequest, *, kind: str) -> dict[str, Any]:
        """The part that these requests share. Raises Forbidden for a reference that a key may not name."""
        auth: Any = body.auth
        if isinstance(auth, schemas.Placement):
            auth = auth.as_dict()
        elif isinstance(auth, list):
            auth = [part.as_dict() for part in auth]
        parts = auth if isinstance(auth, list) else [auth]
        if kind != "npm" and any(isinstance(part, dict) and part["type"] == "env" for part in parts):
            # Some variables decide what a program does, or which code it loads. A package stays in its isolate.
            self.toolbox.check_programs(host=False)
        self.toolbox.connections.check_references(references(auth, body.secret))
        return {
            "scope": body.scope,
            "connection": body.connection,
            "auth": auth,
            "secret": body.secret,
            "probe": body.probe,
            "replace": body.replace,
        }

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
                needs=("read",),
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
                needs=("read",),
            ),
            Operation(
                "removeIntegration",
                "DELETE",
                "/integrations/{name}",
                "Remove an integration",
                self.remove,
                {
                    204: gone,
                    200: Answer("It is gone, and tokens may still be good at their server.", schemas.Removed),
                },
                (404,),
                query=schemas.RemoveQuery,
                description="Its connections are kept for when it is added again, unless `connections` says otherwise.",
            ),
            Operation(
                "refreshIntegration",
                "POST",
                "/integrations/{name}/refresh",
                "Read the description of an integration again",
                self.refresh,
                {200: Answer("What changed.", schemas.RefreshAnswer)},
                (404, 409, 422),
                body=schemas.RefreshRequest,
                description="New operations, and those whose side effect or destination changed, await review.",
            ),
            Operation(
                "getReview",
                "GET",
                "/integrations/{name}/review",
                "See what awaits review",
                self.awaiting,
                {200: Answer("What cannot be called before it is let in.", schemas.Awaiting)},
                (404,),
                needs=("read",),
            ),
            Operation(
                "reviewIntegration",
                "POST",
                "/integrations/{name}/review",
                "Let in what a refresh brought",
                self.review,
                {200: Answer("What still awaits review.", schemas.Awaiting)},
                (404,),
                body=schemas.ReviewRequest,
            ),
            Operation(
                "listConnections",
                "GET",
                "/connections",
                "List the accounts",
                self.connections,
                {200: Answer("Every account, with the references of its secrets.", schemas.ConnectionList)},
                query=schemas.ConnectionsQuery,
                needs=("read",),
            ),
            Operation(
                "getConnection",
                "GET",
                "/connections/{integration}/{scope}/{connection}",
                "Look at an account",
                self.connection,
                {200: Answer("The account.", schemas.ConnectionFacts)},
                (404,),
                needs=("read",),
            ),
            Operation(
                "checkConnection",
                "POST",
                "/connections/{integration}/{scope}/{connection}/check",
                "Try an account with one call that only reads",
                self.check,
                {200: Answer("Whether its credential works.", schemas.CheckAnswer)},
                (403, 404),
            ),
            Operation(
                "addConnection",
                "POST",
                "/connections",
                "Connect another account to an integration",
                self.connect,
                {201: added},
                (403, 404, 409, 422),
                body=schemas.ConnectionRequest,
            ),
            Operation(
                "removeConnection",
                "DELETE",
                "/connections/{integration}/{scope}/{connection}",
                "Remove a connection",
                self.disconnect,
                {
                    204: gone,
                    200: Answer(
                        "It is gone, and tokens of it may still be good at their server.", schemas.Disconnected
                    ),
                },
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
                needs=("read",),
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
                "rotateMasterKey",
                "POST",
                "/master-key/rotate",
                "Seal every secret under a new master key",
                self.rotate,
                {200: Answer("How many were sealed anew.", schemas.RotateAnswer)},
                (409, 507),
                body=schemas.RotateRequest,
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


def _document(source: str | dict[str, Any]) -> str | bytes | dict[str, Any]:
    """A text that is no URL is the document itself, and never a path of this machine."""
    return source.encode("utf-8", "replace") if isinstance(source, str) and not is_url(source) else source


def _label(call: Call) -> tuple[str, str, str]:
    return call.params["integration"], call.params["scope"], call.params["connection"]
