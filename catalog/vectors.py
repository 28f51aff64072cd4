"""Vectors of texts that were embedded before, by content hash: what is imported again is not computed again."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

MOST: Final = 500_000
"""Vectors that are kept; beyond that the file starts anew."""
_ASKED_AT_ONCE: Final = 500


class VectorStore(Protocol):
    """Bytes by key. It is a cache: what it forgets is computed again."""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]: ...

    def put(self, vectors: Mapping[bytes, bytes]) -> None: ...

    def close(self) -> None: ...


class NoVectors:
    """Remembers nothing."""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {}

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        return None

    def close(self) -> None:
        return None


class SqliteVectors:
    """A file of its own beside the store, which may be deleted at any time; one that cannot be read is replaced."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._db = _open(path)
        except sqlite3.DatabaseError:
            path.unlink(missing_ok=True)
            self._db = _open(path)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        with self._lock:
            for at in range(0, len(keys), _ASKED_AT_ONCE):
                some = keys[at : at + _ASKED_AT_ONCE]
                marks = ",".join("?" * len(some))
                found.update(self._db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some))  # noqa: S608
        return found

    def put(self, vectors: Mapping[bytes, bytes]) -> None:
        with self._lock, self._db:
            (held,) = self._db.execute("SELECT count(*) FROM vectors").fetchone()
            if held + len(vectors) > MOST:
                self._db.execute("DELETE FROM vectors")
            self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", vectors.items())

    def close(self) -> None:
        with self._lock:
            self._db.close()


def _open(path: Path) -> sqlite3.Connection:
    # SQLite would make the file as open to others as the umask lets it.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    path.chmod(0o600)
    db = sqlite3.connect(path, check_same_thread=False)
    try:
        # A lost commit costs a computation, so none is waited for.
        db.execute("PRAGMA synchronous = OFF")
        with db:
            db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID")
    except sqlite3.DatabaseError:
        db.close()
        raise
    return db
