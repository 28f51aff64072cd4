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
"""Slices (milliseconds, about) that a run goes round for, over all its steps, before it counts as long."""
LONG: Final = 2_000
"""Slices that a long run has until it stands at the end of the line: what the default budget of fuel buys."""


class Computing(Protocol):
    """What turns need of a run."""

    slices: int
    """Turns it has had."""


R = TypeVar("R", bound=Computing)


class Turns(Generic[R]):
    """`threads` threads that call `turn(run)`, a slice; a run for which it says True waits for another.

    Short runs get slices in a circle. Long runs stand in line, and the first ones, as many as there are threads, keep
    their places until they are done or have had `LONG` slices. While there are both, each kind gets every other slice.
    """

    def __init__(self, threads: int, turn: Callable[[R], bool]) -> None:
        self._turn = turn
        self._short: deque[R] = deque()
        self._long: deque[R] = deque()
        self._long_next = False
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
            (self._short if run.slices < SHORT else self._long).append(run)
            self._some.notify()

    def _work(self) -> None:
        some, turn = self._some, self._turn
        again: R | None = None
        while True:
            with some:
                if again is not None:
                    self._put_back(again)
                while not (self._short or self._long):
                    some.wait()
                run = self._take()
            again = run if turn(run) else None
            run.slices += 1

    def _take(self) -> R:
        long = bool(self._long) and (self._long_next or not self._short)
        self._long_next = not long
        return (self._long if long else self._short).popleft()

    def _put_back(self, run: R) -> None:
        if run.slices < SHORT:
            self._short.append(run)
        elif run.slices == SHORT or run.slices % LONG == 0:
            self._long.append(run)
        else:
            self._long.appendleft(run)
