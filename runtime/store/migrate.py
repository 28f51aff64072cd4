"""Numbered migrations: `migrations/NNNN_<what>.sql`, applied in order, each in one transaction with its number."""

from __future__ import annotations

import sqlite3
from functools import cache
from importlib import resources

from bridge.wire.errors import ConfigError


@cache
def scripts() -> tuple[str, ...]:
    """The migrations in order; the first is number 1."""
    files = [file for file in (resources.files("runtime.store") / "migrations").iterdir() if file.name.endswith(".sql")]
    ordered = sorted(files, key=lambda file: file.name)
    assert [int(file.name[:4]) for file in ordered] == list(range(1, len(ordered) + 1))
    return tuple(file.read_text(encoding="utf-8") for file in ordered)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to the newest version.

    A migration that was cut off left nothing behind: it runs again. Raises ConfigError when the database was written
    by a newer version of Executor.
    """
    known = scripts()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(known):
        raise ConfigError(
            f"the store has version {version}, this Executor knows versions up to {len(known)}",
            hint="use the newer Executor, or another home",
        )
    for number, script in enumerate(known[version:], version + 1):
        # executescript() would commit an open transaction first, so that the transaction is part of the script.
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
