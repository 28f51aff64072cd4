"""The Python signature of a tool, printed from the same types as the TypeScript one."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Final

from catalog.describe.cut import LITERALS_SHOWN
from catalog.describe.ir import Array, Both, Field, Literals, Node, Object, Ref, Row, Scalar, Union
from catalog.describe.naming import function_name
from catalog.describe.shape import Shape
from catalog.describe.typescript import HIDDEN_SHOWN, callee, left_out
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
    """Declarations that Python parses, after a line that says how a script writes the call."""
    lines: list[str] = []
    shown = "" if shape.given is None else "args: " + _named_or_inline("Args", shape.given, lines)
    returned = "Any" if shape.result is None else _named_or_inline("Result", shape.result, lines)
    call = f"# await {callee(tool.path)}({'args' if shown else ''})"
    head = f"async def {function_name(tool.name)}({shown}) -> {returned}: ..."
    return "\n".join([call, head, *lines, *types(shape)])


def types(shape: Shape) -> list[str]:
    """The named types, one a line, and a line that names those that are not shown."""
    lines = [_define(name, node) for name, node in shape.named.items()]
    if shape.hidden:
        more = f" and {len(shape.hidden) - HIDDEN_SHOWN} more" if len(shape.hidden) > HIDDEN_SHOWN else ""
        lines.append(f"# not shown: {', '.join(shape.hidden[:HIDDEN_SHOWN])}{more}")
    return lines


def _named_or_inline(name: str, node: Node, lines: list[str]) -> str:
    if isinstance(node, Object) and node.fields:
        lines.append(_define(name, node))
        return name
    return text(node)


def _define(name: str, node: Node) -> str:
    if not isinstance(node, Object) or not node.fields:
        return f"{name} = {text(node)}"
    more = f"  # {left_out(node.left)[3:-3]}" if node.left else ""
    if all(_is_name(one) for one in node.fields):
        body = "; ".join(f"{one.name}: {_slot(one.required, one.type)}" for one in node.fields)
        return f"class {name}(TypedDict): {body}{more}"
    inner = ", ".join(f"{one.name!r}: {_slot(one.required, one.type)}" for one in node.fields)
    return f"{name} = TypedDict({name!r}, {{{inner}}}){more}"


def _is_name(one: Field) -> bool:
    """Whether the field can be written in a class: an identifier that Python neither folds nor mangles."""
    name = one.name
    return name.isidentifier() and name.isascii() and not keyword.iskeyword(name) and not name.startswith("__")


def _slot(required: bool, node: Node) -> str:
    return text(node) if required else f"NotRequired[{text(node)}]"


def text(node: Node) -> str:
    """The type as an annotation on one line."""
    match node:
        case Scalar(kind):
            return _NAMES[kind]
        case Literals(values):
            if len(values) > LITERALS_SHOWN:
                return "str" if all(isinstance(value, str) for value in values) else "Any"
            return f"Literal[{', '.join(map(repr, values))}]"
        case Array(item):
            return f"list[{text(item)}]"
        case Row(items):
            return f"tuple[{', '.join(map(text, items))}]"
        case Union(options, left):
            return " | ".join([*map(text, options), *(["Any"] if left else [])])
        case Both(parts):
            return text(parts[0])
        case Ref(name):
            return name
        case Object(fields, extra, left):
            if left and not fields:
                return "dict[str, Any]"
            if not fields:
                return f"dict[str, {text(extra)}]" if extra is not None else "dict[str, Never]"
            return "{" + ", ".join(f"{one.name!r}: {_slot(one.required, one.type)}" for one in fields) + "}"
