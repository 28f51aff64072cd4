"""From a response to the value of a call, and from a refusal to a ToolError that says what the server said."""

from __future__ import annotations

import html
import json
import re
from typing import Any, Final

from bridge.wire import codec
from bridge.wire.errors import ToolError
from catalog.kinds.decoding import media_of, text_of, value_of
from catalog.kinds.reading import read
from catalog.model import Outbound, OutboundResponse, ToolValue
from catalog.patience import retry_after_ms

MAX_TEXT: Final = 1000
"""Characters of an upstream's own error text that are passed on in the message; the whole body is in `details`."""
MAX_DETAIL: Final = 16 * 1024
MAX_SAID: Final = 256 * 1024
"""Bytes of a refusal up to which it is read as the value that it says to be."""
KEPT_HEADERS: Final = 100

_TEXTS: Final = (
    "message",
    "detail",
    "error_description",
    "error_message",
    "errorMessage",
    "description",
    "msg",
    "reason",
    "Message",
    "title",
)
_NESTED: Final = ("error", "errors", "fault", "faultstring", "detail", "data", "status", "Error")
_MARKUP: Final = re.compile(
    r"(?is)<(title|message|faultstring|h1)\b[^>]{0,200}>(?:<!\[CDATA\[)?\s*((?:[^<\]]|\](?!\]>)){1,2000})"
)


def http_facts(response: OutboundResponse) -> dict[str, Any]:
    """`{status, headers, cut?}`: repeated headers are joined with a comma, cookies left out. `cut` is there when the
    value is the beginning of a stream: `{by: "records" | "bytes" | "time", limit}`, time in milliseconds."""
    headers: dict[str, str] = {}
    for name, value in list(response.headers)[:KEPT_HEADERS]:
        if name != "set-cookie":
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    facts: dict[str, Any] = {"status": response.status, "headers": headers}
    if response.cut is not None:
        facts["cut"] = response.cut._asdict()
    return facts


async def shaped(response: OutboundResponse, outbound: Outbound, *, connection: str) -> ToolValue:
    """The value of a response of success. Raises ToolError for any other."""
    if 200 <= response.status < 300:
        return ToolValue(await read(response, outbound), http_facts(response), response.url)
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
    if response.credentialed and (status == 401 or (status == 403 and not _throttled(response))):
        what = "rejected the credential" if status == 401 else "does not permit this with the credential"
        return ToolError(
            "credential_rejected",
            f"The server {what} of {connection}" + (f": {said}" if said else "."),
            hint=response.remedy
            or f"Renew the secret of the connection {connection}, or give its account the right that is missing;"
            f" executor connections check {connection} tries it.",
            details=details,
            status=status,
        )
    text = f"The server answered {status}" + (f": {said}" if said else ".")
    return ToolError(
        "upstream_error",
        text,
        hint=_hint(status, response),
        details=details,
        status=status,
        retryable=_again(status),
        retry_after_ms=retry_after_ms(response.headers) if _again(status) else None,
    )


def _throttled(response: OutboundResponse) -> bool:
    """Some servers say 403 to an account that has asked too often: there is nothing wrong with its credential."""
    exhausted = response.header("x-ratelimit-remaining") == "0" or response.header("ratelimit-remaining") == "0"
    return exhausted or response.header("retry-after") is not None


def _said(response: OutboundResponse) -> Any:
    """The body of a refusal: as the value that it says to be, and as text where it is not; None when it is empty."""
    if len(response.body) > MAX_SAID:
        return text_of(response.body[:MAX_SAID], media_of(response)[1])
    try:
        body = value_of(response)
    except ToolError:
        return text_of(response.body, media_of(response)[1])
    return text_of(response.body, media_of(response)[1]) if codec.too_deep(body, parsed=True) else body


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
    """The sentence in an error body that says what went wrong, or "".

    Read are problem details (RFC 9457), `{error: {message}}`, `{errors: [...]}`, `{message}`, `{detail}`, OAuth's
    `error_description`, and the title of a page or the message of an XML document.
    """
    if isinstance(body, str):
        return _sentence(body)
    if isinstance(body, list) and depth < 4:
        return "; ".join(filter(None, (message_in(item, depth + 1) for item in body[:3])))[:MAX_TEXT]
    if not isinstance(body, dict) or depth >= 4:
        return ""
    for key in _TEXTS:
        if isinstance(body.get(key), str) and body[key].strip():
            return _sentence(body[key])
    for key in _NESTED:
        if found := message_in(body.get(key), depth + 1):
            return found
    return ""


def _sentence(text: str) -> str:
    text = text[:MAX_DETAIL].strip()
    if text.startswith("<"):
        # A title of its own comes before a heading, wherever each stands.
        found = {match[1].lower(): match[2] for match in reversed(list(_MARKUP.finditer(text)))}
        order = ("message", "faultstring", "title", "h1")
        text = html.unescape(next((found[name] for name in order if name in found), ""))
    return " ".join(text[: MAX_TEXT * 2].split())[:MAX_TEXT]


def _cut(body: Any) -> Any:
    """An error body small enough to hand on whole; otherwise the beginning of its text."""
    if isinstance(body, bytes):
        return body if len(body) <= MAX_DETAIL else body[:MAX_DETAIL]
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    return body if len(text) <= MAX_DETAIL else text[:MAX_DETAIL]
