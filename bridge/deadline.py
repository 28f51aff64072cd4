"""A time limit around one call of an integration."""

from __future__ import annotations

import asyncio
import math
from types import TracebackType


class Deadlines:
    """The time limits of many calls of one event loop, with one timer for all of them.

    Most calls end long before their limit, so that a timer of its own would only be made and taken back.
    """

    def __init__(self) -> None:
        self._open: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf

    def until(self, when: float) -> Deadline:
        """`with deadlines.until(when): …` ends what the block awaits at `when` on the loop's clock."""
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
    """The limit of one block; `passed` says whether it ended it. Made by `Deadlines.until`.

    A cancellation from elsewhere goes through. `asyncio.timeout_at` does the same at many times the cost, which every
    call would pay.
    """

    __slots__ = ("_all", "_left", "_pending", "_task", "passed", "when")

    def __init__(self, all: Deadlines, when: float) -> None:
        self.passed = False
        self.when = when
        self._all = all

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
        if not self.passed:
            return False
        others = self._task.uncancel() > self._pending
        return not others and kind is not None and issubclass(kind, asyncio.CancelledError)

    def stop(self) -> None:
        """Let the time stand still."""
        self._left = self.when - self._task.get_loop().time()
        self._all.discard(self)

    def go_on(self) -> float:
        """When it ends now, with what was left when it was stopped."""
        loop = self._task.get_loop()
        self.when = loop.time() + self._left
        self._all.add(self, loop)
        return self.when

    def pass_(self) -> None:
        """The time is over: end what the block awaits."""
        self.passed = True
        self._task.cancel()
