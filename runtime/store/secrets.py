"""Sealed secrets at rest: ciphertext, and the value that tells the right master key from a wrong one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from bridge.secrets.ports import SecretRow
from runtime.store.sqlite import Database

_CHECK = "secret_key_check"
_PUT = "INSERT OR REPLACE INTO secrets (scope, name, version, sealed, created_at) VALUES (?, ?, ?, ?, ?)"
_PUT_FACT = "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)"


class Secrets:
    """A `bridge.secrets.ports` SecretStore and KeyStore in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def secret(self, scope: str, name: str) -> SecretRow | None:
        query = "SELECT scope, name, version, sealed, created_at FROM secrets WHERE scope = ? AND name = ?"
        row = await self._database.read(lambda connection: connection.execute(query, (scope, name)).fetchone())
        return None if row is None else SecretRow(*row)

    async def put_secret(self, row: SecretRow) -> None:
        await self._database.write(lambda connection: connection.execute(_PUT, row))

    async def swap_secret(self, row: SecretRow, expected: int | None) -> bool:
        def swap(connection: sqlite3.Connection) -> bool:
            query = "SELECT version FROM secrets WHERE scope = ? AND name = ?"
            stored = connection.execute(query, (row.scope, row.name)).fetchone()
            if (None if stored is None else stored[0]) != expected:
                return False
            connection.execute(_PUT, row)
            return True

        return await self._database.write(swap)

    async def delete_secret(self, scope: str, name: str) -> bool:
        """Whether there was one."""
        statement = "DELETE FROM secrets WHERE scope = ? AND name = ?"
        return await self._database.write(lambda connection: connection.execute(statement, (scope, name)).rowcount > 0)

    async def secret_names(self, scope: str) -> list[str]:
        query = "SELECT name FROM secrets WHERE scope = ? ORDER BY name"
        rows = await self._database.read(lambda connection: connection.execute(query, (scope,)).fetchall())
        return [name for (name,) in rows]

    async def secrets(self) -> list[SecretRow]:
        query = "SELECT scope, name, version, sealed, created_at FROM secrets"
        rows = await self._database.read(lambda connection: connection.execute(query).fetchall())
        return [SecretRow(*row) for row in rows]

    async def reseal(self, rows: Sequence[SecretRow], key_check: bytes) -> None:
        def put(connection: sqlite3.Connection) -> None:
            # Rows under the old key must not stay readable in pages that are free now.
            connection.execute("PRAGMA secure_delete = ON")
            connection.executemany(_PUT, rows)
            connection.execute(_PUT_FACT, (_CHECK, key_check))

        await self._database.write(put)

    async def key_check(self) -> bytes | None:
        query = "SELECT value FROM facts WHERE name = ?"
        row = await self._database.read(lambda connection: connection.execute(query, (_CHECK,)).fetchone())
        return None if row is None else row[0]

    async def put_key_check(self, value: bytes) -> None:
        await self._database.write(lambda connection: connection.execute(_PUT_FACT, (_CHECK, value)))
