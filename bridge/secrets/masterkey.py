"""The master key: 32 bytes in a file of its own, outside the home, readable by its owner alone.

After a rotation the file holds several keys, a line each: the newest first, and those that it took the place of.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import platformdirs

from bridge.wire.errors import ConfigError

KEY_BYTES: Final = 32
FILE_NAME: Final = "master.key"
MAX_KEYS: Final = 16
_MAX_BYTES: Final = 4096

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


def read(path: Path) -> list[bytes]:
    """The keys in `path`, the newest first; none when there is no such file.

    Raises ConfigError for a symlink, a file that others can read or that another user owns, and for anything that is
    not a key.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return []
    except OSError:
        raise ConfigError(
            "The master key file cannot be opened: it is a symbolic link or not readable.", hint=_NEVER_REPLACED
        ) from None
    try:
        return _read(descriptor)
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> list[bytes]:
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise ConfigError("The master key file is not a regular file.", hint=_NEVER_REPLACED)
    if facts.st_mode & 0o077 or facts.st_uid not in (os.getuid(), 0):
        raise ConfigError(
            f"The master key file must be its owner's alone, but its mode is {stat.S_IMODE(facts.st_mode):04o}.",
            hint="chmod 600 it, and change the key if others may have read it.",
        )
    data = os.pread(descriptor, _MAX_BYTES, 0)
    if not data.strip():
        raise ConfigError("The master key file is empty.", hint=_NEVER_REPLACED)
    if len(data) == KEY_BYTES:
        return [data]
    return [_parsed(line) for line in data.split()]


def _parsed(text: bytes) -> bytes:
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
        _write(path, [key])
    except OSError as e:
        raise _unwritable(e) from None
    return key


def add(path: Path) -> bytes:
    """A new key before those that the file has, which stay: other homes and backups may be sealed with them.

    The file is replaced as one, so that whatever happens it holds every key that it held. Raises ConfigError.
    """
    key = secrets.token_bytes(KEY_BYTES)
    _replace(path, lambda keys: [key, *keys])
    return key


def keep_only(path: Path, key: bytes) -> None:
    """Forget every key but this one. Raises ConfigError."""
    _replace(path, lambda keys: [key] if key in keys else keys)


def _replace(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    descriptor = _locked(path)
    try:
        keys = change(_read(descriptor))
        if len(keys) > MAX_KEYS:
            raise ConfigError(
                f"The master key file holds {MAX_KEYS} keys already.",
                hint="executor secret rotate-key --forget-old drops those that this home does not need.",
            )
        owner = os.fstat(descriptor)
        for stale in path.parent.glob(f".{path.name}.*"):
            # Of a process that was killed: whoever else would write one waits for the lock.
            stale.unlink(missing_ok=True)
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            _write(fresh, keys, owner)
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as e:
        raise _unwritable(e) from None
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int:
    """The file, open and locked against other processes that would replace it. Raises ConfigError."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as e:
            raise ConfigError(f"The master key file cannot be opened ({e.strerror}).", hint=_NEVER_REPLACED) from None
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            if os.stat(path, follow_symlinks=False).st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except OSError:
            pass
        os.close(descriptor)


def _write(path: Path, keys: list[bytes], owner: os.stat_result | None = None) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if owner is not None and owner.st_uid != os.geteuid():
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        file.write(b"".join(key.hex().encode() + b"\n" for key in keys))
        file.flush()
        os.fsync(descriptor)


def _unwritable(error: OSError) -> ConfigError:
    return ConfigError(
        f"The master key file cannot be written ({error.strerror}).",
        hint="Name a writable place with EXECUTOR_KEY_FILE or EXECUTOR_CONFIG_DIR.",
    )
