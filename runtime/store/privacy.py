"""The home and its database are their owner's alone, whatever umask and tools have made of them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import structlog

from bridge.wire.errors import ConfigError

_OURS: Final = ("executor.", "config.toml")
_OTHERS: Final = 0o077
_log = structlog.get_logger("executor.store")


def close_home(home: Path) -> None:
    """Make the directory `home` 0700, with a warning where it was more open.

    A folder that others can write to and that holds more than a home does is somebody's common place: it is refused,
    and one that others can only read is left as it is, with the warning. Raises ConfigError, OSError.
    """
    mode = stat.S_IMODE(home.stat().st_mode)
    if not mode & _OTHERS:
        return
    alien = [entry.name for entry in os.scandir(home) if not entry.name.startswith(_OURS)]
    if alien and mode & 0o022:
        raise ConfigError(
            f"the home {str(home)!r} can be written to by others ({mode:04o}), and holds other files",
            hint="use a folder of its own, or chmod 700 this one",
        )
    if not alien:
        _restrict(home, 0o700)
    _log.warning("home_open_to_others", home=str(home), mode=f"{mode:04o}", closed=not alien)


def close_database(path: Path) -> None:
    """Make the database 0600 before it is opened, and what SQLite keeps beside it. Raises ConfigError, OSError."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        for suffix in ("", "-wal", "-shm"):
            _close_file(path.with_name(path.name + suffix))


def _close_file(path: Path) -> None:
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(facts.st_mode):
        # What a link leads to may be anybody's, and would be closed to them.
        raise ConfigError(
            f"{str(path)!r} is not a plain file", hint="a home on another disk is named by --home, not by links in it"
        )
    mode = stat.S_IMODE(facts.st_mode)
    if mode & _OTHERS:
        _restrict(path, 0o600)
        _log.warning("database_open_to_others", file=path.name, mode=f"{mode:04o}", closed=True)


def _restrict(path: Path, mode: int) -> None:
    try:
        path.chmod(mode)
    except OSError as e:
        raise ConfigError(
            f"{str(path)!r} is open to others, and that cannot be changed: {e.strerror}",
            hint=f"its owner can: chmod {mode:o} {path}",
        ) from None
