"""The database under everything: grouped commits, migrations, damage, a full disk."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.wire.errors import ConfigError, StorageFull
from runtime.store import migrate
from runtime.store.home import HomeLock
from runtime.store.sqlite import Database

pytestmark = pytest.mark.anyio


def _make(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE notes (n INTEGER PRIMARY KEY, text TEXT UNIQUE)")


def _add(text: str):
    return lambda connection: connection.execute("INSERT INTO notes (text) VALUES (?)", (text,)).lastrowid


def _all(connection: sqlite3.Connection) -> list[str]:
    return [text for (text,) in connection.execute("SELECT text FROM notes ORDER BY n")]


@pytest.fixture(params=["file", "memory"])
async def database(request, tmp_path: Path):
    database = await Database.open(tmp_path / "executor.db" if request.param == "file" else None)
    await database.write(_make)
    yield database
    await database.close()


async def test_a_read_sees_every_write_and_post_before_it(database: Database):
    assert await database.write(_add("a")) == 1
    database.post(_add("b"))
    assert await database.read(_all) == ["a", "b"]


async def test_a_posted_write_is_committed_without_a_later_write(database: Database):
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def note(connection: sqlite3.Connection) -> None:
        _add("alone")(connection)
        loop.call_soon_threadsafe(done.set)

    database.post(note)
    async with asyncio.timeout(5):
        await done.wait()


async def test_a_dropped_post_leaves_no_trace(database: Database):
    database.drop(database.post(_add("gone")))
    assert await database.read(_all) == []


async def test_a_write_that_fails_does_not_take_the_others_of_its_commit_with_it(database: Database):
    outcomes = await asyncio.gather(*(database.write(_add(text)) for text in "aab"), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int, sqlite3.IntegrityError, int]
    assert await database.read(_all) == ["a", "b"]


async def test_many_writes_at_once_share_commits(database: Database):
    statements: list[str] = []
    await database.write(lambda connection: connection.set_trace_callback(statements.append))
    await asyncio.gather(*(database.write(_add(str(n))) for n in range(200)))
    assert len(await database.read(_all)) == 200
    assert statements.count("COMMIT") < 50


async def test_a_closed_database_refuses_at_once(tmp_path: Path):
    database = await Database.open(tmp_path / "executor.db")
    await database.close()
    await database.close()
    with pytest.raises(ConfigError, match="closed"):
        await database.write(_add("late"))


async def test_what_was_posted_before_close_is_there_after_it(tmp_path: Path):
    database = await Database.open(tmp_path / "executor.db")
    await database.write(_make)
    database.post(_add("last"))
    await database.close()
    again = await Database.open(tmp_path / "executor.db")
    assert await again.read(_all) == ["last"]
    await again.close()


async def test_a_newer_store_is_refused_and_left_as_it_is(tmp_path: Path):
    """PER-07"""
    path = tmp_path / "executor.db"
    await (await Database.open(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(ConfigError, match="version 999"):
        await Database.open(path)
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (999,)


@pytest.mark.parametrize("version", range(len(migrate.scripts())))
async def test_every_older_version_migrates_to_the_newest(tmp_path: Path, version: int):
    path = tmp_path / "executor.db"
    connection = sqlite3.connect(path)
    for number, script in enumerate(migrate.scripts()[:version], 1):
        connection.executescript(f"BEGIN;{script};PRAGMA user_version = {number};COMMIT;")
    connection.close()
    database = await Database.open(path)
    assert await database.read(lambda c: c.execute("PRAGMA user_version").fetchone()) == (len(migrate.scripts()),)
    await database.close()


def test_a_migration_that_fails_leaves_the_version_and_the_tables_of_before(monkeypatch):
    """PER-07"""
    broken = (*migrate.scripts(), "CREATE TABLE half (n); SELECT no_such_function();")
    monkeypatch.setattr(migrate, "scripts", lambda: broken)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        migrate.migrate(connection)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(broken) - 1,)
    assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'half'").fetchall()
    connection.close()


async def test_a_damaged_file_is_refused_with_a_reason(tmp_path: Path):
    path = tmp_path / "executor.db"
    path.write_bytes(b"this is not a database, whatever its name says" * 100)
    with pytest.raises(ConfigError, match="cannot be opened"):
        await Database.open(path)


async def test_a_full_disk_is_a_typed_error_and_writing_goes_on_when_there_is_room(database: Database):
    """PER-03"""

    def cap(pages: int):
        return lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()

    (pages,) = await database.write(lambda c: c.execute("PRAGMA page_count").fetchone())
    await database.write(cap(pages + 2))
    with pytest.raises(StorageFull):
        await database.write(_add("x" * 100_000))
    assert database.failing
    assert await database.read(_all) == []
    await database.write(cap(1_000_000))
    await database.write(_add("room"))
    assert not database.failing
    assert await database.read(_all) == ["room"]


def test_a_second_process_on_the_same_home_is_refused(tmp_path: Path):
    """PER-06"""
    lock = HomeLock(tmp_path)
    script = (
        "import sys, pathlib\nfrom bridge.wire.errors import ConfigError\nfrom runtime.store.home import HomeLock\n"
        "try:\n    HomeLock(pathlib.Path(sys.argv[1]))\nexcept ConfigError as e:\n    print(e)\n"
    )

    def attempt() -> str:
        return subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
        ).stdout

    assert "open in another process" in attempt()
    lock.release()
    assert attempt() == ""


def test_a_home_is_private_to_its_owner(tmp_path: Path):
    lock = HomeLock(tmp_path / "home")
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    lock.release()
