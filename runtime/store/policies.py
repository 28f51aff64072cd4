"""Policy rules at rest."""

from __future__ import annotations

from bridge.policy import RuleRow
from runtime.store.sqlite import Database


class Policies:
    """A `bridge.policy.PolicyStore` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rules(self) -> list[RuleRow]:
        query = (
            "SELECT id, scope, target, pattern, effect, reason, created_at, approver FROM rules ORDER BY created_at, id"
        )
        rows = await self._database.read(lambda connection: connection.execute(query).fetchall())
        return [RuleRow(*row) for row in rows]

    async def put_rule(self, row: RuleRow) -> None:
        statement = (
            "INSERT OR REPLACE INTO rules (id, scope, target, pattern, effect, reason, created_at, approver) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        await self._database.write(lambda connection: connection.execute(statement, row))

    async def delete_rule(self, rule_id: str) -> bool:
        """Whether there was one."""
        statement = "DELETE FROM rules WHERE id = ?"
        return await self._database.write(lambda connection: connection.execute(statement, (rule_id,)).rowcount > 0)
