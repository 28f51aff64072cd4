"""Runs, calls, journals and blobs at rest."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from bridge.wire.errors import Conflict
from runtime.store.interactions import Interactions, claim
from runtime.store.sqlite import Database

NO_RUN: Final = 0
"""The run number of a call that somebody made directly."""
PRUNE_EVERY: Final = 64
"""Runs between two looks at the retention caps; each `PRUNE_BYTES` of stored values count as one more."""
PRUNE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True)
class Retention:
    """What is kept: at most so many ended runs, for so many seconds (None: for ever), in at most so many bytes of
    database. Older ones go first, with all that is theirs: journal, calls, answers, stored values."""

    runs: int = 10_000
    bytes: int = 4 * 1024**3
    seconds: float | None = None


class RunRow(NamedTuple):
    """A run as stored. JSON columns are text; `narrowings` are `bridge.view.Narrowing`s. `input`, `result`, `logs`,
    `emitted`, `calls` and `timeline` are msgpack."""

    n: int
    id: str
    status: str
    language: str
    isolation: str
    principal: str
    toolkit: str | None
    labels: str
    created_at: float
    started_at: float | None
    ended_at: float | None
    source_sha256: str
    error: str | None
    limit_hit: str | None
    usage: str
    budgets: str
    idempotency_key: str | None
    request_sha256: str | None
    seed: int
    clock_us: int | None
    journal_whole: int
    result_ref: str | None
    source: str
    input: bytes
    result: bytes | None
    logs: bytes
    emitted: bytes
    calls: bytes
    timeline: bytes
    image: str | None = None
    narrowings: str = "[]"
    taken_up: int = 0


class CallRow(NamedTuple):
    """A call as stored; `facts` is the JSON that answers show. `run` is `NO_RUN` for a call outside any run."""

    run: int
    id: int
    path: str
    outcome: str
    started_at: float
    facts: str


_COLUMNS: Final = ", ".join(RunRow._fields)
_PUT: Final = (
    f"INSERT INTO runs ({_COLUMNS}) VALUES ({', '.join('?' * len(RunRow._fields))}) "  # noqa: S608 - our own names
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in RunRow._fields if c not in ('n', 'id'))}"
)
_BRIEF: Final = [
    {"source": "''", "input": "x'c0'", "result": "NULL", "logs": "x'90'", "emitted": "x'90'", "timeline": "x'90'"}.get(
        c, c
    )
    for c in RunRow._fields
]
_PUT_CALL: Final = (
    "INSERT INTO calls (run, id, path, outcome, started_at, facts) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (run, id) DO UPDATE SET outcome = excluded.outcome, facts = excluded.facts"
)


class RunStore:
    """The runs of one database. `load` comes first: it numbers runs on from the last, and finds what a crash left."""

    def __init__(self, database: Database, retention: Retention) -> None:
        self.database = database
        self.interactions = Interactions(database)
        self.left: list[str] = []
        """Ids of the runs that the last host left in the middle, oldest first."""
        self._retention = retention
        self._next = 1
        self._next_direct = 1
        self._since_prune = 0

    async def load(self) -> None:
        """Number on, and find what was in progress when the last host stopped: its calls may have happened."""
        self.left, last, direct = await self.database.write(_recover)
        self._next = last + 1
        self._next_direct = direct + 1
        await self.database.write(self._prune)

    def number(self) -> int:
        """The number of a new run: higher than every earlier one, so that it orders runs by their creation."""
        n = self._next
        self._next += 1
        return n

    def direct_number(self) -> int:
        """The number of a new call outside any run."""
        n = self._next_direct
        self._next_direct += 1
        return n

    def begin(self, row: Callable[[], RunRow]) -> Callable[[], None]:
        """Record a run that starts, soon; `row` is asked for it then, on the writer's thread.

        Returns what forgets it again, for a run that ended before that.
        """
        job = self.database.post(lambda connection: _put(connection, row()))
        return lambda: self.database.drop(job)

    async def accept(self, row: RunRow) -> None:
        """Record a run, durably. Raises Conflict when its idempotency key is taken, StorageFull."""
        await self.database.write(lambda connection: _put(connection, row))

    async def finish(self, row: RunRow, blobs: Sequence[bytes], whole: Callable[[], bool]) -> None:
        """Record how a run ended, with the blobs that its row names, in one transaction; durably.

        `whole` is asked, once all that was posted before is written, whether the run's journal is complete.

        A database in memory survives nothing, so that nobody waits for it. Raises StorageFull.
        """

        def put(connection: sqlite3.Connection) -> None:
            for blob in blobs:
                put_blob(connection, row.n, blob)
            _put(connection, row if whole() else row._replace(journal_whole=0))
            self._since_prune += 1 + sum(map(len, blobs)) // PRUNE_BYTES
            if self._since_prune >= PRUNE_EVERY:
                self._prune(connection)

        if self.database.durable:
            await self.database.write(put)
        else:
            self.database.post(put)

    async def sending(self, call: CallRow) -> None:
        """Record, durably and after everything posted before, that a call is about to leave. Raises StorageFull."""
        await self.database.write(lambda connection: put_calls(connection, [call]))

    def called(self, call: CallRow) -> None:
        """Record what became of a call outside any run, soon."""
        self.database.post(lambda connection: put_calls(connection, [call]))

    async def get(self, run_id: str) -> RunRow | None:
        return await self._one("id = ?", run_id)

    async def by_idempotency_key(self, principal: str, key: str) -> RunRow | None:
        return await self._one("principal = ? AND idempotency_key = ?", principal, key)

    async def calls(self, n: int) -> list[dict[str, Any]]:
        """The calls with an effect of run number `n`, in the order in which they came out of the script."""
        query = "SELECT facts FROM calls WHERE run = ? ORDER BY id"
        rows = await self.database.read(lambda connection: connection.execute(query, (n,)).fetchall())
        return [json.loads(facts) for (facts,) in rows]

    async def page(
        self,
        *,
        status: str | None,
        label: tuple[str, str | None] | None,
        limit: int,
        before: int | None,
        principal: str | None = None,
    ) -> list[RunRow]:
        """Up to `limit` runs, newest first, without their large columns; all numbers below `before`."""
        where, values = ["1"], list[Any]()
        if status is not None:
            where.append("status = ?")
            values.append(status)
        if principal is not None:
            where.append("principal = ?")
            values.append(principal)
        if before is not None:
            where.append("n < ?")
            values.append(before)
        if label is not None:
            key, value = label
            which = "key = ?" if value is None else "key = ? AND value = ?"
            where.append(f"n IN (SELECT run FROM run_labels WHERE {which})")  # noqa: S608 - our own names
            values += [key] if value is None else [key, value]
        query = f"SELECT {', '.join(_BRIEF)} FROM runs WHERE {' AND '.join(where)} ORDER BY n DESC LIMIT ?"  # noqa: S608
        rows = await self.database.read(lambda connection: connection.execute(query, (*values, limit)).fetchall())
        return [RunRow(*row) for row in rows]

    async def blob(
        self, run: int, sha256: bytes, offset: int = 0, length: int | None = None
    ) -> tuple[bytes, int] | None:
        """The bytes of a blob from `offset` on and its whole size; None when run number `run` has no such blob."""

        def read(connection: sqlite3.Connection) -> tuple[bytes, int] | None:
            query = (
                "SELECT b.n, length(b.data) FROM blobs b JOIN blob_uses u ON u.sha256 = b.sha256 "
                "WHERE b.sha256 = ? AND u.run = ?"
            )
            found = connection.execute(query, (sha256, run)).fetchone()
            if found is None:
                return None
            n, total = found
            with connection.blobopen("blobs", "data", n, readonly=True) as blob:
                blob.seek(min(offset, total))
                return blob.read(total if length is None else length), total

        return await self.database.read(read)

    def not_whole(self, n: int) -> None:
        """The journal of run number `n` is not complete any more."""
        self.database.post(lambda connection: connection.execute("UPDATE runs SET journal_whole = 0 WHERE n = ?", (n,)))

    async def claim(self, n: int) -> bool:
        """Have run number `n` run, durably, if it waits. False when it did not: somebody else has it."""
        return await self.database.write(lambda connection: claim(connection, n))

    def going_on(self, n: int) -> None:
        """Run number `n` does not wait any more; committed soon."""
        self.database.post(lambda connection: claim(connection, n))

    async def take_up(self, n: int) -> None:
        """Count, durably, that run number `n` is begun again after a crash."""
        statement = "UPDATE runs SET taken_up = taken_up + 1 WHERE n = ?"
        await self.database.write(lambda connection: connection.execute(statement, (n,)))

    def progressed(self, n: int) -> None:
        """Run number `n` has got further since it was begun again; committed soon."""
        self.database.post(lambda connection: connection.execute("UPDATE runs SET taken_up = 0 WHERE n = ?", (n,)))

    async def journal_size(self, n: int) -> tuple[int, int]:
        """The last row's number and the bytes of all."""
        query = "SELECT coalesce(max(seq), 0), coalesce(sum(length(entries)), 0) FROM journal WHERE run = ?"
        seq, size = await self.database.read(lambda connection: connection.execute(query, (n,)).fetchone())
        return int(seq), int(size)

    async def journal(self, n: int) -> bytes:
        """The journal of run number `n`: a stream of msgpack arrays."""
        query = "SELECT entries FROM journal WHERE run = ? ORDER BY seq"
        rows = await self.database.read(lambda connection: connection.execute(query, (n,)).fetchall())
        return b"".join(entries for (entries,) in rows)

    async def _one(self, where: str, *values: Any) -> RunRow | None:
        query = f"SELECT {_COLUMNS} FROM runs WHERE {where}"  # noqa: S608 - our own names
        row = await self.database.read(lambda connection: connection.execute(query, values).fetchone())
        return None if row is None else RunRow(*row)

    async def sweep(self) -> None:
        """Forget now what is past its limits. Raises StorageError."""
        await self.database.write(self._prune)

    def _prune(self, connection: sqlite3.Connection) -> None:
        self._since_prune = 0
        if self._retention.seconds is not None:
            query = "SELECT n FROM runs WHERE ended_at < ? ORDER BY n LIMIT 10000"
            before = time.time() - self._retention.seconds
            _forget(connection, [n for (n,) in connection.execute(query, (before,))])
        (count,) = connection.execute("SELECT count(*) FROM runs WHERE ended_at IS NOT NULL").fetchone()
        forgotten = _forget_oldest(connection, count - self._retention.runs)
        while _used_bytes(connection) > self._retention.bytes and forgotten < count:
            some = _forget_oldest(connection, (count - forgotten) // 10 + 1)
            if not some:
                break
            forgotten += some
        connection.execute(
            "DELETE FROM calls WHERE run = 0 AND id <= (SELECT max(id) FROM calls WHERE run = 0) - ?",
            (self._retention.runs,),
        )


def put_calls(connection: sqlite3.Connection, calls: Sequence[CallRow]) -> None:
    """Record calls, or what became of calls that are recorded."""
    connection.executemany(_PUT_CALL, calls)


def put_blob(connection: sqlite3.Connection, run: int, data: bytes) -> bytes:
    """Keep `data`, once, for run number `run`; its SHA-256."""
    sha256 = hashlib.sha256(data).digest()
    connection.execute("INSERT OR IGNORE INTO blobs (sha256, data) VALUES (?, ?)", (sha256, data))
    connection.execute("INSERT OR IGNORE INTO blob_uses (run, sha256) VALUES (?, ?)", (run, sha256))
    return sha256


def _put(connection: sqlite3.Connection, row: RunRow) -> None:
    try:
        connection.execute(_PUT, row)
    except sqlite3.IntegrityError:
        raise Conflict("the idempotency key is in use") from None
    if row.labels != "{}":
        pairs = json.loads(row.labels).items()
        connection.executemany(
            "INSERT OR IGNORE INTO run_labels (run, key, value) VALUES (?, ?, ?)", [(row.n, *pair) for pair in pairs]
        )


def _recover(connection: sqlite3.Connection) -> tuple[list[str], int, int]:
    # A run can have gone on without a word of it in its row: then nothing is open that somebody could answer.
    query = (
        "SELECT id FROM runs r WHERE status IN ('queued', 'running') OR (status = 'waiting' AND NOT EXISTS "
        "(SELECT 1 FROM interactions i WHERE i.run = r.n AND i.state = 'pending')) ORDER BY n"
    )
    left = [id for (id,) in connection.execute(query)]
    sent = connection.execute("SELECT n, facts FROM calls WHERE outcome = 'sending'").fetchall()
    for n, facts in sent:
        known = json.loads(facts) | {"outcome": "unknown", "code": "outcome_unknown"}
        connection.execute("UPDATE calls SET outcome = 'unknown', facts = ? WHERE n = ?", (json.dumps(known), n))
    (last,) = connection.execute("SELECT coalesce(max(n), 0) FROM runs").fetchone()
    (direct,) = connection.execute("SELECT coalesce(max(id), 0) FROM calls WHERE run = 0").fetchone()
    return left, last, direct


def _forget_oldest(connection: sqlite3.Connection, how_many: int) -> int:
    """Forget the oldest ended runs; how many there were to forget."""
    query = "SELECT n FROM runs WHERE ended_at IS NOT NULL ORDER BY n LIMIT ?"
    numbers = [n for (n,) in connection.execute(query, (max(0, how_many),))]
    _forget(connection, numbers)
    return len(numbers)


def _forget(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    each = [(n,) for n in numbers]
    if not each:
        return
    for table, column in (
        ("run_labels", "run"),
        ("calls", "run"),
        ("journal", "run"),
        ("interactions", "run"),
        ("handles", "run"),
        ("runs", "n"),
    ):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", each)  # noqa: S608 - our own names
    orphans = connection.executemany("DELETE FROM blob_uses WHERE run = ?", each).rowcount
    if orphans:
        connection.execute(
            "DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.sha256 = blobs.sha256)"
        )


def _used_bytes(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)
