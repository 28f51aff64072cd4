"""The time that a worker has to stop a run: what the worker does is judged, not the clock of a machine that is busy."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

PATIENCE: Final = 10
"""How many times its grace a worker may take at most, however little of a processor it got."""
BUSY: Final = 2
"""How many times its grace a worker may compute without a word; it has several threads."""

_HERTZ: Final = os.sysconf("SC_CLK_TCK")


class Watched(Protocol):
    """What can be seen of a worker from outside."""

    @property
    def heard(self) -> int:
        """How many frames have come from it."""

    def cpu_s(self) -> float | None:
        """Processor seconds that it has used; None where the system does not tell."""


class Grace:
    """Calls `overran` once a worker has had its grace and does not stop, unless `end` comes first.

    A worker that speaks is alive, and one that got little of a processor could not do better: both are asked again a
    grace later, `PATIENCE` times at most. One that neither spoke nor computed is stuck or stopped.
    """

    def __init__(self, worker: Watched, seconds: float, overran: Callable[[], None]) -> None:
        self._worker, self._seconds, self._overran = worker, seconds, overran
        self._left = PATIENCE
        self._heard = worker.heard
        self._silent_since = self._cpu = worker.cpu_s()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._due)

    def end(self) -> None:
        self._timer.cancel()

    def _due(self) -> None:
        self._left -= 1
        if self._left and self._excused():
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._due)
        else:
            self._overran()

    def _excused(self) -> bool:
        heard, before = self._heard, self._cpu
        self._heard, self._cpu = self._worker.heard, self._worker.cpu_s()
        if self._heard != heard:
            self._silent_since = self._cpu
            return True
        if self._cpu is None or before is None or self._silent_since is None:
            return False
        return before < self._cpu < self._silent_since + BUSY * self._seconds


def cpu_seconds(pid: int) -> float | None:
    """Processor seconds that the threads of a process have used; None where there is no such process, or no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / _HERTZ
