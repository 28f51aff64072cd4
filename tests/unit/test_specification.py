"""SPECIFICATION.md: every published figure that does not depend on the speed of a machine still holds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import msgpack
import pytest

from benchmarks.guest import LIMITS, javascript
from benchmarks.probes import python
from bridge.wire import frames
from guest import images
from runtime.budgets import MEMORY_DEFAULTS, TABLE
from runtime.engine import protocol
from runtime.engine.image import Image
from runtime.isolate import Isolate
from tests.threats.manifest import threats

PAGE: Final = (Path(__file__).parents[2] / "SPECIFICATION.md").read_text()
_ROW: Final = re.compile(r"^\| `(?P<name>[\w.]+)` \| .* \| (?P<bound>[≤=≥]) (?P<figure>[\d ]+) \|", re.M)
_NOW: Final = 1_760_000_000_000_000
_MEMORY: Final = {"javascript": LIMITS.memory_bytes, "python": MEMORY_DEFAULTS["python"]}


@cache
def used(language: str, source: str) -> tuple[int, int]:
    """Fuel and bytes of memory of a script, seed and clock given."""
    image: Image = javascript() if language == "javascript" else python.image()
    memory = _MEMORY[language]
    with Isolate(image, fuel=LIMITS.fuel, memory_bytes=memory) as isolate:
        given = protocol.start_input(source, msgpack.packb(None), 1, LIMITS._replace(memory_bytes=memory))
        assert protocol.read_output(isolate.run("start", given, _NOW)).result == b"\x02"
        return isolate.fuel_used, isolate.memory_bytes


def modules_of(statement: str) -> set[str]:
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout.splitlines()[-1]))


FIGURES: Final[dict[str, Callable[[], int]]] = {
    "javascript.image_bytes": lambda: len(images.load("javascript").wasm),
    "javascript.fuel": lambda: used("javascript", "1+1")[0],
    "javascript.memory_bytes": lambda: used("javascript", "1+1")[1],
    "python.image_bytes": lambda: len(images.load("python").wasm),
    "python.fuel": lambda: used("python", "1 + 1")[0],
    "python.memory_bytes": lambda: used("python", "1 + 1")[1],
    "frame_bytes": lambda: frames.MAX_FRAME,
    "import.heavy_modules": lambda: len(
        modules_of("import executor") & {"starlette", "hypercorn", "wasmtime", "httpx2", "pydantic", "mcp", "rich"}
    ),
    "threats.held": lambda: sum(one.status == "held" for one in threats().values()),
    "threats.open": lambda: sum(one.status == "open" for one in threats().values()),
    **{f"budget.{name}": (lambda row=row: row.default) for name, row in TABLE.items()},  # type: ignore[misc]
}


def published() -> dict[str, tuple[str, int]]:
    return {row["name"]: (row["bound"], int(row["figure"].replace(" ", ""))) for row in _ROW.finditer(PAGE)}


@pytest.mark.parametrize("name", sorted(published()))
def test_a_published_figure_holds(name: str) -> None:
    bound, figure = published()[name]
    found = FIGURES[name]()
    assert {"≤": found <= figure, "=": found == figure, "≥": found >= figure}[bound], found


def test_every_figure_that_can_be_checked_is_published() -> None:
    assert set(published()) == set(FIGURES)
