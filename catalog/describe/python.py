"""The Python signature of a tool, printed from the same types as the TypeScript one."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Final

from catalog.describe.ir import Array, Both, Literals, Node, Object, Ref, Row, Scalar, Shape, Union
from catalog.describe.typescript import MAX_FIELDS, MAX_LITERALS, MAX_TYPES, callee, type_name
from catalog.model import Tool

_NAMES: Final[Mapping[str, str]] = {
    "string": "str",
    "number": "float",
    "integer": "int",
    "boolean": "bool",
    "null": "None",
    "bytes": "bytes",
    "unknown": "Any",
}


def signature(tool: Tool, shape: Shape) -> str:
    """`await tools.<path>(args: Args) -> result` with the typed dictionaries that it needs below."""
    lines: list[str] = []
    shown = "" if shape.given is None else "args: " + _named_or_inline("Args", shape.given, lines)
    returned = "Any" if shape.result is None else _named_or_inline("Result", shape.result, lines)
    lines += [_define(type_name(name), node) for name, node in shape.named.items()]
    kept, room = [], MAX_TYPES
    for line in lines:
        if len(line) <= room:
            kept.append(line)
            room -= len(line)
    if missing := len(lines) - len(kept) + len(shape.hidden):
        kept.append(f"# {missing} more types not shown")
    return "\n".join([f"await {callee(tool.path)}({shown}) -> {returned}", *kept])


def _named_or_inline(name: str, node: Node, lines: list[str]) -> str:
    if isinstance(node, Object) and node.fields:
        lines.append(_define(name, node))
        return name
    return text(node)


def _define(name: str, node: Node) -> str:
    if not isinstance(node, Object) or not node.fields:
        return f"{name} = {text(node)}"
    fields = node.fields[:MAX_FIELDS]
    more = f"  # and {len(node.fields) - MAX_FIELDS} more" if len(node.fields) > MAX_FIELDS else ""
    if any(not one.name.isidentifier() or keyword.iskeyword(one.name) for one in fields):
        inner = ", ".join(f"{one.name!r}: {_slot(one.required, one.type)}" for one in fields)
        return f"{name} = TypedDict({name!r}, {{{inner}}}){more}"
    body = "; ".join(f"{one.name}: {_slot(one.required, one.type)}" for one in fields)
    return f"class {name}(TypedDict): {body}{more}"


def _slot(required: bool, node: Node) -> str:
    return text(node) if required else f"NotRequired[{text(node)}]"


def text(node: Node) -> str:
    """The type as an annotation on one line."""
    match node:
        case Scalar(kind):
            return _NAMES[kind]
        case Literals(values):
            if len(values) > MAX_LITERALS:
                return "str" if all(isinstance(value, str) for value in values) else "Any"
            return f"Literal[{', '.join(map(repr, values))}]"
        case Array(item):
            return f"list[{text(item)}]"
        case Row(items):
            return f"tuple[{', '.join(map(text, items))}]"
        case Union(options):
            return " | ".join(map(text, options))
        case Both(parts):
            return text(parts[0])
        case Ref(name):
            return type_name(name)
        case Object(fields, extra):
            if not fields:
                return f"dict[str, {text(extra)}]" if extra is not None else "dict[str, Never]"
            shown = ", ".join(f"{one.name!r}: {_slot(one.required, one.type)}" for one in fields[:MAX_FIELDS])
            return "{" + shown + "}"
