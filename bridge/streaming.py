"""Answers that are streams of records: reading one stops at a bound of its own, since some never end."""

from __future__ import annotations

from typing import Final, NamedTuple

import anyio

from catalog.kinds.records import separators
from catalog.model import Cut

MAX_RECORDS: Final = 10_000
MAX_SECONDS: Final = 10.0
SHARE_OF_TIME: Final = 0.8
"""Of the time that is left to the call: what was read must still be handed on before its deadline."""
SHARE_OF_BYTES: Final = 4
"""A stream is cut at a quarter of what an answer may have, because its records are larger as values than as text."""


class Bounds(NamedTuple):
    """Where reading a stream stops, whatever comes first."""

    records: int
    size: int
    seconds: float


def bounds(limit: int, deadline: float | None) -> Bounds:
    """For an answer of at most `limit` bytes to a call that ends at `deadline`, on the loop's clock."""
    seconds = MAX_SECONDS
    if deadline is not None:
        seconds = min(seconds, max(0.0, (deadline - anyio.current_time()) * SHARE_OF_TIME))
    return Bounds(MAX_RECORDS, limit // SHARE_OF_BYTES, seconds)


class Stream:
    """Counts the records of a stream while its bytes come."""

    def __init__(self, separators: tuple[bytes, ...], bounds: Bounds) -> None:
        self.bounds = bounds
        self._records = 0
        self._at = dict.fromkeys(separators, 0)

    @classmethod
    def of(cls, headers: list[tuple[bytes, bytes]], limit: int, deadline: float | None) -> Stream | None:
        """A counter for an answer with these headers; None when it is not a stream, or one that is compressed."""
        named = dict(headers)
        coding = named.get(b"content-encoding", b"").strip().lower()
        found = separators(named.get(b"content-type", b"").decode("latin-1"))
        if not found or coding not in (b"", b"identity"):
            return None
        return cls(found, bounds(limit, deadline))

    def over(self, data: bytearray) -> Cut | None:
        """Why reading stops now that `data` is what has come so far; None to go on."""
        if len(data) > self.bounds.size:
            return Cut("bytes", self.bounds.size)
        for separator, at in self._at.items():
            self._records += data.count(separator, at)
            # A separator may lie across two pieces.
            self._at[separator] = max(at, len(data) - len(separator) + 1)
        return Cut("records", self.bounds.records) if self._records >= self.bounds.records else None

    def late(self) -> Cut:
        return Cut("time", round(self.bounds.seconds * 1000))
