"""A journal read back: the steps of a run, what each asked for, and how the run went on from there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bridge.wire.errors import FrameError
from runtime import journal


class Asked(NamedTuple):
    """A call that came out of the isolate."""

    id: int
    path: str
    meta: bool
    args_sha256: bytes


class Known(NamedTuple):
    """The answer to a call: msgpack, or `[sha256, size]` of the blob that holds it."""

    id: int
    ok: bool
    value: Any


class Went(NamedTuple):
    """How a run went on after a pause."""

    now_us: int
    answers: list[Known]


@dataclass(slots=True)
class Step:
    """The run paused: the fuel used by then, the new calls, the next timer, and how it went on (None: it did not)."""

    fuel: int
    asked: list[Asked]
    wake_us: int | None
    went: Went | None = None


@dataclass(slots=True)
class History:
    """`ending` is (fuel, code) where the journal was closed; `image` is empty where it does not say."""

    seed: int = 0
    now_us: int = 0
    image: str = ""
    steps: list[Step] = field(default_factory=list)
    ending: tuple[int, str | None] | None = None
    early: dict[int, Known] = field(default_factory=dict)
    """Answers to calls with an effect that the run has not been given yet."""

    @property
    def calls(self) -> int:
        return sum(len(step.asked) for step in self.steps)


def history_of(entries: Iterable[list[Any]]) -> History:
    """Raises FrameError for entries that no run can have written in that order."""
    found = History()
    try:
        for entry in entries:
            _add(found, entry)
    except (ValueError, TypeError, IndexError) as e:
        raise FrameError("the journal is damaged") from e
    return found


def _add(found: History, entry: list[Any]) -> None:
    kind, *facts = entry
    if kind == journal.START:
        _, _, found.seed, found.now_us, *rest = facts
        found.image = rest[0] if rest else ""
    elif kind == journal.PAUSE:
        fuel, asked, wake_us = facts
        if found.steps and found.steps[-1].went is None:
            raise ValueError("a pause after a pause")
        found.steps.append(Step(fuel, [Asked(*each) for each in asked], wake_us))
    elif kind == journal.RESUME:
        now_us, answers = facts
        if found.steps[-1].went is not None:
            raise ValueError("a run went on twice")
        given = [Known(*each) for each in answers]
        found.steps[-1].went = Went(now_us, [found.early.pop(one.id, one) for one in given])
    elif kind == journal.ANSWER:
        known = Known(*facts)
        found.early[known.id] = known
    elif kind == journal.END:
        fuel, code = facts
        found.ending = (fuel, code)
    else:
        raise ValueError("an entry of an unknown kind")
