"""One operation of the API: what it takes, what it answers, and the function that does it.

The routes and the OpenAPI document are both made from these, so that neither can say what the other does not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from pydantic import BaseModel
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.wire.errors import Forbidden, InvalidRequest
from executor.http.answers import MethodNotAllowed
from executor.http.edge import ADMITTED, NO_BODY, UNREAD, Admitted
from executor.keys import Access, Need
from executor.validation import validated
from runtime import values

MAX_QUERY_FIELDS: Final = 32


@dataclass(frozen=True, slots=True)
class Call:
    """An admitted, validated request. `body` and `query` are instances of the operation's models, or None."""

    scope: Scope
    receive: Receive
    principal: str
    known: bool
    access: Access
    params: Mapping[str, str]
    query: Any
    body: Any
    holds_bytes: bool

    def value(self, part: Any) -> Any:
        """A part of the body as a value: `{"$bytes": …}` is bytes. Raises InvalidRequest for what is not base64."""
        return values.from_json(part) if self.holds_bytes else part

    def header(self, name: bytes) -> str | None:
        """The only header of that lower-case name. Raises InvalidRequest when it comes twice."""
        values = [value for key, value in self.scope["headers"] if key == name]
        if len(values) > 1:
            raise InvalidRequest(f"the header {name.decode()} must come once")
        return values[0].decode("latin-1") if values else None


Handler = Callable[[Call], Awaitable[ASGIApp]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A status that an operation answers with: a model, or another media type, or nothing but the status."""

    description: str
    model: Any = None
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Operation:
    """`refusals` are the statuses of its own errors, beyond those that the edge gives to every request. A key needs one
    of `needs`: what says nothing else changes the home. Without any, every key will do."""

    id: str
    method: str
    path: str
    summary: str
    handler: Handler
    answers: Mapping[int, Answer]
    refusals: tuple[int, ...] = ()
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    headers: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    description: str = ""
    public: bool = False
    needs: tuple[Need, ...] = ("admin",)

    @property
    def body_required(self) -> bool:
        """Whether something must be said; else no body is as good as an empty object."""
        return self.body is not None and any(one.is_required() for one in self.body.model_fields.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["operation"] = self.id
        admitted: Admitted = scope[ADMITTED]
        permit(admitted.access, self.needs)
        call = Call(
            scope,
            receive,
            admitted.principal,
            admitted.known,
            admitted.access,
            scope["path_params"],
            self._query_of(scope["query_string"]),
            self._body_of(admitted.body),
            admitted.holds_bytes,
        )
        response = await self.handler(call)
        await response(scope, receive, send)

    def _query_of(self, raw: bytes) -> Any:
        if not raw and self.query is None:
            return None
        try:
            pairs = parse_qsl(
                raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS
            )
        except ValueError:
            raise InvalidRequest(
                "the query is not readable", hint=f"UTF-8, percent-encoded, {MAX_QUERY_FIELDS} fields at most"
            ) from None
        fields = dict(pairs)
        if len(fields) != len(pairs):
            raise InvalidRequest("a query parameter appears twice")
        if self.query is None:
            raise InvalidRequest(f"unknown query parameter {next(iter(fields), '')[:80]!r}", hint="it takes none")
        return validated(self.query, fields, "query parameter", strict=False)

    def _body_of(self, body: Any) -> Any:
        if body is UNREAD:
            raise InvalidRequest(f"a {self.method} request takes no body")
        if self.body is None:
            if body is not NO_BODY and body != {}:
                raise InvalidRequest("this operation takes no body")
            return None
        if body is NO_BODY and not self.body_required:
            body = {}
        if body is NO_BODY:
            raise InvalidRequest("a JSON body is required", hint="send `Content-Type: application/json` and an object")
        if type(body) is not dict:
            raise InvalidRequest("the body must be a JSON object")
        return validated(self.body, body, "field", strict=True)


def permit(access: Access, needs: tuple[Need, ...]) -> None:
    """Raises Forbidden unless `access` has one of `needs`; without any needs, every key will do."""
    if needs and not access.allows(*needs):
        raise Forbidden(
            f"this key may not do that: its access is {access.level}",
            hint=f"it takes a key with the access {' or '.join(needs)}, or full",
        )


class PathEndpoint:
    """Every operation of one path; answers OPTIONS, and 405 with the methods there are."""

    def __init__(self, operations: list[Operation]) -> None:
        self._operations = {each.method: each for each in operations}
        if "GET" in self._operations:
            self._operations["HEAD"] = self._operations["GET"]
        self.allow = (*self._operations, "OPTIONS")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._operations.get(scope["method"])
        if operation is not None:
            await operation(scope, receive, send)
        elif scope["method"] == "OPTIONS":
            await Response(status_code=204, headers={"allow": ", ".join(self.allow)})(scope, receive, send)
        else:
            raise MethodNotAllowed(f"{scope['method']} is not served at this path", allow=self.allow)


def routes_of(operations: list[Operation]) -> list[Route]:
    """One route for each path; those without parameters first, since the first that matches is taken."""
    by_path: dict[str, list[Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, []).append(operation)
    ordered = sorted(by_path, key=lambda path: "{" in path)
    return [Route(path, PathEndpoint(by_path[path]), methods=None) for path in ordered]
