"""Real npm packages in an isolate and in Node, the same expression in both: which load, and which give the same.

    python -m benchmarks.npm_packages FOLDER [--node NODE] [NAME …]

FOLDER holds one installed tree for each package of `npm_cases.txt`, as `npm install --ignore-scripts` leaves it, in a
folder named after the package with `_` for `/` and `@`. Says one line for each, and how many agree; exits with 1 below
the goal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from bridge.calls import CallContext
from bridge.toolbox import Toolbox
from catalog.kinds.npm.bundle import PackageSource
from catalog.kinds.npm.tree import PackageTree
from runtime.budgets import BudgetPolicy
from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.packages import PackageCall, Packages

CASES: Final = Path(__file__).with_name("npm_cases.txt")
GOAL: Final = 105
_SKIPPED: Final = (".map", ".md", ".d.ts", ".d.mts", ".d.cts", ".node", ".wasm")
_NODE: Final = """
import { probe } from "./node_modules/probe/index.mjs";
const value = await probe.execute();
process.stdout.write("\\u0000" + (JSON.stringify(value) ?? "null"));
process.exit(0);
"""


class Case(NamedTuple):
    package: str
    specifier: str
    expression: str

    @property
    def folder(self) -> str:
        return self.package.replace("/", "_").replace("@", "_")

    @property
    def probe(self) -> str:
        return (
            f"import * as m from {json.dumps(self.specifier)};\n"
            f"export const probe = {{ execute: async () => ({self.expression}) }};\n"
        )


def cases() -> list[Case]:
    lines = [line for line in CASES.read_text().splitlines() if line and not line.startswith("#")]
    return [Case(*(part.strip() for part in line.split(" | ", 2))) for line in lines]


def tree(root: Path, case: Case) -> PackageTree:
    files: dict[str, bytes] = {
        "node_modules/probe/package.json": b'{"name": "probe", "version": "1.0.0", "exports": "./index.mjs"}',
        "node_modules/probe/index.mjs": case.probe.encode(),
    }
    for folder, _, names in os.walk(root / "node_modules"):
        for name in names:
            path = Path(folder) / name
            if not name.endswith(_SKIPPED) and path.is_file() and "/probe/" not in str(path):
                files[path.relative_to(root).as_posix()] = path.read_bytes()
    return PackageTree.of("probe", "1.0.0", files)


def in_node(node: str, root: Path, case: Case) -> str:
    """The result in Node as JSON, or the end of what it said when it failed."""
    probe = root / "node_modules" / "probe"
    probe.mkdir(exist_ok=True)
    (probe / "package.json").write_text('{"name": "probe", "version": "1.0.0", "exports": "./index.mjs"}')
    (probe / "index.mjs").write_text(case.probe)
    (root / "run.mjs").write_text(_NODE)
    env = {"PATH": os.environ["PATH"], "TZ": "UTC", "HOME": str(root), "NODE_NO_WARNINGS": "1"}
    try:
        done = subprocess.run([node, "run.mjs"], cwd=root, env=env, capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "failed: no end in 60 s"
    text = done.stdout.decode(errors="replace").rpartition("\0")[2]
    return text if done.returncode == 0 else f"failed: {done.stderr.decode(errors='replace')[-300:]}"


async def main(folder: Path, node: str, wanted: list[str]) -> int:
    budgets = BudgetPolicy().resolve({"fuel": 10**11, "wall_ms": 120_000, "memory_bytes": 512 << 20}, "node")
    agree = 0
    async with Toolbox() as box, Dispatcher(DispatcherSettings(workers=1)) as dispatcher:
        packages = Packages(dispatcher, box.proxy)
        for case in cases():
            root = folder / case.folder
            if (wanted and case.package not in wanted) or not (root / "node_modules").is_dir():
                continue
            source = PackageSource.of(tree(root, case))
            expected = await asyncio.to_thread(in_node, node, root, case)
            first = await packages.run(PackageCall(source, "probe", {}), budgets, CallContext())
            began = time.perf_counter()
            result = await packages.run(PackageCall(source, "probe", {}), budgets, CallContext())
            warm = (time.perf_counter() - began) * 1000
            found = json.dumps(result.result) if result.status == "completed" else f"failed: {result.error}"
            same = not found.startswith("failed") and (
                expected.startswith("failed") or json.loads(found) == json.loads(expected)
            )
            agree += same
            cold = first.usage.get("cpu_ms", 0)
            state = "same" if same and not expected.startswith("failed") else "runs" if same else "FAIL"
            room = int(first.usage.get("memory_bytes", 0)) >> 20
            print(f"{state} {case.package:32} load {cold:6.0f} ms cpu, warm {warm:6.1f} ms, {room} MiB", flush=True)
            if not same:
                print(f"     isolate: {found[:700]}\n     Node:    {expected[:300]}", flush=True)
    print(f"{agree} of {len(cases())} give what Node gives")
    return 0 if wanted or agree >= GOAL else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--node", default=shutil.which("node") or "node")
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.folder, given.node, given.names)))
