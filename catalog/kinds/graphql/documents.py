"""Documents that callers write: read, measured and checked against the schema before anything leaves.

What is sent is never the caller's text but what was read from it, printed: no comment, no second operation and no odd
spelling can mean one thing here and another thing to the server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLSyntaxError,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    get_variable_values,
    parse,
    print_ast,
    validate,
)
from graphql.language import TokenKind

from bridge.wire.errors import ToolError
from catalog.kinds.graphql.limits import MAX_ROOTS, MAX_TOKENS, Meter, TooMuch, scan, syntax

MAX_ERRORS: Final = 5
NAMES_SHOWN: Final = 60
NAMES_COMPARED: Final = 1000

_FIELD: Final = re.compile(r"Cannot query field '(\w+)' on type '(\w+)'")
_ARGUMENT: Final = re.compile(r"Unknown argument '(\w+)' on field '(\w+)\.(\w+)'")


class Asked(NamedTuple):
    """What an arbitrary document asks for: the kind of its operation, its root fields, and what is sent for it.

    `text` is the operation alone, with the fragments that it uses; `name` is the operation's, None without one.
    """

    kind: str
    roots: tuple[str, ...]
    text: str
    name: str | None


def refused(argument: str, why: str, hint: str | None = None) -> ToolError:
    end = "" if why.endswith("?") else "."
    return ToolError("invalid_arguments", f"{argument}: {why}{end}", hint=hint, details={"argument": argument})


def selection(schema: GraphQLSchema, head: str, key: str, text: str, kind: str) -> str:
    """The selection set that `text` is, as it is sent. `head` is the operation up to it, whose field returns `kind`.

    Raises ToolError(invalid_arguments): what is wrong, where, and what may be selected instead.
    """
    hint = f"It is a selection set on {kind}, such as {{ __typename }}, with or without the outer braces."
    try:
        bare = scan(text) is not TokenKind.BRACE_L
        # The brace stands on a line of its own, where no comment can swallow it.
        parsed = parse("{" + text + "\n}" if bare else text, max_tokens=MAX_TOKENS + 2)
        selected = _only_selection(parsed)
        Meter().measure(selected)
    except TooMuch as e:
        raise refused(key, str(e), hint) from None
    except GraphQLSyntaxError as e:
        raise refused(key, f"it cannot be read: {syntax(e)}", hint) from None
    except RecursionError:
        raise refused(key, "it is nested too deeply", hint) from None
    printed = print_ast(selected)
    _check(schema, parse(head + printed + " }"), key, hint)
    return printed


def _only_selection(document: DocumentNode) -> SelectionSetNode:
    """Raises TooMuch for a document with anything but one bare selection set in it."""
    first = document.definitions[0]
    if (
        len(document.definitions) != 1
        or not isinstance(first, OperationDefinitionNode)
        or first.operation is not OperationType.QUERY
        or first.name is not None
        or first.variable_definitions
        or first.directives
    ):
        raise TooMuch("it is more than one selection set")
    return first.selection_set


def asked(text: str, operation_name: str | None) -> Asked:
    """What the document asks for, found in what was parsed and never in the text. It is not checked against a schema.

    Raises ToolError(invalid_arguments).
    """
    try:
        scan(text)
        document = parse(text, max_tokens=MAX_TOKENS)
        operation, fragments = _chosen(document, operation_name)
        Meter(fragments).measure(operation.selection_set)
    except TooMuch as e:
        raise refused("query", str(e)) from None
    except GraphQLSyntaxError as e:
        raise refused("query", f"it cannot be read: {syntax(e)}") from None
    except RecursionError:
        raise refused("query", "it is nested too deeply") from None
    if operation.operation is OperationType.SUBSCRIPTION:
        raise refused("query", "a subscription is answered for as long as it lasts, and a call is answered once")
    roots = _roots(operation.selection_set, fragments)
    if len(roots) > MAX_ROOTS:
        raise refused("query", f"it asks for {len(roots)} root fields; at most {MAX_ROOTS} go in one call")
    used = _used(operation, fragments)
    kept = DocumentNode(definitions=(operation, *(fragments[name] for name in used)))
    name = operation.name.value if operation.name is not None else None
    return Asked(operation.operation.value, tuple(dict.fromkeys(roots)), print_ast(kept), name)


def _chosen(
    document: DocumentNode, name: str | None
) -> tuple[OperationDefinitionNode, dict[str, FragmentDefinitionNode]]:
    """The operation that is meant, and every fragment. Raises ToolError, TooMuch."""
    fragments: dict[str, FragmentDefinitionNode] = {}
    operations = []
    for one in document.definitions:
        if isinstance(one, FragmentDefinitionNode):
            if one.name.value in fragments:
                raise TooMuch(f"the fragment {one.name.value[:80]} is defined twice")
            fragments[one.name.value] = one
        elif isinstance(one, OperationDefinitionNode):
            operations.append(one)
        else:
            raise TooMuch("it holds a definition that is neither an operation nor a fragment")
    names = [one.name.value if one.name is not None else None for one in operations]
    if not operations:
        raise TooMuch("it holds no operation")
    if name is None and len(operations) > 1:
        told = ", ".join((one or "one without a name")[:80] for one in names[:10])
        raise refused("operationName", f"the document has {len(operations)} operations: say which, of {told}")
    if name is None:
        return operations[0], fragments
    if names.count(name) != 1:
        raise refused("operationName", f"the document has {names.count(name)} operations called {name[:80]!r}")
    return operations[names.index(name)], fragments


def _roots(selected: SelectionSetNode, fragments: Mapping[str, FragmentDefinitionNode]) -> list[str]:
    """The names of the root fields, by whatever aliases, within whatever fragments, under whatever conditions."""
    found: list[str] = []
    for one in selected.selections:
        if isinstance(one, FieldNode):
            found.append(one.name.value)
        elif isinstance(one, InlineFragmentNode):
            found += _roots(one.selection_set, fragments)
        elif isinstance(one, FragmentSpreadNode) and one.name.value in fragments:
            found += _roots(fragments[one.name.value].selection_set, fragments)
    return found


def _used(operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]) -> list[str]:
    """The fragments that the operation spreads, directly or not."""
    used: dict[str, None] = {}
    waiting: list[SelectionSetNode] = [operation.selection_set]
    while waiting:
        for one in waiting.pop().selections:
            if isinstance(one, FragmentSpreadNode):
                name = one.name.value
                if name in fragments and name not in used:
                    used[name] = None
                    waiting.append(fragments[name].selection_set)
            elif isinstance(one, (FieldNode, InlineFragmentNode)) and one.selection_set is not None:
                waiting.append(one.selection_set)
    return list(used)


def check(schema: GraphQLSchema, document: Asked, variables: Mapping[str, Any]) -> None:
    """Check the document and its variables against the schema. Raises ToolError(invalid_arguments)."""
    parsed = parse(document.text)
    _check(schema, parsed, "query", None)
    operation = parsed.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    defined = operation.variable_definitions or ()
    names = {one.variable.name.value for one in defined}
    if strange := [name for name in variables if name not in names]:
        raise refused("variables", f"the operation declares no variable {strange[0][:80]!r}")
    found = get_variable_values(schema, tuple(defined), dict(variables), MAX_ERRORS, hide_suggestions=True)
    if isinstance(found, list) and found:
        raise refused("variables", "; ".join(one.message.rstrip(".")[:300] for one in found[:MAX_ERRORS]))


def _check(schema: GraphQLSchema, document: DocumentNode, argument: str, hint: str | None) -> None:
    try:
        errors: list[GraphQLError] = validate(schema, document, max_errors=MAX_ERRORS, hide_suggestions=True)
    except RecursionError:
        raise refused(argument, "it is nested too deeply", hint) from None
    except GraphQLError as e:
        errors = [e]
    told = [one.message.rstrip(".")[:300] for one in errors if not one.message.startswith("Too many validation")]
    if told:
        raise refused(argument, "; ".join(told[:MAX_ERRORS]), _instead(schema, told) or hint)


def _instead(schema: GraphQLSchema, told: list[str]) -> str | None:
    """What there is, where a field or an argument was not found. (The library's own suggestions measure every name of
    a schema, which takes seconds for a large one.)"""
    for one in told:
        if (missed := _FIELD.match(one)) is not None:
            name, (kind, members) = missed[1], (missed[2], _members(schema, missed[2]))
            return _known(f"{kind} has", name, list(members))
        if (missed := _ARGUMENT.match(one)) is not None:
            name, kind, field = missed.groups()
            found = _members(schema, kind).get(field)
            return _known(f"{field} takes", name, list(found.args)) if found is not None else None
    return None


def _members(schema: GraphQLSchema, name: str) -> Mapping[str, GraphQLField]:
    kind = schema.type_map.get(name)
    return kind.fields if isinstance(kind, (GraphQLObjectType, GraphQLInterfaceType)) else {}


def _known(what: str, name: str, names: list[str]) -> str | None:
    if not names:
        return None
    near = get_close_matches(name[:80], names[:NAMES_COMPARED], n=1)
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    guess = f"Did you mean {near[0]}? " if near else ""
    return f"{guess}{what} {', '.join(names[:NAMES_SHOWN])}{more}."
