"""The guest's speed against native QuickJS of the same sources, every limit on, sample by sample in one run."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks import native
from benchmarks.guest import LIMITS, javascript
from benchmarks.measure import Figure, ratio
from runtime.engine import protocol
from runtime.isolate import Isolate

PROBE = "engine"
SCRIPTS = {
    "loop": "(function () { let s = 0; for (let i = 0; i < 3e6; i++) s = (s + i) | 0; return s })()",
    "calls": "(function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) })(24)",
    "objects": "(function () { const m = {}; for (let i = 0; i < 2e5; i++) m['k' + (i % 999)] = { i }; return 1 })()",
    "JSON": "(function () { const a = []; for (let i = 0; i < 1e4; i++) a.push({ i, s: 'x' + i }); let n = 0;"
    " for (let k = 0; k < 5; k++) n += JSON.parse(JSON.stringify(a)).length; return n })()",
    "strings": "(function () { let s = ''; for (let i = 0; i < 1e5; i++) s += i; return s.split('1').length })()",
    "sort": "(function () { const a = []; for (let i = 0; i < 5e4; i++) a.push((i * 7919) % 50021);"
    " return a.sort((x, y) => x - y)[5] })()",
}


def run(scale: float) -> list[Figure]:
    image = javascript()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, source in SCRIPTS.items():
            script = Path(folder) / f"{name}.js"
            script.write_text(source)
            data = protocol.start_input(source, b"\xc0", 1, LIMITS)
            ours, theirs, fuel = [], [], 0
            for _ in range(max(5, int(15 * scale))):
                with Isolate(image, fuel=LIMITS.fuel, memory_bytes=LIMITS.memory_bytes) as isolate:
                    start = time.perf_counter()
                    output = protocol.read_output(isolate.run("start", data))
                    ours.append(time.perf_counter() - start)
                    fuel = isolate.fuel_used
                assert output.result is not None, output
                theirs.append(native.microseconds(script)[0] / 1e6)
            found = ratio(
                PROBE, f"{name}, against native QuickJS", ours, theirs, target=2.0 if name == "loop" else None
            )
            found.extra.update(fuel=fuel, fuel_per_second=fuel / sorted(ours)[len(ours) // 2])
            figures.append(found)
    return figures
