"""Memory, descriptors and processes over ten thousand runs, a part of them hostile: nothing may grow."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import anyio

from benchmarks.machine import descendants, rss_bytes
from benchmarks.measure import Figure
from executor import Executor

PROBE = "drift"
SCRIPTS = ("1+1", "throw new Error('x')", "({a: 'x'.repeat(1e4)})", "for(;;){}", "const f = () => f(); f()")


def run(scale: float) -> list[Figure]:
    with tempfile.TemporaryDirectory() as home:
        return anyio.run(_measure, scale, home)


async def _measure(scale: float, home: str) -> list[Figure]:
    runs, warmup = int(10_000 * scale), int(2_000 * max(scale, 0.5))
    # In a home: without one the records of all these runs are in memory, and that is what would be measured.
    async with Executor.open(home) as ex:

        async def batch(count: int) -> None:
            for at in range(count):
                await ex.run(SCRIPTS[at % len(SCRIPTS)], language="javascript", budgets={"fuel": 20_000_000})

        await batch(warmup)
        before = (rss_bytes(), _descriptors(), len(descendants(os.getpid())))
        await batch(runs)
        after = (rss_bytes(), _descriptors(), len(descendants(os.getpid())))
    mebibytes = (after[0] - before[0]) / 2**20 / (runs / 10_000)
    return [
        Figure(PROBE, "host RSS per 10 000 runs", mebibytes, "MiB", 1.0, extra={"runs": runs}),
        Figure(PROBE, "open descriptors", after[1] - before[1], "", 0),
        Figure(PROBE, "processes", after[2] - before[2], "", 0),
    ]


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
