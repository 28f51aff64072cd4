"""The facts about this machine that a figure means nothing without."""

from __future__ import annotations

import os
import platform
import sys
import timeit
from importlib.metadata import version
from pathlib import Path


def facts() -> dict[str, str]:
    """Processor, cores, kernel, Python and engine versions, and how loaded the machine is just now."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "kernel": platform.release(),
        "python": sys.version.split()[0],
        "wasmtime": version("wasmtime"),
        "load": " ".join(f"{value:.2f}" for value in os.getloadavg()),
        "a Python loop of 10⁶": f"{_loop_ms():.0f} ms",
    }


def _loop_ms() -> float:
    """What says how fast the machine is just now, where it is shared: the best of five."""
    return min(timeit.repeat("for i in range(1_000_000): s += i", "s = 0", number=1, repeat=5)) * 1000


def rss_bytes(pid: int | str = "self") -> int:
    """Resident memory of a process, in bytes."""
    return _status_kib(pid, "VmRSS:") * 1024


def private_bytes(pid: int | str = "self") -> int:
    """Memory that only this process maps (private clean and dirty pages), in bytes."""
    total = 0
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(("Private_Clean:", "Private_Dirty:")):
            total += int(line.split()[1]) * 1024
    return total


def _status_kib(pid: int | str, key: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    raise LookupError(key)


def descendants(pid: int) -> list[int]:
    """The process ids below `pid`, children first."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        children = (task / "children").read_text().split()
        for child in map(int, children):
            found += [child, *descendants(child)]
    return found
