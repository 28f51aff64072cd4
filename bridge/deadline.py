"""A time limit around one call of an integration."""

from __future__ import annotations

import asyncio
import math
import types
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlines:
    """The time limits of many calls of one event loop, with one timer for all of them.

    Most calls end long before their limit, so that a timer of its own would only be made and taken back.
    """

    def __init__(self) -> None:
        self._open: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf

    def until(self, when: float) -> Deadline:
        """`await deadlines.until(when).over(work)` ends what `work` awaits at `when` on the loop's clock."""
        return Deadline(self, when)

    def add(self, deadline: Deadline, loop: asyncio.AbstractEventLoop) -> None:
        """Watch over a limit until it is discarded."""
        self._open.add(deadline)
        if deadline.when < self._due:
            self._arm(deadline.when, loop)

    def discard(self, deadline: Deadline) -> None:
        """Forget a limit. The timer stays: the next limits are later than it, as a rule."""
        self._open.discard(deadline)

    def _arm(self, when: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = when
        self._timer = loop.call_at(when, self._fire, loop)

    def _fire(self, loop: asyncio.AbstractEventLoop) -> None:
        # What the loop calls for this timer is due, though its clock may stand a little before.
        due, self._due, self._timer = max(self._due, loop.time()), math.inf, None
        for deadline in [one for one in self._open if one.when <= due]:
            self._open.discard(deadline)
            deadline.pass_()
        if self._open:
            self._arm(min(one.when for one in self._open), loop)


class Deadline:
    """The limit of one piece of work; `passed` says whether it ended it. Made by `Deadlines.until`.

    A cancellation from elsewhere goes through. `asyncio.timeout_at` does the same at many times the cost, which every
    call would pay.
    """

    __slots__ = ("_all", "_left", "_pending", "_task", "passed", "when")

    def __init__(self, all: Deadlines, when: float) -> None:
        self.passed = False
        self.when = when
        self._all = all
        self._task: asyncio.Task[Any] | None = None
        """Whose waiting is watched; None until it waits."""

    @types.coroutine
    def over(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T | None]:
        """What `work` returns; None where the time is over before, and `passed` is set.

        Work that never waits, as most of a tool in this process, is not watched.
        """
        try:
            waits_for = work.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        with self:
            return (yield from _gone_on(work, waits_for))
        return None

    def __enter__(self) -> Deadline:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._pending = task.cancelling()
        self._all.add(self, task.get_loop())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._all.discard(self)
        if not self.passed or self._task is None:
            return False
        others = self._task.uncancel() > self._pending
        return not others and kind is not None and issubclass(kind, asyncio.CancelledError)

    def stop(self) -> None:
        """Let the time stand still."""
        self._left = self.when - asyncio.get_running_loop().time()
        self._all.discard(self)

    def go_on(self) -> float:
        """When it ends now, with what was left when it was stopped."""
        loop = asyncio.get_running_loop()
        self.when = loop.time() + self._left
        if self._task is not None:
            self._all.add(self, loop)
        return self.when

    def pass_(self) -> None:
        """The time is over: end what the block awaits."""
        if self._task is not None:
            self.passed = True
            self._task.cancel()


def _gone_on(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """What `yield from` does, for work that waits already."""
    try:
        while True:
            try:
                sent = yield waits_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as e:
                waits_for = work.throw(e)
            else:
                waits_for = work.send(sent)
    except StopIteration as done:
        result: T = done.value
        return result
