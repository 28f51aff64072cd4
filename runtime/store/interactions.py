"""Interactions at rest: each is decided once, whoever asks and however often."""

from __future__ import annotations

import sqlite3
from typing import Final, NamedTuple

from runtime.store.sqlite import Database


class InteractionRow(NamedTuple):
    """An interaction as stored. `kind` is approval, or input for what a server asks in the middle of a call. `state` is
    pending, approved, denied, dismissed, cancelled, expired or void."""

    id: str
    run: int
    call: int
    kind: str
    path: str
    arguments: str
    args_bytes: int
    reason: str
    side_effect: str
    binding: str
    state: str
    created_at: float
    expires_at: float
    decided_at: float | None = None
    decided_by: str | None = None
    content: str | None = None
    approver: str = "anyone"
    principal: str = ""
    question: str | None = None
    resume: str | None = None


class Overdue(NamedTuple):
    """An interaction that nobody answered in time, and its run; `claimed` as in Decided."""

    run_id: str
    interaction: InteractionRow
    claimed: bool


class Decided(NamedTuple):
    """An interaction as it is now. `fresh`: this decided it. `claimed`: its run waited and was told, in the same
    transaction, to run; whoever did that takes it up, and nobody else does."""

    interaction: InteractionRow
    fresh: bool
    claimed: bool


class Pending(NamedTuple):
    """How many interactions are open, the bytes of their arguments, and those of one run's."""

    calls: int
    bytes: int
    bytes_of_run: int


class Denials(NamedTuple):
    """How many calls of a tool people have denied a principal, one after the other, and when the last."""

    calls: int
    last: float


_COLUMNS: Final = ", ".join(InteractionRow._fields)
_PUT: Final = f"INSERT INTO interactions ({_COLUMNS}) VALUES ({', '.join('?' * len(InteractionRow._fields))})"  # noqa: S608 - our own names


class Interactions:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, row: InteractionRow, before: str | None, limits: Pending, denials: Denials
    ) -> Pending | Denials | None:
        """Keep a new one, durably, in place of the one with the id `before`.

        Where more than `limits` would be open then, what is open; where its principal has been denied the tool as often
        as `denials` since then, how often. Raises StorageError.
        """

        def add(connection: sqlite3.Connection) -> Pending | Denials | None:
            connection.execute("UPDATE interactions SET state = 'void' WHERE id = ?", (before,))
            if row.kind == "approval":
                denied = _denied(connection, row, denials.last)
                if denied.calls >= denials.calls:
                    return denied
            query = (
                "SELECT count(*), coalesce(sum(args_bytes), 0), coalesce(sum(args_bytes) FILTER (WHERE run = ?), 0) "
                "FROM interactions WHERE state = 'pending'"
            )
            open = Pending(*connection.execute(query, (row.run,)).fetchone())
            wanted = (open.calls + 1, open.bytes + row.args_bytes, open.bytes_of_run + row.args_bytes)
            if any(figure > most for figure, most in zip(wanted, limits, strict=True)):
                return open
            connection.execute(_PUT, row)
            return None

        return await self._database.write(add)

    async def get(self, id: str) -> InteractionRow | None:
        query = f"SELECT {_COLUMNS} FROM interactions WHERE id = ?"  # noqa: S608 - our own names
        row = await self._database.read(lambda connection: connection.execute(query, (id,)).fetchone())
        return None if row is None else InteractionRow(*row)

    async def of_run(self, run: int) -> list[InteractionRow]:
        """In the order in which the calls came out; of several for one call the newest comes last."""
        query = f"SELECT {_COLUMNS} FROM interactions WHERE run = ? ORDER BY call, created_at"  # noqa: S608 - our own
        rows = await self._database.read(lambda connection: connection.execute(query, (run,)).fetchall())
        return [InteractionRow(*row) for row in rows]

    async def decide(self, id: str, state: str, *, now: float, by: str, content: str | None = None) -> Decided:
        """Decide one that is pending, durably. One whose time is over becomes expired instead."""

        def decide(connection: sqlite3.Connection) -> Decided:
            expired = connection.execute(
                "UPDATE interactions SET state = 'expired', decided_at = ? "
                "WHERE id = ? AND state = 'pending' AND expires_at <= ?",
                (now, id, now),
            ).rowcount
            changed = connection.execute(
                "UPDATE interactions SET state = ?, decided_at = ?, decided_by = ?, content = ? "
                "WHERE id = ? AND state = 'pending'",
                (state, now, by, content, id),
            ).rowcount
            query = f"SELECT {_COLUMNS} FROM interactions WHERE id = ?"  # noqa: S608 - our own names
            row = InteractionRow(*connection.execute(query, (id,)).fetchone())
            fresh = bool(changed or expired)
            return Decided(row, fresh, fresh and claim(connection, row.run))

        return await self._database.write(decide)

    def close_run(self, run: int, now: float) -> None:
        """Nobody needs to answer what is pending for a run that has ended; committed soon."""
        statement = "UPDATE interactions SET state = 'cancelled', decided_at = ? WHERE run = ? AND state = 'pending'"
        self._database.post(lambda connection: connection.execute(statement, (now, run)))

    async def expire(self, now: float) -> list[Overdue]:
        """Close those whose time is over, durably."""

        def expire(connection: sqlite3.Connection) -> list[Overdue]:
            names = ", ".join(f"i.{name}" for name in InteractionRow._fields)
            query = (
                f"SELECT r.id, {names} FROM interactions i JOIN runs r ON r.n = i.run "  # noqa: S608 - our own names
                "WHERE i.state = 'pending' AND i.expires_at <= ? LIMIT 256"
            )
            found = [Overdue(run, InteractionRow(*row), False) for run, *row in connection.execute(query, (now,))]
            each = [(now, one.interaction.id) for one in found]
            connection.executemany("UPDATE interactions SET state = 'expired', decided_at = ? WHERE id = ?", each)
            return [
                Overdue(run, row._replace(state="expired", decided_at=now), claim(connection, row.run))
                for run, row, _ in found
            ]

        return await self._database.write(expire)

    async def orphans(self, before: float) -> list[Overdue]:
        """Close, durably, what was asked before then and can only be answered in the process that asked."""

        def close(connection: sqlite3.Connection) -> list[Overdue]:
            names = ", ".join(f"i.{name}" for name in InteractionRow._fields)
            query = (
                f"SELECT r.id, {names} FROM interactions i JOIN runs r ON r.n = i.run "  # noqa: S608 - our own names
                "WHERE i.state = 'pending' AND i.kind = 'input' AND i.resume IS NULL AND i.created_at < ?"
            )
            found = [(run, InteractionRow(*row)) for run, *row in connection.execute(query, (before,)).fetchall()]
            each = [(before, row.id) for _, row in found]
            connection.executemany("UPDATE interactions SET state = 'void', decided_at = ? WHERE id = ?", each)
            return [
                Overdue(run, row._replace(state="void", decided_at=before), claim(connection, row.run))
                for run, row in found
            ]

        return await self._database.write(close)

    async def next_expiry(self) -> float | None:
        query = "SELECT min(expires_at) FROM interactions WHERE state = 'pending'"
        (at,) = await self._database.read(lambda connection: connection.execute(query).fetchone())
        return None if at is None else float(at)


def _denied(connection: sqlite3.Connection, row: InteractionRow, since: float) -> Denials:
    """The denials since then, and since the last approval."""
    answered = (
        "FROM interactions WHERE kind = 'approval' AND principal = ? AND path = ? AND state = ? AND decided_at > ?"
    )
    who = (row.principal, row.path)
    (approved,) = connection.execute(f"SELECT max(decided_at) {answered}", (*who, "approved", since)).fetchone()
    query = f"SELECT count(*), coalesce(max(decided_at), 0) {answered}"
    return Denials(*connection.execute(query, (*who, "denied", approved or since)).fetchone())


def claim(connection: sqlite3.Connection, run: int) -> bool:
    """Have a waiting run run. False when it did not wait."""
    statement = "UPDATE runs SET status = 'running' WHERE n = ? AND status = 'waiting'"
    return connection.execute(statement, (run,)).rowcount == 1
