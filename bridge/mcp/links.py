"""The two ways to a server, as the session takes them: a program's standard streams, and requests over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from bridge.mcp.endpoint import Program, environment
from bridge.mcp.stdio import Stdio
from bridge.secrets.ports import Secret
from bridge.wire.errors import ToolError

if TYPE_CHECKING:
    from bridge.outbound import Passage


class Local:
    """A program. `secrets` gives the variables of its connection, and `Passage.revealed` with them."""

    local = True

    def __init__(
        self,
        program: Program,
        secrets: Callable[[], Awaitable[tuple[dict[str, str], dict[str, Secret]]]],
        limit: int,
        label: str,
    ) -> None:
        self._program = program
        self._secrets = secrets
        self._limit = limit
        self._label = label
        self._run: Stdio | None = None
        self.revealed: dict[str, Secret] = {}

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Raises ToolError when it cannot be started."""
        given, self.revealed = await self._secrets()
        self._run = Stdio(self._program, environment(given), self._limit, self._label)
        async with self._run.streams() as streams:
            yield streams

    def failure(self, data: Any) -> ToolError | None:
        return None

    @property
    def why(self) -> ToolError | None:
        return None if self._run is None else self._run.why

    @property
    def said(self) -> str:
        """The end of what it wrote to its standard error, for whoever may see what is on this machine."""
        return "" if self._run is None else self._run.said


class Remote:
    """A server at a URL."""

    local = False
    said = ""
    why: ToolError | None = None

    def __init__(self, url: str, passage: Callable[[], Passage], limit: int, label: str) -> None:
        from bridge.mcp.http import Gated

        self._url = url
        self._limit = limit
        self._gated = Gated(passage, limit, label)
        self.revealed = self._gated.revealed

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        from mcp.client.streamable_http import streamable_http_client

        async with (
            self._gated.client() as client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=self._limit) as streams,
        ):
            yield streams

    def failure(self, data: Any) -> ToolError | None:
        return self._gated.failure(data)
