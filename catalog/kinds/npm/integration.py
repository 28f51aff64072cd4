"""An npm package as an integration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.wire.errors import ImportFailed
from catalog.kinds.npm.listing import tools_of
from catalog.kinds.npm.tree import Lock
from catalog.model import Connection, Manifest, Outbound, Tool, ToolValue


class Npm:
    """Configuration: `lock`, the text of what the package was resolved to, and `listing`, what it said of its tools."""

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
        return Manifest(tools, title=label, diagnostics=diagnostics)

    async def invoke(self, tool: Tool, args: dict[str, Any], connection: Connection, outbound: Outbound) -> ToolValue:
        answer = await outbound.call_tool(tool.binding["export"], args)
        return ToolValue(answer["value"])


def lock_of(config: Mapping[str, Any]) -> Lock:
    """What the package of a configuration was resolved to. Raises ValueError when it is not one."""
    return Lock.from_json(str(config["lock"]).encode())
