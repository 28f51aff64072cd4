"""SQLite behind two threads: one that writes, in grouped commits, and one that reads.

A `write` returns once it is committed with `synchronous=FULL`. A `post` is committed soon, in order, and nobody waits
for it: together with the next write, or after `LAG_S`. Whatever waits while a commit is under way shares the next one.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import structlog

from bridge.wire.errors import ConfigError, StorageError, StorageFailed, StorageFull
from runtime.store import migrate
from runtime.store.privacy import close_database

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

LAG_S: Final = 0.02
"""Longest time that a posted write waits for company."""

_BROKEN: Final = frozenset(
    {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_BUSY,
    }
)
"""What the file or its disk is to blame for, not the statement."""
_ROOM: Final = 1024 * 1024
"""Bytes that a disk must have left for an error of it to be about something else."""

_log = structlog.get_logger("executor.store")


class _Job:
    __slots__ = ("dropped", "error", "failed", "future", "value", "work")

    def __init__(
        self, work: Work[Any], future: asyncio.Future[Any] | None, failed: Callable[[], None] | None = None
    ) -> None:
        self.work = work
        self.future = future
        self.failed = failed
        self.value: Any = None
        self.error: BaseException | None = None
        self.dropped = False


class Database:
    """One SQLite file (or a private in-memory database). Open it with `Database.open`, close it once.

    Calls belong to the event loop that opened it; the work they carry runs on a thread of the database.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.durable = path is not None
        self.failing = False
        """Whether the last commit failed because of the disk; the next one that succeeds clears it."""
        self._jobs: deque[_Job] = deque()
        self._writing = False
        self._wake: SimpleQueue[bool] = SimpleQueue()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._writer: sqlite3.Connection
        self._reader: sqlite3.Connection
        self._reads: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    @classmethod
    async def open(cls, path: Path | None) -> Database:
        """Open, check and migrate. Raises ConfigError when the file is damaged, newer, or cannot be opened."""
        self = cls(path)
        await asyncio.to_thread(self._connect)
        self._start(self._write_loop, "executor-store-writer")
        if self.durable:
            self._start(self._read_loop, "executor-store-reader")
        return self

    async def write(self, work: Work[T]) -> T:
        """Run `work` in a transaction; return its value once committed. Raises what it raises, and StorageError."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._submit(_Job(work, future))
        self._wake.put(True)
        return await future

    def post(self, work: Work[Any], *, urgent: bool = False, failed: Callable[[], None] | None = None) -> _Job:
        """Run `work` in a later transaction. `drop` the returned job when it became pointless.

        When it cannot be committed that is logged, and `failed` is called on the writer's thread.
        """
        job = _Job(work, None, failed)
        self._submit(job)
        if urgent:
            self._wake.put(True)
        elif self._timer is None:
            self._timer = self._loop.call_later(LAG_S, self._due)
        return job

    @staticmethod
    def drop(job: _Job) -> None:
        """Leave `job` out if it has not been done yet."""
        job.dropped = True

    async def read(self, work: Work[T]) -> T:
        """Run `work` on the reading connection, after everything that was written or posted before this call."""
        if self._jobs or self._writing:
            await self.write(_nothing)
        if not self.durable:
            return await self.write(work)
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            raise ConfigError("the store is closed")
        self._reads.put(_Job(work, future))
        return await future

    async def close(self) -> None:
        """Commit what was posted, then close. Safe to call again."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake.put(False)
        self._reads.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._writer.close()
        if self._reader is not self._writer:
            self._reader.close()

    def _submit(self, job: _Job) -> None:
        if self._closed:
            raise ConfigError("the store is closed")
        self._jobs.append(job)

    def _due(self) -> None:
        self._timer = None
        self._wake.put(True)

    def _start(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _connect(self) -> None:
        try:
            if self.path is not None:
                close_database(self.path)
            self._writer = _connection(self.path)
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute("PRAGMA synchronous = FULL")
            self._writer.execute("PRAGMA wal_autocheckpoint = 2000")
            self._writer.execute("PRAGMA journal_size_limit = 67108864")
            self._check()
            migrate.migrate(self._writer)
            self._reader = self._writer
            if self.durable:
                self._reader = _connection(self.path)
                self._reader.execute("PRAGMA query_only = ON")
        except OSError as e:
            raise ConfigError(f"the store cannot be opened: {e.strerror}", hint="use another home") from e
        except sqlite3.DatabaseError as e:
            self._abandon()
            if self._is_full(e):
                raise StorageFull("there is no room to open the store", hint="free space on its disk") from e
            damaged = _code(e) in (0, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
            advice = "restore a backup of executor.db, or use another home" if damaged else "check who owns the home"
            raise ConfigError(f"the store cannot be opened: {e}", hint=advice) from e
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        for name in ("_writer", "_reader"):
            connection = self.__dict__.get(name)
            if connection is not None:
                connection.close()

    def _check(self) -> None:
        if not self.durable:
            return
        verdict = self._writer.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(str(verdict).splitlines()[0])

    # On the threads

    def _write_loop(self) -> None:
        going = True
        while going:
            going = self._wake.get()
            while self._jobs:
                # Set before anything is taken: what was posted is in the one or known to the other.
                self._writing = True
                self._commit(self._take())
            self._writing = False

    def _take(self) -> list[_Job]:
        batch: list[_Job] = []
        while self._jobs and len(batch) < 512:
            batch.append(self._jobs.popleft())
        return batch

    def _commit(self, batch: list[_Job]) -> None:
        error = self._attempt(batch)
        if error is not None and len(batch) > 1:
            # One of them failed and took the others with it: each stands for itself now.
            for job in batch:
                job.error = self._attempt([job])
        elif error is not None:
            batch[0].error = error
        waiting = [job for job in batch if job.future is not None]
        for job in batch:
            if job.error is not None and job.future is None:
                _log.error("a posted write failed", error=str(job.error))
                if job.failed is not None:
                    job.failed()
        if waiting:
            self._tell(waiting)

    def _attempt(self, batch: list[_Job]) -> BaseException | None:
        """Do `batch` in one transaction. The error that undid it, or None when it is committed."""
        connection = self._writer
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in batch:
                if not job.dropped:
                    job.value = job.work(connection)
            connection.execute("COMMIT")
        except BaseException as e:
            self._roll_back()
            if not isinstance(e, sqlite3.Error):
                return e
            problem: StorageError
            if self._is_full(e):
                problem = StorageFull("the store has no room for a new record", hint="free space on its disk")
            elif _code(e) in _BROKEN:
                problem = StorageFailed(f"the store cannot be written: {e}", hint="check the disk of the home")
            else:
                return e
            self.failing = True
            problem.__cause__ = e
            return problem
        self.failing = False
        return None

    def _is_full(self, error: sqlite3.Error) -> bool:
        """Whether room is what is missing. A full disk also shows as other errors, where SQLite makes a file."""
        if _code(error) == sqlite3.SQLITE_FULL:
            return True
        if self.path is None or _code(error) not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
            return False
        try:
            disk = os.statvfs(self.path.parent)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < _ROOM or (disk.f_files > 0 and disk.f_favail == 0)

    def _roll_back(self) -> None:
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except sqlite3.Error as e:
            _log.error("a transaction could not be rolled back", error=str(e))

    def _read_loop(self) -> None:
        while (job := self._reads.get()) is not None:
            try:
                job.value = job.work(self._reader)
            except BaseException as e:
                job.error = e
            self._tell([job])

    def _tell(self, jobs: list[_Job]) -> None:
        try:
            self._loop.call_soon_threadsafe(_resolve, jobs)
        except RuntimeError:
            # The loop is gone and with it everybody who waited.
            return


def _resolve(jobs: list[_Job]) -> None:
    for job in jobs:
        future = job.future
        if future is None or future.done():
            continue
        if job.error is not None:
            future.set_exception(job.error)
        else:
            future.set_result(job.value)


def _nothing(_: sqlite3.Connection) -> None:
    return None


def _connection(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        ":memory:" if path is None else str(path),
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        timeout=10.0,
    )
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 where Python made the error."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
