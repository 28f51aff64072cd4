"""G1 to G9 of the catalogue, as far as they can be looked at after a case: what must be so whatever the case was."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tests.blackbox.server import Server

TERMINAL: Final = ("completed", "failed", "cancelled", "expired")
ROOT: Final = Path(__file__).parents[3]
PATIENCE_S: Final = 10.0
"""How long what a case began may take to end: connections that are closed, workers that are replaced."""
MEMORY_BYTES: Final = 48 << 20
"""What a case may leave in use for good: code that it was the first to need takes up to 30 MiB of it (the MCP SDK)."""
_INSIDE: Final = re.compile(
    rb"Traceback \(most recent call last\)|File \"[^\"]+\.py\"|site-packages"
    rb"|\b(?:pydantic_core|starlette|hypercorn|httpx2|wasmtime|sqlite3)\.\w|\b(?:bridge|runtime|catalog)\.\w+\.\w+"
)
"""What a client never sees: frames of a stack, files of an installation, names of modules."""


class Invariants:
    """Watches one server. `heard` takes whatever a client got of it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.pid = server.process.pid
        self.answers: list[bytes] = []
        self.counted_from = self._last_run()
        self.files = descriptors(self.pid)
        self.memory = resident(self.pid)
        self.workers = len(children(self.pid))

    def heard(self, data: bytes) -> None:
        self.answers.append(data)

    def check(self) -> None:
        """Raises AssertionError for the first invariant that does not hold."""
        self._alive()
        self._next_run_is_right()
        self._nothing_is_left()
        self._records_are_terminal()
        self._nothing_inside_shows()

    def _alive(self) -> None:
        assert self.server.process.poll() is None, "G2: the server has ended"
        answer = self.server.ask("GET", "/healthz", key=None, timeout=PATIENCE_S)
        assert answer.status == 200, f"G2: /healthz answers {answer.status}"

    def _next_run_is_right(self) -> None:
        answer = self.server.run("[1, 2, 3].map(x => x * input.by)", input={"by": 14})
        assert answer["status"] == "completed", f"G3: {answer}"
        assert answer["result"] == [14, 28, 42], f"G3: {answer}"

    def _nothing_is_left(self) -> None:
        # The last request's connection is closed a moment after its answer.
        settled(lambda: descriptors(self.pid) <= self.files + 2, "G6: descriptors are left open")
        settled(lambda: "Z" not in children(self.pid).values(), "G6: a process that nobody waited for")
        settled(lambda: len(children(self.pid)) <= self.workers + 1, "G6: processes are left")
        settled(lambda: resident(self.pid) <= self.memory + MEMORY_BYTES, "G6: memory that was taken is kept")

    def _records_are_terminal(self) -> None:
        with _database(self.server.home) as database:
            question = "SELECT id, status, ended_at, usage FROM runs WHERE n > ? AND status <> 'waiting'"

            def unfinished() -> list[Any]:
                rows = database.execute(question, (self.counted_from,)).fetchall()
                return [row for row in rows if row[1] not in TERMINAL or row[2] is None or row[3] in (None, "", "{}")]

            settled(lambda: not unfinished(), "G7: a run without a terminal record")
            ids = [row[0] for row in database.execute(question, (self.counted_from,))]
            assert len(ids) == len(set(ids)), "G7: two records of one run"

    def _nothing_inside_shows(self) -> None:
        inside = (str(ROOT).encode(), str(self.server.home).encode())
        for data in self.answers:
            found = _INSIDE.search(data)
            assert found is None, f"G8: {found[0]!r} in {data[:2000]!r}" if found else ""
            assert not any(path in data for path in inside), f"G8: a path of the host in {data[:2000]!r}"

    def _last_run(self) -> int:
        if not (self.server.home / "executor.db").exists():
            return 0
        with _database(self.server.home) as database:
            return int(database.execute("SELECT coalesce(max(n), 0) FROM runs").fetchone()[0])


def _database(home: Path) -> Any:
    return closing(sqlite3.connect(f"file:{home / 'executor.db'}?mode=ro", uri=True, timeout=10))


def settled(holds: Callable[[], bool], what: str) -> None:
    """Wait until `holds`, within patience."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.005)


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident(pid: int) -> int:
    """Bytes of memory that a process has in use."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> dict[int, str]:
    """The state of each child of a process, by its id; Z is one that nobody has waited for."""
    found = {}
    for entry in Path(f"/proc/{pid}/task").glob("*/children"):
        for one in entry.read_text().split():
            try:
                found[int(one)] = Path(f"/proc/{one}/stat").read_text().rpartition(") ")[2].split()[0]
            except OSError:
                continue
    return found
