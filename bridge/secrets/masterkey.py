"""The master key: 32 bytes in a file of its own, outside the home, readable by its owner alone."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import stat
from pathlib import Path
from typing import Final

import platformdirs

from bridge.wire.errors import ConfigError

KEY_BYTES: Final = 32
FILE_NAME: Final = "master.key"

_NEVER_REPLACED: Final = (
    "Put the key file back, or point EXECUTOR_KEY_FILE at it. It is never replaced by itself: the stored secrets"
    " would be lost."
)


def default_path(config_dir: Path | None = None) -> Path:
    """`EXECUTOR_KEY_FILE`, else `master.key` in `config_dir`, `EXECUTOR_CONFIG_DIR` or the user's own."""
    if explicit := os.environ.get("EXECUTOR_KEY_FILE"):
        return Path(explicit)
    folder = config_dir or os.environ.get("EXECUTOR_CONFIG_DIR") or platformdirs.user_config_dir("executor")
    return Path(folder) / FILE_NAME


def read(path: Path) -> bytes | None:
    """The key in `path`; None when there is no such file.

    Raises ConfigError for a symlink, a file that others can read or that another user owns, and for anything that is
    not a key.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        raise ConfigError(
            "The master key file cannot be opened: it is a symbolic link or not readable.", hint=_NEVER_REPLACED
        ) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise ConfigError("The master key file is not a regular file.", hint=_NEVER_REPLACED)
        if facts.st_mode & 0o077 or facts.st_uid not in (os.getuid(), 0):
            raise ConfigError(
                f"The master key file must be its owner's alone, but its mode is {stat.S_IMODE(facts.st_mode):04o}.",
                hint="chmod 600 it, and change the key if others may have read it.",
            )
        return _parsed(os.read(descriptor, 1024))
    finally:
        os.close(descriptor)


def _parsed(data: bytes) -> bytes:
    if len(data) == KEY_BYTES:
        return data
    text = data.strip()
    try:
        key = (
            bytes.fromhex(text.decode("ascii")) if len(text) == 2 * KEY_BYTES else base64.b64decode(text, validate=True)
        )
    except (ValueError, binascii.Error, UnicodeDecodeError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError("The master key file does not hold a key of 32 bytes.", hint=_NEVER_REPLACED)
    return key


def create(path: Path) -> bytes:
    """A new key in a new file of mode 0600. Raises ConfigError when it cannot be written."""
    key = secrets.token_bytes(KEY_BYTES)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key.hex().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as e:
        raise ConfigError(
            f"The master key file cannot be written ({e.strerror}).",
            hint="Name a writable place with EXECUTOR_KEY_FILE or EXECUTOR_CONFIG_DIR.",
        ) from None
    return key
