"""Cold starts, in a fresh process each: from nothing compiled, from the compiled cache, and from a warm worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Figure, latency
from guest.images import cache_dir

PROBE = "cold"
_ONE = {"javascript": "1 + 1", "typescript": "const n: number = 1; n + 1", "python": "1 + 1"}
_CHILD = """
import json, sys, time
began = time.perf_counter()
import anyio
from executor import Config, Executor

async def main(language, source):
    marks = {"import": time.perf_counter() - began}
    async with Executor.open(config=Config(workers=1)) as ex:
        assert (await ex.run(source, language=language)).result == 2
        marks["first"] = time.perf_counter() - began
        start = time.perf_counter()
        assert (await ex.run(source, language=language)).result == 2
        marks["second"] = time.perf_counter() - start
    print(json.dumps(marks))

anyio.run(main, *sys.argv[1:])
"""


def run(scale: float) -> list[Figure]:
    figures = []
    cached: list[dict[str, float]] = []
    for language, source in _ONE.items():
        cached = [_child(language, source) for _ in range(max(3, int(9 * scale)))]
        figures += [
            latency(
                PROBE, f"{language}: new process to the first answer, compiled before", [m["first"] for m in cached]
            ),
            latency(PROBE, f"{language}: the next answer of that process", [m["second"] for m in cached]),
        ]
        if language != "typescript":
            with tempfile.TemporaryDirectory() as folder:
                fresh = [_child(language, source, _without_modules(Path(folder)))]
            figures.append(
                latency(PROBE, f"{language}: new process to the first answer, nothing compiled", [fresh[0]["first"]])
            )
    figures.append(latency(PROBE, "import executor and anyio", [m["import"] for m in cached]))
    return figures


def _child(language: str, source: str, environment: dict[str, str] | None = None) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, language, source],
        env=os.environ | (environment or {}),
        check=True,
        capture_output=True,
        text=True,
    )
    marks: dict[str, float] = json.loads(done.stdout)
    return marks


def _without_modules(folder: Path) -> dict[str, str]:
    """A cache that has the images and nothing that was compiled from them."""
    for child in cache_dir().iterdir():
        if child.name != "compiled":
            (folder / child.name).symlink_to(child)
    return {"EXECUTOR_CACHE_DIR": str(folder)}
