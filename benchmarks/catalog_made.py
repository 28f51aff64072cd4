"""An OpenAPI document of any size, regular as real ones are: resources with parts, described, with shared schemas."""

from __future__ import annotations

from itertools import product
from typing import Any

from catalog.kinds.openapi.integration import OpenApi
from catalog.model import Tool

_KINDS = (
    *("user", "team", "issue", "repository", "message", "channel", "file"),
    *("folder", "invoice", "customer", "payment", "event", "calendar", "task"),
)
_PARTS = (
    *("comment", "label", "member", "setting", "version", "permission"),
    *("webhook", "attachment", "status", "history", "draft"),
)
_DOINGS = {"get": "Get", "post": "Create", "patch": "Update", "delete": "Delete"}
PROPERTIES = 40


def document(operations: int) -> dict[str, Any]:
    """A document of about `operations` operations; 40 properties in each of its schemas."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for number, (kind, part) in enumerate(product(range(operations), _PARTS)):
        if number * len(_DOINGS) >= operations:
            break
        thing = f"{_KINDS[kind % len(_KINDS)]}{kind // len(_KINDS) or ''}"
        name = f"{thing}_{part}"
        schemas[name] = _schema(name, f"{thing}_{_PARTS[(number + 1) % len(_PARTS)]}")
        paths[f"/{thing}s/{{{thing}_id}}/{part}s"] = {verb: _operation(verb, thing, part, name) for verb in _DOINGS}
    for name in [part["properties"]["next"]["$ref"].rpartition("/")[2] for part in schemas.values()]:
        schemas.setdefault(name, {"type": "object"})
    return {"openapi": "3.0.3", "info": {"title": "Made"}, "paths": paths, "components": {"schemas": schemas}}


def _schema(name: str, following: str) -> dict[str, Any]:
    fields = {f"{name}_field_{number}": {"type": "string", "description": "Some text."} for number in range(PROPERTIES)}
    return {"type": "object", "properties": fields | {"next": {"$ref": f"#/components/schemas/{following}"}}}


def _operation(verb: str, thing: str, part: str, schema: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    operation = {
        "operationId": f"{thing}s/{verb}-{part}",
        "summary": f"{_DOINGS[verb]} the {part} of a {thing}",
        "description": f"{_DOINGS[verb]}s what a {thing} has as its {part}, with everything that belongs to it.",
        "parameters": [{"name": f"{thing}_id", "in": "path", "required": True, "schema": {"type": "string"}}],
        "responses": {"200": {"description": "", "content": content}},
    }
    return operation | ({"requestBody": {"content": content}} if verb in ("post", "patch") else {})


def tools(operations: int) -> list[Tool]:
    """The tools of such a document under one connection."""
    made = OpenApi("made").resolve_tools({"document": document(operations), "base_url": "https://made.example"})
    return [Tool(f"made.org.main.{one.name}", "made", "org", "main", one, made.definitions) for one in made.tools]
