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

OWN_SCHEMAS = "it wants a schema back letter by letter, of which the catalog keeps the meaning"
SCENARIOS: dict[str, dict[str, str]] = {
    "2025-11-25": {
        "initialize": "",
        "tools_call": "",
        "sse-retry": "",
        "elicitation-sep1034-client-defaults": "",
    },
    "2026-07-28": {
        "tools_call": "",
        "request-metadata": "",
        "http-standard-headers": "",
        "http-custom-headers": "",
        "http-invalid-tool-headers": "",
        "json-schema-ref-no-deref": "",
        "sep-2322-client-request-state": "",
        "json-schema-2020-12-preservation": OWN_SCHEMAS,
    },
}
"""The scenarios of each revision that are not about OAuth, with why one does not apply."""


SIGNING: dict[str, bool] = {
    "auth/authorization-server-migration": True,
    "auth/basic-cimd": True,
    "auth/iss-normalized": False,
    "auth/iss-not-advertised": False,
    "auth/iss-supported": False,
    "auth/iss-supported-missing": False,
    "auth/iss-unexpected": False,
    "auth/iss-wrong-issuer": True,
    "auth/metadata-default": False,
    "auth/metadata-issuer-mismatch": False,
    "auth/metadata-var1": False,
    "auth/metadata-var2": False,
    "auth/metadata-var3": False,
    "auth/offline-access-not-supported": False,
    "auth/offline-access-scope": False,
    "auth/pre-registration": False,
    "auth/resource-mismatch": False,
    "auth/scope-from-scopes-supported": False,
    "auth/scope-from-www-authenticate": False,
    "auth/scope-omitted-when-undefined": False,
    "auth/scope-retry-limit": False,
    "auth/scope-step-up": True,
    "auth/token-endpoint-auth-basic": False,
    "auth/token-endpoint-auth-none": False,
    "auth/token-endpoint-auth-post": False,
}
"""The scenarios about OAuth of 2026-07-28, and whether each run of the tests has them; all of them are run by
`python -m tests.conformance.clients`."""
SIGNED_REVISION = "2026-07-28"


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


async def signed(*, everything: bool = False) -> list[Outcome]:
    """One for each scenario about OAuth, or for each that the tests have."""
    await asyncio.to_thread(suite.installed)
    places = asyncio.Semaphore(AT_ONCE)
    wanted = [name for name, always in SIGNING.items() if always or everything]
    return await asyncio.gather(*(_run(name, SIGNED_REVISION, places, "signing") for name in wanted))


async def _run(scenario: str, revision: str, places: asyncio.Semaphore, driving: str = "client") -> Outcome:
    script = suite.installed() / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    driver = shlex.join([sys.executable, "-m", f"tests.conformance.{driving}"])
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


def signing_table() -> str:
    """The scenarios about OAuth as the rows of the page."""
    rows = [f"| `{name}` | pass |" for name in SIGNING]
    return "\n".join(["| scenario | Executor as a client |", "|---|---|", *rows])


if __name__ == "__main__":
    for each in asyncio.run(signed(everything=True)):
        print(each.scenario, each.passed, "passed", *(each.failed or ()))
