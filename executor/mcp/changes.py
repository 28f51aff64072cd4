"""Telling clients that their list of tools is another one: on the standing stream of a session (2025-11-25), or on the
one that a client of 2026-07-28 listens on. Each hears of its own list alone, and once for many changes in a row."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
import structlog
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

from bridge.traces import traced
from executor.mcp.caller import Caller

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from executor.executor import Executor

QUIET_S: Final = 0.5
"""How long changes are waited for after the first: adding an integration is several."""
WATCHED: Final = "executor.watched"
STREAMS: Final = 32
"""Streams that one caller may listen on at once."""

List = Callable[[Caller], Awaitable[list[types.Tool]]]
Key = tuple[str | None, str | None, bool]
_log = structlog.get_logger("executor.mcp")


class _Watcher:
    def __init__(self, caller: Caller, seen: str, tell: Callable[[], Awaitable[None]]) -> None:
        self.caller = caller
        self.seen = seen
        self.tell = tell


class Changes:
    """`listed` gives what a caller is shown."""

    def __init__(self, executor: Executor, listed: List) -> None:
        self._executor = executor
        self._listed = listed
        self._watchers: dict[object, _Watcher] = {}
        self._streams: Counter[str] = Counter()
        self._deaf: Callable[[], None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._again = False

    def heard(self, ctx: ServerRequestContext[Any, Any], caller: Caller, tools: list[types.Tool]) -> None:
        """A client of the older era has listed its tools: tell its session when they are others."""
        connection = ctx.session._connection
        known = connection.state.get(WATCHED)
        if known is not None:
            known.seen = _digest(tools)
            return
        watcher = _Watcher(caller, _digest(tools), ctx.session.send_tool_list_changed)
        connection.state[WATCHED] = watcher
        connection.exit_stack.callback(self._watch(watcher))

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], caller: Caller, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of a client of the newer era. Raises MCPError for one too many."""
        if self._streams[caller.principal] >= STREAMS:
            raise MCPError(types.INTERNAL_ERROR, f"at most {STREAMS} streams are listened on at once")
        bus = InMemorySubscriptionBus()
        watcher = _Watcher(caller, await self._now(caller), lambda: bus.publish(ToolsListChanged()))
        self._streams[caller.principal] += 1
        leave = self._watch(watcher)
        try:
            return await ListenHandler(bus)(ctx, params)
        finally:
            leave()
            self._streams[caller.principal] -= 1

    def _watch(self, watcher: _Watcher) -> Callable[[], None]:
        token = object()
        self._watchers[token] = watcher
        if self._deaf is None:
            self._deaf = self._executor.on_catalog_change(self._changed)

        def leave() -> None:
            self._watchers.pop(token, None)
            if not self._watchers and self._deaf is not None:
                self._deaf()
                self._deaf = None
                if self._looking is not None:
                    self._looking.cancel()

        return leave

    def _changed(self) -> None:
        self._again = True
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        try:
            while self._again:
                await asyncio.sleep(QUIET_S)
                self._again = False
                now: dict[Key, str] = {}
                for watcher in list(self._watchers.values()):
                    key = (watcher.caller.toolkit, watcher.caller.tied, watcher.caller.direct)
                    if key not in now:
                        now[key] = await self._now(watcher.caller)
                    if watcher.seen != now[key]:
                        watcher.seen = now[key]
                        await watcher.tell()
        except Exception as e:
            _log.error("clients_not_told", exception=traced(e))
        finally:
            self._looking = None

    async def _now(self, caller: Caller) -> str:
        try:
            return _digest(await self._listed(caller))
        except MCPError as e:
            return f"error {e.error.message}"


def _digest(tools: list[types.Tool]) -> str:
    told = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


class Announcing(Server[Any]):
    """A server whose list of tools may change, and nothing else of it."""

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        found = super().get_capabilities(
            NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        if found.prompts is not None:
            found.prompts.list_changed = False
        if found.resources is not None:
            found.resources.list_changed = found.resources.subscribe = False
        return found
