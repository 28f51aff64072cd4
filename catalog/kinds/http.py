"""Raw HTTP under an explicit allowlist: `http.get` for reading, `http.request` for every allowed method."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bridge.wire.errors import ImportFailed, ToolError
from catalog.kinds import headers as sending
from catalog.kinds import payload
from catalog.kinds.openapi import styles
from catalog.model import Connection, Manifest, Outbound, OutboundRequest, Schema, Tool, ToolSpec, ToolValue
from catalog.origin import BadUrl, Reach, Url, hides_dots, join_url, parse_reach, parse_url

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
READING: Final = ("GET", "HEAD")
MAX_TARGET: Final = 64 * 1024

_HEADERS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_SCALAR: Final[Schema] = {"type": ["string", "number", "boolean"]}
_QUERY: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]},
}


class Http:
    """Configuration: `allow`, a list of `[METHODS ]scheme://host[:port][/prefix]` (see `parse_reach`)."""

    kind = "http"

    def __init__(self, name: str) -> None:
        self.name = name

    def resolve_tools(self, config: Mapping[str, Any]) -> Manifest:
        """Raises ImportFailed for an empty allowlist or an entry that is not one."""
        entries = config.get("allow")
        if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
            raise ImportFailed(
                "The allowlist is empty, so nothing could be called.",
                hint="Name at least one origin, such as https://api.example.com/v1.",
            )
        reach = tuple(_entry(entry) for entry in entries)
        methods = [method for method in METHODS if any(one.methods is None or method in one.methods for one in reach)]
        if not methods:
            raise ImportFailed(f"The allowlist permits no method of {', '.join(METHODS)}.")
        places = ", ".join(map(str, reach[:8]))
        tools = [_request(methods, places, reach[0])]
        if any(method in READING for method in methods):
            tools.insert(0, _get(places, reach[0]))
        return Manifest(tools=tuple(tools), title=f"HTTP requests to {places}"[:200], reach=reach)

    async def invoke(self, tool: Tool, args: dict[str, Any], connection: Connection, outbound: Outbound) -> ToolValue:
        method = str(args.get("method") or "GET").upper()
        url = _target(parse_url(tool.binding["base"]), args)
        headers = [("accept", "*/*")]
        body = _body(args.get("body"), headers)
        for name, value in (args.get("headers") or {}).items():
            sending.check(f"headers.{name}", name, value)
            headers = [(key, kept) for key, kept in headers if key != name.lower()] + [(name.lower(), value)]
        answer = await outbound.send(OutboundRequest(method, url, headers, body))
        return payload.shaped(answer, connection=connection.label)


def _entry(entry: Any) -> Reach:
    try:
        return parse_reach(str(entry))
    except BadUrl as e:
        raise ImportFailed(f"{str(entry)[:120]!r} is not an allowlist entry: {e}.") from None


def _base(reach: Reach) -> str:
    return str(Reach(reach.scheme, reach.host.removeprefix("*."), reach.port)) + "/"


def _get(places: str, first: Reach) -> ToolSpec:
    return ToolSpec(
        name="http.get",
        title="Read over HTTP",
        description=f"GET a path or URL of {places}. The value is the answer's body; JSON is parsed.",
        input_schema=_schema({"path": _path(first), "query": _QUERY, "headers": _HEADERS}),
        side_effect="read",
        words="fetch download url",
        binding={"base": _base(first)},
    )


def _request(methods: list[str], places: str, first: Reach) -> ToolSpec:
    return ToolSpec(
        name="http.request",
        title="Make an HTTP request",
        description=f"Any allowed method to {places}. An object or array as body is sent as JSON, text as text.",
        input_schema=_schema(
            {"method": {"enum": methods}, "path": _path(first), "query": _QUERY, "headers": _HEADERS, "body": {}}
        ),
        side_effect="read" if all(method in READING for method in methods) else "unknown",
        words="fetch post url api",
        binding={"base": _base(first)},
    )


def _path(first: Reach) -> Schema:
    return {"type": "string", "description": f"Absolute path such as {first.prefix}, or a full URL that is allowed"}


def _schema(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}


def _target(base: Url, args: dict[str, Any]) -> Url:
    """The URL exactly as it will be sent, dot segments resolved before anything is checked."""
    path = args["path"]
    if not path.startswith("/") and not re.match(r"(?i)https?://", path):
        raise ToolError("invalid_arguments", "path: it starts with / or is a full http(s) URL.")
    if path.startswith("//"):
        raise ToolError("invalid_arguments", "path: it starts with a single /.")
    try:
        url = join_url(base, path)
        pairs = [
            pair
            for name, value in (args.get("query") or {}).items()
            for pair in styles.in_query(name, value, "form", True)
        ]
    except (BadUrl, styles.Unwritable) as e:
        raise ToolError("invalid_arguments", f"path or query: {e}.") from None
    if hides_dots(url.path):
        raise ToolError(
            "invalid_arguments", "path: it holds encoded dot segments or separators, which servers read differently."
        )
    query = "&".join(part for part in (url.query, "&".join(pairs)) if part)
    target = url.path + ("?" + query if query else "")
    if len(target) > MAX_TARGET:
        raise ToolError("invalid_arguments", f"The URL would be longer than {MAX_TARGET // 1024} KiB.")
    return url.at(target)


def _body(value: Any, headers: list[tuple[str, str]]) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        headers.append(("content-type", "application/octet-stream"))
        return value
    if isinstance(value, str):
        headers.append(("content-type", "text/plain; charset=utf-8"))
        return value.encode("utf-8", "replace")
    headers.append(("content-type", "application/json"))
    try:
        return styles.compact(value).encode()
    except styles.Unwritable as e:
        raise ToolError("invalid_arguments", f"body: {e}.") from None
