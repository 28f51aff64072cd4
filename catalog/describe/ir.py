"""JSON Schema as a small tree of types, from which every signature is printed.

One builder serves both directions: what a caller gives leaves out read-only properties, what it gets leaves out
write-only ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from catalog.model import Schema

ScalarKind = Literal["string", "number", "integer", "boolean", "null", "bytes", "unknown"]
Direction = Literal["in", "out"]

MAX_NODES: Final = 6000
"""Parts of schemas that are read for one direction of one tool."""
MAX_DOC: Final = 200
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
    """`extra` is the type of properties that are not named, None where there are none worth telling; `left` names
    those that are not shown, and may end with their number: `+7`."""

    fields: tuple[Field, ...]
    extra: Node | None = None
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Union:
    """`left` counts the options that are not shown."""

    options: tuple[Node, ...]
    left: int = 0


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
    """Builds nodes in one direction. A definition is a Ref by its name; `define` builds what it stands for."""

    definitions: Mapping[str, Schema]
    direction: Direction
    _open: list[str] = field(default_factory=list)
    _spent: int = 0

    def build(self, schema: Any) -> Node:
        """The type of `schema`; what lies beyond MAX_NODES reads as unknown."""
        return self.node(schema, 0)

    def define(self, name: str) -> Node:
        """The type that the definition `name` stands for."""
        self._open.append(name)
        try:
            return self.node(self.definitions[name], 0)
        finally:
            self._open.pop()

    def node(self, schema: Any, depth: int) -> Node:
        self._spent += 1
        if not isinstance(schema, dict) or depth > MAX_DEPTH or self._spent > MAX_NODES:
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
        own = "properties" in rest
        if len(schema["allOf"]) == 1 and not own:
            return self.node(schema["allOf"][0], depth)
        parts = [self._part(part, depth + 1) for part in schema["allOf"]]
        if own:
            parts.append(self.node(rest, depth + 1))
        return both(parts)

    def _part(self, part: Any, depth: int) -> Node:
        """A part of an allOf: what it refers to is merged, unless it is being built already."""
        name = self._name(part["$ref"]) if isinstance(part, dict) and "$ref" in part else None
        if name is None or name in self._open:
            return self.node(part, depth)
        self._open.append(name)
        node = self._part(self.definitions[name], depth)
        self._open.pop()
        return node

    def _name(self, ref: Any) -> str | None:
        name = ref[8:] if isinstance(ref, str) and ref.startswith("#/$defs/") else None
        return name if name is not None and name in self.definitions else None

    def _reference(self, ref: Any, depth: int) -> Node:
        name = self._name(ref)
        if name is None:
            return UNKNOWN
        target = self.definitions[name]
        if name not in self._open and _plain(target):
            self._open.append(name)
            node = self.node(target, depth)
            self._open.pop()
            return node
        return Ref(name)


def _plain(schema: Any) -> bool:
    """Whether a definition reads better in place than by its name."""
    if not isinstance(schema, dict):
        return True
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
    return first_line(text, MAX_DOC) if isinstance(text, str) else ""


def first_line(text: str, limit: int) -> str:
    line = " ".join(text.strip().partition("\n\n")[0].split())
    line = line if line.isprintable() else "".join(one for one in line if one.isprintable())
    if len(line) <= limit:
        return line
    sentence = line.partition(". ")[0]
    return sentence + "." if len(sentence) < limit else line[: limit - 1].rstrip() + "…"
