"""Turns on threads for steps that outlive their first slice: one slice each, then to the back of the queue."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from runtime.engine import settings
from runtime.worker.run import Run


class Turns:
    """`threads` threads that call `turn(run)` for each waiting run in order; a run for which it says True waits again.

    While nothing else waits, a run keeps its thread, so that a lone run pays for no queue.
    """

    def __init__(self, threads: int, turn: Callable[[Run], bool]) -> None:
        self._waiting: SimpleQueue[Run] = SimpleQueue()
        self._turn = turn
        before = threading.stack_size(settings.THREAD_STACK)
        try:
            for index in range(threads):
                threading.Thread(target=self._work, name=f"turns-{index}", daemon=True).start()
        finally:
            threading.stack_size(before)

    def add(self, run: Run) -> None:
        """Give `run` a turn when those before it have had theirs."""
        self._waiting.put(run)

    def _work(self) -> None:
        waiting, turn = self._waiting, self._turn
        while True:
            run = waiting.get()
            while turn(run):
                if not waiting.empty():
                    waiting.put(run)
                    run = waiting.get()
