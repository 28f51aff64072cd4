"""Raw HTTP under an explicit allowlist: `http.get` for reading, `http.request` for every allowed method, and what a
script's `fetch` becomes where it is granted."""

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
GET: Final = "http.get"
REQUEST: Final = "http.request"
FORM: Final = "application/x-www-form-urlencoded"

_HEADERS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_SCALAR: Final[Schema] = {"type": ["string", "number", "boolean"]}
_FIELDS: Final[Schema] = {
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
        reading = [method for method in methods if method in READING]
        if reading:
            tools.insert(0, _get(reading, places, reach[0]))
        return Manifest(tools=tuple(tools), title=f"HTTP requests to {places}"[:200], reach=reach)

    async def invoke(self, tool: Tool, args: dict[str, Any], connection: Connection, outbound: Outbound) -> ToolValue:
        answer = await outbound.send(_request_of(tool, args, connection))
        return await payload.shaped(answer, outbound, connection=connection.label)

    async def fetch(
        self, tool: Tool, args: dict[str, Any], connection: Connection, outbound: Outbound, *, follow: bool
    ) -> ToolValue:
        """The answer as it came, whatever its status: `{status, reason, headers, url, redirected, body}`, the headers
        in pairs and the body as bytes."""
        request = _request_of(tool, args, connection, follow=follow)
        answer = await outbound.send(request)
        url = answer.url or request.url
        value = {
            "status": answer.status,
            "reason": answer.reason,
            "headers": [[name, text] for name, text in answer.headers if name != "set-cookie"],
            "url": str(url),
            "redirected": url != request.url,
            "body": answer.body,
        }
        return ToolValue(value, payload.http_facts(answer), answer.url)


def _entry(entry: Any) -> Reach:
    try:
        return parse_reach(str(entry))
    except BadUrl as e:
        raise ImportFailed(f"{str(entry)[:120]!r} is not an allowlist entry: {e}.") from None


def _binding(reach: Reach) -> dict[str, Any]:
    """`raw`: the tool declares no parameter of the query, any may be there."""
    return {"base": str(Reach(reach.scheme, reach.host.removeprefix("*."), reach.port)) + "/", "raw": True}


def _get(methods: list[str], places: str, first: Reach) -> ToolSpec:
    return ToolSpec(
        name=GET,
        title="Read over HTTP",
        description=f"GET a path or URL of {places}. The value is the answer's body; JSON is parsed.",
        input_schema=_schema(
            {"path": _path(first), "query": _FIELDS, "headers": _HEADERS, "method": {"enum": methods}}
        ),
        side_effect="read",
        words="fetch download url",
        binding=_binding(first),
    )


def _request(methods: list[str], places: str, first: Reach) -> ToolSpec:
    return ToolSpec(
        name=REQUEST,
        title="Make an HTTP request",
        description=f"Any allowed method to {places}. An object or array as body is sent as JSON, text as text, "
        "bytes as they are; form is sent as form fields.",
        input_schema=_schema(
            {
                "method": {"enum": methods},
                "path": _path(first),
                "query": _FIELDS,
                "headers": _HEADERS,
                "body": {},
                "form": _FIELDS,
            }
        ),
        side_effect="read" if all(method in READING for method in methods) else "unknown",
        words="fetch post url api",
        binding=_binding(first),
    )


def _path(first: Reach) -> Schema:
    return {"type": "string", "description": f"Absolute path such as {first.prefix}, or a full URL that is allowed"}


def _schema(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}


def _request_of(tool: Tool, args: dict[str, Any], connection: Connection, *, follow: bool = True) -> OutboundRequest:
    """Raises ToolError(invalid_arguments) for what cannot be sent as it is, or belongs to the connection."""
    method = str(args.get("method") or "GET").upper()
    url = _target(parse_url(tool.binding["base"]), args)
    given = args.get("headers") or {}
    headers = [("accept", "*/*")]
    body = _body(args, {name.lower(): value for name, value in given.items()}.get("content-type"), headers)
    taken = {"authorization" if one.carrier == "basic" else one.field.lower() for one in connection.placements
             if one.carrier in ("header", "basic")}  # fmt: skip
    for name, value in given.items():
        sending.check(f"headers.{name}", name, value)
        if name.lower() in taken or name.lower() in sending.COOKIES:
            whose = (
                f"set by the connection {connection.label}" if name.lower() in taken else "set by a connection alone"
            )
            raise ToolError("invalid_arguments", f"headers.{name}: this header is {whose}.")
        headers = [(key, kept) for key, kept in headers if key != name.lower()] + [(name.lower(), value)]
    return OutboundRequest(method, url, headers, body, follow=follow)


def _target(base: Url, args: dict[str, Any]) -> Url:
    """The URL exactly as it will be sent, dot segments resolved before anything is checked."""
    path = args["path"]
    if not path.startswith("/") and not re.match(r"(?i)https?://", path):
        raise ToolError("invalid_arguments", "path: it starts with / or is a full http(s) URL.")
    if path.startswith("//"):
        raise ToolError("invalid_arguments", "path: it starts with a single /.")
    try:
        url = join_url(base, path)
        query = "&".join(part for part in (url.query, _encoded(args.get("query"))) if part)
    except (BadUrl, styles.Unwritable) as e:
        raise ToolError("invalid_arguments", f"path or query: {e}.") from None
    if hides_dots(url.path):
        raise ToolError(
            "invalid_arguments", "path: it holds encoded dot segments or separators, which servers read differently."
        )
    target = url.path + ("?" + query if query else "")
    if len(target) > MAX_TARGET:
        raise ToolError("invalid_arguments", f"The URL would be longer than {MAX_TARGET // 1024} KiB.")
    return url.at(target)


def _encoded(fields: dict[str, Any] | None) -> str:
    """Raises Unwritable."""
    pairs = [pair for name, value in (fields or {}).items() for pair in styles.in_query(name, value, "form", True)]
    return "&".join(pairs)


def _body(args: dict[str, Any], media: str | None, headers: list[tuple[str, str]]) -> bytes | None:
    """The bytes of `body` or `form`; their type is added to `headers`."""
    value, form = args.get("body"), args.get("form")
    if form is not None and value is not None:
        raise ToolError("invalid_arguments", "form: a request has a body or a form, not both.")
    if form is None and isinstance(value, dict) and (media or "").partition(";")[0].strip().lower() == FORM:
        form = value
    try:
        if form is not None:
            headers.append(("content-type", FORM))
            return _encoded(form).encode()
        if value is None:
            return None
        if isinstance(value, bytes):
            headers.append(("content-type", "application/octet-stream"))
            return value
        if isinstance(value, str):
            headers.append(("content-type", "text/plain; charset=utf-8"))
            return value.encode("utf-8", "replace")
        headers.append(("content-type", "application/json"))
        return styles.compact(value).encode()
    except styles.Unwritable as e:
        raise ToolError("invalid_arguments", f"{'body' if value is not None else 'form'}: {e}.") from None
