"""The SDK's dispatcher, which also says when it has ended, and lets one broken tool of a list be one broken tool; and
its client, which says what a person can be asked here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio
import anyio.lowlevel
from mcp import ClientSession
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.types import ClientCapabilities, ElicitationCapability, FormElicitationCapability, Tool
from mcp_types import methods
from pydantic import ValidationError

from bridge.mcp.errors import too_many_tools
from bridge.mcp.greeting import OLDER
from bridge.mcp.session import MAX_TOOLS
from catalog.kinds.mcp.values import bounded

MAX_BROKEN: Final = 100
TURN: Final = 50
"""Tools that are looked at before others have their turn."""


class Dispatcher(JSONRPCDispatcher[Any]):
    def __init__(self, read: Any, write: Any) -> None:
        super().__init__(read, write)
        self.ended = anyio.Event()
        self.version = OLDER
        """Of the protocol, once it is agreed upon."""
        self._broken: list[tuple[str, str]] = []

    @property
    def closed(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._closed

    async def run(self, *args: Any, **options: Any) -> None:
        try:
            await super().run(*args, **options)
        finally:
            self.ended.set()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Any = None, **options: Any
    ) -> dict[str, Any]:
        result = await super().send_raw_request(method, params, opts, **options)
        # The SDK reads a whole answer at once, which nobody waits for: what is too much is refused before.
        if method == "tools/call":
            bounded(result.get("content"))
        if method == "tools/list" and isinstance(result.get("tools"), list):
            if len(result["tools"]) > MAX_TOOLS:
                raise too_many_tools(MAX_TOOLS)
            result["tools"] = await self._those_usable(result, result["tools"])
        return result

    async def _those_usable(self, page: dict[str, Any], tools: list[Any]) -> list[Any]:
        usable = []
        for at, tool in enumerate(map(_repaired, tools)):
            if self._usable(page | {"tools": [tool]}, tool):
                usable.append(tool)
            if at % TURN == 0:
                await anyio.lowlevel.checkpoint()
        return usable

    def _usable(self, page: dict[str, Any], tool: Any) -> bool:
        """Whether a `page` with that tool alone is what the protocol says."""
        try:
            Tool.model_validate(tool, by_name=False)
            methods.validate_server_result("tools/list", self.version, page)
        except ValidationError as e:
            first = e.errors(include_url=False, include_input=False)[0]
            name = str(tool.get("name"))[:80] if isinstance(tool, dict) else "?"
            if len(self._broken) < MAX_BROKEN:
                where = ".".join(str(part) for part in first["loc"])
                self._broken.append((f"#/tools/{name}", f"it is not a tool: {first['msg']} ({where})"[:300]))
            return False
        return True

    def broken(self) -> list[tuple[str, str]]:
        """The tools that were left out since the last time, and why."""
        found, self._broken = self._broken, []
        return found


class Client(ClientSession):
    def _build_capabilities(self, version: str) -> ClientCapabilities:
        """Forms, and no pages to be opened, which the SDK announces with them."""
        asking = ElicitationCapability(form=FormElicitationCapability())
        return super()._build_capabilities(version).model_copy(update={"elicitation": asking})


def _repaired(tool: Any) -> Any:
    """The tool, whose arguments are an object where it does not say so."""
    schema = tool.get("inputSchema") if isinstance(tool, dict) else None
    return tool | {"inputSchema": {"type": "object"} | schema} if isinstance(schema, dict) else tool
