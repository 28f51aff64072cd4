"""How exactly each limit holds: what was asked against what had been used when it ended the run, for both guests.

1 means that the run ended right at its limit. A limit that is counted stands still at 1; one on time lies above it.
"""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

import anyio

from benchmarks.measure import Figure, spread
from executor import Executor

PROBE = "limits"
TOOL = "tools.bench.org.main"


class Case(NamedTuple):
    """A script that goes over `budget` set to `limit`, and the code that ends it (None: the run goes on without)."""

    budget: str
    limit: int
    code: str | None
    scripts: dict[str, str]
    used: str | None = None
    """Which figure of the usage says how far it came, where it is not the budget's own."""


CASES = (
    Case("fuel", 50_000_000, "fuel_exhausted", {"javascript": "for (;;);", "python": "while True: pass"}),
    Case("wall_ms", 200, "deadline_exceeded", {"javascript": "for (;;);", "python": "while True: pass"}),
    Case(
        "wall_ms while a call is in flight",
        200,
        "deadline_exceeded",
        {"javascript": f"await {TOOL}.nap({{}})", "python": f"{TOOL}.nap()"},
        used="wall_ms",
    ),
    Case(
        "memory_bytes",
        64 << 20,
        "memory_exhausted",
        {
            "javascript": "const kept = []; for (;;) kept.push(new ArrayBuffer(65536))",
            "python": "kept = []\nwhile True: kept.append(bytearray(65536))",
        },
    ),
    Case(
        "bridge_calls",
        20,
        "calls_exhausted",
        {
            "javascript": f"for (;;) await {TOOL}.echo({{}})",
            "python": f"while True: {TOOL}.echo()",
        },
    ),
    Case(
        "log_bytes",
        10_000,
        None,
        {
            "javascript": "for (let i = 0; i < 5000; i++) console.log('xxxxxxxxxx')",
            "python": "for i in range(5000): print('xxxxxxxxxx')",
        },
    ),
)


def run(scale: float) -> list[Figure]:
    return anyio.run(_measure, max(3, int(9 * scale)))


async def _measure(samples: int) -> list[Figure]:
    async with Executor.open() as ex:

        async def nap(args: dict[str, Any]) -> int:
            await anyio.sleep(30)
            return 1

        ex.tool("bench.org.main.nap", nap, side_effect="read")
        ex.tool("bench.org.main.echo", lambda args: 1, side_effect="read")
        return [await _case(ex, case, language, samples) for case in CASES for language in case.scripts]


async def _case(ex: Executor, case: Case, language: str, samples: int) -> Figure:
    budget = case.used or case.budget
    # Python's interpreter is slower to reach any limit but its own fuel; nothing else may end the run first.
    budgets = {"fuel": 10**12, "wall_ms": 60_000, "memory_bytes": 256 << 20} | {budget: case.limit}
    shares = []
    for _ in range(samples):
        result = await ex.run(case.scripts[language], language=language, budgets=budgets)
        code = None if result.error is None else result.error["code"]
        assert code == case.code, (case, language, result.error)
        shares.append(float(result.usage[budget]) / case.limit)
    label = f"{language}: {case.budget} used at the end, of {case.limit}"
    return Figure(PROBE, label, statistics.median(shares), "×", extra=spread(shares) | {"max": max(shares)})
