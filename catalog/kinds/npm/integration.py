"""An npm package as an integration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from bridge.wire.errors import ImportFailed
from catalog.kinds.npm.listing import tools_of
from catalog.kinds.npm.tree import Lock
from catalog.model import Connection, Manifest, Outbound, Tool, ToolSpec, ToolValue
from catalog.origin import PACKAGE, Reach


class Npm:
    """Configuration: `lock`, the text of what the package was resolved to, `listing`, what it said of its tools, and
    `version`, the range or tag that was asked for."""

    kind = "npm"

    def __init__(self, name: str) -> None:
        self.name = name

    def resolve_tools(self, config: Mapping[str, Any]) -> Manifest:
        """Raises ImportFailed for a package without a tool."""
        lock = lock_of(config)
        label = f"{lock.name}@{lock.version}"
        tools, diagnostics = tools_of(config["listing"], label)
        if not tools:
            raise ImportFailed(f"{label} exports no tool: nothing in it has an execute function.")
        return Manifest(tools, title=label, diagnostics=diagnostics, reach=(place(lock.name),))

    async def invoke(self, tool: Tool, args: dict[str, Any], connection: Connection, outbound: Outbound) -> ToolValue:
        answer = await outbound.call_tool(tool.binding["export"], args)
        return ToolValue(answer["value"])

    def destination(self, spec: ToolSpec) -> str:
        """The package's own name of the tool, and the package: any version of the range that was asked for."""
        return f"{spec.binding['export']} {spec.source.rpartition(' of ')[2].rpartition('@')[0]}"

    def told(self, spec: ToolSpec) -> str:
        """A digest of all that the package says of the tool: a change of it awaits review."""
        said = [spec.description, spec.input_schema]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]


def place(package: str) -> Reach:
    """Where the variables of a connection go: into the isolates of this package, and of no other."""
    return Reach(PACKAGE, package, 0)


def lock_of(config: Mapping[str, Any]) -> Lock:
    """What the package of a configuration was resolved to. Raises ValueError when it is not one."""
    return Lock.from_json(str(config["lock"]).encode())
