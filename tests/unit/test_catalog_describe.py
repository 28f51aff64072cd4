"""Descriptions: one intermediate form, two languages, and always what the call takes and returns."""

from __future__ import annotations

import ast
import json
import keyword
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strip_host import stripped

from catalog.describe import MAX_DEPTH, brief, describe, describe_type
from catalog.describe.ir import Builder
from catalog.describe.typescript import callee, text
from catalog.kinds.openapi.integration import OpenApi
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
    assert told["signature"].splitlines() == [
        "// tools.shop.org.main.pet.get()",
        "declare function get(): Promise<Node>;",
        "type Node = { kids: Node[] };",
    ]
    assert told["python"].splitlines() == [
        "# await tools.shop.org.main.pet.get()",
        "async def get() -> Node: ...",
        "class Node(TypedDict): kids: list[Node]",
    ]
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
        "// tools.shop.org.main.pet.get(args)",
        "declare function get(args: { body: PetInput }): Promise<Pet>;",
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
        "// tools.shop.org.main.pet.get(args)",
        "declare function get(args: {",
        "  id: number;  // Which one.",
        "  deep?: boolean;",
        "}): Promise<null>;",
    ]
    assert brief(tool(given))["signature"] == "(args: { id: number; deep?: boolean }) => Promise<unknown>"


def test_a_path_that_is_no_identifier_is_called_in_brackets() -> None:
    assert callee("my-api.org.main.x") == 'tools["my-api.org.main.x"]'
    assert callee("api.org.main.x") == "tools.api.org.main.x"


def test_what_is_too_much_is_cut_with_a_note_and_a_way_to_see_more() -> None:
    definitions = {
        f"T{one}": {"type": "object", "properties": {f"f{two}": {"type": "string"} for two in range(60)}}
        for one in range(200)
    }
    got = {"type": "object", "properties": {f"t{one}": {"$ref": f"#/$defs/T{one}"} for one in range(200)}}
    one = tool(got=got, **definitions)
    sizes = []
    for depth in range(1, MAX_DEPTH + 1):
        told = describe(one, effect="approve", depth=depth)
        sizes.append(len(told["signature"]))
        valid(told)
    assert sizes == sorted(sizes)
    assert sizes[0] < 600 < sizes[-1] < 100_000
    first = describe(one, effect="approve")
    assert "// not shown: T0, T1" in first["signature"]
    assert ", +1" in first["signature"]
    assert first["more"]["deeper"] == "shop.org.main.pet.get#2"
    assert first["more"]["types"][0] == "T0"
    assert "more" not in describe(tool(got={"type": "string"}), effect="approve")


def test_every_required_argument_is_shown_however_many_there_are() -> None:
    names = [f"argument_number_{number}" for number in range(40)]
    optional = {f"optional_{number}": {"type": "string"} for number in range(20)}
    given = {"type": "object", "properties": optional | {name: {"type": "string"} for name in names}, "required": names}
    body = {"type": "object", "properties": {"body": given}, "required": ["body"]}
    for schema in (given, body):
        told = describe(tool(schema), effect="approve")
        assert all(f"{name}: string" in told["signature"] for name in names)
        assert all(name in told["signature"] for name in list(optional)[:16])
        assert "+4" in told["signature"]
        valid(told)


def test_one_type_is_described_by_its_name() -> None:
    pet = {
        "type": "object",
        "properties": {"id": {"type": "string", "readOnly": True}, "kind": {"$ref": "#/$defs/a.b"}},
    }
    kind = {"type": "object", "properties": {"x": {"type": "number"}}}
    one = tool({"type": "object", "properties": {"body": {"$ref": "#/$defs/Pet"}}}, **{"Pet": pet, "a.b": kind})
    told = describe_type(one, "Pet")
    assert told == {
        "path": one.path,
        "type": "Pet",
        "signature": "type Pet = { id?: string; kind?: a_b };\ntype a_b = { x?: number };",
        "python": "class Pet(TypedDict): id: NotRequired[str]; kind: NotRequired[a_b]\n"
        "class a_b(TypedDict): x: NotRequired[float]",
    }
    assert describe_type(one, "PetInput")["signature"].startswith("type PetInput = { kind?: a_b };")  # type: ignore[index]
    assert describe_type(one, "a.b") == describe_type(one, "a_b")
    assert describe_type(one, "Nothing") is None


def test_all_of_reads_as_one_type_through_references_and_around_cycles() -> None:
    base = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    cat = {"allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"mate": {"$ref": "#/$defs/Cat"}}, "type": "object"}]}
    told = describe(tool(got={"$ref": "#/$defs/Cat"}, Base=base, Cat=cat), effect="approve")
    assert "type Cat = { id: string; mate?: Cat };" in told["signature"]
    loop = {"allOf": [{"$ref": "#/$defs/Loop"}, {"type": "object", "properties": {"a": {}}}]}
    valid(describe(tool(got={"$ref": "#/$defs/Loop"}, Loop=loop), effect="approve"))


def test_what_a_caller_should_know_stands_beside_the_signature() -> None:
    spec = ToolSpec("pet.get", "Get a pet", "", None, None, "read", deprecated=True)
    told = describe(Tool("shop.org.main.pet.get", "shop", "org", "main", spec, {}), effect="approve")
    assert (told["side_effect"], told["connection"], told["deprecated"]) == ("read", "shop.org.main", True)
    assert "Promise<unknown>" in told["signature"]


NAMES = [
    "class",
    "a b",
    "日本",
    "Größe",
    "x*/y",
    "__proto__",
    "None",
    "list",
    "string",
    "\u2028",
    "1st",
    "ﬁ",
    "a-b",
    "a_b",
    "",
]


def test_names_of_every_kind_make_valid_signatures() -> None:
    inner = {"type": "object", "properties": {name: {"type": "string"} for name in NAMES}, "required": NAMES}
    definitions = {name: inner | {"title": name} for name in NAMES}
    given = {"type": "object", "properties": {name: {"$ref": f"#/$defs/{name}"} for name in NAMES}, "required": NAMES}
    for name in ("delete", "import", "größe.neu", "a-b", "get"):
        spec = ToolSpec(name, "", "", given, {"type": "array", "items": {"anyOf": [given, {"enum": NAMES}]}}, "read")
        one = Tool(f"shop.org.main.{name}", "shop", "org", "main", spec, definitions)
        for depth in range(1, MAX_DEPTH + 1):
            valid(describe(one, effect="approve", depth=depth))
    for name in NAMES:
        valid(describe_type(one, name) or {})


def valid(told: dict[str, Any]) -> None:
    """Both signatures parse, each in its language, and no two types have one name."""
    stripped(told["signature"] + "\n0")
    ast.parse(told["python"])
    names = re.findall(r"^type (\S+) =", told["signature"], re.MULTILINE)
    assert len(names) == len(set(names))
    told["signature"].encode()


def test_the_schemas_come_whole_when_they_are_asked_for() -> None:
    pet = {"type": "object", "properties": {"tag": {"$ref": "#/$defs/Tag"}}}
    told = describe(
        tool({"$ref": "#/$defs/Pet"}, Pet=pet, Tag={"type": "string"}, Unused={}), effect="block", schemas=True
    )
    assert told["input_schema"] == {"$ref": "#/$defs/Pet", "$defs": {"Pet": pet, "Tag": {"type": "string"}}}
    assert told["output_schema"] is None
    assert told["effect"] == "block"


def test_the_descriptions_of_a_real_document_are_short_and_valid() -> None:
    manifest = OpenApi("pets").resolve_tools({"document": json.loads(PETSTORE.read_bytes())})
    sizes = []
    for spec in manifest.tools:
        one = Tool(f"pets.org.main.{spec.name}", "pets", "org", "main", spec, manifest.definitions)
        told = describe(one, effect="approve")
        valid(told)
        sizes.append(len(told["signature"]) / 4)
    assert sorted(sizes)[len(sizes) // 2] <= 120


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
    assert told["signature"].startswith("// tools.shop.org.main.pet.get(")
    assert not any(keyword.iskeyword(line) for line in told["python"].splitlines())
    check = checker(one if isinstance(one, dict) else None, definitions)
    if check is not None:
        assert check({"a": 1}) is None or isinstance(check({"a": 1}), str)
