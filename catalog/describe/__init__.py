"""How a tool reads to those who call it, from one intermediate form of its schemas."""

from __future__ import annotations

from typing import Any

from catalog.describe import python, typescript
from catalog.describe.ir import first_line, shape_of
from catalog.model import Tool
from catalog.validate import closed

__all__ = ["brief", "describe"]


def describe(tool: Tool, *, effect: str, schemas: bool = False) -> dict[str, Any]:
    """What the tool is and how to call it; `effect` is what the policy says about a call of it."""
    shape = shape_of(tool)
    facts: dict[str, Any] = {
        "path": tool.path,
        "description": summary(tool, 400),
        "signature": typescript.signature(tool, shape),
        "python": python.signature(tool, shape),
        "side_effect": tool.side_effect,
        "effect": effect,
    }
    if schemas:
        for name, schema in (("input_schema", tool.input_schema), ("output_schema", tool.output_schema)):
            facts[name] = closed(schema, tool.definitions) if schema is not None else None
    return facts


def brief(tool: Tool) -> dict[str, Any]:
    """One line of a search result."""
    facts = {"path": tool.path, "description": summary(tool, 140), "side_effect": tool.side_effect}
    line = typescript.short(shape_of(tool))
    return facts | {"signature": line} if line is not None else facts


def summary(tool: Tool, limit: int) -> str:
    """The title, and the description where it says more."""
    title, description = tool.title.strip(), tool.description.strip()
    if not description or description.startswith(title) or not title:
        return first_line(description or title, limit)
    return first_line(f"{title.rstrip('.')}. {description}", limit)
