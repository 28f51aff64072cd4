"""Open sessions of MCP clients that speak the protocol of 2025: so many for each key, and so many in all.

A client that opens one more than its key may have makes room with the session of its own that was idle the longest;
where all keys together have too many, the key that has the most makes room. So no key can keep others out.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from bridge.wire.errors import Overloaded

PER_KEY: Final = 100
TOTAL: Final = 1000


@dataclass(slots=True)
class _Session:
    principal: str
    used: float
    busy: int = 0


@dataclass(slots=True)
class Sessions:
    """Knows whose sessions are open, and which of them are in use."""

    per_key: int = PER_KEY
    total: int = TOTAL
    _open: dict[str, _Session] = field(default_factory=dict)
    _opening: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self._open)

    @contextlib.contextmanager
    def opening(self, principal: str) -> Iterator[list[tuple[str, str]]]:
        """Hold a place for a session that is being opened; the ids, with their principals, of those that are to be
        ended for it, which are forgotten. Raises Overloaded where all that could make room are in use."""
        ended: list[tuple[str, str]] = []
        if self._count(principal) >= self.per_key:
            ended.append(self._longest_idle(principal))
        elif len(self._open) + self._opening.total() >= self.total:
            ended.append(self._longest_idle(self._richest()))
        self._opening[principal] += 1
        try:
            yield ended
        finally:
            self._opening[principal] -= 1

    def opened(self, id: str, principal: str) -> None:
        self._open[id] = _Session(principal, time.monotonic())

    def closed(self, id: str, principal: str) -> None:
        """Its own client has ended it; nobody else can."""
        session = self._open.get(id)
        if session is not None and session.principal == principal:
            del self._open[id]

    @contextlib.contextmanager
    def using(self, id: str, principal: str) -> Iterator[None]:
        """Hold a session that a request is under way in. It counts as used by nobody but its own key."""
        session = self._open.get(id)
        if session is None or session.principal != principal:
            yield
            return
        session.busy += 1
        try:
            yield
        finally:
            session.busy -= 1
            session.used = time.monotonic()

    def _count(self, principal: str) -> int:
        return sum(one.principal == principal for one in self._open.values()) + self._opening[principal]

    def _richest(self) -> str:
        counts = Counter(one.principal for one in self._open.values() if not one.busy)
        if not counts:
            raise _full()
        return counts.most_common(1)[0][0]

    def _longest_idle(self, principal: str) -> tuple[str, str]:
        idle = [(one.used, id) for id, one in self._open.items() if one.principal == principal and not one.busy]
        if not idle:
            raise _full()
        _, id = min(idle)
        del self._open[id]
        return id, principal


def _full() -> Overloaded:
    return Overloaded("too many sessions are open, and all of them are in use", hint="end one, or try again later")
