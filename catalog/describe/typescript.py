"""The TypeScript signature of a tool: short enough to read in a prompt, true to what the call takes and returns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from catalog.describe.cut import LITERALS_SHOWN
from catalog.describe.ir import Array, Both, Field, Literals, Node, Object, Ref, Row, Scalar, Union
from catalog.describe.naming import function_name
from catalog.describe.shape import Shape
from catalog.model import Tool

LINE: Final = 100
HIDDEN_SHOWN: Final = 6

_IDENTIFIER: Final = re.compile(r"\A[A-Za-z_$][A-Za-z0-9_$]*\Z")
_NAMES: Final[Mapping[str, str]] = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
    "bytes": "Uint8Array",
    "unknown": "unknown",
}


def signature(tool: Tool, shape: Shape) -> str:
    """A declaration that a TypeScript parser takes, after a line that says how a script writes the call."""
    result = text(shape.result) if shape.result is not None else "unknown"
    name, arguments = function_name(tool.name), _arguments(shape.given)
    call = f"// {callee(tool.path)}({'args' if arguments else ''})"
    return "\n".join([call, f"declare function {name}({arguments}): Promise<{result}>;", *types(shape)])


def types(shape: Shape) -> list[str]:
    """The named types, one a line, and a line that names those that are not shown."""
    lines = [f"type {name} = {text(node)};" for name, node in shape.named.items()]
    if shape.hidden:
        more = f" and {len(shape.hidden) - HIDDEN_SHOWN} more" if len(shape.hidden) > HIDDEN_SHOWN else ""
        lines.append(f"// not shown: {', '.join(shape.hidden[:HIDDEN_SHOWN])}{more}")
    return lines


def short(shape: Shape, limit: int = 160) -> str | None:
    """The signature on one line without named types, or None where that is longer than `limit`."""
    arguments = "" if shape.given is None else f"args{_optional(shape.given)}: {text(shape.given)}"
    line = f"({arguments}) => Promise<{text(shape.result) if shape.result is not None else 'unknown'}>"
    return line if len(line) <= limit else None


def callee(path: str) -> str:
    """How a script writes the call: `tools.a.b.c.d`, in brackets where a part is not an identifier."""
    return f"tools.{path}" if all(map(_IDENTIFIER.match, path.split("."))) else f"tools[{json.dumps(path)}]"


def _optional(arguments: Node) -> str:
    return "?" if isinstance(arguments, Object) and not any(one.required for one in arguments.fields) else ""


def _arguments(node: Node | None) -> str:
    if node is None:
        return ""
    if isinstance(node, Object) and not node.fields and node.extra is None:
        return "args?: {}"
    line = text(node)
    if isinstance(node, Object) and (len(line) > LINE or any(one.doc for one in node.fields)):
        line = _block(node)
    return f"args{_optional(node)}: {line}"


def _block(node: Object) -> str:
    lines = []
    for one in node.fields:
        doc = f"  // {one.doc}" if one.doc else ""
        lines.append(f"  {_field(one)};{doc}")
    if node.left:
        lines.append(f"  {left_out(node.left)}")
    if node.extra is not None:
        lines.append(f"  [key: string]: {text(node.extra)};")
    return "{\n" + "\n".join(lines) + "\n}"


def left_out(names: tuple[str, ...]) -> str:
    """A comment that names what is not shown."""
    return f"/* {', '.join(map(_safe, names))} */"


def _safe(name: str) -> str:
    """A name within a comment: on its line, and unable to end it."""
    plain = "".join(one if one.isprintable() else " " for one in name[:60])
    return plain.replace("*/", "*_/")


def text(node: Node) -> str:
    """The type on one line."""
    match node:
        case Scalar(kind):
            return _NAMES[kind]
        case Literals(values):
            few = len(values) <= LITERALS_SHOWN
            return " | ".join(map(_literal, values)) if few else _widened(values)
        case Array(item):
            inner = text(item)
            return f"({inner})[]" if " " in inner and not inner.startswith("{") else f"{inner}[]"
        case Row(items):
            return "[" + ", ".join(map(text, items)) + "]"
        case Union(options, left):
            shown = " | ".join(f"({inner})" if " & " in (inner := text(option)) else inner for option in options)
            return f"{shown} | /* {left} more */ unknown" if left else shown
        case Both(parts):
            return " & ".join(f"({inner})" if " | " in (inner := text(part)) else inner for part in parts)
        case Ref(name):
            return name
        case Object(fields, extra, left):
            return _object(fields, extra, left)


def _object(fields: tuple[Field, ...], extra: Node | None, left: tuple[str, ...]) -> str:
    if not fields and not left:
        return "{}" if extra is None else f"Record<string, {text(extra)}>"
    parts = [_field(one) for one in fields]
    if extra is not None:
        parts.append(f"[key: string]: {text(extra)}")
    inner = "; ".join(parts)
    if left:
        inner = f"{inner}; {left_out(left)}" if inner else left_out(left)
    return f"{{ {inner} }}"


def _field(one: Field) -> str:
    name = one.name if _IDENTIFIER.match(one.name) else json.dumps(one.name)
    return f"{name}{'' if one.required else '?'}: {text(one.type)}"


def _literal(value: Any) -> str:
    told = json.dumps(value, ensure_ascii=False)
    return told if told.isprintable() else json.dumps(value)


def _widened(values: tuple[Any, ...]) -> str:
    shown = _safe(" | ".join(_literal(value) for value in values[:4]))
    kind = "string" if all(isinstance(value, str) for value in values) else "unknown"
    return f"{kind} /* {shown} | … {len(values)} values */"
