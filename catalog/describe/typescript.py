"""The TypeScript signature of a tool: short enough to read in a prompt, true to what the call takes and returns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from catalog.describe.ir import (
    Array,
    Both,
    Field,
    Literals,
    Node,
    Object,
    Ref,
    Row,
    Scalar,
    Shape,
    Union,
)
from catalog.model import Tool

MAX_TYPES: Final = 1600
"""Characters of named types that a description shows; the names of the others are listed."""
MAX_FIELDS: Final = 40
MAX_LITERALS: Final = 16
LINE: Final = 100

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
    """`tools.<path>(args): Promise<result>` with the named types that it needs below."""
    result = text(shape.result) if shape.result is not None else "unknown"
    head = f"{callee(tool.path)}({_arguments(shape.given)}): Promise<{result}>"
    return "\n".join([head, *_types(shape)])


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
    for one in node.fields[:MAX_FIELDS]:
        doc = f"  // {one.doc}" if one.doc else ""
        lines.append(f"  {_field(one)};{doc}")
    if len(node.fields) > MAX_FIELDS:
        lines.append(f"  // and {len(node.fields) - MAX_FIELDS} more")
    if node.extra is not None:
        lines.append(f"  [key: string]: {text(node.extra)};")
    return "{\n" + "\n".join(lines) + "\n}"


def _types(shape: Shape) -> list[str]:
    lines: list[str] = []
    hidden: list[str] = []
    room = MAX_TYPES
    for name, node in shape.named.items():
        line = f"type {type_name(name)} = {text(node)};"
        if len(line) > room:
            hidden.append(type_name(name))
        else:
            room -= len(line)
            lines.append(line)
    hidden += map(type_name, shape.hidden)
    if hidden:
        more = f" and {len(hidden) - 12} more" if len(hidden) > 12 else ""
        lines.append(f"// not shown: {', '.join(hidden[:12])}{more}")
    return lines


def text(node: Node) -> str:
    """The type on one line."""
    match node:
        case Scalar(kind):
            return _NAMES[kind]
        case Literals(values):
            shown = [_literal(value) for value in values[:MAX_LITERALS]]
            return " | ".join(shown) if len(values) <= MAX_LITERALS else _widened(values)
        case Array(item):
            inner = text(item)
            return f"({inner})[]" if " " in inner and not inner.startswith("{") else f"{inner}[]"
        case Row(items):
            return "[" + ", ".join(map(text, items)) + "]"
        case Union(options):
            return " | ".join(map(text, options))
        case Both(parts):
            return " & ".join(f"({inner})" if " | " in (inner := text(part)) else inner for part in parts)
        case Ref(name):
            return type_name(name)
        case Object(fields, extra):
            return _object(fields, extra)


def _object(fields: tuple[Field, ...], extra: Node | None) -> str:
    if not fields:
        return "{}" if extra is None else f"Record<string, {text(extra)}>"
    parts = [_field(one) for one in fields[:MAX_FIELDS]]
    if extra is not None:
        parts.append(f"[key: string]: {text(extra)}")
    more = f"; /* and {len(fields) - MAX_FIELDS} more */" if len(fields) > MAX_FIELDS else ""
    return "{ " + "; ".join(parts) + more + " }"


def _field(one: Field) -> str:
    name = one.name if _IDENTIFIER.match(one.name) else json.dumps(one.name)
    return f"{name}{'' if one.required else '?'}: {text(one.type)}"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _widened(values: tuple[Any, ...]) -> str:
    shown = " | ".join(_literal(value) for value in values[:4]).replace("*/", "* /")
    kind = "string" if all(isinstance(value, str) for value in values) else "unknown"
    return f"{kind} /* {shown} | … {len(values)} values */"


def type_name(name: str) -> str:
    """A definition's name as an identifier."""
    cleaned = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "Type"
    return cleaned if not cleaned[0].isdigit() else "_" + cleaned
