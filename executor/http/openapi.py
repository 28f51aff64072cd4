"""The OpenAPI 3.1 document of the API, made from the operations and the models that check the requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import executor
from executor.http import schemas
from executor.http.operation import Answer, Operation

_REF: Final = "#/components/schemas/{model}"

REFUSALS: Final[dict[int, str]] = {
    400: "The request is malformed; nothing was done.",
    401: "There is no valid key.",
    403: "The key, the Origin, a policy or an allowlist does not permit it.",
    404: "There is nothing at this path, or not for this caller.",
    405: "The path does not serve this method.",
    408: "The body did not arrive in time.",
    409: "It contradicts the present state.",
    413: "The body, the source, the input or a value is over its limit.",
    414: "The request line is too long.",
    415: "The body is not JSON in UTF-8.",
    416: "The part begins beyond the end; `Content-Range` says where that is.",
    421: "The Host header names another server.",
    422: "The description cannot become an integration; nothing was added.",
    429: "Too many wrong keys from this address.",
    431: "The headers are too many or too large.",
    500: "A defect; the log names it under the correlation id.",
    502: "The upstream failed, refused the credential or could not be reached.",
    503: "All places are taken and the queue is full; see Retry-After.",
    504: "The upstream did not answer in time.",
    507: "The store is full.",
}
ALWAYS: Final = (400, 401, 403, 404, 405, 414, 421, 429, 431, 500)
WITH_BODY: Final = (408, 413, 415)


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    operations = list(operations)
    asked: list[tuple[type[BaseModel], Any]] = []
    for each in operations:
        asked += [(model, "validation") for model in (each.body, each.query) if model is not None]
        asked += [(answer.model, "serialization") for answer in each.answers.values() if answer.model is not None]
    asked.append((schemas.ErrorAnswer, "serialization"))
    _, definitions = models_json_schema(list(dict.fromkeys(asked)), ref_template=_REF)
    components = definitions["$defs"]
    paths: dict[str, Any] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, components)
    used = {key: value for key, value in components.items() if not key.endswith("Query")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Executor",
            "version": executor.__version__,
            "description": "Runs scripts in sandboxed isolates, with budgets, and gives them tools.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "`exk_…`"}},
            "schemas": used,
        },
    }


def _operation(each: Operation, components: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"operationId": each.id, "summary": each.summary}
    if each.description:
        out["description"] = each.description
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", each.path)
    ]
    if each.query is not None:
        parameters += _query(components[each.query.__name__])
    parameters += [{"name": name, "in": "header"} | facts for name, facts in each.headers.items()]
    if parameters:
        out["parameters"] = parameters
    if each.body is not None:
        out["requestBody"] = {
            "required": each.body_required,
            "content": {"application/json": {"schema": {"$ref": _REF.format(model=each.body.__name__)}}},
        }
    if each.public:
        out["security"] = [{}, {"key": []}]
    out["responses"] = _responses(each)
    return out


def _query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": facts}
        for name, facts in schema["properties"].items()
    ]


def _responses(each: Operation) -> dict[str, Any]:
    statuses = {*ALWAYS, *each.refusals, *(WITH_BODY if each.method in ("POST", "PUT") else ())}
    refusal = {"application/json": {"schema": {"$ref": _REF.format(model="ErrorAnswer")}}}
    told = {status: {"description": REFUSALS[status], "content": refusal} for status in statuses}
    told |= {status: _answer(answer) for status, answer in each.answers.items()}
    return {str(status): told[status] for status in sorted(told)}


def _answer(answer: Answer) -> dict[str, Any]:
    if answer.model is not None:
        schema: dict[str, Any] = {"$ref": _REF.format(model=answer.model.__name__)}
    elif answer.media_type == "application/json":
        schema = {}
    else:
        schema = {"type": "string"}
    told: dict[str, Any] = {"description": answer.description}
    if answer.description != "Done.":
        told["content"] = {answer.media_type: {"schema": schema}}
    return told
