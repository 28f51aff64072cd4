"""What the check of one value may cost, and what it found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

__all__ = ["Fit", "Misfit", "TooMuchWork", "Unusable", "Work"]

_SLICE: Final = 2_000
"""Steps between pauses: one to two milliseconds."""
_PAUSE_S: Final = 0.0001


class TooMuchWork(Exception):
    """Raised when the allowance is used up, or was taken away."""


class Unusable(Exception):
    """Raised for a keyword of a strict schema that could not be applied as it is written."""


class Work:
    """An allowance of steps. With `pauses`, other threads get a turn every so often; `stop()` ends it from one."""

    __slots__ = ("_left", "_pauses", "_rest", "_stopped")

    def __init__(self, steps: int, *, pauses: bool = False) -> None:
        self._pauses = pauses
        self._stopped = False
        self._left = 0
        self._rest = 0
        self.grant(steps)

    def grant(self, steps: int) -> None:
        self._left = min(steps, _SLICE) if self._pauses else steps
        self._rest = steps - self._left

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            self._refill()

    def _refill(self) -> None:
        self._rest += self._left
        if self._rest < 0 or self._stopped or not self._pauses:
            raise TooMuchWork
        # Another thread, such as the event loop's, would wait for the interpreter's whole switch interval.
        time.sleep(_PAUSE_S)
        self._left = min(self._rest, _SLICE)
        self._rest -= self._left

    def stop(self) -> None:
        self._stopped = True


class Misfit:
    """`value` at `path` (innermost step first) against what `keyword` wanted of it."""

    __slots__ = ("keyword", "path", "value", "wanted")

    def __init__(self, keyword: str, value: Any, wanted: Any) -> None:
        self.keyword = keyword
        self.value = value
        self.wanted = wanted
        self.path: list[str | int] = []

    def under(self, step: str | int) -> Misfit:
        self.path.append(step)
        return self


Fit = Callable[[Any, Work], Misfit | None]
