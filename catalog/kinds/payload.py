"""From a response to a value: JSON as data, text as text, anything else as bytes, and a refusal as a ToolError."""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any, Final, NoReturn

from bridge.wire import codec
from bridge.wire.errors import ToolError
from catalog.model import OutboundResponse, ToolValue

MAX_TEXT: Final = 1000
"""Characters of an upstream's own error text that are passed on in the message; the whole body is in `details`."""
MAX_DETAIL: Final = 16 * 1024
KEPT_HEADERS: Final = 100

_CHARSET: Final = re.compile(r"(?i)(?:^|;)\s*charset\s*=\s*\"?([A-Za-z0-9._:-]+)")
_TEXT_TYPES = (
    "application/xml application/javascript application/x-ndjson application/jsonl application/yaml"
    " application/x-yaml application/x-www-form-urlencoded application/graphql application/sql"
)
_TEXTUAL: Final = frozenset(_TEXT_TYPES.split())
_MESSAGES: Final = ("message", "detail", "error_description", "error_message", "errorMessage", "description", "title")
_NESTED: Final = ("error", "errors", "fault", "data")


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
    if not response.body:
        return None
    media, charset = media_of(response)
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
        return _text(response.body, charset)
    return response.body


def _unreadable(response: OutboundResponse, charset: str | None) -> ToolError:
    return ToolError(
        "upstream_error",
        "The answer says that it is JSON, and it is not.",
        hint="The request was made and answered; details.body is how the answer begins.",
        details={"body": _text(response.body[:MAX_TEXT], charset)},
        status=response.status,
    )


def _too_deep(response: OutboundResponse) -> ToolError:
    return ToolError(
        "too_large", f"The answer is nested deeper than {codec.VALUE_DEPTH} levels.", status=response.status
    )


def _json(body: bytes, charset: str | None) -> Any:
    """Raises ValueError for what is not JSON, RecursionError for what is nested too deeply."""
    text: str | bytes = body
    if charset is not None and not charset.lower().startswith("utf"):
        text = _text(body, charset)
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_float)
    except ValueError:
        # Perhaps for an integer of thousands of digits, which Python does not read.
        return json.loads(text, parse_constant=_refuse, parse_int=_long, parse_float=_float)


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


def _text(body: bytes, charset: str | None) -> str:
    try:
        coding = codecs.lookup(charset or "utf-8")
        if not coding._is_text_encoding:
            coding = codecs.lookup("utf-8")
    except (LookupError, ValueError):
        coding = codecs.lookup("utf-8")
    return body.decode(coding.name, "replace").removeprefix("\ufeff")


def http_facts(response: OutboundResponse) -> dict[str, Any]:
    """`{status, headers}`: repeated headers are joined with a comma, cookies left out."""
    headers: dict[str, str] = {}
    for name, value in list(response.headers)[:KEPT_HEADERS]:
        if name != "set-cookie":
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return {"status": response.status, "headers": headers}


def shaped(response: OutboundResponse, *, connection: str) -> ToolValue:
    """The value of a response of success. Raises ToolError for any other."""
    if 200 <= response.status < 300:
        return ToolValue(value_of(response), http_facts(response))
    if response.status == 304:
        return ToolValue(None, http_facts(response))
    raise failure(response, connection=connection)


def failure(response: OutboundResponse, *, connection: str) -> ToolError:
    """What the upstream said, as a ToolError that a script can act on."""
    body = _said(response)
    details: dict[str, Any] = {"body": _cut(body)}
    for name in ("location", "retry-after", "x-request-id"):
        value = response.header(name)
        if value is not None:
            details[name] = value[:500]
    said = message_in(body)
    status = response.status
    if status == 401 and response.credentialed:
        return ToolError(
            "credential_rejected",
            f"The server rejected the credential of {connection}" + (f": {said}" if said else "."),
            hint=f"Renew the secret of the connection {connection}, then try again.",
            details=details,
            status=status,
        )
    text = f"The server answered {status}" + (f": {said}" if said else ".")
    return ToolError(
        "upstream_error", text, hint=_hint(status, response), details=details, status=status, retryable=_again(status)
    )


def _said(response: OutboundResponse) -> Any:
    """The body of a refusal: as the value that it says to be, and as text where it is not; None when it is empty."""
    try:
        body = value_of(response)
    except ToolError:
        return _text(response.body, media_of(response)[1])
    return _text(response.body, media_of(response)[1]) if codec.too_deep(body) else body


def _again(status: int) -> bool:
    return status in (408, 425, 429, 500, 502, 503, 504)


def _hint(status: int, response: OutboundResponse) -> str | None:
    if status == 401 and not response.credentialed:
        return "No credential was sent: give the connection a secret with `executor connect`."
    if status in (429, 503) and (after := response.header("retry-after")):
        return f"The server asks to wait: Retry-After is {after[:40]}."
    if 300 <= status < 400:
        return "Redirects of this kind are not followed; details.location says where it points."
    return None


def message_in(body: Any, depth: int = 0) -> str:
    """The sentence in an error body that says what went wrong, or ""."""
    if isinstance(body, str):
        text = " ".join(body[: MAX_TEXT * 2].split())
        return "" if text.startswith("<") else text[:MAX_TEXT]
    if isinstance(body, list) and body and depth < 4:
        return "; ".join(filter(None, (message_in(item, depth + 1) for item in body[:3])))[:MAX_TEXT]
    if not isinstance(body, dict) or depth >= 4:
        return ""
    for key in _MESSAGES:
        if isinstance(body.get(key), str) and body[key].strip():
            return message_in(body[key], depth + 1)
    for key in _NESTED:
        if found := message_in(body.get(key), depth + 1):
            return found
    return ""


def _cut(body: Any) -> Any:
    """An error body small enough to hand on whole; otherwise the beginning of its text."""
    if isinstance(body, bytes):
        return body if len(body) <= MAX_DETAIL else body[:MAX_DETAIL]
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    return body if len(text) <= MAX_DETAIL else text[:MAX_DETAIL]
