"""The root fields of a schema, each as a tool with the operation that a call of it sends."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from graphql import GraphQLField, GraphQLObjectType, GraphQLSchema, get_named_type

from catalog import address
from catalog.kinds.graphql import reader
from catalog.kinds.graphql.schemas import Schemas
from catalog.kinds.graphql.selections import Selector
from catalog.model import Diagnostic, Schema, SideEffect, ToolSpec

MAX_TOOLS: Final = 5000
ANY: Final = "graphql"
"""The tool that takes a whole document."""
EFFECTS: Final[dict[str, SideEffect]] = {"query": "read", "mutation": "write"}

_AWKWARD: Final = frozenset({"then", "constructor", "prototype", "toJSON"})
"""Names that JavaScript gives a meaning of its own."""


class Importer:
    """Reads one schema into tools, definitions and diagnostics."""

    def __init__(self, schema: GraphQLSchema, url: str, diagnostics: list[Diagnostic]) -> None:
        self._schema = schema
        self._url = url
        self.diagnostics = diagnostics
        self.schemas = Schemas(schema)
        self._selector = Selector(schema, self.schemas)

    def tools(self, arbitrary: bool) -> Iterator[ToolSpec]:
        self.schemas.define()
        count = 0
        for operation, root in (("query", self._schema.query_type), ("mutation", self._schema.mutation_type)):
            taken: set[str] = set()
            for field, facts in root.fields.items() if root is not None else ():
                name = f"{operation}.{_named(field, taken)}"
                if count == MAX_TOOLS or not address.is_tool(name):
                    why = (
                        f"there are more than {MAX_TOOLS}" if count == MAX_TOOLS else "it has no name that can be used"
                    )
                    self.diagnostics.append(Diagnostic(f"#{root.name}.{field}" if root else "#", f"left out: {why}"))
                    continue
                count += 1
                yield self._tool(operation, name, field, facts)
        self._left_out(self._schema.subscription_type)
        if arbitrary and count:
            yield self._any()

    def _left_out(self, subscriptions: GraphQLObjectType | None) -> None:
        if subscriptions is not None and subscriptions.fields:
            names = list(subscriptions.fields)
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            told = f"left out: subscriptions are not called ({', '.join(names[:5])}{more})"
            self.diagnostics.append(Diagnostic(f"#{subscriptions.name}", told))

    def _tool(self, operation: str, name: str, field: str, facts: GraphQLField) -> ToolSpec:
        returned = get_named_type(facts.type).name
        selected, output = self._selector.default(facts)
        properties = {arg: self.schemas.taken(one) for arg, one in facts.args.items()}
        required = [arg for arg, one in facts.args.items() if one.default is None and str(one.type).endswith("!")]
        key = ""
        if selected:
            key = "select"
            while key in properties:
                key += "_"
            properties[key] = _select(returned)
        schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return ToolSpec(
            name=name,
            description=facts.description or "",
            input_schema=schema | {"required": required} if required else schema,
            output_schema=output,
            side_effect=EFFECTS[operation],
            words=f"{operation} {returned}",
            binding={
                "url": self._url,
                "operation": operation,
                "field": field,
                "arguments": {arg: str(one.type) for arg, one in facts.args.items()},
                "type": returned,
                "select": key,
                "selection": selected,
            },
            deprecated=facts.deprecation_reason is not None,
            source=f"{operation} {field}",
        )

    def _any(self) -> ToolSpec:
        return ToolSpec(
            name=ANY,
            title="Run a GraphQL document",
            description="One query or mutation as you write it, checked against the schema before it is sent. It may "
            "do what the tools of its root fields may do. The value is the answer's data.",
            input_schema={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "A document such as query($n: Int) { … }"},
                    "variables": {"type": ["object", "null"], "description": "By name, without the $"},
                    "operationName": {
                        "type": ["string", "null"],
                        "description": "Which operation, where there are several",
                    },
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            output_schema={"type": "object", "additionalProperties": {}},
            side_effect="unknown",
            words="query mutation document introspection",
            binding={"url": self._url, "operation": "any"},
            source="any operation",
        )


def _select(returned: str) -> Schema:
    told = f"GraphQL selection on {returned}. Without it a default is returned; #{returned} behind the path shows all."
    return {"type": ["string", "null"], "description": told}


def _named(field: str, taken: set[str]) -> str:
    name = field + "_" if field in _AWKWARD else field
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def kept(data: Mapping[str, Any]) -> str:
    """What checking documents needs of a description, small enough to keep in memory."""
    packed = zlib.compress(json.dumps(reader.bare(data), separators=(",", ":")).encode(), 6)
    return base64.b64encode(packed).decode("ascii")


def opened(text: str) -> GraphQLSchema:
    """The schema of `kept`. Raises ImportFailed, ValueError or zlib.error for what is no such text."""
    return reader.built(json.loads(zlib.decompress(base64.b64decode(text))))
