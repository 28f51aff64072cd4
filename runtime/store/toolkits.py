"""Toolkits at rest."""

from __future__ import annotations

from bridge.toolkits import ToolkitRow
from runtime.store.sqlite import Database


class Toolkits:
    """A `bridge.toolkits.ToolkitStore` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def toolkits(self) -> list[ToolkitRow]:
        query = "SELECT name, description, tools, rules, created_at FROM toolkits ORDER BY name"
        rows = await self._database.read(lambda connection: connection.execute(query).fetchall())
        return [ToolkitRow(*row) for row in rows]

    async def put_toolkit(self, row: ToolkitRow) -> None:
        statement = (
            "INSERT OR REPLACE INTO toolkits (name, description, tools, rules, created_at) VALUES (?, ?, ?, ?, ?)"
        )
        await self._database.write(lambda connection: connection.execute(statement, row))

    async def delete_toolkit(self, name: str) -> bool:
        """Whether there was one."""
        statement = "DELETE FROM toolkits WHERE name = ?"
        return await self._database.write(lambda connection: connection.execute(statement, (name,)).rowcount > 0)
