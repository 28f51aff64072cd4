"""The Python image: an isolate's life, the bridge from Python, large values, and a loop beside this host's Python."""

from __future__ import annotations

import statistics
from functools import cache

import msgpack

from benchmarks.guest import LIMITS, MIB
from benchmarks.measure import Figure, latency, ratio, timed
from guest import images
from runtime.engine import protocol, settings
from runtime.engine.image import Image
from runtime.engine.modules import ModuleCache
from runtime.isolate import Isolate

PROBE = "python"
_MEMORY = 128 * MIB
_NOW = 1_760_000_000_000_000
_LOOP = "def work():\n    s = 0\n    for i in range(1_000_000):\n        s += i\n    return s\nwork()"
_FIB = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(22)"
_CALLS = 200


@cache
def image() -> Image:
    """Built where it is not yet, and compiled through the cache."""
    images.build(sets=("python",))
    return Image.load(settings.engine(), ModuleCache().compiled(images.load("python").wasm))


def answered(source: str, value: object = None) -> int:
    """Run a script to its end, every call answered with its own arguments; the fuel it took."""
    limits = LIMITS._replace(memory_bytes=_MEMORY)
    with Isolate(image(), fuel=LIMITS.fuel, memory_bytes=_MEMORY) as isolate:
        data = protocol.start_input(source, msgpack.packb(value), 1, limits)
        said = protocol.read_output(isolate.run("start", data, _NOW))
        while said.result is None:
            assert said.failure is None, said.failure
            answers = [protocol.Answer(call.id, True, call.args) for call in said.calls]
            said = protocol.read_output(isolate.run("resume", protocol.resume_input(answers), _NOW))
        return isolate.fuel_used


def native(source: str) -> None:
    exec(compile(source, "native", "exec"), {})


def run(scale: float) -> list[Figure]:
    few, many = max(3, int(9 * scale)), max(5, int(200 * scale))
    fuel = [answered("1 + 1") for _ in range(5)]
    one = timed(lambda: answered("1 + 1"), samples=many, warmup=5)
    made = timed(lambda: Isolate(image(), fuel=LIMITS.fuel, memory_bytes=_MEMORY).close(), samples=many, warmup=5)
    figures = [
        latency(PROBE, "ready and dropped", made, unit="µs"),
        latency(PROBE, "ready, 1 + 1 answered, dropped", one, target=3.0),
        Figure(PROBE, "fuel of 1 + 1", statistics.median(fuel), "units", extra={"distinct values": len(set(fuel))}),
        _per_call("round trip, awaited", f"for i in range({_CALLS}):\n    await tools.a.b(x=i)\n1", few),
        _per_call(
            "round trip, in a plain function",
            f"def f(i):\n    return tools.a.b(x=i)\nfor i in range({_CALLS}):\n    f(i)\n1",
            few,
        ),
        _more("1 MB of text, out and back", "x = 'y' * 1_000_000\n", "len(tools.a.b(x=x)['x'])", few, 15.0),
        _more(
            "15 000 records (390 kB), out and back",
            "x = [{'id': i, 'v': f'v{i}', 'f': i * .5} for i in range(15_000)]\n",
            "len(tools.a.b(x=x)['x'])",
            few,
            None,
        ),
    ]
    for name, source in (("loop of 10⁶", _LOOP), ("fib(22)", _FIB)):
        inside = timed(lambda source=source: answered(source), samples=few, warmup=1)  # type: ignore[misc]
        outside = timed(lambda source=source: native(source), samples=few, warmup=1)  # type: ignore[misc]
        figures.append(ratio(PROBE, f"{name}, metered, against this machine's Python", inside, outside, target=4.0))
    return figures


def _per_call(name: str, source: str, samples: int) -> Figure:
    base = statistics.median(timed(lambda: answered("1"), samples=samples, warmup=2))
    taken = timed(lambda: answered(source), samples=samples, warmup=2)
    return latency(PROBE, name, [(seconds - base) / _CALLS for seconds in taken], unit="µs", target=250.0)


def _more(name: str, setup: str, more: str, samples: int, target: float | None) -> Figure:
    base = statistics.median(timed(lambda: answered(f"{setup}1"), samples=samples, warmup=1))
    taken = timed(lambda: answered(setup + more), samples=samples, warmup=1)
    return latency(PROBE, name, [seconds - base for seconds in taken], target=target)
