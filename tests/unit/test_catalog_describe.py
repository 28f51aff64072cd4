"""Descriptions: one intermediate form, two languages, and always what the call takes and returns."""

from __future__ import annotations

import json
import keyword
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.describe import brief, describe
from catalog.describe.ir import Builder
from catalog.describe.typescript import callee, text
from catalog.kinds.openapi import OpenApi
from catalog.model import Tool, ToolSpec
from catalog.validate import checker

PETSTORE = Path(__file__).parents[2] / "examples" / "petstore" / "openapi.json"


def typed(schema: Any, direction: Any = "in", **definitions: Any) -> str:
    return text(Builder(definitions, direction).build(schema))


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "number"),
        ({"type": "string", "format": "binary"}, "Uint8Array"),
        ({}, "unknown"),
        (True, "unknown"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"enum": ["a", 1, None, True]}, '"a" | 1 | null | true'),
        ({"const": "x"}, '"x"'),
        ({"enum": [{"a": 1}]}, '{"a": 1}'),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": "array"}, "unknown[]"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}, "[string, number]"),
        ({"type": "object"}, "Record<string, unknown>"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "Record<string, number>"),
        ({"type": "object", "additionalProperties": False}, "{}"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b-c": {}}, "required": ["a"]},
            '{ a: string; "b-c"?: unknown }',
        ),
        ({"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "string"}]}, "string | number"),
        ({"anyOf": [{"type": "string"}, {}]}, "unknown"),
        (
            {"allOf": [{"type": "object", "properties": {"a": {}}}, {"properties": {"b": {}}, "type": "object"}]},
            "{ a?: unknown; b?: unknown }",
        ),
        ({"allOf": [{"type": "string"}, {"description": "only words"}]}, "string"),
        ({"$ref": "#/$defs/Missing"}, "unknown"),
        ({"$ref": "elsewhere"}, "unknown"),
        ({"type": "nonsense"}, "unknown"),
    ],
)
def test_a_schema_reads_as_typescript(schema: Any, type_: str) -> None:
    assert typed(schema) == type_


def test_read_only_and_write_only_properties_show_in_their_direction_alone() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string", "readOnly": True}, "pin": {"type": "string", "writeOnly": True}},
    }
    assert typed(schema, "in") == "{ pin?: string }"
    assert typed(schema, "out") == "{ id?: string }"


def tool(given: Any = None, got: Any = None, **definitions: Any) -> Tool:
    spec = ToolSpec("pet.get", "Get a pet", "", given, got, "read")
    return Tool("shop.org.main.pet.get", "shop", "org", "main", spec, definitions)


def test_cycles_are_named_types_and_small_ones_stand_in_place() -> None:
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
    told = describe(
        tool(got={"$ref": "#/$defs/Node"}, Node=node | {"required": ["kids"]}, Unused={"type": "string"}),
        effect="approve",
    )
    assert told["signature"] == "tools.shop.org.main.pet.get(): Promise<Node>\ntype Node = { kids: Node[] };"
    assert told["python"] == "await tools.shop.org.main.pet.get() -> Node\nclass Node(TypedDict): kids: list[Node]"
    color = {"type": "string", "enum": ["red", "blue"]}
    assert typed({"$ref": "#/$defs/Color"}, Color=color) == '"red" | "blue"'
    assert typed({"$ref": "#/$defs/A"}, A={"$ref": "#/$defs/B"}, B={"$ref": "#/$defs/A"}) in ("A", "B")


def test_a_type_that_differs_by_direction_has_two_names() -> None:
    pet = {
        "type": "object",
        "properties": {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}},
        "required": ["id", "name"],
    }
    body = {"type": "object", "properties": {"body": {"$ref": "#/$defs/Pet"}}, "required": ["body"]}
    told = describe(tool(body, {"$ref": "#/$defs/Pet"}, Pet=pet), effect="approve")
    assert told["signature"].splitlines() == [
        "tools.shop.org.main.pet.get(args: { body: PetInput }): Promise<Pet>",
        "type PetInput = { name: string };",
        "type Pet = { id: string; name: string };",
    ]


def test_arguments_with_words_stand_on_lines_of_their_own() -> None:
    given = {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "description": "Which one.\n\nLong story."},
            "deep": {"type": "boolean"},
        },
        "required": ["id"],
        "additionalProperties": False,
    }
    told = describe(tool(given, {"type": "null"}), effect="approve")
    assert told["signature"].splitlines() == [
        "tools.shop.org.main.pet.get(args: {",
        "  id: number;  // Which one.",
        "  deep?: boolean;",
        "}): Promise<null>",
    ]
    assert brief(tool(given))["signature"] == "(args: { id: number; deep?: boolean }) => Promise<unknown>"


def test_a_path_that_is_no_identifier_is_called_in_brackets() -> None:
    assert callee("my-api.org.main.x") == 'tools["my-api.org.main.x"]'
    assert callee("api.org.main.x") == "tools.api.org.main.x"


def test_a_great_many_types_are_cut_off_with_a_note() -> None:
    definitions = {
        f"T{one}": {"type": "object", "properties": {f"f{two}": {"type": "string"} for two in range(60)}}
        | {"required": [f"f{two}" for two in range(60)]}
        for one in range(200)
    }
    got = {"type": "object", "properties": {f"t{one}": {"$ref": f"#/$defs/T{one}"} for one in range(200)}}
    told = describe(tool(got=got, **definitions), effect="approve")
    assert "// not shown:" in told["signature"]
    assert "and 20 more" in told["signature"]
    assert len(told["signature"]) < 4000


def test_the_schemas_come_whole_when_they_are_asked_for() -> None:
    pet = {"type": "object", "properties": {"tag": {"$ref": "#/$defs/Tag"}}}
    told = describe(
        tool({"$ref": "#/$defs/Pet"}, Pet=pet, Tag={"type": "string"}, Unused={}), effect="block", schemas=True
    )
    assert told["input_schema"] == {"$ref": "#/$defs/Pet", "$defs": {"Pet": pet, "Tag": {"type": "string"}}}
    assert told["output_schema"] is None
    assert told["effect"] == "block"


def test_the_descriptions_of_a_real_document_are_short() -> None:
    manifest = OpenApi("pets").resolve_tools({"document": json.loads(PETSTORE.read_bytes())})
    sizes = []
    for spec in manifest.tools:
        one = Tool(f"pets.org.main.{spec.name}", "pets", "org", "main", spec, manifest.definitions)
        sizes.append(len(describe(one, effect="approve")["signature"]) / 4)
    assert sorted(sizes)[len(sizes) // 2] <= 120


def test_the_python_signature_of_a_real_tool_is_python() -> None:
    manifest = OpenApi("pets").resolve_tools({"document": json.loads(PETSTORE.read_bytes())})
    for spec in manifest.tools:
        one = Tool(f"pets.org.main.{spec.name}", "pets", "org", "main", spec, manifest.definitions)
        _, *types = describe(one, effect="approve")["python"].splitlines()
        for line in types:
            compile(line, "signature", "exec")


SCHEMAS = st.recursive(
    st.sampled_from(
        [{}, {"type": "string"}, {"type": "integer"}, {"$ref": "#/$defs/A"}, {"enum": [1, "x"]}, True, False]
    )
    | st.just({"type": "object"}),
    lambda inner: (
        st.builds(lambda one: {"type": "array", "items": one}, inner)
        | st.builds(lambda one: {"anyOf": one}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda one: {"allOf": one}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(
            lambda one: {"type": "object", "properties": one},
            st.dictionaries(st.sampled_from(["a", "b c", "class", "ü"]), inner, max_size=3),
        )
    ),
    max_leaves=10,
)


@given(SCHEMAS, SCHEMAS)
def test_any_schema_can_be_described_and_checked(one: Any, two: Any) -> None:
    definitions = {"A": two}
    told = describe(tool(one, two, **definitions), effect="approve")
    assert told["signature"].startswith("tools.shop.org.main.pet.get(")
    assert not any(keyword.iskeyword(line) for line in told["python"].splitlines())
    check = checker(one if isinstance(one, dict) else None, definitions)
    if check is not None:
        assert check({"a": 1}) is None or isinstance(check({"a": 1}), str)
