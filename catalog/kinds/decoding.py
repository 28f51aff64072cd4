"""From a body to a value: JSON as data, a stream of records as a list, text as text, anything else as bytes."""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any, Final, NoReturn

from bridge.wire import codec
from bridge.wire.errors import ToolError
from catalog.kinds import records
from catalog.large import LARGE
from catalog.model import OutboundResponse

SHOWN: Final = 1000
"""Characters of a body that cannot be read that its error shows."""

_CHARSET: Final = re.compile(r"(?i)(?:^|;)\s*charset\s*=\s*\"?([A-Za-z0-9._:-]+)")
_TEXT_TYPES = (
    "application/xml application/javascript application/yaml application/x-yaml application/x-www-form-urlencoded"
    " application/graphql application/sql"
)
_TEXTUAL: Final = frozenset(_TEXT_TYPES.split())


def media_of(response: OutboundResponse) -> tuple[str, str | None]:
    """The media type in lower case and the charset, ("", None) without a Content-Type."""
    media, _, parameters = (response.header("content-type") or "")[:500].partition(";")
    match = _CHARSET.search(parameters)
    media = media.strip().lower()
    return (media if "/" in media else "", match[1] if match else None)


def is_json(media: str) -> bool:
    return media in ("application/json", "text/json") or media.endswith("+json")


def value_of(response: OutboundResponse) -> Any:
    """The body as the caller gets it; None when it is empty. JSON says its last word for a key that comes twice.

    Raises ToolError: upstream_error for JSON that is none, too_large for JSON that is nested too deeply.
    """
    media, charset = media_of(response)
    if media == records.EVENTS or media in records.LINES:
        return _records(response, media, charset)
    if not response.body:
        return None
    if is_json(media):
        try:
            return _json(response.body, charset)
        except ValueError:
            raise _unreadable(response, charset) from None
        except RecursionError:
            raise _too_deep(response) from None
    if not media:
        try:
            return _json(response.body, None)
        except ValueError:
            return _guessed(response.body)
        except RecursionError:
            raise _too_deep(response) from None
    if media.startswith("text/") or media in _TEXTUAL or media.endswith("+xml"):
        return text_of(response.body, charset)
    return response.body


def _records(response: OutboundResponse, media: str, charset: str | None) -> list[Any]:
    """The records that came whole; when reading stopped at a number of records, no more than that."""
    text = text_of(response.body, charset)
    whole = response.cut is None
    if media == records.EVENTS:
        found: list[Any] = records.events(text, whole)
    else:
        try:
            found = records.lines(text, whole, _read)
        except ValueError:
            raise _unreadable(response, charset) from None
        except RecursionError:
            raise _too_deep(response) from None
    return found[: response.cut.limit] if response.cut is not None and response.cut.by == "records" else found


def _unreadable(response: OutboundResponse, charset: str | None) -> ToolError:
    return ToolError(
        "upstream_error",
        "The answer says that it is JSON, and it is not.",
        hint="The request was made and answered; details.body is how the answer begins.",
        details={"body": text_of(response.body[:SHOWN], charset)},
        status=response.status,
    )


def _too_deep(response: OutboundResponse) -> ToolError:
    return ToolError(
        "too_large", f"The answer is nested deeper than {codec.VALUE_DEPTH} levels.", status=response.status
    )


def _json(body: bytes, charset: str | None) -> Any:
    """Raises ValueError for what is not JSON, RecursionError for what is nested too deeply."""
    return _read(body if charset is None or charset.lower().startswith("utf") else text_of(body, charset))


def _read(text: str | bytes) -> Any:
    # The parser gives other threads their turn only where it calls what is written in Python.
    turn = _turn if len(text) > LARGE else None
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_float, object_hook=turn)
    except ValueError:
        # Perhaps for an integer of thousands of digits, which Python does not read.
        return json.loads(text, parse_constant=_refuse, parse_int=_long, parse_float=_float, object_hook=turn)


def _turn(found: dict[str, Any]) -> dict[str, Any]:
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _float(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def _long(digits: str) -> int | str:
    return int(digits) if len(digits) <= 20 else digits


def _guessed(body: bytes) -> str | bytes:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def text_of(body: bytes, charset: str | None) -> str:
    try:
        coding = codecs.lookup(charset or "utf-8")
        if not coding._is_text_encoding:
            coding = codecs.lookup("utf-8")
    except (LookupError, ValueError):
        coding = codecs.lookup("utf-8")
    return body.decode(coding.name, "replace").removeprefix("\ufeff")
