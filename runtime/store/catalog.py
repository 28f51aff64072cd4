"""Integrations and connections at rest: the catalog's own rows, unread."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from catalog.store import ConnectionRow, IntegrationRow
from runtime.store.sqlite import Database

_PUT_CONNECTION = (
    "INSERT OR REPLACE INTO connections (integration, scope, name, config, created_at) VALUES (?, ?, ?, ?, ?)"
)


class Catalog:
    """A `catalog.store.CatalogStore` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def integrations(self) -> list[IntegrationRow]:
        query = "SELECT name, kind, config, manifest, created_at, review FROM integrations ORDER BY name"
        rows = await self._database.read(lambda connection: connection.execute(query).fetchall())
        return [IntegrationRow(*row) for row in rows]

    async def connections(self) -> list[ConnectionRow]:
        query = "SELECT integration, scope, name, config, created_at FROM connections ORDER BY integration, scope, name"
        rows = await self._database.read(lambda connection: connection.execute(query).fetchall())
        return [ConnectionRow(*row) for row in rows]

    async def put_integration(self, row: IntegrationRow, connections: Sequence[ConnectionRow]) -> None:
        def put(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO integrations (name, kind, config, manifest, created_at, review) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
            connection.executemany(_PUT_CONNECTION, connections)

        await self._database.write(put)

    async def delete_integration(self, name: str, *, connections: bool) -> None:
        def delete(connection: sqlite3.Connection) -> None:
            if connections:
                connection.execute("DELETE FROM connections WHERE integration = ?", (name,))
            connection.execute("DELETE FROM integrations WHERE name = ?", (name,))

        await self._database.write(delete)

    async def put_connection(self, row: ConnectionRow) -> None:
        await self._database.write(lambda connection: connection.execute(_PUT_CONNECTION, row))

    async def delete_connection(self, integration: str, scope: str, name: str) -> None:
        statement = "DELETE FROM connections WHERE integration = ? AND scope = ? AND name = ?"
        await self._database.write(lambda connection: connection.execute(statement, (integration, scope, name)))
