"""GraphQL types as JSON Schema: what a call takes, what it gives back, and what there is to select from."""

from __future__ import annotations

from typing import Any, Final

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLUnionType,
    is_introspection_type,
    is_required_argument,
    is_required_input_field,
)

from catalog.model import Schema

ARGUMENTS_SHOWN: Final = 4
TYPES_SHOWN: Final = 12

_SCALARS: Final[dict[str, Schema]] = {
    "String": {"type": "string"},
    "Int": {"type": "integer"},
    "Float": {"type": "number"},
    "Boolean": {"type": "boolean"},
    "ID": {"type": "string"},
}
_TEXTUAL: Final = frozenset({"DateTime", "Date", "Time", "URI", "URL", "UUID", "ISO8601DateTime", "ISO8601Date"})
"""Custom scalars that are text wherever they are met; any other may be any JSON value."""


class Schemas:
    """The JSON Schemas of one GraphQL schema. Named types are definitions; what is plain stands in place."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._leaves: dict[tuple[str, bool], Schema] = {}
        self.definitions: dict[str, Schema] = {}

    def define(self) -> None:
        """Make the definitions of every type that has members."""
        for name, kind in self._schema.type_map.items():
            if not is_introspection_type(kind) and not isinstance(kind, GraphQLScalarType):
                self.definitions[name] = self._definition(kind)

    def _definition(self, kind: Any) -> Schema:
        told: Schema = {"description": kind.description} if kind.description else {}
        if isinstance(kind, GraphQLEnumType):
            return told | {"enum": list(kind.values)}
        if isinstance(kind, GraphQLInputObjectType):
            return told | self._input_object(kind)
        if isinstance(kind, GraphQLUnionType):
            return told | {"anyOf": [{"$ref": f"#/$defs/{one.name}"} for one in kind.types]}
        return told | self._composite(kind)

    def _input_object(self, kind: GraphQLInputObjectType) -> Schema:
        out: Schema = {
            "type": "object",
            "properties": {name: self.taken(one) for name, one in kind.fields.items()},
            "additionalProperties": False,
        }
        if kind.is_one_of:
            # The oneOf directive: exactly one of the fields, and not null.
            return out | {"minProperties": 1, "maxProperties": 1}
        required = [name for name, one in kind.fields.items() if is_required_input_field(one)]
        return out | {"required": required} if required else out

    def _composite(self, kind: GraphQLObjectType | GraphQLInterfaceType) -> Schema:
        """What can be selected from a type: a field that takes arguments is written as a selection writes it."""
        members = {name + _takes(one): self._member(one) for name, one in kind.fields.items()}
        out: Schema = {"type": "object", "properties": members}
        return out | {"required": list(members)} if members else out

    def _member(self, one: GraphQLField) -> Schema:
        schema = self.given(one.type)
        return schema | {"description": one.description} if one.description else schema

    def taken(self, one: GraphQLArgument | GraphQLInputField) -> Schema:
        """The schema of an argument or an input field."""
        optional = one.default is not None
        kind = one.type
        if optional and isinstance(kind, GraphQLNonNull):
            kind = kind.of_type
            schema = self._taken(kind)
        else:
            schema = self._taken_or_null(kind)
        return schema | {"description": one.description} if one.description else schema

    def _taken_or_null(self, kind: Any) -> Schema:
        return self._taken(kind.of_type) if isinstance(kind, GraphQLNonNull) else nullable(self._taken(kind))

    def _taken(self, kind: Any) -> Schema:
        if isinstance(kind, GraphQLList):
            return {"type": "array", "items": self._taken_or_null(kind.of_type)}
        if isinstance(kind, GraphQLScalarType):
            return self._leaf(kind, True)
        return {"$ref": f"#/$defs/{kind.name}"}

    def given(self, kind: Any) -> Schema:
        """The schema of a whole output type, by reference where it has a name."""
        if isinstance(kind, GraphQLNonNull):
            return self._given(kind.of_type)
        return nullable(self._given(kind))

    def _given(self, kind: Any) -> Schema:
        if isinstance(kind, GraphQLList):
            return {"type": "array", "items": self.given(kind.of_type)}
        if isinstance(kind, GraphQLScalarType):
            return self._leaf(kind, False)
        return {"$ref": f"#/$defs/{kind.name}"}

    def _leaf(self, kind: GraphQLScalarType, taken: bool) -> Schema:
        known = self._leaves.get((kind.name, taken))
        if known is None:
            known = self._leaves[kind.name, taken] = self._scalar(kind, taken)
        return known

    def _scalar(self, kind: GraphQLScalarType, taken: bool) -> Schema:
        if kind.name == "ID" and taken:
            # October 2021, 3.5.5: an ID is given as text or as an integer, and always comes as text.
            return {"type": ["string", "integer"]}
        if kind.name in _SCALARS:
            return _SCALARS[kind.name]
        told = " ".join(filter(None, (f"{kind.name}.", kind.description)))
        if kind.name in _TEXTUAL:
            return {"type": ["string", "number"] if taken else "string", "description": told}
        return {"description": told}

    def typename(self, names: list[str]) -> Schema:
        """The schema of `__typename` where any of the types may stand."""
        return {"enum": names} if 0 < len(names) <= TYPES_SHOWN else {"type": "string"}


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    if "type" in schema and "enum" not in schema:
        kind = schema["type"]
        return schema | {"type": [*(kind if isinstance(kind, list) else [kind]), "null"]}
    if not schema.keys() - {"description"}:
        return schema
    told = {"description": schema["description"]} if "description" in schema else {}
    return {"anyOf": [{key: value for key, value in schema.items() if key != "description"}, {"type": "null"}]} | told


def _takes(field: GraphQLField) -> str:
    """The arguments of a field: all that it needs, with their types, and of the others some names."""
    if not field.args:
        return ""
    needed = required_arguments(field)
    others = [name for name in field.args if name not in needed]
    shown = [f"{name}: {field.args[name].type}" for name in needed] + [f"{name}?" for name in others[:ARGUMENTS_SHOWN]]
    return f"({', '.join(shown)}{', …' if len(others) > ARGUMENTS_SHOWN else ''})"


def required_arguments(field: GraphQLField) -> list[str]:
    return [name for name, one in field.args.items() if is_required_argument(one)]
