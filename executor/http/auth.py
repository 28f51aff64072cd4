"""Who is asking: one bearer key in the Authorization header, and patience with wrong ones that runs out."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from bridge.wire.errors import Unauthorized
from executor.http.answers import TooManyRequests
from executor.keys import Keyring, KeyRow

BURST: Final = 20
PER_SECOND: Final = 2.0
ADDRESSES: Final = 4096
"""Wrong keys that an address may send at once, how fast that patience grows back, and how many addresses are known."""

QUERY_KEYS: Final = re.compile(rb"(?:^|&)(?:key|api_?key|access_token|token)=", re.IGNORECASE)
"""A key in a URL ends in logs and histories: such a request is refused, whatever else it carries."""


class Doorkeeper:
    """Checks keys. Every failure looks the same: the caller learns that it failed, not why."""

    def __init__(self, keyring: Keyring, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._keyring = keyring
        self._clock = clock
        self._patience: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def admit(self, headers: Iterable[tuple[bytes, bytes]], query: bytes, address: str) -> KeyRow:
        """The key that came with a request.

        Raises Unauthorized when there is not exactly one valid key, and TooManyRequests when `address` has sent too
        many wrong ones. A right key is let in however many wrong ones came from its address.
        """
        presented = [value for name, value in headers if name == b"authorization"]
        scheme, _, key = presented[0].partition(b" ") if len(presented) == 1 else (b"", b"", b"")
        row = await self._keyring.find(key)
        if row is None or scheme.lower() != b"bearer" or (query and QUERY_KEYS.search(query)):
            if presented:
                self._lose_patience(address)
            raise Unauthorized(
                "a valid key is required",
                hint="send `Authorization: Bearer exk_…`; `executor key create` makes a key",
            )
        return row

    def _lose_patience(self, address: str) -> None:
        now = self._clock()
        left, since = self._patience.pop(address, (float(BURST), now))
        left = min(float(BURST), left + (now - since) * PER_SECOND)
        if len(self._patience) >= ADDRESSES:
            self._patience.popitem(last=False)
        self._patience[address] = (max(0.0, left - 1.0), now)
        if left < 1.0:
            raise TooManyRequests("too many wrong keys from this address", retry_after_s=max(1, round(1 / PER_SECOND)))
