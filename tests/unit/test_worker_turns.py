"""Who gets the next slice: short runs go round, long ones stand in line."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from runtime.worker.turns import LONG, MIDDLE, SHORT, Turns


@dataclass
class Computing:
    """A run that needs `needs` slices."""

    name: int
    needs: int
    slices: int = 0


@dataclass
class Hall:
    """One thread's turns, which begin once everything has been added."""

    opened: threading.Event = field(default_factory=threading.Event)
    emptied: threading.Event = field(default_factory=threading.Event)
    order: list[int] = field(default_factory=list)
    """Whose each slice was."""
    done: list[int] = field(default_factory=list)
    left: int = 0

    def turn(self, run: Computing) -> bool:
        assert self.opened.wait(30)
        self.order.append(run.name)
        if self.order.count(run.name) < run.needs:
            return True
        self.done.append(run.name)
        self.left -= 1
        if not self.left:
            self.emptied.set()
        return False

    def through(self, *runs: Computing) -> None:
        """Give every run all the turns that it needs."""
        self.left = len(runs)
        turns = Turns(1, self.turn)
        for run in runs:
            turns.add(run)
        self.opened.set()
        assert self.emptied.wait(60)

    def had(self, name: int) -> int:
        """Slices that a run had had when the first of all was done."""
        first = self.done[0]
        end = len(self.order) - self.order[::-1].index(first)
        return self.order[:end].count(name)


def test_of_many_equal_runs_the_first_is_done_before_the_last_has_had_much() -> None:
    hall = Hall()
    hall.through(*(Computing(name, MIDDLE - 1) for name in range(20)))
    assert hall.done == list(range(20))
    assert hall.had(19) <= SHORT


def test_of_longer_ones_too_the_first_are_done_early() -> None:
    hall = Hall()
    hall.through(*(Computing(name, 3 * MIDDLE) for name in range(10)))
    assert hall.done == list(range(10))
    assert hall.had(9) <= MIDDLE


def test_short_runs_overtake_long_ones() -> None:
    hall = Hall()
    hall.through(*(Computing(name, 200) for name in range(5)), *(Computing(name, 3) for name in range(5, 10)))
    assert hall.done == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]


def test_runs_of_middling_length_do_not_wait_for_endless_ones() -> None:
    hall = Hall()
    hall.through(*(Computing(name, 1500) for name in range(3)), *(Computing(name, 100) for name in range(3, 6)))
    assert hall.done == [3, 4, 5, 0, 1, 2]


def test_a_long_run_gets_every_other_slice_however_many_short_ones_there_are() -> None:
    hall = Hall()
    hall.through(Computing(0, 400, slices=MIDDLE), *(Computing(name, SHORT) for name in range(1, 101)))
    assert hall.order[:800].count(0) == 400


def test_a_run_that_has_had_its_share_lets_those_behind_it_pass() -> None:
    hall = Hall()
    hall.through(Computing(0, LONG + 100), Computing(1, 100))
    assert hall.done == [1, 0]
