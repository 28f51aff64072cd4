"""The MCP door on standard input and output: nothing but the protocol is written there."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from executor.mcp.caller import Caller
from executor.mcp.server import Door

if TYPE_CHECKING:
    from executor.executor import Executor


async def serve(executor: Executor, *, toolkit: str | None = None, direct: bool = False) -> None:
    """Serve until standard input ends, or nobody reads standard output any more."""
    caller = Caller(principal="mcp", toolkit=toolkit, direct=direct)
    server = Door(executor, lambda _: caller).server()
    taken, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
    try:
        async with stdio_server() as (reading, writing), anyio.create_task_group() as tasks:
            tasks.start_soon(_take, reading, taken, writing)
            await server.run(messages, writing, server.create_initialization_options())
            tasks.cancel_scope.cancel()
    except* (BrokenPipeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        # What the client did not wait for has nowhere to go.
        pass


async def _take(
    lines: AsyncIterable[SessionMessage | Exception], taken: MemoryObjectSendStream[Any], answers: Any
) -> None:
    """Pass the messages on; a line that is none is answered, where the protocol's package would be silent."""
    async with taken:
        async for line in lines:
            if isinstance(line, SessionMessage):
                await taken.send(line)
            else:
                await answers.send(SessionMessage(_refusal(line)))


def _refusal(error: Exception) -> types.JSONRPCError:
    readable = isinstance(error, ValidationError) and all(each["type"] != "json_invalid" for each in error.errors())
    told = (
        types.ErrorData(code=types.INVALID_REQUEST, message="this is not a JSON-RPC 2.0 message: one object a line")
        if readable
        else types.ErrorData(code=types.PARSE_ERROR, message="the line is not JSON in UTF-8")
    )
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=told)
