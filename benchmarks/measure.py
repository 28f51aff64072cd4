"""How a figure is taken: many samples, the median and the tail, and never a single absolute time without its spread."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the results: `value` in `unit`, its spread, and the target it is held against (if any).

    `better` is `lower` or `higher`; `extra` holds what else was seen, such as p99 or a sample count.
    """

    probe: str
    name: str
    value: float
    unit: str
    target: float | None = None
    better: str = "lower"
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.better == "lower" else self.value >= self.target

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"met": self.met}

    def of_series(self, series: str, x: float) -> Figure:
        """This figure as the point at `x` of a line that a drawing shows."""
        return replace(self, extra=self.extra | {"series": series, "x": x})


def spread(samples: Sequence[float]) -> dict[str, Any]:
    """Minimum, quartiles, tail and count of `samples`, in their own unit; of many, every percentile for a drawing."""
    ordered = sorted(samples)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    found: dict[str, Any] = {
        "min": ordered[0],
        "p25": at(0.25),
        "p75": at(0.75),
        "p99": at(0.99),
        "samples": float(len(ordered)),
    }
    if len(ordered) >= 1000:
        found["p99.9"] = at(0.999)
    if len(ordered) >= 20:
        found["percentiles"] = [at(percent / 100) for percent in range(101)]
    return found


def timed(call: Callable[[], object], *, samples: int, warmup: int = 20) -> list[float]:
    """Seconds per call of `call`, `samples` times after `warmup`, with the collector off as timeit does."""
    return timed_in_turn(call, samples=samples, warmup=warmup)[0]


def timed_in_turn(
    *calls: Callable[[], object], samples: int, warmup: int = 20, at_a_time: int = 50
) -> list[list[float]]:
    """Seconds per call of each of `calls`, in turn: what the machine does meanwhile meets all of them alike. Each has
    `at_a_time` calls before the next has its, so that none finds caches that another has filled."""
    for call in calls:
        for _ in range(warmup):
            call()
    taken: list[list[float]] = [[] for _ in calls]
    gc.disable()
    try:
        for done in range(0, samples, at_a_time):
            for call, seconds in zip(calls, taken, strict=True):
                for _ in range(min(at_a_time, samples - done)):
                    start = time.perf_counter()
                    call()
                    seconds.append(time.perf_counter() - start)
    finally:
        gc.enable()
    return taken


async def timed_async(call: Callable[[], Awaitable[object]], *, samples: int, warmup: int = 20) -> list[float]:
    """Seconds per awaited call, like `timed`."""
    for _ in range(warmup):
        await call()
    taken = []
    for _ in range(samples):
        start = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - start)
    return taken


def latency(
    probe: str, name: str, seconds: Sequence[float], *, unit: str = "ms", target: float | None = None
) -> Figure:
    """The median of `seconds` as a Figure in `unit` (`ms` or `µs`)."""
    scale = {"ms": 1e3, "µs": 1e6}[unit]
    scaled = [s * scale for s in seconds]
    return Figure(probe, name, statistics.median(scaled), unit, target, extra=spread(scaled))


def ratio(probe: str, name: str, ours: Sequence[float], theirs: Sequence[float], *, target: float | None) -> Figure:
    """The median of the pairwise ratios ours/theirs, where sample i of both was taken back to back."""
    pairs = [a / b for a, b in zip(ours, theirs, strict=True)]
    return Figure(probe, name, statistics.median(pairs), "×", target, extra=spread(pairs))
