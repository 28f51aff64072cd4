"""What a call of an operation returns, as its responses declare it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from catalog.kinds import records
from catalog.kinds.decoding import is_json
from catalog.kinds.openapi.reader import BadReference, Document
from catalog.kinds.openapi.schemas import Schemas
from catalog.model import Schema

BYTES: Final[Schema] = {"type": "string", "format": "binary"}
EVENT: Final[Schema] = {
    "type": "object",
    "properties": {"data": {}, "event": {"type": "string"}, "id": {"type": "string"}},
    "required": ["data"],
}
NOTHING: Final[Schema] = {"type": "null"}


def success(document: Document, responses: Any) -> Mapping[str, Any] | None:
    """The response object of success: 200, 201, another 2xx, `2XX`, then `default`."""
    if not isinstance(responses, dict):
        return None
    named = {str(key): value for key, value in responses.items()}
    order = ["200", "201", *sorted(key for key in named if key.startswith("2") and key.isdigit()), "2XX", "2xx"]
    for key in [*order, "default"]:
        if key in named:
            try:
                found = document.follow(named[key])
            except BadReference:
                continue
            if isinstance(found, dict):
                return found
    return None


def output_schema(document: Document, schemas: Schemas, responses: Any) -> Schema | None:
    """The schema of the value that `payload` makes of such a response; None when nothing is declared."""
    response = success(document, responses)
    if response is None:
        return None
    content = response.get("content")
    if not isinstance(content, dict) or not content:
        return NOTHING if isinstance(content, dict) or "204" in responses else None
    media, entry = preferred(content)
    schema = entry.get("schema") if isinstance(entry, dict) else None
    if media == records.EVENTS:
        return {"type": "array", "items": EVENT}
    if media in records.LINES:
        return {"type": "array", "items": schemas.convert(schema) if schema is not None else {}}
    if is_json(media) or media == "*/*":
        return schemas.convert(schema) if schema is not None else None
    return {"type": "string"} if media.startswith("text/") or "xml" in media else BYTES


def preferred(content: Mapping[str, Any]) -> tuple[str, Any]:
    """JSON where it is offered, otherwise what comes first; the media type bare and in lower case."""
    bare = {str(key).partition(";")[0].strip().lower(): value for key, value in content.items()}
    media = next((key for key in bare if is_json(key)), next(iter(bare)))
    return media, bare[media]


def accept(document: Document, responses: Any) -> str:
    """The Accept header: JSON first, then whatever the responses declare."""
    response = success(document, responses)
    content = response.get("content") if response is not None else None
    if not isinstance(content, dict) or not content:
        return "application/json, */*;q=0.5"
    media, _ = preferred(content)
    if not media.isascii() or not media.isprintable() or "/" not in media or len(media) > 200:
        return "*/*"
    return media if media == "*/*" else f"{media}, */*;q=0.5"
