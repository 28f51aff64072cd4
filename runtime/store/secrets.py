"""Sealed secrets at rest: ciphertext, and the value that tells the right master key from a wrong one."""

from __future__ import annotations

from bridge.secrets.ports import SecretRow
from runtime.store.sqlite import Database

_CHECK = "secret_key_check"


class Secrets:
    """A `bridge.secrets.ports` SecretStore and KeyStore in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def secret(self, scope: str, name: str) -> SecretRow | None:
        query = "SELECT scope, name, version, sealed, created_at FROM secrets WHERE scope = ? AND name = ?"
        row = await self._database.read(lambda connection: connection.execute(query, (scope, name)).fetchone())
        return None if row is None else SecretRow(*row)

    async def put_secret(self, row: SecretRow) -> None:
        statement = "INSERT OR REPLACE INTO secrets (scope, name, version, sealed, created_at) VALUES (?, ?, ?, ?, ?)"
        await self._database.write(lambda connection: connection.execute(statement, row))

    async def delete_secret(self, scope: str, name: str) -> bool:
        """Whether there was one."""
        statement = "DELETE FROM secrets WHERE scope = ? AND name = ?"
        return await self._database.write(lambda connection: connection.execute(statement, (scope, name)).rowcount > 0)

    async def secret_names(self, scope: str) -> list[str]:
        query = "SELECT name FROM secrets WHERE scope = ? ORDER BY name"
        rows = await self._database.read(lambda connection: connection.execute(query, (scope,)).fetchall())
        return [name for (name,) in rows]

    async def key_check(self) -> bytes | None:
        query = "SELECT value FROM facts WHERE name = ?"
        row = await self._database.read(lambda connection: connection.execute(query, (_CHECK,)).fetchone())
        return None if row is None else row[0]

    async def put_key_check(self, value: bytes) -> None:
        statement = "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)"
        await self._database.write(lambda connection: connection.execute(statement, (_CHECK, value)))
