"""Requests as a server reads them that validates every one by the same document."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.wire.errors import ToolError
from tests.blackbox.validating import Validating
from tests.unit.upstream import call, document, operation, toolbox, upstream

pytestmark = pytest.mark.anyio

TEXTS = {"type": "array", "items": {"type": "string"}}
NUMBERS = {"type": "array", "items": {"type": "integer"}}
MIXED = {
    "type": "object",
    "properties": {"r": {"type": "integer"}, "a b": {"type": "string"}, "on": {"type": "boolean"}},
    "additionalProperties": False,
}
VALUES = {
    "text": ({"type": "string"}, "ochre"),
    "awkward-text": ({"type": "string"}, "a,b;c=d&e/f?g#h%20 é.|~"),
    "integer": ({"type": "integer"}, -7),
    "long-integer": ({"type": "integer"}, 9007199254740993),
    "number": ({"type": "number"}, 0.25),
    "huge": ({"type": "number"}, 1e300),
    "boolean": ({"type": "boolean"}, False),
    "list": (TEXTS, ["ochre", "moss"]),
    "one-item": (TEXTS, ["ochre"]),
    "awkward-list": (TEXTS, ["a,b", "c&d=e", "é;/?#"]),
    "numbers": (NUMBERS, [3, 0, -2]),
    "object": (MIXED, {"r": 9, "a b": "x&y", "on": True}),
}
HEADERS = {key: value for key, value in VALUES.items() if "awkward" not in key and key != "object"}
HEADERS["object"] = ({"type": "object", "properties": {"r": {"type": "integer"}}}, {"r": 9, "g": "x"})
WAYS = [
    *(("path", style, explode, VALUES) for style in ("simple", "matrix") for explode in (True, False)),
    ("path", "label", False, VALUES),
    ("path", "label", True, {key: VALUES[key] for key in VALUES if key not in ("number", "awkward-text")}),
    *(("query", "form", explode, VALUES) for explode in (True, False)),
    *(
        ("query", style, False, {key: VALUES[key] for key in ("list", "one-item", "numbers", "awkward-list")})
        for style in ("pipeDelimited", "spaceDelimited")
    ),
    ("query", "deepObject", True, {"object": VALUES["object"]}),
    *(("header", "simple", explode, HEADERS) for explode in (True, False)),
    *(("cookie", "form", explode, VALUES) for explode in (True, False)),
]


def ways() -> list[Any]:
    return [
        pytest.param(place, style, explode, *values[kind], id=f"{place}-{style}-{explode}-{kind}")
        for place, style, explode, values in WAYS
        for kind in values
    ]


async def agrees(path: str, method: str, node: dict[str, Any], args: dict[str, Any], wanted: dict[str, Any]) -> None:
    async with upstream() as server, toolbox() as box:
        described = document({path: {method: operation(**node)}}, server.base)
        server.answers["*"] = Validating(path, node)
        await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        try:
            outcome = await call(box, "api.org.main.op", args)
        except ToolError as e:
            raise AssertionError(f"{e.message} {e.details} {server.seen}") from None
        assert outcome.value == wanted, server.seen


@pytest.mark.parametrize(("place", "style", "explode", "schema", "value"), ways())
async def test_a_parameter_arrives_as_it_was_given(
    place: str, style: str, explode: bool, schema: dict[str, Any], value: Any
) -> None:
    name = "X-V" if place == "header" else "v"
    one = {"name": name, "in": place, "required": True, "style": style, "explode": explode, "schema": schema}
    path = "/q/{v}/of" if place == "path" else "/q"
    await agrees(path, "get", {"parameters": [one]}, {name: value}, {name: value})


FIELDS = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "n": {"type": "integer"},
        "on": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "string"}},
        "flat": {"type": "array", "items": {"type": "integer"}},
        "deep": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
        "object": {"type": "object", "properties": {"a": {"type": "string"}}},
    },
    "required": ["text", "n"],
    "additionalProperties": False,
}
VALUE = {
    "text": "x&y=z+é %41\r\n",
    "n": 0,
    "on": False,
    "list": ["a,b", ""],
    "flat": [1, 2],
    "deep": {"a": "p&q", "b": 3},
    "object": {"a": "é"},
}
ENCODING = {"flat": {"style": "form", "explode": False}, "deep": {"style": "deepObject", "explode": True}}


@pytest.mark.parametrize(
    ("media", "content", "value"),
    [
        ("application/json", {"schema": FIELDS}, VALUE),
        ("application/x-www-form-urlencoded", {"schema": FIELDS, "encoding": ENCODING}, VALUE),
        ("multipart/form-data", {"schema": FIELDS}, VALUE | {"text": "x&y=z+é %41"}),
        ("text/plain", {"schema": {"type": "string"}}, "line\r\né"),
        ("text/plain", {"schema": {"type": "number"}}, 1e21),
        ("application/octet-stream", {"schema": {"type": "string"}}, "\x00plain"),
    ],
)
async def test_a_body_arrives_as_it_was_given(media: str, content: dict[str, Any], value: Any) -> None:
    node = {"requestBody": {"required": True, "content": {media: content}}}
    await agrees("/b", "post", node, {"body": value}, {"body": value})


async def test_the_server_refuses_what_the_document_does_not_describe() -> None:
    one = {"name": "v", "in": "query", "style": "form", "explode": True, "schema": {"type": "integer"}}
    async with upstream() as server, toolbox() as box:
        described = document({"/q": {"get": operation(parameters=[one | {"schema": {}}])}}, server.base)
        server.answers["*"] = Validating("/q", {"parameters": [one]})
        await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        with pytest.raises(ToolError, match="422"):
            await call(box, "api.org.main.op", {"v": "seven"})
