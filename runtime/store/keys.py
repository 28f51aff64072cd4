"""Bearer keys at rest: digests only."""

from __future__ import annotations

import sqlite3

from bridge.wire.errors import Conflict
from runtime.store.sqlite import Database

KeyFacts = tuple[str, str, bytes, float, float | None, float | None, str, str | None]


class Keys:
    """Rows of (id, name, digest, created_at, last_used_at, revoked_at, access, toolkit), one transaction a method."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_key(
        self, id: str, name: str, digest: bytes, created_at: float, access: str = "full", toolkit: str | None = None
    ) -> None:
        """Raises Conflict when a live key has the name."""

        def add(connection: sqlite3.Connection) -> None:
            try:
                connection.execute(
                    "INSERT INTO keys (id, name, digest, created_at, access, toolkit) VALUES (?, ?, ?, ?, ?, ?)",
                    (id, name, digest, created_at, access, toolkit),
                )
            except sqlite3.IntegrityError:
                raise Conflict(f"a key named {name!r} exists") from None

        await self._database.write(add)

    async def list_keys(self) -> list[KeyFacts]:
        columns = "id, name, digest, created_at, last_used_at, revoked_at, access, toolkit"
        query = f"SELECT {columns} FROM keys ORDER BY created_at, id"  # noqa: S608 - our own names
        rows: list[KeyFacts] = await self._database.read(lambda connection: connection.execute(query).fetchall())
        return rows

    async def revoke_key(self, id: str, revoked_at: float) -> None:
        statement = "UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
        await self._database.write(lambda connection: connection.execute(statement, (revoked_at, id)))

    async def mark_key_used(self, id: str, used_at: float) -> None:
        """Committed soon: nobody waits for it."""
        statement = "UPDATE keys SET last_used_at = ? WHERE id = ?"
        self._database.post(lambda connection: connection.execute(statement, (used_at, id)))
