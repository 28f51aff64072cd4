"""A copy of a home's database, made while it is in use."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from bridge.wire.errors import ConfigError, StorageError, StorageFailed, StorageFull
from runtime.store.store import FILE


def backup(home: Path, target: Path) -> int:
    """Write everything in the database of `home`, as of one moment, to the new file `target`; its size in bytes.

    A server that has the home open goes on. The copy is checked, and has its name only when it is whole. The master key
    of local secrets is not in it. Raises ConfigError (no database there, or `target` exists), StorageError.
    """
    target = target.expanduser().absolute()
    source = home / FILE
    if not source.exists():
        raise ConfigError(f"{str(home)!r} has no database to back up")
    if target.exists():
        raise ConfigError(f"{str(target)!r} exists already", hint="name a new file")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        # Made here so that nobody else can read it, at no time.
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with contextlib.closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("VACUUM INTO ?", (str(part),))
        with contextlib.closing(sqlite3.connect(part)) as copy:
            verdict = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise StorageFailed(f"the copy is damaged: {verdict}")
        os.link(part, target)
        return target.stat().st_size
    except FileExistsError:
        raise ConfigError(f"{str(target)!r} exists already", hint="name a new file") from None
    except sqlite3.Error as e:
        raise _typed(e) from e
    except OSError as e:
        raise ConfigError(f"{str(target)!r} cannot be written: {e.strerror}") from e
    finally:
        part.unlink(missing_ok=True)


def _typed(error: sqlite3.Error) -> StorageError | ConfigError:
    code = int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StorageFull("there is no room for the copy")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return ConfigError(f"the database of the home is damaged: {error}", hint="restore an earlier backup")
    return StorageFailed(f"the copy cannot be made: {error}")
