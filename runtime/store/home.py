"""The home directory: private to its owner, and open in one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

from bridge.wire.errors import ConfigError, HomeInUse
from runtime.store.privacy import close_home

LOCK: Final = "executor.lock"


class HomeLock:
    """An exclusive lock on a home directory, held until `release` or the end of the process, however it ends.

    Raises HomeInUse when another process holds it, ConfigError when the directory cannot be used.
    """

    def __init__(self, home: Path) -> None:
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            close_home(home)
            self._fd = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as e:
            raise ConfigError(f"the home {str(home)!r} cannot be used: {e.strerror}") from e
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            holder = os.read(self._fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise HomeInUse(
                f"the home {str(home)!r} is open in another process (pid {holder})",
                hint="stop that process, talk to it over HTTP, or use another home",
            ) from e
        # Only for whoever finds the home in use: a full disk is found where something has to be kept.
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the home back. Safe to call again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
