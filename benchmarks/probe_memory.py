"""Memory of paused isolates in one process: private pages per isolate, for 1, 100 and 1 000 of them."""

from __future__ import annotations

import gc

from benchmarks.guest import LIMITS, javascript
from benchmarks.machine import private_bytes, rss_bytes
from benchmarks.measure import Figure
from runtime.engine import protocol
from runtime.isolate import Isolate

PROBE = "memory"
_PAUSED = "const rows = [1, 2, 3]; await tools.a.b.c.d({ rows }); rows"


def run(scale: float) -> list[Figure]:
    image = javascript()
    data = protocol.start_input(_PAUSED, b"\xc0", 1, LIMITS)
    figures: list[Figure] = []

    def paused() -> Isolate:
        isolate = Isolate(image, fuel=LIMITS.fuel, memory_bytes=LIMITS.memory_bytes)
        assert protocol.read_output(isolate.run("start", data)).calls
        return isolate

    paused().close()
    for count in (100, 1_000):
        gc.collect()
        before, resident = private_bytes(), rss_bytes()
        held = [paused() for _ in range(count)]
        private, shared = private_bytes() - before, rss_bytes() - resident
        for isolate in held:
            isolate.close()
        target = 0.2 if count == 1_000 else None
        figures.append(
            Figure(
                PROBE,
                f"private per paused isolate, {count} of them",
                private / count / 2**20,
                "MiB",
                target,
                extra={"rss_MiB_each": shared / count / 2**20},
            )
        )
    return figures
