"""The kit can fail: a canary is found however it is spelt, and an invariant that does not hold is told."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.blackbox.server import Server
from tests.threats.kit import invariants
from tests.threats.kit.canaries import canary, leaks, leaks_in, spellings
from tests.threats.kit.invariants import Invariants


@pytest.mark.parametrize("spelling", list(spellings(canary())))
def test_a_canary_is_found_in_every_spelling_and_where_it_is_gzipped(spelling: str) -> None:
    secret = canary()
    hidden = b"before " + spellings(secret)[spelling] + b" after"
    assert leaks(hidden, "there", [secret])
    assert leaks(b"\x1f\x8b\x08 not gzip " + gzip.compress(hidden), "there", [secret])
    assert not leaks(hidden, "there", [canary()])


def test_a_piece_of_a_canary_is_found() -> None:
    secret = canary()
    assert leaks(secret[9:21].encode(), "there", [secret])
    assert not leaks(secret[9:20].encode(), "there", [secret])


def test_a_canary_is_found_in_a_row_that_was_deleted(tmp_path: Path) -> None:
    secret = canary()
    with sqlite3.connect(tmp_path / "some.db") as database:
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("CREATE TABLE t (x TEXT)")
        database.execute("INSERT INTO t VALUES (?)", (secret,))
        database.commit()
        database.execute("DELETE FROM t")
    database.close()
    assert leaks_in(tmp_path, [secret]) == [f"some.db: raw of {secret[:9]}"]


def test_memory_that_is_kept_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Invariants(server)
    held.check()
    held.memory = 0
    monkeypatch.setattr(invariants, "PATIENCE_S", 0.0)
    monkeypatch.setattr(invariants, "descriptors", lambda pid: 0)
    monkeypatch.setattr(invariants, "children", lambda pid: {})
    with pytest.raises(AssertionError, match="G6: memory"):
        held._nothing_is_left()


@pytest.mark.parametrize(
    "said",
    [
        b"Traceback (most recent call last):\n",
        b'File "/usr/lib/x.py", line 1',
        b"/venv/lib/site-packages/x",
        b"pydantic_core._pydantic_core.ValidationError",
        b"bridge.wire.errors.ToolError",
        str(Path(__file__).parents[2]).encode(),
    ],
)
def test_what_shows_of_the_inside_is_told(server: Server, said: bytes) -> None:
    held = Invariants(server)
    held.heard(b'{"error": {"message": "' + said + b'"}}')
    with pytest.raises(AssertionError, match="G8"):
        held.check()


def test_a_record_that_does_not_end_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Invariants(server)
    monkeypatch.setattr("tests.threats.kit.invariants.PATIENCE_S", 0.3)
    queued = server.run("for (;;);", wait=False, budgets={"wall_ms": 60_000, "fuel": 10**12})
    with pytest.raises(AssertionError, match="G7"):
        held.check()
    server.ask("POST", f"/runs/{queued['run_id']}/cancel", {})
    monkeypatch.undo()
    held.check()


def test_a_server_that_ended_is_told(server: Server) -> None:
    held = Invariants(server)
    with subprocess.Popen(["true"]) as ended:
        ended.wait(20)
    held.server = Server(ended, server.home, server.port, server.key, server.log)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="G2"):
        held.check()
