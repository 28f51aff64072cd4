"""The official conformance suite: installed once into the cache from the lock beside this file, run against a URL."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests import packages

HERE = Path(__file__).parent
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
    return packages.installed(HERE, "mcp-conformance")


async def run(url: str, revision: str) -> list[Check]:
    """Every check of the scenarios that the revision requires, against the server at `url`."""
    home = await asyncio.to_thread(installed)
    script = home / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    with tempfile.TemporaryDirectory() as results:
        command = [*packages.tool("node"), script, "server", "--url", url, "--requirements", revision, "-o", results]
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
