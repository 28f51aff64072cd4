"""One operation of the API: what it takes, what it answers, and the function that does it.

The routes and the OpenAPI document are both made from these, so that neither can say what the other does not.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args
from urllib.parse import parse_qsl

from pydantic import BaseModel, RootModel, ValidationError
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.wire.errors import Forbidden, InvalidRequest
from executor.http.answers import MethodNotAllowed
from executor.http.edge import ADMITTED, NO_BODY, UNREAD, Admitted
from executor.keys import Access, Need
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


def validated(model: type[BaseModel], value: Mapping[str, Any], noun: str, *, strict: bool) -> BaseModel:
    """`value` as an instance of `model`. Raises InvalidRequest naming every field that is wrong."""
    try:
        return model.model_validate(value, strict=strict)
    except ValidationError as e:
        variants = _variants(model)
        problems = _problems(e.errors(include_url=False), noun, bool(variants))
        unknown = any(error["type"] == "extra_forbidden" for error in e.errors())
        known = variants.get(str(value.get("kind")), model).model_fields
        hint = f"known {noun}s: {', '.join(known)}" if unknown else None
        raise InvalidRequest("; ".join(problems[:5]), hint=hint, details={"problems": problems[:50]}) from None


def _variants(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The models of a body that comes in kinds, by kind."""
    if not issubclass(model, RootModel):
        return {}
    members = get_args(model.model_fields["root"].annotation)
    return {get_args(member.model_fields["kind"].annotation)[0]: member for member in members}


def _problems(errors: Sequence[Any], noun: str, in_kinds: bool) -> list[str]:
    """What is wrong, field by field, in words of JSON. What a field may be instead is said in one sentence."""
    said: dict[str, list[str]] = {}
    for error in errors:
        place = error["loc"][1:] if in_kinds else error["loc"]
        named = [str(part) for part in place if not (isinstance(part, str) and _OF_PYDANTIC.fullmatch(part))]
        if error["type"] == "extra_forbidden" and named[-1:] != [place[-1]]:
            named.append(place[-1])
        where = ".".join(named)[:100] or "kind"
        said.setdefault(where, []).append(_problem(error))
    return [_sentence(noun, where, parts) for where, parts in said.items()]


def _sentence(noun: str, where: str, parts: list[str]) -> str:
    if parts[0] == "unknown":
        return f"unknown {noun} {where!r}"
    first, *others = dict.fromkeys(parts)
    return f"{noun} {where!r} {first}" + "".join(f", or {other.removeprefix('must be ')}" for other in others)


def _problem(error: Any) -> str:
    kind, facts = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return "unknown"
    if kind in ("missing", "union_tag_not_found"):
        return "is missing"
    template = _WORDS.get(kind) or next((words for start, words in _KINDS.items() if kind.startswith(start)), None)
    if template is None:
        what = str(error["msg"])
        return f"is not as it must be: {what[:1].lower()}{what[1:300]}"
    return template.format_map({key: str(value)[:200] for key, value in facts.items()})


_OF_PYDANTIC: Final = re.compile(r"[a-z]*\[.*\]|constrained-[a-z]+|function-.*|Placement", re.DOTALL)
"""What pydantic adds to the place of an error for each branch of a union."""
_WORDS: Final = {
    "literal_error": "must be {expected}",
    "union_tag_invalid": "must be one of {expected_tags}",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "string_too_short": "must be at least {min_length} long",
    "string_too_long": "must be at most {max_length} long",
    "too_short": "must hold at least {min_length}",
    "too_long": "must hold at most {max_length}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
_KINDS: Final = {
    "string_": "must be a string",
    "dict_": "must be an object",
    "model_": "must be an object",
    "list_": "must be an array",
    "int_": "must be a whole number",
    "float_": "must be a number",
    "bool_": "must be true or false",
    "none_": "must be null",
}


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
