"""The official conformance suite: installed once into the cache from the lock beside this file, run against a URL."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from guest import images, npm

HERE = Path(__file__).parent
INSTALL_S = 300
RUN_S = 240
REQUIRED = ("2025-11-25", "2026-07-28")
"""The revisions whose scenarios are run."""


_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[-\d]+Z$")


class Check(NamedTuple):
    """One check of a scenario, as the suite reports it: `SUCCESS`, `FAILURE`, `WARNING`, `SKIPPED` or `INFO`."""

    scenario: str
    id: str
    status: str
    message: str


def installed() -> Path:
    """The folder of the suite, its packages those of package-lock.json. Takes a while the first time."""
    cache = images.cache_dir()
    lock = (HERE / "package-lock.json").read_bytes()
    home = cache / "tools" / f"mcp-conformance-{hashlib.sha256(lock).hexdigest()[:16]}"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, home / name)
            subprocess.run(
                [*_tool("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", cache / "npm"],
                cwd=home,
                check=True,
                capture_output=True,
                timeout=INSTALL_S,
                stdin=subprocess.DEVNULL,
            )
            (home / "complete").touch()
    return home


async def run(url: str, revision: str) -> list[Check]:
    """Every check of the scenarios that the revision requires, against the server at `url`."""
    home = await asyncio.to_thread(installed)
    script = home / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    with tempfile.TemporaryDirectory() as results:
        command = [*_tool("node"), script, "server", "--url", url, "--requirements", revision, "-o", results]
        process = await asyncio.create_subprocess_exec(
            *(str(part) for part in command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await asyncio.wait_for(process.wait(), RUN_S)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return _checks(Path(results))


def _checks(results: Path) -> list[Check]:
    found = []
    for folder in sorted(results.iterdir()):
        scenario = _STAMP.sub("", folder.name.removeprefix("server-"))
        for each in json.loads((folder / "checks.json").read_text()):
            found.append(Check(scenario, each["id"], each["status"], str(each.get("errorMessage") or "")))
    return found


def _tool(name: str) -> list[str | Path]:
    """The Node that the builds bring along, whatever this machine has: the suite needs 22 or newer."""
    root = npm._carried(images.cache_dir())
    node = root / "bin" / "node"
    return [node] if name == "node" else [node, root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
