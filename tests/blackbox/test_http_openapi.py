"""The API's own description: complete, valid, and true to what the server does."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.blackbox.server import Reply, Server


@pytest.fixture(scope="module")
def document(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = server.ask("GET", "/openapi.json").json
    return found


def _operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def _check(document: dict[str, Any], method: str, path: str, reply: Reply) -> None:
    """Fails when the status is not documented for the operation, or its body is not as documented."""
    responses = document["paths"][path][method.lower()]["responses"]
    assert str(reply.status) in responses, (method, path, reply.status, reply.body[:300])
    content = responses[str(reply.status)].get("content")
    if content is None:
        assert reply.body == b""
        return
    media_type = reply.headers["content-type"].partition(";")[0]
    assert media_type in content
    if media_type == "application/json":
        schema = content[media_type]["schema"] | {"components": document["components"]}
        Draft202012Validator(schema).validate(reply.json)


def test_it_is_openapi_with_one_id_for_each_operation(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    ids = [operation["operationId"] for _, _, operation in _operations(document)]
    assert len(ids) == len(set(ids))
    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert references == references & set(document["components"]["schemas"])
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_operation_answers_without_a_key_as_documented(server: Server, document: dict[str, Any]) -> None:
    """HTTP-29: authentication is enforced on every route."""
    for method, path, operation in _operations(document):
        reply = server.ask(method, re.sub(r"\{\w+\}", "x", path), key=None)
        public = {} in operation.get("security", [])
        asked = (200, 400, 404) if public else (401, 429)
        assert reply.status in asked, (method, path)
        _check(document, method, path, reply)


def test_every_operation_answers_a_stranger_as_documented(server: Server, document: dict[str, Any]) -> None:
    """HTTP-29: things that do not exist, bodies that are not ours, queries that are not ours."""
    for method, path, operation in _operations(document):
        concrete = re.sub(r"\{\w+\}", "x", path)
        with_body = method in ("POST", "PUT")
        for query in ("", "?no=1", "?limit=x", "?limit=0"):
            for body in (None, {}, {"no": 1}, [], "x") if with_body else (None,):
                reply = server.ask(method, concrete + query, body)
                assert reply.status < 500, (method, concrete, body, reply.body)
                _check(document, method, path, reply)
        assert "requestBody" not in operation or with_body


def test_a_run_answers_as_documented(server: Server, document: dict[str, Any]) -> None:
    for code in ("console.log(1); emit(2); ({ a: 1 })", "throw new Error('x')", "(", "for (;;);", "'x'.repeat(2e6)"):
        reply = server.ask("POST", "/run", {"code": code, "budgets": {"fuel": 10**8}})
        assert reply.status == 200
        _check(document, "POST", "/run", reply)
        run_id = reply.json["run_id"]
        _check(document, "GET", "/runs/{run_id}", server.ask("GET", f"/runs/{run_id}"))
        _check(document, "GET", "/runs/{run_id}/result", server.ask("GET", f"/runs/{run_id}/result"))
    _check(document, "GET", "/runs", server.ask("GET", "/runs"))
    _check(document, "GET", "/tools", server.ask("GET", "/tools"))
    _check(document, "GET", "/health", server.ask("GET", "/health"))
    _check(document, "GET", "/metrics", server.ask("GET", "/metrics"))


def test_budgets_are_documented_one_by_one(document: dict[str, Any]) -> None:
    budgets = document["components"]["schemas"]["RunRequest"]["properties"]["budgets"]
    assert {"fuel", "wall_ms", "memory_bytes", "bridge_calls"} <= set(budgets["properties"])
    assert budgets["additionalProperties"] is False
