"""Turns on threads for steps that outlive their first slice: who gets the next slice.

A circle shares a processor poorly: of a hundred runs that compute in turn, none is done before all nearly are, and all
of them miss their deadlines together. So short runs go round, and long ones go one after the other.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from runtime.engine import settings

SHORT: Final = 20
"""Slices (milliseconds, about) that a run goes round for, over all its steps."""
MIDDLE: Final = 200
"""Slices that a run may have before it stands in the line of the longest."""
LONG: Final = 2_000
"""Slices after which a long run goes to the end of its line: what the default budget of fuel buys."""


class Computing(Protocol):
    """What turns need of a run."""

    slices: int
    """Turns it has had."""


R = TypeVar("R", bound=Computing)


class Turns(Generic[R]):
    """`threads` threads that call `turn(run)`, a slice; a run for which it says True waits for another.

    Short runs get slices in a circle. Those that had more stand in one of two lines, where the first keeps its place
    until it is done or has had the slices of its line. The circle and the lines get a slice each, in turn.
    """

    def __init__(self, threads: int, turn: Callable[[R], bool]) -> None:
        self._turn = turn
        self._lines: tuple[deque[R], ...] = (deque(), deque(), deque())
        self._last = 0
        """The line that had the last slice."""
        self._some = threading.Condition(threading.Lock())
        before = threading.stack_size(settings.THREAD_STACK)
        try:
            for index in range(threads):
                threading.Thread(target=self._work, name=f"turns-{index}", daemon=True).start()
        finally:
            threading.stack_size(before)

    def add(self, run: R) -> None:
        """Give `run` turns."""
        with self._some:
            self._line(run).append(run)
            self._some.notify()

    def _work(self) -> None:
        some, turn = self._some, self._turn
        again: R | None = None
        while True:
            with some:
                if again is not None:
                    self._put_back(again)
                while not any(self._lines):
                    some.wait()
                run = self._take()
            again = run if turn(run) else None
            run.slices += 1

    def _line(self, run: R) -> deque[R]:
        return self._lines[0 if run.slices < SHORT else 1 if run.slices < MIDDLE else 2]

    def _take(self) -> R:
        while True:
            self._last = (self._last + 1) % len(self._lines)
            if line := self._lines[self._last]:
                return line.popleft()

    def _put_back(self, run: R) -> None:
        line = self._line(run)
        if run.slices <= SHORT or run.slices == MIDDLE or run.slices % LONG == 0:
            line.append(run)
        else:
            line.appendleft(run)
