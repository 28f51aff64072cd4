"""How a tool reads to those who call it, from one intermediate form of its schemas."""

from __future__ import annotations

from typing import Any, Final

from catalog.describe import python, typescript
from catalog.describe.ir import first_line
from catalog.describe.naming import names_of
from catalog.describe.shape import MAX_DEPTH, Shape, shape_of, type_of
from catalog.model import Tool
from catalog.validate import closed

__all__ = ["MAX_DEPTH", "brief", "describe", "describe_type", "type_names"]

TYPES_NAMED: Final = 20


def describe(tool: Tool, *, effect: str, schemas: bool = False, depth: int = 1) -> dict[str, Any]:
    """What the tool is and how to call it; `effect` is what the policy says about a call of it.

    `depth`, 1 to MAX_DEPTH, says how much of large types is shown. `more` tells how to see what was left out.
    """
    shape = shape_of(tool, depth)
    facts: dict[str, Any] = {
        "path": tool.path,
        "description": summary(tool, 200 if depth == 1 else 1000),
        "signature": typescript.signature(tool, shape),
        "python": python.signature(tool, shape),
        "side_effect": tool.side_effect,
        "effect": effect,
        "connection": f"{tool.integration}.{tool.scope}.{tool.connection}",
    }
    if tool.spec.deprecated:
        facts["deprecated"] = True
    _say_more(facts, shape, tool.path, depth)
    if schemas:
        for name, schema in (("input_schema", tool.input_schema), ("output_schema", tool.output_schema)):
            facts[name] = closed(schema, tool.definitions) if schema is not None else None
        if tool.spec.source:
            facts["source"] = tool.spec.source
    return facts


def describe_type(tool: Tool, name: str, *, depth: int = 2) -> dict[str, Any] | None:
    """One named type of the tool's catalog with the types that it needs, or None where there is none of that name."""
    shape = type_of(tool, name, depth)
    if shape is None:
        return None
    facts: dict[str, Any] = {
        "path": tool.path,
        "type": next(iter(shape.named)),
        "signature": "\n".join(typescript.types(shape)),
        "python": "\n".join(python.types(shape)),
    }
    _say_more(facts, shape, tool.path, depth)
    return facts


def type_names(tool: Tool) -> list[str]:
    """The names of the types that `describe_type` knows."""
    return names_of(tool.definitions).all()


def _say_more(facts: dict[str, Any], shape: Shape, path: str, depth: int) -> None:
    """How to see what was left out: the same path with `#2` to `#4` for more room, or with `#` and a type's name."""
    if shape.whole:
        return
    more: dict[str, Any] = {"deeper": f"{path}#{depth + 1}"} if depth < MAX_DEPTH and "type" not in facts else {}
    if shape.hidden:
        more["types"] = list(shape.hidden[:TYPES_NAMED])
    if more:
        facts["more"] = more


def brief(tool: Tool) -> dict[str, Any]:
    """One line of a search result."""
    facts: dict[str, Any] = {"path": tool.path, "description": summary(tool, 140), "side_effect": tool.side_effect}
    if tool.spec.deprecated:
        facts["deprecated"] = True
    line = typescript.short(shape_of(tool))
    return facts | {"signature": line} if line is not None else facts


def summary(tool: Tool, limit: int) -> str:
    """The title, and the description where it says more."""
    title, description = tool.title.strip(), tool.description.strip()
    if not description or description.startswith(title) or not title:
        return first_line(description or title, limit)
    return first_line(f"{title.rstrip('.')}. {description}", limit)
