"""An MCP server as an integration."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from bridge.wire.errors import ImportFailed, ToolError
from catalog.kinds.mcp import listing, values
from catalog.kinds.mcp.texts import MAX_DESCRIPTION, MAX_TITLE, cleaned
from catalog.model import Connection, Diagnostic, Manifest, Outbound, Tool, ToolSpec, ToolValue
from catalog.origin import LOCAL, BadUrl, Reach, parse_url, reach_of
from catalog.validate import Check, SchemaError, checked, checker

_NOT_HOST: Final = re.compile(r"[^a-z0-9-]+")


def place(config: Mapping[str, Any]) -> Reach:
    """Where the server of a configuration is. Credentials that were given for one place are not for another.

    Raises ImportFailed for a URL that is not one.
    """
    command = config.get("command")
    if command:
        identity = json.dumps([command, config.get("cwd")]).encode("utf-8", "surrogatepass")
        name = _NOT_HOST.sub("-", PurePath(str(command[0])).name.lower()).strip("-")[:40] or "program"
        return Reach(LOCAL, f"{name}-{hashlib.sha256(identity).hexdigest()[:12]}", 0)
    try:
        url = parse_url(str(config.get("url")))
    except BadUrl as e:
        raise ImportFailed(f"{str(config.get('url'))[:200]!r} is not the URL of a server: {e}.") from None
    return reach_of(url, prefix=url.path)


class Mcp:
    """Configuration: `url` or `command` (a program and its arguments, with `cwd`), `era` (the version of the protocol
    that the server spoke), and `listing`: `{tools, title?, instructions?, diagnostics}` as it was last listed."""

    kind = "mcp"

    def __init__(self, name: str) -> None:
        self.name = name
        self._checks: dict[str, tuple[Tool, Check | None]] = {}

    def resolve_tools(self, config: Mapping[str, Any]) -> Manifest:
        """Raises ImportFailed for a server that is nowhere."""
        where = place(config)
        listed = config["listing"]
        tools = listing.Tools(listed["tools"], str(where))
        return Manifest(
            tools=tools.specs,
            title=cleaned(listed.get("title"), MAX_TITLE),
            description=cleaned(listed.get("instructions"), MAX_DESCRIPTION),
            diagnostics=(*(Diagnostic(*one) for one in listed.get("diagnostics", ())), *tools.diagnostics),
            definitions=tools.definitions,
            reach=(where,),
        )

    async def invoke(self, tool: Tool, args: dict[str, Any], connection: Connection, outbound: Outbound) -> ToolValue:
        result = await outbound.call_tool(tool.binding["name"], args)
        if tool.binding["wraps"]:
            result = dict(values.unwrapped(result))
        answer = values.value_of(result)
        if tool.output_schema is not None:
            await self._check(tool, result)
        return answer

    async def _check(self, tool: Tool, result: Mapping[str, Any]) -> None:
        """Raises ToolError for an answer that is not what the tool was described to give back."""
        known = self._checks.get(tool.path)
        if known is None or known[0] is not tool:
            known = self._checks[tool.path] = (tool, _checker(tool))
        problem = None
        if not values.structured(result):
            problem = "there is no structured content."
        elif known[1] is not None:
            problem = await checked(known[1], result["structuredContent"])
        if problem is not None:
            raise ToolError(
                "upstream_error",
                f"The answer of the server is not what the tool says it gives back: {problem}",
                hint="The call was made. Refresh the integration if its server has changed.",
                retryable=False,
            )

    def destination(self, spec: ToolSpec) -> str:
        """The server's own name of the tool, and where the server is."""
        return listing.destination(spec)

    def told(self, spec: ToolSpec) -> str:
        """A digest of all that the server says of the tool: a change of it awaits review."""
        return str(spec.binding["told"])


def _checker(tool: Tool) -> Check | None:
    try:
        return checker(tool.output_schema, tool.definitions)
    except SchemaError:
        return None
