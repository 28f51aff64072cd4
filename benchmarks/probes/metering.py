"""What metering costs, and whether its figures are the same everywhere: fuel on and off, epochs, three processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import wasmtime

from benchmarks.guest import LIMITS, javascript
from benchmarks.measure import Figure, ratio
from guest import images
from runtime.engine import protocol, settings
from runtime.isolate import Isolate

PROBE = "metering"
_LOOP = "(function () { let s = 0; for (let i = 0; i < 1e6; i++) s = (s + i) | 0; return s })()"
_MIXED = """
const seen = [];
for (let i = 0; i < 2000; i++) seen.push({ i, r: Math.random(), t: Date.now(), s: String(i).repeat(3) });
seen.sort((a, b) => a.r - b.r); JSON.stringify(seen).length
"""
_CHILD = f"""
import hashlib, json
from benchmarks.guest import LIMITS, javascript
from runtime.engine import protocol
from runtime.isolate import Isolate
with Isolate(javascript(), fuel=LIMITS.fuel, memory_bytes=LIMITS.memory_bytes) as isolate:
    data = protocol.start_input({_MIXED!r}, b"\\xc0", 7, LIMITS)
    output = protocol.read_output(isolate.run("start", data, 1_760_000_000_000_000))
    print(json.dumps([isolate.fuel_used, isolate.memory_bytes, hashlib.sha256(output.result).hexdigest()]))
"""


def run(scale: float) -> list[Figure]:
    samples = max(5, int(15 * scale))
    plain, fuel, epoch = (_Bare(fuel=False), _Bare(fuel=True), _Bare(fuel=False, epoch=True))
    times: dict[_Bare, list[float]] = {plain: [], fuel: [], epoch: []}
    whole: list[float] = []
    for _ in range(samples):
        for kind, taken in times.items():
            taken.append(kind.seconds())
        whole.append(_product())
    figures = [
        ratio(PROBE, "a loop with fuel against one without any metering", times[fuel], times[plain], target=None),
        ratio(PROBE, "a loop with epochs against one without any metering", times[epoch], times[plain], target=None),
        ratio(
            PROBE,
            "a loop in the product (fuel, in slices on a fiber) against fuel alone",
            whole,
            times[fuel],
            target=None,
        ),
    ]
    seen = {_process() for _ in range(3)}
    figures.append(
        Figure(PROBE, "different (fuel, memory, result) of one script in three processes", len(seen), "", 1.0)
    )
    return figures


class _Bare:
    """The image under the plain Python API, one configuration of the engine."""

    def __init__(self, *, fuel: bool, epoch: bool = False) -> None:
        config = wasmtime.Config()
        config.strategy = "cranelift"
        config.cranelift_opt_level = "speed"
        config.consume_fuel = fuel
        config.epoch_interruption = epoch
        config.max_wasm_stack = settings.MIB  # the C API's default for a thread's own stack
        self._fuel, self._epoch = fuel, epoch
        self._engine = wasmtime.Engine(config)
        self._module = wasmtime.Module(self._engine, images.load("javascript").wasm)

    def seconds(self) -> float:
        store = wasmtime.Store(self._engine)
        if self._fuel:
            store.set_fuel(10**11)
        if self._epoch:
            store.set_epoch_deadline(1)
        exports = wasmtime.Instance(store, self._module, []).exports(store)
        memory = exports["memory"]
        data = protocol.start_input(_LOOP, b"\xc0", 1, LIMITS)
        at = exports["io"](store)  # type: ignore[operator]
        memory.write(store, data, at)  # type: ignore[union-attr]
        start = time.perf_counter()
        packed = exports["start"](store, at, len(data), 0)  # type: ignore[operator]
        taken = time.perf_counter() - start
        output = memory.read(store, packed >> 32, (packed >> 32) + (packed & 0xFFFFFFFF))  # type: ignore[union-attr]
        assert protocol.read_output(bytes(output)).result is not None
        store.close()
        return taken


def _product() -> float:
    data = protocol.start_input(_LOOP, b"\xc0", 1, LIMITS)
    with Isolate(javascript(), fuel=LIMITS.fuel, memory_bytes=LIMITS.memory_bytes) as isolate:
        start = time.perf_counter()
        assert protocol.read_output(isolate.run("start", data)).result is not None
        return time.perf_counter() - start


def _process() -> tuple[int, int, str]:
    done = subprocess.run([sys.executable, "-c", _CHILD], check=True, capture_output=True, text=True)
    fuel, memory, digest = json.loads(done.stdout)
    return fuel, memory, digest
