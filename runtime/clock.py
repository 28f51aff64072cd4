"""The virtual clock of a run: it starts at the real time and moves only when the isolate is stepped."""

from __future__ import annotations

import time


class Clock:
    """Microseconds since the Unix epoch, never going back, whatever the system's clock does meanwhile."""

    __slots__ = ("_last", "_offset")

    def __init__(self) -> None:
        self._offset = time.time_ns() // 1000 - time.monotonic_ns() // 1000
        self._last = 0

    def now_us(self, at_least: int = 0) -> int:
        """The time of the next step: now, but not before `at_least` or an earlier step."""
        self._last = max(self._last, at_least, self._offset + time.monotonic_ns() // 1000)
        return self._last

    def real_us(self) -> int:
        """The real time, on this clock's scale."""
        return self._offset + time.monotonic_ns() // 1000
