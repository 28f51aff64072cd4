"""A server of the newer era, made with the official SDK, on a thread of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from executor.http.server import Server


def made() -> MCPServer:
    server = MCPServer("newer", instructions="Counts.")
    read = ToolAnnotations(read_only_hint=True)

    @server.tool(annotations=read)
    def add(a: int, b: int) -> int:
        """Add two numbers"""
        return a + b

    @server.tool(annotations=read)
    def boom() -> str:
        """Fail"""
        raise ValueError("no luck")

    return server


@contextmanager
def newer_server() -> Iterator[str]:
    """Its URL."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    ready: asyncio.Future[int] = loop.create_future()
    stop = asyncio.Event()

    async def serve() -> None:
        app = made().streamable_http_app()
        async with app.router.lifespan_context(app):
            server = Server(app, host="127.0.0.1", port=0, max_body=2**20)
            await server.start()
            ready.set_result(server.port)
            await stop.wait()
            await server.close()

    async def port() -> int:
        return await ready

    try:
        serving = asyncio.run_coroutine_threadsafe(serve(), loop)
        yield f"http://127.0.0.1:{asyncio.run_coroutine_threadsafe(port(), loop).result(20)}/mcp"
        loop.call_soon_threadsafe(stop.set)
        serving.result(20)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
