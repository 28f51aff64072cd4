"""The tools of a small toolkit one by one, for clients that call tools and write no scripts."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from executor.mcp import definitions

if TYPE_CHECKING:
    from executor.scoped import Scoped

MOST: Final = 64
"""Tools that are listed one by one; every conversation of the client pays for each."""
NAME_CHARS: Final = 64
_DESCRIPTION_CHARS: Final = 1000
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


async def paths(scoped: Scoped, toolkit: str | None) -> dict[str, str]:
    """The path of each tool by its name. Raises MCPError where there are too many."""
    page = await scoped.tools(limit=MOST, toolkit=toolkit)
    if page["total"] > MOST:
        raise MCPError(
            types.INVALID_PARAMS,
            f"direct=true lists at most {MOST} tools, and here are {page['total']}: make a toolkit with fewer and use "
            "/mcp/NAME?direct=true, or leave direct out and find tools with search",
        )
    found = [item["path"] for item in page["items"]]
    plain = Counter(_NOT_IN_NAMES.sub("_", path) for path in found)
    return {_name(path, plain): path for path in found}


async def tools(scoped: Scoped, toolkit: str | None) -> list[types.Tool]:
    """The tools, in order of their paths."""
    named = await paths(scoped, toolkit)
    return [_tool(name, await scoped.describe(path, schemas=True, toolkit=toolkit)) for name, path in named.items()]


def _name(path: str, plain: Counter[str]) -> str:
    """A name that every client takes: letters, digits, `_` and `-`, 64 at most; the same for a path every time."""
    name = _NOT_IN_NAMES.sub("_", path)
    if len(name) <= NAME_CHARS and plain[name] == 1:
        return name
    digest = hashlib.sha256(path.encode()).hexdigest()[:8]
    return f"{name[: NAME_CHARS - 9]}_{digest}"


def _tool(name: str, told: dict[str, Any]) -> types.Tool:
    reads = told["side_effect"] == "read"
    asks = " A person is asked before each call." if told["effect"] == "require_approval" else ""
    description = f"{told['description'] or told['path']}"[:_DESCRIPTION_CHARS]
    return types.Tool(
        name=name,
        title=told["path"],
        description=f"{description}{asks}",
        input_schema=_input(told["input_schema"]),
        output_schema=_output(told["output_schema"]),
        annotations=types.ToolAnnotations(
            title=told["path"],
            read_only_hint=reads,
            destructive_hint=not reads,
            idempotent_hint=reads,
            open_world_hint=True,
        ),
    )


def _input(schema: dict[str, Any] | None) -> dict[str, Any]:
    return {**_without_headers(schema or {}), "type": "object"}


def _output(schema: dict[str, Any] | None) -> dict[str, Any]:
    """The value as it is described, or as it is: an API that answers otherwise than its description says is no error
    of the call."""
    if not schema:
        return definitions.output_of_call({})
    described = dict(_without_headers(schema))
    shared = described.pop("$defs", None)
    made = definitions.output_of_call({"anyOf": [described, {}]})
    return made | {"$defs": shared} if shared else made


def _without_headers(schema: Any, *, names: bool = False) -> Any:
    """A schema without `x-mcp-header`: where arguments travel is not for an upstream's description to say."""
    if isinstance(schema, list):
        return [_without_headers(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_headers(part, names=not names and key in ("properties", "$defs", "patternProperties"))
        for key, part in schema.items()
        if names or key != "x-mcp-header"
    }
