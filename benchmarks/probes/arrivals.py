"""`POST /run` when requests arrive as they please: an open loop at several rates, then with half of them hostile."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from benchmarks.measure import Figure, spread
from benchmarks.server import serving

PROBE = "arrivals"
RATES = (10, 50, 100, 200)


def run(scale: float) -> list[Figure]:
    seconds = max(3.0, 15 * scale)
    with serving() as (host, port, key):
        figures = [
            _arrivals(host, port, key, rate, seconds, 0.0).of_series("requests a second", rate) for rate in RATES
        ]
        figures += [
            _arrivals(host, port, key, rate, seconds, 0.5).of_series("requests a second, half of them hostile", rate)
            for rate in RATES[:2]
        ]
    return figures


def _arrivals(host: str, port: int, key: str, rate: float, seconds: float, hostile: float) -> Figure:
    command = [sys.executable, "-m", "benchmarks.openloop", host, str(port), key, *map(str, (rate, seconds, hostile))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    taken = found.pop("latencies_ms")
    label = f"{rate} a second" + (", half of them hostile: the others" if hostile else "")
    return Figure(PROBE, label, statistics.median(taken), "ms", extra=spread(taken) | found)
