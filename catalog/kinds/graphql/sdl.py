"""A schema in the schema definition language as the data that an introspection would have given.

Nothing is judged here: published schemas define fields twice and name types that they lack, and what cannot be used is
left out, and told, by `reader` alike for both forms.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from graphql import (
    DirectiveDefinitionNode,
    DocumentNode,
    GraphQLSyntaxError,
    ListTypeNode,
    NamedTypeNode,
    NonNullTypeNode,
    SchemaDefinitionNode,
    SchemaExtensionNode,
    TypeNode,
    parse,
    print_ast,
)

from bridge.wire.errors import ImportFailed

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_TOKENS: Final = 1_500_000
MAX_WRAPPERS: Final = 8
MAX_DEFAULT: Final = 200

_KINDS: Final = {
    "scalar": "SCALAR",
    "object": "OBJECT",
    "interface": "INTERFACE",
    "union": "UNION",
    "enum": "ENUM",
    "input_object": "INPUT_OBJECT",
}
_ROOTS: Final = {"query": "Query", "mutation": "Mutation", "subscription": "Subscription"}


def introspected(text: str) -> dict[str, Any]:
    """`{"__schema": …}` for the document. Raises ImportFailed where it is not one, naming line and column."""
    if len(text) > MAX_BYTES:
        raise ImportFailed(f"The schema is longer than {MAX_BYTES // 1024 // 1024} MiB.")
    try:
        document = parse(text, no_location=True, max_tokens=MAX_TOKENS)
    except GraphQLSyntaxError as e:
        at = f" at line {e.locations[0].line} column {e.locations[0].column}" if e.locations else ""
        raise ImportFailed(
            f"The document is neither introspection JSON nor a GraphQL schema: {e.message[:200]}{at}."
        ) from None
    except RecursionError:
        raise ImportFailed("The schema is nested too deeply to be read.") from None
    return {"__schema": _schema(document)}


def _schema(document: DocumentNode) -> dict[str, Any]:
    types: dict[str, dict[str, Any]] = {}
    directives: list[dict[str, Any]] = []
    roots: dict[str, str] = {}
    title = ""
    declared = False
    for node in document.definitions:
        if isinstance(node, (SchemaDefinitionNode, SchemaExtensionNode)):
            declared = declared or isinstance(node, SchemaDefinitionNode)
            roots |= {one.operation.value: one.type.name.value for one in node.operation_types or ()}
            title = title or _text(node)
            continue
        if isinstance(node, DirectiveDefinitionNode):
            directives.append(_directive(node))
            continue
        kind = _KINDS.get(node.kind.removesuffix("_type_definition").removesuffix("_type_extension"))
        kind = kind or ("SCALAR" if node.kind.startswith("scalar") else None)
        if kind is not None:
            _merge(types, kind, node)
    if not declared:
        roots = {word: name for word, name in _ROOTS.items() if name in types} | roots
    return {
        "description": title,
        **{f"{word}Type": {"name": roots[word]} if word in roots else None for word in _ROOTS},
        "types": list(types.values()),
        "directives": directives,
    }


def _merge(types: dict[str, dict[str, Any]], kind: str, node: Any) -> None:
    """Add a definition, or an extension to what it extends."""
    name = node.name.value
    facts = types.setdefault(name, {"kind": kind, "name": name, "description": _text(node)})
    if kind in ("OBJECT", "INTERFACE"):
        facts.setdefault("fields", []).extend(map(_field, node.fields or ()))
        facts.setdefault("interfaces", []).extend({"name": one.name.value} for one in node.interfaces or ())
    elif kind == "INPUT_OBJECT":
        facts.setdefault("inputFields", []).extend(map(_value, node.fields or ()))
        facts["isOneOf"] = facts.get("isOneOf") is True or _has(node, "oneOf")
    elif kind == "ENUM":
        facts.setdefault("enumValues", []).extend(
            {"name": one.name.value, "isDeprecated": _has(one, "deprecated")} for one in node.values or ()
        )
    elif kind == "UNION":
        facts.setdefault("possibleTypes", []).extend({"name": one.name.value} for one in node.types or ())


def _directive(node: DirectiveDefinitionNode) -> dict[str, Any]:
    return {
        "name": node.name.value,
        "args": list(map(_value, node.arguments or ())),
        "locations": [one.value for one in node.locations],
        "isRepeatable": node.repeatable,
    }


def _field(node: Any) -> dict[str, Any]:
    return {
        "name": node.name.value,
        "description": _text(node),
        "args": list(map(_value, node.arguments or ())),
        "type": _type(node.type),
        "isDeprecated": _has(node, "deprecated"),
    }


def _value(node: Any) -> dict[str, Any]:
    default = node.default_value
    return {
        "name": node.name.value,
        "description": _text(node),
        "type": _type(node.type),
        "defaultValue": None if default is None else print_ast(default)[:MAX_DEFAULT],
    }


def _type(node: TypeNode) -> dict[str, Any] | None:
    wrappers = []
    while not isinstance(node, NamedTypeNode):
        wrappers.append("NON_NULL" if isinstance(node, NonNullTypeNode) else "LIST")
        if not isinstance(node, (NonNullTypeNode, ListTypeNode)) or len(wrappers) > MAX_WRAPPERS:
            return None
        node = node.type
    reference: dict[str, Any] = {"name": node.name.value}
    for wrapper in reversed(wrappers):
        reference = {"kind": wrapper, "ofType": reference}
    return reference


def _text(node: Any) -> str:
    return node.description.value if getattr(node, "description", None) is not None else ""


def _has(node: Any, directive: str) -> bool:
    directives: Iterable[Any] = node.directives or ()
    return any(one.name.value == directive for one in directives)
