"""How a worker gives up everything but computing, layer by layer, and says which layers stand.

The order matters. `before_threads` comes when all code is loaded and warm, since afterwards no file opens: a changed
uid clears the parent-death signal and the dumpable flag, so these are set after it; Landlock and no_new_privs hold for
the calling thread and those it starts later. Then the threads start. `after_threads` installs seccomp on all of them at
once, which forbids starting any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from typing import Final, Literal

if sys.platform != "win32":
    import resource

from runtime.worker import landlock, seccomp

Level = Literal["full", "syscalls", "process"]
"""`full`: every layer but `uid`, which only root can take. `syscalls`: seccomp stands. `process`: a process of its
own."""

NOBODY: Final = 65534
_OPEN_FILES: Final = 16

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38


def level(layers: list[str]) -> Level:
    """The level that a set of layers amounts to."""
    if {"rlimits", "no_new_privs", "landlock", "seccomp"} <= set(layers):
        return "full"
    return "syscalls" if "seccomp" in layers else "process"


def suffices(reached: Level, required: str) -> bool:
    order = ("process", "syscalls", "full")
    return required in order and order.index(reached) >= order.index(required)


def before_threads(parent: int) -> list[str]:
    """Take every layer but seccomp; their names. Ends the process when `parent` has died meanwhile."""
    layers = ["process"]
    linux = sys.platform.startswith("linux")
    libc = ctypes.CDLL(None, use_errno=True)
    if linux and os.geteuid() == 0 and _become_nobody():
        layers.append("uid")
    if linux:
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
            layers.append("no_new_privs")
            if landlock.restrict(libc):
                layers.append("landlock")
    return layers


def after_threads() -> list[str]:
    """Take the last layers, once no thread will be started any more; their names."""
    layers = []
    if _limit():
        layers.append("rlimits")
    if seccomp.install():
        layers.append("seccomp")
    return layers


def _become_nobody() -> bool:
    with contextlib.suppress(OSError):
        os.setgroups([])
    try:
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError:
        return False
    return True


def _limit() -> bool:
    """No core, no new file, nothing written to files, no new process. Address space stays free: the engine reserves
    4 GiB of it for each memory and uses what the guest's own limit allows."""
    limits = (
        {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: 0,
            resource.RLIMIT_NOFILE: _OPEN_FILES,
            resource.RLIMIT_MEMLOCK: 0,
            resource.RLIMIT_MSGQUEUE: 0,
            resource.RLIMIT_NPROC: 0,
        }
        if sys.platform.startswith("linux")
        else {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 0}
    )
    done = 0
    for which, limit in limits.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (limit, limit))
            done += 1
    return done == len(limits)
