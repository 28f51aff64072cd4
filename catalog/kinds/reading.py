"""Large bodies: refused where no value of theirs can be small enough, and otherwise read beside the event loop."""

from __future__ import annotations

import json
from typing import Any, Final

from bridge.wire.errors import ToolError
from catalog.kinds.decoding import is_json, media_of, value_of
from catalog.large import LARGE, beside
from catalog.model import Outbound, OutboundResponse

_LITERALS: Final = ((b"true", 3), (b"false", 4), (b"null", 4))
"""What of each word is still there after `_LOOSE` is gone; the word itself takes one byte."""
_LOOSE: Final = b' \t\r\n0123456789+-.eE[]{}:,"\\'
"""What JSON may say without a byte of the value for it: a number has any number of digits, and nine bytes."""
_ESCAPED: Final = 5
"""Letters that an escape of four digits may leave of itself, for one byte."""
_PLAIN_CHARSETS: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})


async def read(response: OutboundResponse, outbound: Outbound) -> Any:
    """`decoding.value_of`, raising what it raises, and too_large for JSON whose value is more than the call may have,
    which is then not parsed."""
    if len(response.body) <= LARGE:
        return value_of(response)
    bounds = outbound.context
    return await beside(_read, response, None if bounds is None else bounds.value_bytes)


def _read(response: OutboundResponse, most: int | None) -> Any:
    media, charset = media_of(response)
    plain = charset is None or charset.lower() in _PLAIN_CHARSETS
    if most is not None and len(response.body) > most and plain and (is_json(media) or not media):
        size = at_least(response.body)
        if size > most:
            raise ToolError(
                "too_large",
                f"The answer takes more than {size} bytes; at most {most} come back.",
                hint="Ask for less: a page, a range, or fewer fields.",
                details={"limit": most},
                status=response.status,
            )
    return value_of(response)


def at_least(body: bytes) -> int:
    """Bytes below which the value of the JSON `body` is not, as msgpack: a few passes over the text, nothing parsed.

    Where it repeats a key, or is no JSON, it says nothing of the value.
    """
    if json.detect_encoding(body) not in ("utf-8", "utf-8-sig"):
        return 0
    kept = len(body.translate(None, _LOOSE))
    return max(0, kept - sum(left * body.count(word) for word, left in _LITERALS) - _ESCAPED * body.count(b"\\u"))
