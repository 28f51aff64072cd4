"""A time limit around one call of an integration."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Deadline:
    """`with Deadline(when): …` ends what the block awaits at `when` on the loop's clock, and notes it in `passed`.

    A cancellation from elsewhere goes through. `asyncio.timeout_at` does the same at three times the cost, which every
    call would pay.
    """

    __slots__ = ("_handle", "_pending", "_task", "_when", "passed")

    def __init__(self, when: float) -> None:
        self.passed = False
        self._when = when

    def __enter__(self) -> Deadline:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._pending = task.cancelling()
        self._handle = task.get_loop().call_at(self._when, self._fire)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._handle.cancel()
        if not self.passed:
            return False
        others = self._task.uncancel() > self._pending
        return not others and kind is not None and issubclass(kind, asyncio.CancelledError)

    def _fire(self) -> None:
        self.passed = True
        self._task.cancel()
