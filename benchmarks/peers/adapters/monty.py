"""pydantic-monty: an interpreter of a subset of Python, in a worker process."""

import sys
import time
from pathlib import Path
from typing import Any

import pydantic_monty

sys.path.insert(0, str(Path(__file__).parent))

from asking import CALLS, MEMORY, WALL_S, main

LIMITS = {"max_memory": MEMORY, "max_feed_duration_secs": WALL_S, "max_suspensions": CALLS}


class Monty:
    def __init__(self, language: str) -> None:
        self._pool = pydantic_monty.Monty().__enter__()

    def evaluate(self, source: str) -> Any:
        with self._pool.checkout(limits=LIMITS) as session:
            return session.feed_run(source)

    def called(self, count: int) -> float:
        with self._pool.checkout(limits=LIMITS) as session:
            start = time.perf_counter()
            session.feed_run(f"for i in range({count}):\n    echo(i)", external_lookup={"echo": lambda value: value})
            return time.perf_counter() - start


main(Monty)
