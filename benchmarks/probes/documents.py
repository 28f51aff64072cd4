"""Real documents: how long the largest take to import and how much memory, and whether 300 others all arrive.

Each of the large ones is read in a process of its own, so that the peak is its own.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.documents import NoDocuments, folder, operations
from benchmarks.measure import Figure, latency
from bridge.wire.errors import ImportFailed
from catalog.describe import describe
from catalog.kinds.openapi.integration import OpenApi
from catalog.model import Manifest, Tool

PROBE = "documents"
LARGE = (
    ("GitHub", "forge", "generated/api.github.com.json", 3_000.0),
    ("Microsoft Graph v1.0", "directory", "api/microsoft.com/graph.json", 15_000.0),
    ("Kubernetes", "directory", "api/kubernetes.io.json", None),
    ("Stripe", "directory", "api/stripe.com.json", None),
    ("Amazon EC2", "directory", "api/amazonaws.com/ec2.json", None),
)
URL = "https://documents.example/openapi.json"
_ALONE = """
import sys, time
import anyio
from pathlib import Path
from bridge.toolbox import Toolbox

def held(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))

async def add():
    async with Toolbox() as box:
        Path("/proc/self/clear_refs").write_text("5")
        before, start = held("VmRSS"), time.process_time()
        served = {"base_url": "https://127.0.0.1/", "allow_private": ["127.0.0.1"]}
        report = await box.add_openapi("api", Path(sys.argv[1]), **served)
        print(time.process_time() - start, held("VmHWM") - before, len(report.tools))

anyio.run(add)
"""


def run(scale: float) -> list[Figure]:
    try:
        large = [(name, folder(which) / path, target) for name, which, path, target in LARGE]
        every = sorted(folder("directory").glob("api/**/*.json"))
    except NoDocuments as e:
        print(e, file=sys.stderr)
        return []
    figures = [figure for name, path, target in large for figure in _alone(name, path, target)]
    for name, path, _ in large[:2]:
        figures.append(_describe(name, _read(path), max(50, round(500 * scale))))
    figures += _sample(random.Random(3).sample(every, min(len(every), max(30, round(300 * scale)))))
    return figures


def _read(path: Path) -> Manifest:
    return OpenApi("api").resolve_tools({"document": path.read_bytes(), "document_url": URL})


def _alone(name: str, path: Path, target: float | None) -> list[Figure]:
    command = [sys.executable, "-c", _ALONE, str(path), URL]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    size = path.stat().st_size
    about = {"bytes": size, "operations": operations(path.read_bytes()), "tools": int(said[2])}
    return [
        Figure(PROBE, f"import {name} ({size / 1e6:.1f} MB)", float(said[0]) * 1e3, "ms", target, extra=about),
        Figure(PROBE, f"peak memory of it, file sizes ({name})", int(said[1]) / size, "×", 10.0),
        Figure(PROBE, f"operations lost ({name})", about["operations"] - about["tools"], "", 0),
    ]


def _describe(name: str, made: Manifest, count: int) -> Figure:
    some = made.tools[:: max(1, len(made.tools) // count)]
    tools = [Tool(f"api.org.main.{one.name}", "api", "org", "main", one, made.definitions) for one in some]
    taken = []
    for tool in tools:
        start = time.process_time()
        describe(tool, effect="approve")
        taken.append(time.process_time() - start)
    return latency(PROBE, f"describe one tool ({name})", taken, target=10.0)


def _sample(paths: list[Path]) -> list[Figure]:
    """What becomes of a random sample; documents without operations are none that could arrive."""
    lost = failed = crashed = total = 0
    start = time.process_time()
    for path in paths:
        data = path.read_bytes()
        known = operations(data)
        total += known
        try:
            lost += known - len(_read(path).tools)
        except ImportFailed as e:
            failed += known > 0
            lost += known
            if known:
                print(f"{path.name}: {e.message}", file=sys.stderr)
        except Exception as e:
            crashed += 1
            print(f"{path.name}: {e!r}"[:300], file=sys.stderr)
    about = {"documents": len(paths), "operations": total, "seconds": round(time.process_time() - start, 2)}
    return [
        Figure(PROBE, f"exceptions in {len(paths)} documents", crashed, "", 0, extra=about),
        Figure(PROBE, "documents with operations that are refused", failed, "", 0),
        Figure(PROBE, f"operations lost of {json.dumps(total)}", lost, "", max(1, total // 1000)),
    ]
