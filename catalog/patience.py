"""When a server asks to come back later: what it says, and which requests may be made again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import Final

MAX_WAIT_MS: Final = 24 * 60 * 60 * 1000
"""A longer wait than a day is told as a day."""
IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
"""RFC 9110 9.2.2: made twice, they mean what they mean once."""
KEY: Final = "idempotency-key"
"""The header by which a caller says that a server knows its request again."""


def retry_after_ms(headers: Sequence[tuple[str, str]]) -> int | None:
    """Milliseconds that Retry-After asks for (RFC 9110 10.2.3: seconds, or a date); None when it does not say."""
    value = next((value.strip() for name, value in headers if name == "retry-after"), "")
    if value.isascii() and value.isdigit():
        return min(int(value[:9]) * 1000, MAX_WAIT_MS)
    try:
        at = parsedate_to_datetime(value)
        return max(0, min(round((at.timestamp() - time.time()) * 1000), MAX_WAIT_MS))
    except (ValueError, OverflowError, OSError):
        return None


def repeatable(method: str, headers: Sequence[tuple[str, str]]) -> bool:
    """Whether the request may be made again after a refusal that promises no effect (429, 503)."""
    return method in IDEMPOTENT or any(name == KEY and value for name, value in headers)
