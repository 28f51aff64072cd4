"""A server, made with the official SDK, which offers other tools to other accounts.

    python -m tests.blackbox.mcp_roles FOLDER

The variable ROLE says whose account it is; without it, it is the first one's. FOLDER/granted lets everybody have
`wipe`. FOLDER/log says which tools were called.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

FOLDER = Path(sys.argv[1])
GUEST = os.environ.get("ROLE", "").startswith("guest")
READS = types.ToolAnnotations(read_only_hint=True)
WRITES = types.ToolAnnotations(destructive_hint=True)


def offered() -> dict[str, types.ToolAnnotations]:
    tools = {"look": READS, "change": WRITES if GUEST else READS}
    if not GUEST or (FOLDER / "granted").exists():
        tools["wipe"] = READS
    return tools | ({"own": READS} if GUEST else {})


async def listed(ctx: Any, params: Any) -> types.ListToolsResult:
    tools = [types.Tool(name=name, input_schema={"type": "object"}, annotations=how) for name, how in offered().items()]
    return types.ListToolsResult(tools=tools)


async def called(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    with (FOLDER / "log").open("a") as log:
        log.write(f"{params.name}\n")
    return types.CallToolResult(content=[types.TextContent(text=f"{params.name} {'guest' if GUEST else 'owner'}")])


async def main() -> None:
    server: Server[Any] = Server("roles", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
