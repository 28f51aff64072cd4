"""Runs the suite's client scenarios against the importer of MCP servers (see `client`), and says what came of each."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests import packages
from tests.conformance import suite

ROOT = Path(__file__).parents[2]
RUN_S = 240
AT_ONCE = 2

NO_ELICITATION = "Executor announces no elicitation as a client: a server that asks in the middle of a call is refused"
OWN_SCHEMAS = "it wants a schema back letter by letter, of which the catalog keeps the meaning"
SCENARIOS: dict[str, dict[str, str]] = {
    "2025-11-25": {
        "initialize": "",
        "tools_call": "",
        "sse-retry": "",
        "elicitation-sep1034-client-defaults": NO_ELICITATION,
    },
    "2026-07-28": {
        "tools_call": "",
        "request-metadata": "",
        "http-standard-headers": "",
        "http-custom-headers": "",
        "http-invalid-tool-headers": "",
        "json-schema-ref-no-deref": "",
        "sep-2322-client-request-state": NO_ELICITATION,
        "json-schema-2020-12-preservation": OWN_SCHEMAS,
    },
}
"""The scenarios of each revision that are not about OAuth, with why one does not apply."""


class Outcome(NamedTuple):
    """How a scenario ended: the checks that passed and the names of those that did not."""

    scenario: str
    passed: int
    failed: list[str]
    said: str


async def outcomes(revision: str) -> list[Outcome]:
    """One for each scenario of the revision that applies."""
    await asyncio.to_thread(suite.installed)
    places = asyncio.Semaphore(AT_ONCE)
    wanted = [name for name, why in SCENARIOS[revision].items() if not why]
    return await asyncio.gather(*(_run(name, revision, places) for name in wanted))


async def _run(scenario: str, revision: str, places: asyncio.Semaphore) -> Outcome:
    script = suite.installed() / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    driver = shlex.join([sys.executable, "-m", "tests.conformance.client"])
    options = ["--scenario", scenario, "--spec-version", revision, "--timeout", str(RUN_S * 1000)]
    async with places:
        with tempfile.TemporaryDirectory() as results:
            command = [*packages.tool("node"), script, "client", "--command", driver, *options, "-o", results]
            process = await asyncio.create_subprocess_exec(
                *(str(part) for part in command),
                cwd=ROOT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            try:
                said, _ = await asyncio.wait_for(process.communicate(), RUN_S)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            checks = _checks(Path(results))
    failed = sorted({each["id"] for each in checks if each["status"] == "FAILURE"})
    return Outcome(scenario, sum(each["status"] == "SUCCESS" for each in checks), failed, said.decode(errors="replace"))


def _checks(results: Path) -> list[dict[str, str]]:
    return [each for path in results.rglob("checks.json") for each in json.loads(path.read_text())]


def table(revision: str) -> str:
    """The scenarios as the rows of the page."""
    lines = ["| scenario | Executor as a client | why it does not apply |", "|---|---|---|"]
    for name, why in sorted(SCENARIOS[revision].items()):
        lines.append(f"| `{name}` | {'not applicable' if why else 'pass'} | {why} |")
    return "\n".join(lines)
