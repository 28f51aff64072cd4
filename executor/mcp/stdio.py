"""The MCP door on standard input and output: nothing but the protocol is written there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.stdio import stdio_server

from executor.mcp.caller import Caller
from executor.mcp.server import Door

if TYPE_CHECKING:
    from executor.executor import Executor


async def serve(executor: Executor, *, toolkit: str | None = None, direct: bool = False) -> None:
    """Serve until standard input ends."""
    caller = Caller(principal="mcp", toolkit=toolkit, direct=direct)
    server = Door(executor, lambda _: caller).server()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
