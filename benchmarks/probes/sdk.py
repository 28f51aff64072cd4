"""The SDK door end to end: `1+1`, the bridge round trip through both walls, and calls made at once."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import anyio

from benchmarks.measure import Figure, latency, timed_async
from executor import Executor

PROBE = "sdk"
ECHO = "tools.bench.org.main.echo"


def run(scale: float) -> list[Figure]:
    return anyio.run(_measure, scale)


async def _measure(scale: float) -> list[Figure]:
    figures: list[Figure] = []
    async with Executor.open() as ex:

        async def once() -> None:
            result = await ex.run("1+1", language="javascript")
            assert result.result == 2, result

        figures.append(latency(PROBE, 'ex.run("1+1")', await timed_async(once, samples=int(1000 * scale)), target=1.5))

        async def typed() -> None:
            result = await ex.run("const n: number = 1; n + 1")
            assert result.result == 2, result

        figures.append(
            latency(PROBE, "the same with a TypeScript annotation", await timed_async(typed, samples=int(200 * scale)))
        )

        async def nap(args: dict[str, Any]) -> int:
            await anyio.sleep(0.05)
            return 1

        ex.tool("bench.org.main.nap", nap, side_effect="read")
        script = "(await Promise.all([...Array(10)].map(() => tools.bench.org.main.nap({})))).length"

        async def ten() -> None:
            result = await ex.run(script, language="javascript")
            assert result.result == 10, result

        figures.append(
            latency(
                PROBE,
                "ten 50 ms calls at once",
                await timed_async(ten, samples=max(5, int(40 * scale)), warmup=3),
                target=56,
            )
        )
        figures += await _round_trips(ex, scale)
    return figures


async def _round_trips(ex: Executor, scale: float) -> list[Figure]:
    """One await after another inside one script; the host notes when each call reaches the tool."""
    figures: list[Figure] = []
    arrivals: list[float] = []

    async def echo(args: dict[str, Any]) -> Any:
        arrivals.append(time.perf_counter())
        return args["v"]

    ex.tool("bench.org.main.echo", echo, side_effect="read")
    for label, size, target in (("100 B", 100, 120.0), ("10 kB", 10_000, None), ("1 MB", 900_000, None)):
        count = int((200 if size < 100_000 else 20) * max(scale, 0.3))
        samples: list[float] = []
        for _ in range(5):
            arrivals.clear()
            script = f"const v = 'x'.repeat({size}); for (let i = 0; i < {count}; i++) await {ECHO}({{v}}); 1"
            result = await ex.run(script, language="javascript")
            assert result.status == "completed", result
            samples += [b - a for a, b in pairwise(arrivals)]
        figure = latency("bridge", f"round trip, {label} both ways", samples, unit="µs", target=target)
        figures.append(figure.of_series("round trip, by bytes each way", size))
    for at_once in (1, 2, 8, 32):
        figures.append((await _at_once(ex, at_once, scale)).of_series("a call, by calls at once", at_once))
    return figures


async def _at_once(ex: Executor, at_once: int, scale: float) -> Figure:
    """Time per call when so many are on their way at a time."""
    rounds = max(5, int(100 * scale))
    script = (
        f"for (let i = 0; i < {rounds}; i++)"
        f" await Promise.all([...Array({at_once})].map(() => {ECHO}({{v: 'x'.repeat(100)}}))); 1"
    )
    samples: list[float] = []
    for _ in range(5):
        started = time.perf_counter()
        result = await ex.run(script, language="javascript", budgets={"bridge_calls": 10_000})
        assert result.status == "completed", result
        samples.append((time.perf_counter() - started) / rounds / at_once)
    return latency("bridge", f"a call when {at_once} are made at once", samples, unit="µs")
