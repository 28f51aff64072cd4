"""Search, describe and list as callers see them: what a policy blocks or their view leaves out is not there."""

from __future__ import annotations

import asyncio
import time
from difflib import get_close_matches
from typing import Any, Final

import anyio
import anyio.to_thread

from bridge.policy import Policy
from bridge.repeats import Repeats
from bridge.view import EVERYTHING, View
from bridge.wire.errors import ToolError
from catalog import address, describe
from catalog.model import Tool
from catalog.registry import Registry
from catalog.validate import unknown

DEFAULT_LIMIT: Final = 10
MAX_LIMIT: Final = 200
COMPARED: Final = 4
"""Paths that lead nowhere for which others are looked for in one turn of the event loop."""

_SEARCH_ARGS: Final = ["query", "limit", "cursor", "integration"]
_DESCRIBE_ARGS: Final = ["path", "schemas"]


class Discovery:
    def __init__(self, registry: Registry, policy: Policy) -> None:
        self._registry = registry
        self._policy = policy
        self._repeats = Repeats()
        self._turn = anyio.Lock()
        self._compared = 0

    async def ready(self) -> None:
        """To be awaited before a search: what the first one in a process needs is loaded beside the event loop.

        Of many at once each has a turn of the event loop, and whatever else there is to do comes in between.
        """
        async with self._turn:
            if self._registry.index.cold:
                await anyio.to_thread.run_sync(self._registry.index.warm)

    async def turn(self) -> None:
        """To be awaited before a description, for the same reason."""
        async with self._turn:
            pass

    def visible(self, tool: Tool, view: View = EVERYTHING) -> bool:
        return not self._policy.hides(tool, view)

    def search(self, args: dict[str, Any], view: View = EVERYTHING) -> dict[str, Any]:
        """`{items: [{path, description, side_effect, signature?}], total, next}` for `{query, limit?, cursor?,
        integration?}`. An empty query lists everything. Raises ToolError(invalid_arguments)."""
        _known(args, _SEARCH_ARGS)
        query, integration = args.get("query", ""), args.get("integration")
        limit, cursor = args.get("limit"), args.get("cursor")
        if not isinstance(query, str) or not isinstance(integration, (str, type(None))):
            raise ToolError("invalid_arguments", "query and integration are text.")
        size = _limit(DEFAULT_LIMIT if limit is None else limit)
        if not query.strip():
            return self.listing(limit=size, cursor=cursor, integration=integration, view=view)
        at = _offset(cursor)
        hits = self._registry.index.search(query, integration)
        paths, total = hits.paths, hits.total
        if self._policy.rules() or view.lenses:
            paths = [path for path in paths if (tool := self._registry.find(path)) and self.visible(tool, view)]
            total = len(paths)
        tools = [tool for path in paths[at : at + size] if (tool := self._registry.find(path)) is not None]
        following = str(at + size) if at + size < total else None
        return {"items": [describe.brief(tool) for tool in tools], "total": total, "next": following}

    def listing(
        self, *, limit: int, cursor: Any = None, integration: str | None = None, view: View = EVERYTHING
    ) -> dict[str, Any]:
        """Every tool in order of its path; `cursor` is the last path of the page before."""
        if cursor is not None and not isinstance(cursor, str):
            raise ToolError("invalid_arguments", "cursor: it is the `next` of an earlier answer.")
        everything = [tool for tool in self._registry.tools(integration=integration) if self.visible(tool, view)]
        rest = [tool for tool in everything if cursor is None or tool.path > cursor]
        page = rest[:limit]
        following = page[-1].path if len(rest) > limit else None
        return {"items": [describe.brief(tool) for tool in page], "total": len(everything), "next": following}

    def integrations(self, view: View = EVERYTHING) -> list[str]:
        """The names of the integrations that have a visible tool."""
        names = [one.name for one in self._registry.integrations()]
        return [
            name for name in names if any(self.visible(tool, view) for tool in self._registry.tools(integration=name))
        ]

    def describe(self, args: dict[str, Any], view: View = EVERYTHING) -> dict[str, Any]:
        """What `{path, schemas?}` is and takes. Behind a `#` the path may name a depth, 1 to 4, which shows more of
        large types, or one type, which is then shown alone. Raises ToolError: tool_not_found, invalid_arguments."""
        _known(args, _DESCRIBE_ARGS)
        path = args.get("path")
        if not isinstance(path, str):
            raise ToolError("invalid_arguments", "path: it is the path of a tool, such as one that a search found.")
        path, marked, asked = path.partition("#")
        awaiting = self._registry.find(path)
        shown = awaiting is not None and self._policy.shows_awaiting(awaiting, view)
        tool = awaiting if awaiting is not None and shown else self.find(path, view)
        if marked and asked and not asked.isdecimal():
            facts = describe.describe_type(tool, asked)
            if facts is None:
                raise self._no_type(tool, asked)
            return facts
        depth = int(asked) if len(asked) == 1 and asked.isascii() else 0 if marked else 1
        if not 1 <= depth <= describe.MAX_DEPTH:
            said = f"path: # stands before a depth from 1 to {describe.MAX_DEPTH} or the name of a type."
            raise ToolError("invalid_arguments", said, path=path)
        effect, schemas = self._policy.decide(tool, view).effect, args.get("schemas") is True
        told = describe.describe(tool, effect=effect, schemas=schemas, depth=depth)
        installed = self._registry.installed(tool.integration)
        if installed is not None and self._repeats.declared(tool, installed):
            told["idempotent"] = True
        return told | {"status": "awaits review", "reason": tool.awaits} if tool.awaits else told

    def _no_type(self, tool: Tool, asked: str) -> ToolError:
        shown = asked[:80]
        near = get_close_matches(shown, describe.type_names(tool), n=3, cutoff=0.5)
        hint = f"Did you mean {', '.join(f'{tool.path}#{name}' for name in near)}?" if near else None
        said = f"There is no type {shown!r} in the description of {tool.path}."
        return ToolError("tool_not_found", said, path=tool.path, hint=hint, details={"suggestions": near})

    def find(self, path: str, view: View = EVERYTHING) -> Tool:
        """The visible tool at `path`. Raises ToolError(tool_not_found)."""
        tool = self._registry.find(path)
        if tool is None or not self.visible(tool, view):
            raise self.not_found(path, view)
        return tool

    def unconnected(self, path: str, view: View = EVERYTHING) -> ToolError | None:
        """The error for a tool at a connection that is not there; None where something else is wrong with the path."""
        where = address.parse(path)
        installed = self._registry.installed(where.integration) if where is not None else None
        if where is None or installed is None or where.scope not in address.SCOPES:
            return None
        spec = next((one for one in installed.manifest.tools if one.name == where.tool), None)
        if spec is None or (where.scope, where.connection) in installed.connections:
            return None
        # What a policy or the view would hide there is not there either.
        if not self.visible(Tool(path, where.integration, where.scope, where.connection, spec, {}), view):
            return None
        label = path.removesuffix(f".{where.tool}")
        there = [self._registry.find(f"{one.label}.{where.tool}") for one in installed.connections.values()]
        named = [
            tool.path.removesuffix(f".{where.tool}") for tool in there if tool is not None and self.visible(tool, view)
        ]
        command = f"executor connect {where.integration} --scope {where.scope} --connection {where.connection}"
        return ToolError(
            "connection_missing",
            f"There is no connection {label}.",
            hint=f"Connected: {', '.join(named[:5]) or 'none'}. An operator can add it: {command} --bearer REFERENCE",
            details={"connection": label},
        )

    def not_found(self, path: str, view: View = EVERYTHING) -> ToolError:
        """The error for a path that leads nowhere, with the paths that it may have meant.

        What a view leaves out is told like what does not exist: whoever it narrows cannot ask what else there is.
        """
        shown = path[:200]
        near = self._near(path, view)
        hint = f"Did you mean {', '.join(near)}?" if near else 'Find one with tools.search("…").'
        where = f" in {view.names}" if view.lenses else ""
        message = f"There is no tool {shown!r}{where}."
        if (label := self._registry.not_offered(path)) is not None and not view.lenses:
            message = f"The server does not offer this tool to {label}, though it does to another account."
            hint = f"Use another account of it. What {label} is offered is looked up again by executor refresh."
        gone = self._registry.removed(path) if not view.lenses else None
        if gone is not None:
            when = time.strftime("%Y-%m-%d", time.gmtime(gone.at))
            message = f"There is no tool {shown!r} any more: a refresh removed it on {when}."
        return ToolError("tool_not_found", message, path=shown, hint=hint, details={"suggestions": near})

    def _near(self, path: str, view: View) -> list[str]:
        """What `path` may have meant; beyond some in one turn of the event loop nothing, as comparing takes a while."""
        if not self._compared:
            try:
                asyncio.get_running_loop().call_soon(self._turned)
            except RuntimeError:
                return self._registry.suggest(path, lambda tool: self.visible(tool, view))
        self._compared += 1
        return self._registry.suggest(path, lambda tool: self.visible(tool, view)) if self._compared <= COMPARED else []

    def _turned(self) -> None:
        self._compared = 0


def _known(args: dict[str, Any], accepted: list[str]) -> None:
    for key in args:
        if key not in accepted:
            raise ToolError("invalid_arguments", unknown(key, accepted))


def _limit(limit: Any) -> int:
    if isinstance(limit, float) and limit.is_integer():
        limit = int(limit)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ToolError("invalid_arguments", f"limit: it is a whole number from 1 to {MAX_LIMIT}.")
    return min(limit, MAX_LIMIT)


def _offset(cursor: Any) -> int:
    if cursor is None:
        return 0
    if not isinstance(cursor, str) or not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise ToolError("invalid_arguments", "cursor: it is the `next` of an earlier answer.")
    return int(cursor)
