"""Real npm packages in an isolate and in Node, the same expression in both: which load, and which give the same.

    python -m benchmarks.npm_packages [--node NODE] [--cases FILE] [NAME …]

Each package is installed as for a call, with what is kept of earlier installs, and its tree is laid out in a folder
for Node. Says one line for each, and how many agree; exits with 1 below the goal.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from bridge.calls import CallContext
from bridge.npm.installer import Installer
from bridge.npm.settings import NpmSettings
from bridge.toolbox import Toolbox
from bridge.wire.errors import PackageUnavailable
from catalog.kinds.npm.bundle import PackageSource
from catalog.kinds.npm.tree import PackageTree
from executor import npm_client
from guest import images
from runtime.budgets import BudgetPolicy, Budgets
from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.packages import PackageCall, Packages

CASES: Final = Path(__file__).with_name("npm_cases.txt")
GOALS: Final = {"npm_cases.txt": 105, "npm_more_cases.txt": 40}
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
    def asked(self) -> tuple[str, str]:
        """The package's name, and the range or tag that is meant."""
        name, mark, spec = self.package[1:].partition("@")
        return self.package[0] + name, spec if mark else "latest"

    @property
    def probe(self) -> str:
        return (
            f"import * as m from {json.dumps(self.specifier)};\n"
            f"export const probe = {{ execute: async () => ({self.expression}) }};\n"
        )


class Compared(NamedTuple):
    same: bool
    in_node: bool
    line: str


def cases(path: Path = CASES) -> list[Case]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [Case(*(part.strip() for part in line.split(" | ", 2))) for line in lines]


def probed(tree: PackageTree, case: Case) -> PackageTree:
    """The tree with the case's expression in it as a package of its own."""
    probe = {
        "node_modules/probe/package.json": b'{"name": "probe", "version": "1.0.0", "exports": "./index.mjs"}',
        "node_modules/probe/index.mjs": case.probe.encode(),
    }
    return PackageTree(tree.lock, {**tree.files, **probe})


def source_of(tree: PackageTree, case: Case) -> PackageSource:
    digest = hashlib.sha256(f"{tree.digest} {case.probe}".encode()).hexdigest()
    return PackageSource(digest, "probe", lambda: tree)


def in_node(node: str, tree: PackageTree) -> str:
    """The result in Node as JSON, or the end of what it said when it failed."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, data in tree.files.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        (root / "run.mjs").write_text(_NODE)
        env = {"PATH": os.environ["PATH"], "TZ": "UTC", "HOME": folder, "NODE_NO_WARNINGS": "1"}
        try:
            done = subprocess.run([node, "run.mjs"], cwd=root, env=env, capture_output=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return "failed: no end in 60 s"
    text = done.stdout.decode(errors="replace").rpartition("\0")[2]
    return text if done.returncode == 0 else f"failed: {done.stderr.decode(errors='replace')[-300:]}"


async def compared(case: Case, npm: Installer, packages: Packages, budgets: Budgets, node: str) -> Compared:
    try:
        lock = await npm.lock(*case.asked)
        tree = probed(await npm.tree(lock), case)
    except PackageUnavailable as e:
        return Compared(False, False, f"NONE {case.package:32} {e.message}")
    source = source_of(tree, case)
    expected = await asyncio.to_thread(in_node, node, tree)
    first = await packages.run(PackageCall(source, "probe", {}), budgets, CallContext())
    began = time.perf_counter()
    result = await packages.run(PackageCall(source, "probe", {}), budgets, CallContext())
    warm = (time.perf_counter() - began) * 1000
    ran = result.status == "completed"
    by_node = not expected.startswith("failed")
    same = ran and (not by_node or result.result == json.loads(expected))
    state = "same" if same and by_node else "runs" if same else "both fail" if not ran and not by_node else "FAIL"
    cold, room = first.usage.get("cpu_ms", 0), int(first.usage.get("memory_bytes", 0)) >> 20
    label = f"{lock.name}@{lock.version}"
    anew = " loaded anew" if int(result.usage.get("source_bytes", 0)) > 4_096 else ""
    line = f"{state} {label:40} load {cold:6.0f} ms cpu, warm {warm:6.1f} ms, {room} MiB{anew}"
    if not same:
        found = json.dumps(result.result) if ran else f"failed: {result.error}"
        line += f"\n     isolate: {found[:700]}\n     Node:    {expected[:700]}"
    return Compared(same, by_node, line)


async def main(node: str, path: Path, wanted: list[str]) -> int:
    budgets = BudgetPolicy().resolve({"fuel": 10**11, "wall_ms": 120_000, "memory_bytes": 512 << 20}, "node")
    kept = images.cache_dir() / "packages"
    url = await npm_client.registry(kept, images.cache_dir() / "tools")
    async with Toolbox() as box, Dispatcher(DispatcherSettings(workers=1)) as dispatcher:
        packages = Packages(dispatcher, box.proxy)
        async with box.installer(NpmSettings(registry=url, folder=kept), lambda line: None) as npm:
            chosen = [case for case in cases(path) if not wanted or case.package in wanted]
            agree = 0
            for case in chosen:
                found = await compared(case, npm, packages, budgets, node)
                agree += found.same
                print(found.line, flush=True)
    print(f"{agree} of {len(chosen)} give what Node gives")
    return 0 if wanted or agree >= GOALS.get(path.name, 0) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cases", type=Path, default=CASES, help="the file of cases")
    parser.add_argument("--node", default=shutil.which("node") or "node", help="the Node to compare with")
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.node, given.cases, given.names)))
