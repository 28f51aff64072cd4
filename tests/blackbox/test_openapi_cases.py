"""What reaches the server for every way that an OpenAPI document can describe a request, and what comes back.

The cases stand in `tests/data/openapi`, in the short form that `expanded` reads. `EXECUTOR_OPENAPI_CASES` may name
further files of cases, written out, separated like the entries of PATH.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.blackbox.openapi_cases import Case, failure

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parent.parent / "data" / "openapi"
EXTRA = [Path(name) for name in os.environ.get("EXECUTOR_OPENAPI_CASES", "").split(os.pathsep) if name]
_PARAMETER = ("name", "in", "style", "explode", "allowReserved", "allowEmptyValue", "schema")
_KEPT = ("document_url", "credential", "media_type", "server", "server_variables")


def expanded(row: dict[str, Any], swagger: bool) -> Case:
    """A case from its short form: one operation, `/q` with the query parameter `v` where the row says nothing else."""
    method = row.get("method", "post" if "body" in row else "get")
    path, template = row.get("path", "/q"), row.get("path", "/q").partition("?")[0]
    parameters = row.get("parameters")
    if parameters is None and "parameters" not in row.get("item", {}) and "body" not in row and method == "get":
        one = {key: row[key] for key in _PARAMETER if key in row}
        place = {"in": "query", "name": "v"} | ({"type": "string"} if swagger else {"schema": {}})
        parameters = [place | one]
    for one in parameters or ():
        if one.get("in") == "path":
            one.setdefault("required", True)
    operation: dict[str, Any] = {"operationId": "op", "responses": {"200": {"description": "fine"}}}
    if parameters is not None:
        operation["parameters"] = parameters
    if "body" in row:
        operation["requestBody"] = {"required": row.get("required", True), "content": row["body"]}
    operation = _without_null(operation | row.get("op", {}))
    document = {"info": {"title": "T", "version": "1"}, "paths": {path: row.get("item", {}) | {method: operation}}}
    if swagger:
        document |= {"swagger": "2.0", "host": "{{HOST}}", "schemes": ["http"]}
    else:
        document |= {"openapi": str(row.get("version", "3.0.3")), "servers": [{"url": "{{BASE}}"}]}
    document |= row.get("doc", {})
    document["paths"] |= document.pop("paths+", {})
    if "security" in row:
        document["security"] = row.get("require", [{name: []} for name in row["security"]])
        if swagger:
            document["securityDefinitions"] = row["security"]
        else:
            document["components"] = {"securitySchemes": row["security"]}
    case = {key: row[key] for key in _KEPT if key in row} | {
        "id": row["id"],
        "document": _without_null(document),
        "operation": {"method": method.upper(), "path": path},
        "arguments": row.get("args", {}),
        "arguments_by_location": row.get("by_place"),
        "expect": {key: row[key] for key in ("refuse", "refuse_allowed", "value", "error") if key in row},
    }
    if "answer" in row:
        case["expect"]["response_given"] = row["answer"]
    if "refuse" not in row:
        target = row.get("target", template + ("?v=x" if row.get("args") == {"v": "x"} else ""))
        request = {"method": method.upper(), "target": target, "headers": row.get("headers", {})}
        case["expect"]["request"] = request | {"body": row.get("sent", {"none": True})}
        case["expect"]["alternatives"] = row.get("or", [])
    return case


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if value is not None}


CASES = [
    (f"{path.stem}-{row['id']}", expanded(row, path.stem == "swagger"))
    for path in sorted(DATA.glob("*.yaml"))
    for row in yaml.load(path.read_text(), yaml.CSafeLoader)
]
CASES += [(case["id"], case) for path in EXTRA for case in json.loads(path.read_text())]


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
async def test_the_request_and_the_answer_are_what_the_document_means(case: Case) -> None:
    assert await failure(case) is None
