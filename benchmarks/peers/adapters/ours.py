"""Executor itself, as a program that embeds it would use it."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parent))

from asking import CALLS, MEMORY, WALL_S, main

from executor import Executor

_ASK = {
    "javascript": "for (let i = 0; i < input; i++) await tools.bench.org.main.echo({ i }); 1",
    "python": "for i in range(input): tools.bench.org.main.echo(i=i)\n1",
}


class Ours:
    def __init__(self, language: str) -> None:
        self._language = language
        self._loop = asyncio.new_event_loop()
        self._opened = Executor.open()
        self._executor = self._loop.run_until_complete(self._opened.__aenter__())
        self._executor.tool("bench.org.main.echo", lambda args: args, side_effect="read")

    def evaluate(self, source: str) -> Any:
        return self._run(source, 0, CALLS)

    def called(self, count: int) -> float:
        start = time.perf_counter()
        self._run(_ASK[self._language], count, CALLS)
        return time.perf_counter() - start

    def _run(self, source: str, given: int, calls: int) -> Any:
        memory = MEMORY * 2 if self._language == "python" else MEMORY
        budgets = {"wall_ms": int(WALL_S * 1000), "memory_bytes": memory, "bridge_calls": calls, "fuel": 10**12}
        run = self._executor.run(source, language=self._language, input=given, budgets=budgets)
        return self._loop.run_until_complete(run).unwrap()


main(Ours)
