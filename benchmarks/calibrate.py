"""Advice on budgets: what a second of this machine is in fuel, for scripts of several kinds, and what follows."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

import msgpack

from benchmarks.guest import LIMITS, javascript
from benchmarks.probes import python
from runtime.budgets import TABLE
from runtime.engine import protocol
from runtime.isolate import Isolate

LONGEST_S: Final = 600.0
ROUNDS: Final = 5
JAVASCRIPT: Final = {
    "arithmetic": "let s = 0; for (let i = 0; i < 2e6; i++) s = (s + i * 3) | 0; s",
    "objects": "const m = {}; for (let i = 0; i < 2e5; i++) m['k' + (i % 999)] = { i }; 1",
    "text": "let s = ''; for (let i = 0; i < 2e5; i++) s += i; s.split('1').length",
    "JSON": "const a = []; for (let i = 0; i < 2e4; i++) a.push({ i, s: 'x' + i });"
    " JSON.parse(JSON.stringify(a)).length",
}
PYTHON: Final = {
    "arithmetic": "s = 0\nfor i in range(400_000): s += i * 3\ns",
    "objects": "m = {}\nfor i in range(100_000): m[f'k{i % 999}'] = {'i': i}\n1",
    "text": "len(''.join(str(i) for i in range(200_000)).split('1'))",
    "JSON": "import json\nlen(json.loads(json.dumps([{'i': i, 's': f'x{i}'} for i in range(20_000)])))",
}


def advise(seconds: float, progress: Callable[[str], None]) -> dict[str, Any]:
    """Fuel per second by language and kind of script, and budgets that let a script compute for `seconds`.

    `fuel` is what the kind that burns fastest takes in that time, so that no script is stopped sooner than wanted;
    `slowest_s` is how long the one that burns slowest may then go on, which `wall_ms` bounds.
    """
    found: dict[str, Any] = {"seconds": seconds, "languages": {}}
    for language, scripts in (("javascript", JAVASCRIPT), ("python", PYTHON)):
        rates = {}
        for kind, source in scripts.items():
            progress(f"{language}: {kind}")
            rates[kind] = statistics.median(_rate(language, source) for _ in range(ROUNDS))
        fuel = min(_rounded(max(rates.values()) * seconds), TABLE["fuel"].ceiling)
        wall = min(math.ceil(seconds * 1.2) * 1000, TABLE["wall_ms"].ceiling)
        found["languages"][language] = {
            "fuel_per_second": {kind: round(rate) for kind, rate in rates.items()},
            "slowest_s": round(fuel / min(rates.values()), 2),
            "budgets": {"fuel": fuel, "wall_ms": wall},
        }
    return found


def shown(advice: dict[str, Any]) -> str:
    """The advice as a person reads it."""
    lines = [f"For scripts that may compute about {advice['seconds']:g} s on this machine:", ""]
    for language, one in advice["languages"].items():
        rates = ", ".join(f"{kind} {rate / 1e9:.2f}" for kind, rate in one["fuel_per_second"].items())
        budgets = one["budgets"]
        lines += [
            f"{language}",
            f"  burns (10⁹ fuel a second)  {rates}",
            f'  budgets  {{"fuel": {budgets["fuel"]}, "wall_ms": {budgets["wall_ms"]}}}',
            f"  what burns slowest would reach that fuel after {one['slowest_s']:g} s: wall_ms ends it before",
            "",
        ]
    lines.append("wall_ms counts tool calls too: add the time that they may take. Fuel is the same on every machine.")
    return "\n".join(lines)


def _rate(language: str, source: str) -> float:
    image = javascript() if language == "javascript" else python.image()
    memory = max(LIMITS.memory_bytes, 256 << 20)
    limits = LIMITS._replace(memory_bytes=memory)
    with Isolate(image, fuel=LIMITS.fuel, memory_bytes=memory) as isolate:
        data = protocol.start_input(source, msgpack.packb(None), 1, limits)
        start = time.perf_counter()
        output = protocol.read_output(isolate.run("start", data))
        taken = time.perf_counter() - start
        assert output.result is not None, output.failure
        return isolate.fuel_used / taken


def _rounded(fuel: float) -> int:
    """Two digits, upwards: a figure that a person can read."""
    unit = 10 ** max(0, math.floor(math.log10(fuel)) - 1)
    return math.ceil(fuel / unit) * unit
