"""What a package says of its own tools in its package.json: the `tpmjs` field."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

MAX_TOOLS: Final = 1_000
MAX_TEXT: Final = 4_000


class Declared(NamedTuple):
    """A tool that a package declares; whether it exports one of that name is another matter."""

    name: str
    description: str = ""


def declared_tools(package_json: bytes) -> list[Declared]:
    """The tools that are declared; none for a file that cannot be read."""
    try:
        facts: Any = json.loads(package_json.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        return []
    field = facts.get("tpmjs") if isinstance(facts, dict) else None
    tools = field.get("tools") if isinstance(field, dict) else None
    found = []
    for one in tools[:MAX_TOOLS] if isinstance(tools, list) else ():
        name = one.get("name", one.get("exportName")) if isinstance(one, dict) else None
        if isinstance(name, str) and name:
            about = one.get("description")
            found.append(Declared(name[:256], about[:MAX_TEXT] if isinstance(about, str) else ""))
    return found
