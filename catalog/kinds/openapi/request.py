"""From arguments to the exact request, by the binding that the import made for its operation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NoReturn

from bridge.wire.errors import ToolError
from catalog.kinds import headers as sending
from catalog.kinds.openapi import bodies, styles
from catalog.kinds.openapi.servers import Choice
from catalog.model import OutboundRequest
from catalog.origin import BadUrl, Url, parse_url

MAX_TARGET: Final = 64 * 1024

_TEMPLATE: Final = re.compile(r"\{([^{}]+)\}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """`key` is the argument's name, `name` what goes on the wire. `json`: the value is written as JSON text."""

    key: str
    name: str
    place: str
    style: str
    explode: bool
    reserved: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, ready to be called. `base` has no trailing slash on its path.

    `flat` are the properties of the body that may also be given beside the parameters; `choice` is what the caller may
    say about the server, and `query` the path's own, which a base that was chosen has yet to get.
    """

    method: str
    base: Url
    path: str
    parameters: tuple[Parameter, ...]
    body: bodies.Body | None
    accept: str
    security: tuple[tuple[str, ...], ...] | None
    flat: frozenset[str] = frozenset()
    choice: Choice | None = None
    query: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "base": str(self.base),
            "path": self.path,
            "parameters": [_row(one) for one in self.parameters],
            "body": self.body.as_dict() if self.body is not None else None,
            "accept": self.accept,
            "security": [list(names) for names in self.security] if self.security is not None else None,
            "flat": sorted(self.flat),
            "choice": self.choice.as_dict() if self.choice is not None else None,
            "query": self.query,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Operation:
        security = data["security"]
        return cls(
            data["method"],
            parse_url(data["base"]),
            data["path"],
            tuple(Parameter(*row) for row in data["parameters"]),
            bodies.Body.from_dict(data["body"]) if data["body"] is not None else None,
            data["accept"],
            tuple(tuple(names) for names in security) if security is not None else None,
            frozenset(data["flat"]),
            Choice.from_dict(data["choice"]) if data["choice"] is not None else None,
            data["query"],
        )


@lru_cache(maxsize=10_000)
def _row(one: Parameter) -> list[Any]:
    """The parameter as JSON data, shared by all operations that have one like it."""
    return [one.key, one.name, one.place, one.style, one.explode, one.reserved, one.json]


def gathered(operation: Operation, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the body under `body`, where it was given by its own name or beside the parameters."""
    if operation.body is None or "body" in args:
        return args
    keys = {one.key for one in operation.parameters}
    alias = operation.body.alias
    if alias in args and alias not in keys and alias not in operation.flat:
        return {key: value for key, value in args.items() if key != alias} | {"body": args[alias]}
    loose = {key: value for key, value in args.items() if key not in keys and key in operation.flat}
    if not loose:
        return args
    return {key: value for key, value in args.items() if key not in loose} | {"body": loose}


def build(operation: Operation, args: dict[str, Any], credentials: tuple[str, ...] | None) -> OutboundRequest:
    """The request for valid `args`. Raises ToolError(invalid_arguments) for values that cannot be sent safely."""
    query: list[str] = []
    headers = [("accept", operation.accept)]
    cookies: list[str] = []
    placed: dict[str, str] = {}
    for one in operation.parameters:
        value = args.get(one.key)
        if value is None:
            continue
        try:
            if one.place == "path":
                placed[one.name] = _in_path(one, value)
            elif one.place == "query":
                query += _in_query(one, value)
            elif one.place == "header":
                headers.append((one.name.lower(), _in_header(one, value)))
            else:
                shown = styles.compact(value) if one.json else value
                cookies += styles.in_cookie(one.name, shown, one.explode, one.style == "cookie")
        except styles.Unwritable as e:
            _refuse(one.key, str(e))
    if cookies:
        headers.append(("cookie", "; ".join(cookies)))
    base = _base(operation, args)
    path = base.path.rstrip("/") + _filled(operation, placed)
    queries = [part for part in (base.query, "&".join(query)) if part]
    target = path + ("?" + "&".join(queries) if queries else "")
    if len(target) > MAX_TARGET:
        raise ToolError("invalid_arguments", f"The URL would be longer than {MAX_TARGET // 1024} KiB.")
    body = None
    if operation.body is not None and operation.body.sends(args):
        try:
            media, body = operation.body.encode(args["body"], args.get(operation.body.key))
        except styles.Unwritable as e:
            _refuse("body", str(e))
        headers.append(("content-type", media))
    return OutboundRequest(operation.method, base.at(target), headers, body, credentials)


def _base(operation: Operation, args: dict[str, Any]) -> Url:
    if operation.choice is None:
        return operation.base
    try:
        asked = operation.choice.base(args)
    except BadUrl as e:
        _refuse(operation.choice.variables_key, str(e))
    if asked is None:
        return operation.base
    query = "&".join(filter(None, (asked.query, operation.query)))
    return asked.at(asked.path + "?" + query) if query else asked


def _refuse(key: str, why: str) -> NoReturn:
    raise ToolError("invalid_arguments", f"{key}: {why}.", details={"argument": key})


def _in_path(one: Parameter, value: Any) -> str:
    text = styles.primitive(value) if not isinstance(value, (list, dict)) else ""
    if _CONTROL.search(text):
        _refuse(one.key, "a path value must not hold control characters")
    shown = styles.compact(value) if one.json else value
    return styles.in_path(one.name, shown, one.style, one.explode)


def _in_query(one: Parameter, value: Any) -> list[str]:
    if one.json:
        return [f"{styles.encoded(one.name)}={styles.encoded(styles.compact(value))}"]
    return styles.in_query(one.name, value, one.style, one.explode, one.reserved)


def _in_header(one: Parameter, value: Any) -> str:
    text = styles.compact(value) if one.json else styles.in_header(value, one.explode, one.style)
    sending.check(one.key, one.name, text)
    return text


def _filled(operation: Operation, placed: dict[str, str]) -> str:
    """The template with its values in one pass, so that a value that looks like a template stays a value.

    The segments that come out are the segments of the template: a value never adds, removes or renames one.
    """
    segments = []
    for segment in operation.path.split("/"):
        filled = _TEMPLATE.sub(lambda match: placed.get(match[1], ""), segment)
        if segment != filled and (filled in ("", ".", "..") or "/" in filled):
            keys = [one.key for one in operation.parameters if one.place == "path" and f"{{{one.name}}}" in segment]
            _refuse(", ".join(keys), "an empty value, '.' or '..' would address another operation")
        segments.append(filled)
    return "/".join(segments)
