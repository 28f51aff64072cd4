"""JSON Schema as a small tree of types, from which every signature is printed.

One builder serves both directions: what a caller gives leaves out read-only properties, what it gets leaves out
write-only ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from catalog.model import Schema, Tool

ScalarKind = Literal["string", "number", "integer", "boolean", "null", "bytes", "unknown"]
Direction = Literal["in", "out"]

MAX_NAMED: Final = 24
"""Named types that are built for one direction; what lies behind them is only named."""
MAX_DEPTH: Final = 12
"""Inline nesting that is still shown; anything deeper reads as unknown."""
_SCALARS: Final[Mapping[str, ScalarKind]] = {
    "string": "string",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class Scalar:
    kind: ScalarKind


@dataclass(frozen=True, slots=True)
class Literals:
    """One of these JSON values."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Array:
    item: Node


@dataclass(frozen=True, slots=True)
class Row:
    """An array of fixed positions."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Node
    required: bool
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Object:
    """`extra` is the type of properties that are not named, None where there are none worth telling."""

    fields: tuple[Field, ...]
    extra: Node | None = None


@dataclass(frozen=True, slots=True)
class Union:
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """All of these at once."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """A named type."""

    name: str


Node = Scalar | Literals | Array | Row | Object | Union | Both | Ref

UNKNOWN: Final = Scalar("unknown")


@dataclass(slots=True)
class Builder:
    """Builds nodes; the named types that they refer to are collected in `named`, in order of need.

    The types in `renamed` are called `<name>Input`, because the other direction means something else by their name.
    """

    definitions: Mapping[str, Schema]
    direction: Direction
    renamed: frozenset[str] = frozenset()
    named: dict[str, Node] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _waiting: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def build(self, schema: Any) -> Node:
        """The type of `schema`; types that it needs by name are in `named` afterwards."""
        node = self.node(schema, 0)
        while self._waiting and len(self.named) < MAX_NAMED:
            name = self._waiting.pop(0)
            self.named[self._shown(name)] = self.node(self.definitions[name], 0)
        return node

    def node(self, schema: Any, depth: int) -> Node:
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return UNKNOWN
        if "$ref" in schema:
            return self._reference(schema["$ref"], depth)
        if "const" in schema:
            return Literals((schema["const"],))
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return Literals(tuple(schema["enum"]))
        for key in ("oneOf", "anyOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                return self._choice(schema, key, depth)
        if isinstance(schema.get("allOf"), list) and schema["allOf"]:
            return self._all(schema, depth)
        kind = schema.get("type")
        if isinstance(kind, list):
            return union([self.node(schema | {"type": one}, depth) for one in kind])
        return self._typed(kind, schema, depth)

    def _typed(self, kind: Any, schema: Schema, depth: int) -> Node:
        if kind == "array" or (kind is None and "items" in schema):
            if isinstance(schema.get("prefixItems"), list):
                return Row(tuple(self.node(part, depth + 1) for part in schema["prefixItems"]))
            return Array(self.node(schema.get("items"), depth + 1))
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, depth)
        if kind == "string" and schema.get("format") == "binary":
            return Scalar("bytes")
        return Scalar(_SCALARS[kind]) if isinstance(kind, str) and kind in _SCALARS else UNKNOWN

    def _object(self, schema: Schema, depth: int) -> Object:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        required = set(map(str, required)) if isinstance(required, list) else set()
        hidden = "readOnly" if self.direction == "in" else "writeOnly"
        fields = tuple(
            Field(str(name), self.node(part, depth + 1), name in required, doc_of(part))
            for name, part in properties.items()
            if not (isinstance(part, dict) and part.get(hidden) is True)
        )
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            return Object(fields, self.node(extra, depth + 1))
        return Object(fields, UNKNOWN if extra is not False and not fields else None)

    def _choice(self, schema: Schema, key: str, depth: int) -> Node:
        rest = {name: value for name, value in schema.items() if name != key}
        choice = union([self.node(_inherit(schema, part), depth + 1) for part in schema[key]])
        if "properties" in rest or "allOf" in rest:
            shared = self.node(rest, depth + 1)
            return choice if choice == UNKNOWN or shared == choice else both([shared, choice])
        return choice

    def _all(self, schema: Schema, depth: int) -> Node:
        rest = {name: value for name, value in schema.items() if name != "allOf"}
        parts = [self.node(part, depth + 1) for part in schema["allOf"]]
        if "properties" in rest:
            parts.append(self.node(rest, depth + 1))
        return both(parts)

    def _reference(self, ref: Any, depth: int) -> Node:
        name = ref[8:] if isinstance(ref, str) and ref.startswith("#/$defs/") else None
        target = self.definitions.get(name) if name is not None else None
        if name is None or target is None:
            return UNKNOWN
        if name not in self._open and _plain(target):
            self._open.append(name)
            node = self.node(target, depth)
            self._open.pop()
            return node
        if name not in self._seen:
            self._seen.add(name)
            self._waiting.append(name)
        return Ref(self._shown(name))

    @property
    def hidden(self) -> list[str]:
        """Types that are referred to and were not built."""
        return [self._shown(name) for name in self._waiting]

    def _shown(self, name: str) -> str:
        return name + "Input" if name in self.renamed else name


@dataclass(frozen=True, slots=True)
class Shape:
    """What a tool takes and returns: None where nothing is declared. `named` are the types that both refer to,
    `hidden` the names of those that were too many to follow."""

    given: Node | None
    result: Node | None
    named: Mapping[str, Node]
    hidden: tuple[str, ...] = ()


def shape_of(tool: Tool) -> Shape:
    got = Builder(tool.definitions, "out")
    result = got.build(tool.output_schema) if tool.output_schema is not None else None
    given = Builder(tool.definitions, "in")
    arguments = given.build(tool.input_schema) if tool.input_schema is not None else None
    twofold = frozenset(name for name, node in given.named.items() if got.named.get(name, node) != node)
    if twofold:
        given = Builder(tool.definitions, "in", twofold)
        arguments = given.build(tool.input_schema)
    named = given.named | got.named
    hidden = dict.fromkeys(name for name in given.hidden + got.hidden if name not in named)
    return Shape(arguments, result, named, tuple(hidden))


def _plain(schema: Schema) -> bool:
    """Whether a definition reads better in place than by its name."""
    if "$ref" in schema:
        return True
    if schema.get("enum") or "const" in schema:
        return len(schema.get("enum") or ()) <= 12
    return isinstance(schema.get("type"), str) and schema["type"] in _SCALARS


def _inherit(schema: Schema, part: Any) -> Any:
    """A branch without a type of its own has the type of the schema around it."""
    if isinstance(part, dict) and not part.keys() & {"type", "$ref", "enum", "const", "oneOf", "anyOf", "allOf"}:
        kept = {key: schema[key] for key in ("type", "items", "properties") if key in schema}
        return kept | part
    return part


def union(options: list[Node]) -> Node:
    flat: dict[Node, None] = {}
    for option in options:
        for one in option.options if isinstance(option, Union) else (option,):
            flat[_hashable(one)] = None
    if UNKNOWN in flat or not flat:
        return UNKNOWN
    return next(iter(flat)) if len(flat) == 1 else Union(tuple(flat))


def both(parts: list[Node]) -> Node:
    """Objects merge into one; an unknown part says nothing."""
    fields: dict[str, Field] = {}
    extra: Node | None = None
    others: list[Node] = []
    for part in parts:
        if isinstance(part, Object):
            fields |= {one.name: one for one in part.fields}
            extra = extra or (part.extra if part.fields or part.extra != UNKNOWN else None)
        elif part != UNKNOWN and part not in others:
            others.append(part)
    if fields or extra is not None:
        others.append(Object(tuple(fields.values()), extra))
    if not others:
        return UNKNOWN
    return others[0] if len(others) == 1 else Both(tuple(others))


def _hashable(node: Node) -> Node:
    """Literals may hold unhashable JSON; such a node reads as unknown."""
    try:
        hash(node)
    except TypeError:
        return UNKNOWN
    return node


def doc_of(schema: Any) -> str:
    """The first line of a schema's description."""
    text = schema.get("description") if isinstance(schema, dict) else None
    return first_line(text) if isinstance(text, str) else ""


def first_line(text: str, limit: int = 90) -> str:
    line = " ".join(text.strip().partition("\n\n")[0].split())
    if len(line) <= limit:
        return line
    sentence = line.partition(". ")[0]
    return sentence + "." if len(sentence) < limit else line[: limit - 1].rstrip() + "…"
