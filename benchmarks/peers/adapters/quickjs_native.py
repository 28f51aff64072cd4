"""The `quickjs` package: QuickJS as native code."""

import sys
import time
from pathlib import Path
from typing import Any

import quickjs

sys.path.insert(0, str(Path(__file__).parent))

from asking import MEMORY, WALL_S, main


class Native:
    def __init__(self, language: str) -> None:
        pass

    def evaluate(self, source: str) -> Any:
        context = quickjs.Context()
        context.set_memory_limit(MEMORY)
        context.set_time_limit(WALL_S)
        return context.eval(source)

    def called(self, count: int) -> float:
        # Its time limit forbids calls to the host.
        context = quickjs.Context()
        context.set_memory_limit(MEMORY)
        context.add_callable("echo", lambda value: value)
        start = time.perf_counter()
        context.eval(f"for (let i = 0; i < {count}; i++) echo(i)")
        return time.perf_counter() - start


main(Native)
