"""Waiting for something to be so, and whether a process is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio


async def until(so: Callable[[], object], seconds: float = 20) -> None:
    """Wait until `so()` is true. Raises TimeoutError."""
    with anyio.fail_after(seconds):
        while not so():  # noqa: ASYNC110 - what is waited for happens in other processes
            await anyio.sleep(0.01)


def running(pid: int) -> bool:
    """A zombie has ended: only nobody has asked yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def gone(pid: int) -> None:
    """Wait for the end of a process. Raises TimeoutError."""
    await until(lambda: not running(pid))


def about(folder: Path) -> list[int]:
    """The processes with `folder` in their command."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_text()
        except OSError:
            continue
        if str(folder) in command and running(int(entry.name)):
            found.append(int(entry.name))
    return found
