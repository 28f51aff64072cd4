"""Inside a worker, without the process around it: an isolate made, `1+1` answered, dropped; and the engine's floor."""

from __future__ import annotations

import statistics

import wasmtime

from benchmarks.guest import LIMITS, javascript
from benchmarks.measure import Figure, latency, ratio, timed, timed_in_turn
from runtime.engine import protocol, settings
from runtime.engine.image import Image
from runtime.isolate import Isolate

PROBE = "isolate"
_EMPTY = '(module (memory (export "memory") 1) (func (export "f") (result i32) i32.const 2))'


def run(scale: float) -> list[Figure]:
    samples = int(2000 * scale)
    image = javascript()
    one = protocol.start_input("1+1", b"\xc0", 1, LIMITS)
    fuel: list[int] = []

    def answered() -> None:
        with Isolate(image, fuel=LIMITS.fuel, memory_bytes=LIMITS.memory_bytes) as isolate:
            output = protocol.read_output(isolate.run("start", one))
            fuel.append(isolate.fuel_used)
        assert output.result == b"\x02"

    def made() -> None:
        Isolate(image, fuel=LIMITS.fuel, memory_bytes=LIMITS.memory_bytes).close()

    engine = settings.engine()
    linker = wasmtime.Linker(engine)
    floor_pre = linker.instantiate_pre(wasmtime.Module(engine, wasmtime.wat2wasm(_EMPTY)))

    def floor() -> None:
        store = wasmtime.Store(engine)
        store.set_fuel(10**9)
        assert floor_pre.instantiate(store).exports(store)["f"](store) == 2  # type: ignore[operator]
        store.close()

    answers, floors = timed_in_turn(answered, floor, samples=samples)
    figures = [
        latency(PROBE, "ready and dropped", timed(made, samples=samples), unit="µs"),
        latency(PROBE, "ready, 1+1 answered, dropped", answers, unit="µs", target=250.0),
        latency(PROBE, "empty wasm module through the public API (floor)", floors, unit="µs"),
        ratio(PROBE, "1+1 against the floor", answers, floors, target=2.5),
        Figure(PROBE, "fuel of 1+1", statistics.median(fuel), "units", extra={"distinct values": len(set(fuel))}),
        _step(image, samples),
    ]
    figures += _cold()
    return figures


def _step(image: Image, samples: int) -> Figure:
    """One resume with an answer of 100 bytes, until the script's next call comes out."""
    source = "for (;;) await tools.a.b.c.d({ v: 'x'.repeat(100) })"
    limits = LIMITS._replace(bridge_calls=10**6)
    with Isolate(image, fuel=LIMITS.fuel, memory_bytes=LIMITS.memory_bytes) as isolate:
        calls = protocol.read_output(isolate.run("start", protocol.start_input(source, b"\xc0", 1, limits))).calls
        number = calls[0].id

        def step() -> None:
            nonlocal number
            answer = protocol.resume_input([protocol.Answer(number, True, b"\xd9\x64" + b"y" * 100)])
            number = protocol.read_output(isolate.run("resume", answer)).calls[0].id

        return latency(PROBE, "one step: answer in, next call out, 100 B", timed(step, samples=samples), unit="µs")


def _cold() -> list[Figure]:
    """From image bytes to an engine that can run: compiled here, and from compiled code."""
    from guest import images

    wasm = images.load("javascript").wasm
    engine = settings.engine()
    compiled = wasmtime.Module(engine, wasm).serialize()
    compiling = timed(lambda: wasmtime.Module(engine, wasm), samples=3, warmup=0)
    loading = timed(lambda: wasmtime.Module.deserialize(engine, compiled), samples=20, warmup=2)
    return [
        latency(PROBE, "compile the image", compiling),
        latency(PROBE, "load the compiled image", loading),
        Figure(PROBE, "image", len(wasm) / 1024, "KiB"),
        Figure(PROBE, "compiled image", len(compiled) / 1024, "KiB"),
    ]
