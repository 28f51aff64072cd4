"""Memory of isolates in one process: what each adds, paused and just made, for both guests and up to 1 000 of them."""

from __future__ import annotations

import gc
from collections.abc import Callable

from benchmarks.guest import LIMITS, javascript
from benchmarks.machine import private_bytes, rss_bytes
from benchmarks.measure import Figure
from benchmarks.probes import python
from runtime.engine import protocol
from runtime.engine.image import Image
from runtime.isolate import Isolate

PROBE = "memory"
_MIB = 2**20
_PAUSED = {
    "javascript": "const rows = [1, 2, 3]; await tools.a.b.c.d({ rows }); rows",
    "python": "rows = [1, 2, 3]\ntools.a.b.c.d(rows=rows)\nrows",
}
_BUSY = {
    "javascript": "const kept = 'x'.repeat(1e6).split(''); await tools.a.b.c.d({}); kept.length",
    "python": "kept = list(range(200_000))\ntools.a.b.c.d()\nlen(kept)",
}


def run(scale: float) -> list[Figure]:
    figures: list[Figure] = []
    counts = (1, 100) if scale < 1 else (1, 100, 1_000)
    for language, image, memory in (
        ("javascript", javascript(), LIMITS.memory_bytes),
        ("python", python.image(), 128 * _MIB),
    ):

        def made(image: Image = image, memory: int = memory) -> Isolate:
            return Isolate(image, fuel=LIMITS.fuel, memory_bytes=memory)

        def paused(source: str, made: Callable[[], Isolate] = made, memory: int = memory) -> Isolate:
            isolate = made()
            data = protocol.start_input(source, b"\xc0", 1, LIMITS._replace(memory_bytes=memory))
            assert protocol.read_output(isolate.run("start", data)).calls
            return isolate

        paused(_PAUSED[language]).close()
        for count in counts:
            target = 0.2 if count == 1_000 and language == "javascript" else None
            figures += [
                _each(f"{language}: idle", made, count, None),
                _each(f"{language}: paused in a call", lambda p=paused, s=_PAUSED[language]: p(s), count, target),  # type: ignore[misc]
            ]
        figures.append(
            _each(
                f"{language}: paused with 200 000 and more values", lambda p=paused, s=_BUSY[language]: p(s), 10, None
            )
        )  # type: ignore[misc]
    return figures


def _each(what: str, make: Callable[[], Isolate], count: int, target: float | None) -> Figure:
    gc.collect()
    before, resident = private_bytes(), rss_bytes()
    held = [make() for _ in range(count)]
    private, shared = private_bytes() - before, rss_bytes() - resident
    for isolate in held:
        isolate.close()
    extra = {"rss_MiB_each": shared / count / _MIB}
    figure = Figure(PROBE, f"{what}, private of each of {count}", private / count / _MIB, "MiB", target, extra=extra)
    return figure.of_series(what, count)
