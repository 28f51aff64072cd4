"""Whatever our own OpenAPI document allows and forbids, asked of a running server: the long form alone.

The short form is tests/blackbox/test_http_openapi.py, which asks each operation for what it does not know.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.blackbox.server import serving
from tests.corpora.beside import environment

SECONDS = 240
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"
"""Not the schemas of answers: there the data of a streamed event is held against the schema of the JSON in it."""


@pytest.mark.timeout(1500)
def test_schemathesis_finds_no_answer_that_is_not_documented(long: bool, tmp_path: Path) -> None:
    """HTTP-29"""
    if not long:
        return
    python = environment("schemathesis", "schemathesis>=4,<5")
    with serving(tmp_path / "home") as server:
        done = subprocess.run(
            [
                str(python.with_name("st")),
                *("run", f"http://127.0.0.1:{server.port}/openapi.json", "-H", f"Authorization: Bearer {server.key}"),
                *("--phases", "coverage,fuzzing", "--checks", CHECKS, "--max-time", str(SECONDS), "--no-shrink"),
                *("--seed", "1", "--request-timeout", "60", "--no-color", "--generation-database", "none"),
            ],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS * 3 + 300,
        )
        said = done.stdout.replace(server.key, "KEY")
        assert done.returncode == 0, said[-6000:]
        assert server.ask("POST", "/run", {"code": "6 * 7"}).json["result"] == 42
