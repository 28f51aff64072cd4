"""One question to one peer, in a process group of its own that is gone afterwards, whatever it did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from benchmarks.machine import descendants, rss_bytes
from benchmarks.peers import Peer
from benchmarks.peers.install import command, folder

START_S: Final = 60.0
"""To start and to compile, until the adapter says that it begins."""
LIMIT_S: Final = 6.0
"""To be ended by a limit of one second."""
SPEED_S: Final = 60.0
KILL_BYTES: Final = 4 << 30
READY: Final = b'{"ready": true}'
ADAPTERS: Final = Path(__file__).parent / "adapters"


def words(peer: Peer) -> list[str]:
    """How the adapter of `peer` is started. Raises Missing."""
    return command(peer, ADAPTERS / peer.adapter)


def ask(peer: Peer, probe: str, samples: int, allowed: float, *, ready: float = START_S) -> dict[str, Any]:
    """The answer of a peer's adapter; a process that takes too long or too much is killed, which is an answer too.

    `allowed` seconds count from when the adapter is ready, for which it has `ready` seconds. Its output goes to files:
    what it leaves behind may hold a pipe open, and one that is not read stops who writes. What it puts into the folder
    for temporary files goes with it.
    """
    asked = [*words(peer), probe, str(samples), peer.language]
    where = folder(peer) if peer.host == "node" else None
    with (
        tempfile.TemporaryDirectory(prefix="executor-peer-", ignore_cleanup_errors=True) as scratch,
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryFile() as told,
    ):
        env = os.environ | {"TMPDIR": scratch}
        child = subprocess.Popen(
            asked, stdin=subprocess.DEVNULL, stdout=said, stderr=told, cwd=where, env=env, start_new_session=True
        )
        try:
            killed, peak = _watched(child, said, allowed, ready)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if killed:
            return {"ended": killed, "killed": True, "peak_MiB": peak >> 20}
        return _answer(child.returncode, _text(said), _text(told)) | {"peak_MiB": peak >> 20}


def _watched(child: subprocess.Popen[bytes], said: IO[bytes], allowed: float, ready: float) -> tuple[str | None, int]:
    """Wait for the end; why it had to be killed, if it had, and the most memory that was seen."""
    until, peak, began = time.monotonic() + ready, 0, False
    while child.poll() is None:
        if not began and READY in os.pread(said.fileno(), 4096, 0):
            began, until = True, time.monotonic() + allowed
        peak = max(peak, _memory(child.pid))
        if peak > KILL_BYTES:
            return "too much memory", peak
        if time.monotonic() > until:
            return "never ended" if began else f"not ready after {ready:.0f} s", peak
        time.sleep(0.02)
    return None, peak


def _answer(status: int, said: str, told: str) -> dict[str, Any]:
    lines = said.strip().splitlines()
    with suppress(IndexError, ValueError):
        answer = json.loads(lines[-1])
        if status == 0 and isinstance(answer, dict) and "ready" not in answer:
            return answer
    reason = (told.strip().splitlines() or [f"exit status {status}"])[-1][:160]
    return {"ended": f"the process died: {reason}", "killed": True}


def _text(file: IO[bytes]) -> str:
    """The end of what was written."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - (1 << 20)))
    return file.read().decode(errors="replace")


def _memory(pid: int) -> int:
    """Resident bytes of a process and all below it; 0 when it has just gone."""
    try:
        return sum(map(rss_bytes, (pid, *descendants(pid))))
    except (OSError, LookupError):
        return 0
