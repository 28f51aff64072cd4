"""The server that has a home open, so that the commands of the same user find it.

While a server holds a home, a file there, readable by its owner alone, has its URL and a key that the server made up
for this and keeps in memory. Whoever can read it can read the whole home and make keys, so that it gives nobody more
than they had. A home is open in one process at a time, and each process that opens it first takes away the file of an
earlier one: while the home is held, the file is the holder's, and its port is not somebody else's by now.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Final, NamedTuple

FILE: Final = "server.json"
_MAX_BYTES: Final = 4096


class Running(NamedTuple):
    """A server on this machine. `key` is None where none is asked for."""

    url: str
    key: str | None


def url_from_here(address: str, port: int) -> str | None:
    """How this machine reaches a server that listens on `address`; None when not over its loopback interface."""
    listening = ipaddress.ip_address(address)
    if listening.is_unspecified:
        listening = ipaddress.ip_address("127.0.0.1" if listening.version == 4 else "::1")
    if not listening.is_loopback:
        return None
    return f"http://[{listening}]:{port}" if listening.version == 6 else f"http://{listening}:{port}"


def announce(home: Path, server: Running) -> None:
    """Say in the home where the server is. Raises OSError."""
    fresh = home / f".{FILE}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(fresh, flags, 0o600), "w") as file:
        json.dump(server._asdict(), file)
    fresh.replace(home / FILE)


def withdraw(home: Path) -> None:
    """Take the file away; to be called by the process that holds the home."""
    with contextlib.suppress(OSError):
        (home / FILE).unlink()


def find(home: Path) -> Running | None:
    """The server that holds the home, to be asked for only while another process does; None when it is no server."""
    try:
        with open(os.open(home / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            ours = found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
            facts = json.loads(file.read(_MAX_BYTES)) if ours and stat.S_ISREG(found.st_mode) else None
    except (OSError, ValueError):
        return None
    match facts:
        case {"url": str(url), "key": str() | None as key} if url.startswith("http://"):
            return Running(url, key)
    return None
