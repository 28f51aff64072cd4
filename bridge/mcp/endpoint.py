"""Where a server is and how it is started: a program of this machine, exactly, or a URL."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bridge.wire.errors import ImportFailed, InvalidRequest

MAX_ARGUMENTS: Final = 256
MAX_ARGUMENT: Final = 8 * 1024
ENVIRONMENT: Final = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
"""What a program is given of this process's environment. Whatever else it needs is named by whoever adds it."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its arguments, no shell in between; `argv[0]` is an absolute path, so that no later search decides
    what is run."""

    argv: tuple[str, ...]
    cwd: str | None


def checked(command: Sequence[str], cwd: str | None) -> dict[str, Any]:
    """The configuration of a program: its path absolute, its folder too. Raises InvalidRequest, ImportFailed."""
    argv = list(command)
    if not argv or not all(isinstance(part, str) for part in argv) or not argv[0]:
        raise InvalidRequest("A command is a program and its arguments, each a text of its own.")
    if len(argv) > MAX_ARGUMENTS or any(len(part) > MAX_ARGUMENT or "\0" in part for part in argv):
        raise InvalidRequest(f"A command has at most {MAX_ARGUMENTS} arguments of {MAX_ARGUMENT // 1024} KiB.")
    found = shutil.which(argv[0])
    if found is None:
        hint = None
        if " " in argv[0]:
            hint = "Give the program and each argument by itself: nothing is split and no shell is asked."
        raise ImportFailed(f"There is no program {argv[0][:200]!r} that can be run.", hint=hint)
    folder = str(Path(cwd).absolute()) if cwd is not None else None
    if folder is not None and not Path(folder).is_dir():
        raise ImportFailed(f"There is no folder {folder[:200]!r} to run it in.")
    return {"command": [str(Path(found).absolute()), *argv[1:]], "cwd": folder}


def program_of(config: Mapping[str, Any]) -> Program | None:
    """The program of a configuration; None: the server is at a URL."""
    command = config.get("command")
    return Program(tuple(map(str, command)), config.get("cwd")) if command else None


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What a program gets: the few variables that are harmless, and those that its connection names."""
    passed = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {name: value for name, value in passed.items() if not value.startswith("()")} | dict(given)
