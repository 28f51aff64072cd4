"""Large bodies: refused where no value of theirs can be small enough, and otherwise read beside the event loop."""

from __future__ import annotations

import gc
import json
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

import anyio.to_thread

from bridge.wire.errors import ToolError
from catalog.kinds.decoding import LARGE, is_json, media_of, value_of
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
    return await anyio.to_thread.run_sync(_read, response, None if bounds is None else bounds.value_bytes)


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
    with _uncollected():
        return value_of(response)


def at_least(body: bytes) -> int:
    """Bytes below which the value of the JSON `body` is not, as msgpack: a few passes over the text, nothing parsed.

    Where it repeats a key, or is no JSON, it says nothing of the value.
    """
    if json.detect_encoding(body) not in ("utf-8", "utf-8-sig"):
        return 0
    kept = len(body.translate(None, _LOOSE))
    return max(0, kept - sum(left * body.count(word) for word, left in _LITERALS) - _ESCAPED * body.count(b"\\u"))


class _Paused:
    count = 0
    lock: Final = Lock()
    was_on = False


@contextmanager
def _uncollected() -> Generator[None]:
    """Without the cyclic collector: a parser makes no cycle, and the collector's walks over the half of a value that is
    there already take several times as long as the parsing, with every other thread waiting."""
    with _Paused.lock:
        if _Paused.count == 0:
            _Paused.was_on = gc.isenabled()
            gc.disable()
        _Paused.count += 1
    try:
        yield
    finally:
        with _Paused.lock:
            _Paused.count -= 1
            if _Paused.count == 0 and _Paused.was_on:
                gc.enable()
