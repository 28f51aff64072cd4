"""NDJSON and server-sent events: a stream of records as a list, one entry per record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

EVENTS: Final = "text/event-stream"
_LINES = (
    "application/x-ndjson application/ndjson application/jsonl application/x-jsonlines application/json-lines"
    " application/json-seq application/stream+json application/x-json-stream"
)
LINES: Final = frozenset(_LINES.split())

_BREAK: Final = re.compile(r"\r\n|\n|\r")


def separators(content_type: str) -> tuple[bytes, ...]:
    """What ends a record of such a stream, as far as counting goes; empty for any other answer."""
    media = content_type.partition(";")[0].strip().lower()
    if media == EVENTS:
        return b"\n\n", b"\n\r\n", b"\r\r"
    return (b"\n",) if media in LINES else ()


def lines(text: str, whole: bool, read: Callable[[str], Any]) -> list[Any]:
    """The values of JSON that stands line by line (RFC 7464 puts a record separator before each).

    `whole` False: the text was cut, and its last line with it. `read` raises ValueError for a line that is not JSON.
    """
    found = text.split("\n")
    if not whole:
        found.pop()
    return [read(line) for raw in found if (line := raw.strip(" \t\r\x1e"))]


def events(text: str, whole: bool) -> list[dict[str, Any]]:
    """The events of a stream, each `{data, event?, id?}`; `data` is parsed where it is a JSON object or array.

    WHATWG HTML 9.2.6; `retry` and comments say nothing about the data and are left out. An event that the end of a cut
    stream interrupts is dropped; at the end of a whole one it is kept, for servers that forget the last blank line.
    """
    found: list[dict[str, Any]] = []
    data: list[str] = []
    kind, last = "", ""
    rows = _BREAK.split(text)
    if whole:
        rows.append("")
    else:
        rows.pop()
    for row in rows:
        if not row:
            if data:
                found.append(_event("\n".join(data), kind, last))
            data, kind = [], ""
            continue
        field, _, value = row.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            kind = value
        elif field == "id" and "\0" not in value:
            last = value
    return found


def _event(data: str, kind: str, last: str) -> dict[str, Any]:
    event: dict[str, Any] = {"data": _parsed(data)}
    if kind:
        event["event"] = kind
    if last:
        event["id"] = last
    return event


def _parsed(data: str) -> Any:
    if data[:1] not in ("{", "["):
        return data
    try:
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return data


def _refuse(name: str) -> Any:
    raise ValueError(name)
