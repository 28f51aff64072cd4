"""Runs that survive: a replay, a waiting run taken up again, and many that wait through a restart."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import anyio

from benchmarks.measure import Figure, latency, timed_async
from executor import Config, Executor
from runtime import patience

PROBE = "durable"
READS = "for (let i = 0; i < input; i++) await tools.bench.org.main.read({ i });"


def run(scale: float) -> list[Figure]:
    return anyio.run(_measure, scale)


def _tools(ex: Executor) -> None:
    ex.tool("bench.org.main.read", lambda args: {"n": args["i"], "text": "x" * 100}, side_effect="read")
    ex.tool("bench.org.main.write", lambda args: 1, side_effect="write")


async def _measure(scale: float) -> list[Figure]:
    figures: list[Figure] = []
    lingers, patience.LINGER_S = patience.LINGER_S, 0.0
    try:
        with tempfile.TemporaryDirectory() as home:
            async with Executor.open(home, config=Config(workers=1)) as ex:
                _tools(ex)
                for calls in (10, 100, 1000):
                    figures.append(
                        (await _replay(ex, calls, scale)).of_series("replay, by calls in the journal", calls)
                    )
                for calls in (0, 10, 100, 1000):
                    figures.append(
                        (await _taken_up(ex, calls, scale)).of_series("taken up, by earlier calls", calls + 1)
                    )
        with tempfile.TemporaryDirectory() as home:
            figures += await _many(Path(home), max(20, int(500 * scale)))
    finally:
        patience.LINGER_S = lingers
    return figures


async def _replay(ex: Executor, calls: int, scale: float) -> Figure:
    answer = await ex.run(READS, input=calls, budgets={"bridge_calls": 2000})
    assert answer.status == "completed", answer.error

    async def once() -> None:
        assert (await ex.replay_run(answer.run_id)).same

    samples = await timed_async(once, samples=max(3, int(30 * scale)), warmup=1)
    return latency(PROBE, f"replay of a run of {calls} calls", samples)


async def _taken_up(ex: Executor, calls: int, scale: float) -> Figure:
    """From a person's answer to the end of a run that has left memory."""
    times: list[float] = []
    for _ in range(max(3, int(20 * scale))):
        code = f"{READS} await tools.bench.org.main.write({{}})"
        waiting = await ex.run(code, input=calls, budgets={"bridge_calls": 2000})
        while ex.health()["runs"]["running"] + ex.health()["runs"]["queued"]:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
        began = time.perf_counter()
        ended = await ex.resume(waiting.run_id, waiting.interactions[0]["id"], "approve")
        times.append(time.perf_counter() - began)
        assert ended.status == "completed", ended.error
    return latency(PROBE, f"a yes to a waiting run of {calls} earlier calls, to its end", times)


async def _many(home: Path, count: int) -> list[Figure]:
    config = Config(workers=2)
    async with Executor.open(home, config=config) as ex:
        _tools(ex)
        runs = [await ex.run("await tools.bench.org.main.write({ n: input })", input=n) for n in range(count)]
    size = (home / "executor.db").stat().st_size
    async with Executor.open(home, config=config) as ex:
        _tools(ex)
        began = time.perf_counter()
        answers = [ex.resume(run.run_id, run.interactions[0]["id"], "approve") for run in runs]
        records = await asyncio.gather(*answers)
        elapsed = (time.perf_counter() - began) * 1000
        assert all(record.status == "completed" for record in records)
    return [
        Figure(PROBE, f"{count} waiting runs after a restart, all approved: each", elapsed / count, "ms"),
        Figure(PROBE, "bytes on disk of a waiting run", size / count / 1024, "KiB"),
    ]
