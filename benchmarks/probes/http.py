"""The HTTP door: a real server process, a real load generator process, both on this machine's cores."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.measure import Figure
from benchmarks.server import serving

PROBE = "http"


def run(scale: float) -> list[Figure]:
    seconds = 10 * max(scale, 0.2)
    figures: list[Figure] = []
    with serving() as (host, port, key):
        for clients, target in ((1, None), (2, None), (8, 600.0), (64, None)):
            best = _load(host, port, key, clients, seconds)
            if clients == 1:
                figures.append(
                    Figure(PROBE, "POST /run 1+1, one client", best["p50_ms"], "ms", 4.0, extra={"p99": best["p99_ms"]})
                )
            figures.append(
                Figure(
                    PROBE,
                    f"throughput at {clients} clients",
                    best["per_second"],
                    "runs/s",
                    target,
                    better="higher",
                    extra={"p50_ms": best["p50_ms"], "p99_ms": best["p99_ms"], "bad": best["bad"]},
                )
            )
    return figures


def _load(host: str, port: int, key: str, clients: int, seconds: float) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.load", host, str(port), key, str(clients), str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    parsed: dict[str, float] = json.loads(done.stdout)
    return parsed
