"""Bytes that are kept between starts and trusted when they are read again: whoever changes one runs code in a worker.

So an entry is bytes under an HMAC over a header and the bytes. It is read once, verified, and only then handed on; what
does not verify is logged and counts as not there. The key is in the configuration folder, never beside what it vouches
for.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import secrets
import stat
import struct
from pathlib import Path
from typing import Final

import platformdirs
import structlog

from guest.images import cache_dir

_log = structlog.get_logger("executor.engine")

_MAC: Final = 32
_LENGTH: Final = struct.Struct(">I")


def config_dir() -> Path:
    """EXECUTOR_CONFIG_DIR, else the user's configuration folder."""
    override = os.environ.get("EXECUTOR_CONFIG_DIR")
    return Path(override) if override else Path(platformdirs.user_config_dir("executor"))


class Sealed:
    """Entries by header in a folder of this user's alone. Where that cannot be had, nothing is kept.

    At most `entries` are, and `most_bytes` of them together; the least recently written or read go first.
    """

    def __init__(
        self,
        name: str,
        suffix: str,
        magic: bytes,
        *,
        entries: int,
        most_bytes: int,
        folder: Path | None = None,
        key_file: Path | None = None,
    ) -> None:
        self._folder = folder if folder is not None else cache_dir() / name
        self._key_file = key_file if key_file is not None else config_dir() / "cache.key"
        self._suffix, self._magic = suffix, magic
        self._entries, self._most_bytes = entries, most_bytes
        self._told = False

    def get(self, header: bytes) -> bytes | None:
        """What was kept for exactly this header; None when nothing was, or when it is not what was kept."""
        found = self._place(header)
        if found is None:
            return None
        key, path = found
        data = _verified(path, key, header, self._magic)
        if data is not None:
            with contextlib.suppress(OSError):
                os.utime(path)
        return data

    def put(self, header: bytes, data: bytes) -> None:
        """Keep `data`; where it cannot be written, that is logged and nothing else happens."""
        found = self._place(header)
        if found is None:
            return
        key, path = found
        mac = hmac.digest(key, _signed(header) + data, "sha256")
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            _write_new(fresh, self._magic + mac + _signed(header) + data)
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            fresh.replace(path)
            self._prune()
        except OSError as e:
            fresh.unlink(missing_ok=True)
            _log.warning("module_not_cached", reason=type(e).__name__)

    def _place(self, header: bytes) -> tuple[bytes, Path] | None:
        key = self._key() if self._private() else None
        if key is None:
            return None
        # The name depends on the key, so that two configurations do not undo each other's entries.
        return key, self._folder / f"{hmac.digest(key, b'name' + header, 'sha256').hex()}{self._suffix}"

    def _private(self) -> bool:
        """Whether the folder is ours alone; made when it is missing."""
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            found = self._folder.lstat()
        except OSError as e:
            self._tell(type(e).__name__)
            return False
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            self._tell("the folder is a link, or open to other users")
            return False
        return True

    def _key(self) -> bytes | None:
        try:
            return _read_key(self._key_file) or _make_key(self._key_file)
        except OSError as e:
            self._tell(f"{self._key_file.name}: {_said(e)}")
            return None

    def _tell(self, reason: str) -> None:
        """Once, although each image asks."""
        if not self._told:
            _log.warning("module_cache_unusable", reason=reason, hint="images are compiled at every start until then")
        self._told = True

    def _prune(self) -> None:
        """Keep the newest entries: each build of a guest leaves some behind."""
        found = sorted(
            ((path.stat(), path) for path in self._folder.glob(f"*{self._suffix}")), key=lambda one: -one[0].st_mtime
        )
        total = 0
        for place, (facts, path) in enumerate(found):
            total += facts.st_size
            if place and (place >= self._entries or total > self._most_bytes):
                path.unlink(missing_ok=True)


def _signed(header: bytes) -> bytes:
    return _LENGTH.pack(len(header)) + header


def _verified(path: Path, key: bytes, header: bytes, magic: bytes) -> bytes | None:
    """The bytes in an entry, None when there is no entry or it is not exactly what was stored for this header."""
    try:
        stored = _read(path)
    except FileNotFoundError:
        return None
    except OSError as e:
        _log.warning("compiled_module_refused", entry=path.name, reason=_said(e))
        return None
    start = len(magic) + _MAC
    mac, rest = stored[len(magic) : start], stored[start:]
    prefix = _signed(header)
    genuine = hmac.compare_digest(mac, hmac.digest(key, rest, "sha256"))
    if not genuine or not stored.startswith(magic) or not rest.startswith(prefix):
        _log.warning("compiled_module_refused", entry=path.name, reason="its bytes are not those that were stored")
        return None
    return rest[len(prefix) :]


def _read(path: Path) -> bytes:
    """The bytes of a regular file that nobody but its owner, this user, may write. Raises PermissionError for others.

    A pipe in its place is not waited for.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except OSError as e:
        if e.errno == errno.ELOOP:
            raise PermissionError("it is a link") from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise PermissionError("it is no regular file")
    with open(descriptor, "rb") as file:
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
            raise PermissionError("it is another user's, or others may write to it")
        return file.read()


def _said(error: OSError) -> str:
    return str(error) if error.errno is None else type(error).__name__


def _write_new(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)


def _read_key(path: Path) -> bytes | None:
    try:
        key = _read(path)
        found = path.lstat()
    except FileNotFoundError:
        return None
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError("it must be this user's alone, mode 0600; remove it, and a new one is made")
    if len(key) != _MAC:
        what = "is empty" if not key else f"has {len(key)} bytes, not {_MAC}"
        raise PermissionError(f"it {what}, so it is no key; remove it, and a new one is made")
    return key


def _make_key(path: Path) -> bytes:
    """A new key; where another process made one first, that one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    _write_new(fresh, secrets.token_bytes(_MAC))
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    key = _read_key(path)
    if key is None:
        raise FileNotFoundError("the key of the module cache has gone")
    return key
