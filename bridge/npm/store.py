"""What is kept of packages on disk: archives by the hash of their bytes, locks, and what a version was at first use.

Every name is a hash, so that no two packages meet in one. Files appear whole or not at all, links are not followed,
and an archive is what its name says or is not used. Any number of processes may share a folder.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from catalog.kinds.npm.integrity import integrity_of
from catalog.kinds.npm.tree import Lock

_MAX_FACTS: Final = 8 * 1024 * 1024
_SWEEP_BYTES: Final = 64 * 1024 * 1024
_log = structlog.get_logger("executor.npm")


class PackageStore:
    """All methods block; call them in a thread. Without room or rights for a file, things go on without it."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._written = _SWEEP_BYTES

    # Archives

    def archive(self, integrity: str) -> bytes | None:
        """The archive with that SHA-512, if it is there and whole."""
        path = self._archive_path(integrity)
        data = None if path is None else _read(path)
        if path is None or data is None:
            return None
        if integrity_of(data) != integrity:
            _log.warning("archive_refused", entry=path.name[:16], reason="its bytes are not those that were stored")
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path, follow_symlinks=False)
        return data

    def has_archive(self, integrity: str) -> bool:
        path = self._archive_path(integrity)
        return path is not None and path.is_file() and not path.is_symlink()

    def put_archive(self, data: bytes) -> str:
        """Keep `data`; the answer is its integrity."""
        integrity = integrity_of(data)
        path = self._archive_path(integrity)
        assert path is not None
        if _write(path, data):
            self._written += len(data)
            if self._written >= _SWEEP_BYTES:
                self._written = 0
                self._sweep()
        return integrity

    def _archive_path(self, integrity: str) -> Path | None:
        algorithm, _, text = integrity.partition("-")
        try:
            digest = base64.b64decode(text, validate=True).hex()
        except (binascii.Error, ValueError):
            return None
        if algorithm != "sha512" or len(digest) != 128:
            return None
        return self._folder / "archives" / digest[:2] / f"{digest}.tgz"

    def _sweep(self) -> None:
        """Remove the archives that were not used for the longest time, until the rest fits."""
        found = []
        for path in (self._folder / "archives").glob("*/*"):
            with suppress(OSError):
                facts = path.lstat()
                found.append((facts.st_mtime, facts.st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found, key=lambda one: one[:2]):
            if total <= self._limit:
                break
            with suppress(OSError):
                path.unlink()
                total -= size

    # Locks, and what a tag or a range led to

    def lock(self, label: str, terms: str) -> Lock | None:
        """The lock of `label`, an exact version, that was made under `terms`."""
        data = _read(self._facts("locks", label, terms))
        try:
            lock = None if data is None else Lock.from_json(data)
        except (ValueError, RecursionError):
            return None
        return lock if lock is not None and f"{lock.name}@{lock.version}" == label else None

    def put_lock(self, lock: Lock, terms: str) -> None:
        _write(self._facts("locks", f"{lock.name}@{lock.version}", terms), lock.to_json())

    def led_to(self, label: str, terms: str) -> str | None:
        """The version that the tag or range `label` led to when the registry last answered."""
        data = _read(self._facts("tags", label, terms))
        return None if data is None else data.decode("utf-8", "replace")[:256]

    def put_led_to(self, label: str, terms: str, version: str) -> None:
        _write(self._facts("tags", label, terms), version.encode())

    # Pins

    def pin(self, label: str, terms: str, integrity: str) -> str:
        """What `label` was at its first use: `integrity`, if this is it."""
        path = self._facts("pins", label, terms)
        _write(path, json.dumps({"label": label, "integrity": integrity}).encode(), replace=False)
        return self.pinned(label, terms) or integrity

    def pinned(self, label: str, terms: str) -> str | None:
        data = _read(self._facts("pins", label, terms))
        try:
            facts = None if data is None else json.loads(data)
            return str(facts["integrity"]) if facts is not None and facts["label"] == label else None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def _facts(self, kind: str, label: str, terms: str) -> Path:
        digest = hashlib.sha256(f"{len(label)}:{label}{terms}".encode()).hexdigest()
        return self._folder / kind / digest[:2] / f"{digest}.json"


def _read(path: Path) -> bytes | None:
    """The bytes of a plain file of this user that nobody else may write; None for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & 0o022:
            return None
        try:
            return file.read() if path.suffix == ".tgz" or facts.st_size <= _MAX_FACTS else None
        except OSError:
            return None


def _write(path: Path, data: bytes, *, replace: bool = True) -> bool:
    """Whether the file now has `data`. Not `replace`: a file that is there stays as it is."""
    fresh = path.with_name(f".{secrets.token_hex(12)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(fresh, flags, 0o600), "wb") as file:
                file.write(data)
            if replace:
                os.replace(fresh, path)
            else:
                with suppress(FileExistsError):
                    os.link(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as e:
        _log.warning("package_not_kept", reason=e.strerror or type(e).__name__)
        return False
    return True
