"""PER: what is kept, what a crash or a hand on the disk can do to it, what comes back."""

import asyncio
import json
import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.wire.errors import FrameError
from executor import Config, ConfigError, Conflict, Executor
from runtime import journal, patience
from runtime.engine import settings
from runtime.store.backup import backup
from runtime.store.sqlite import Database
from tests.blackbox.command import cli
from tests.blackbox.server import serving

pytestmark = pytest.mark.anyio

WAITING = int(os.environ.get("EXECUTOR_TEST_WAITING", "60"))
PAY = "const a = await tools.p.org.main.look({n: 1}); await tools.p.org.main.pay({to: 'ann', n: 1}).catch(e => e.code)"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def house(ex: Executor) -> list[Any]:
    """Give `ex` a tool that needs a yes and one that does not; what was paid."""
    paid: list[Any] = []
    ex.tool("p.org.main.pay", lambda args: paid.append(args) or "paid", side_effect="write")
    ex.tool("p.org.main.look", lambda args: args["n"], side_effect="read")
    return paid


async def waiting(home: Path, code: str = PAY) -> tuple[str, str]:
    """A run that waits in the store of `home`; its id and that of its interaction."""
    async with Executor.open(home, config=Config(workers=1)) as ex:
        house(ex)
        run = await ex.run(code)
        assert run.status == "waiting"
        return run.run_id, run.interactions[0]["id"]


def edit(home: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(home / "executor.db")
    with connection:
        assert connection.execute(statement, values).rowcount == 1
    connection.close()


def merge_journal(home: Path) -> None:
    """Put the journal of the one run of `home` into one row, its first."""
    connection = sqlite3.connect(home / "executor.db")
    with connection:
        rows = connection.execute("SELECT entries FROM journal ORDER BY seq").fetchall()
        connection.execute("DELETE FROM journal WHERE seq > 1")
        connection.execute("UPDATE journal SET entries = ? WHERE seq = 1", (b"".join(row for (row,) in rows),))
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE interactions SET arguments = replace(arguments, 'ann', 'eve')",
        "UPDATE interactions SET path = 'p.org.main.look'",
        "UPDATE interactions SET call = 1",
        "UPDATE interactions SET binding = replace(binding, 'a', 'b')",
        "UPDATE runs SET principal = 'somebody'",
        "UPDATE runs SET toolkit = 'other'",
    ],
)
async def test_a_question_that_was_changed_on_disk_cannot_be_answered_with_yes(tmp_path: Path, statement: str):
    """PER-15, POL-09, POL-12"""
    run_id, interaction = await waiting(tmp_path)
    edit(tmp_path, statement)
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        paid = house(ex)
        with pytest.raises(Conflict) as refusal:
            await ex.resume(run_id, interaction, "approve")
        assert refusal.value.code == "approval_void"
        await ex._parts.runs.wait(run_id, rest=True)
        assert paid == []


async def test_a_run_whose_script_was_changed_on_disk_sends_nothing(tmp_path: Path):
    """PER-15: the journal tells that it is another script."""
    run_id, interaction = await waiting(tmp_path)
    edit(tmp_path, "UPDATE runs SET source = replace(source, '''ann''', '''eve''')")
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        paid = house(ex)
        record = await ex.resume(run_id, interaction, "approve")
        assert record.error is not None
        assert "differs from its journal" in record.error["message"]
        assert (record.status, paid) == ("failed", [])


async def test_a_waiting_run_goes_on_in_another_guest_image_by_replay(tmp_path: Path):
    """PER-16: no native state is kept, so that there is none to mismatch."""
    run_id, interaction = await waiting(tmp_path)
    connection = sqlite3.connect(tmp_path / "executor.db")
    (image,) = connection.execute("SELECT image FROM runs").fetchone()
    rows = connection.execute("SELECT run, seq, entries FROM journal").fetchall()
    with connection:
        for run, seq, entries in rows:
            other = entries.replace(image.encode(), b"0" * len(image))
            connection.execute("UPDATE journal SET entries = ? WHERE run = ? AND seq = ?", (other, run, seq))
    connection.close()
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        paid = house(ex)
        assert (await ex.resume(run_id, interaction, "approve")).unwrap() == "paid"
        assert len(paid) == 1


@pytest.mark.parametrize("damage", [b"", b"\xc1", b"\x93\x02\x01", b"\x91\x63", b"\x01"])
@pytest.mark.parametrize("rows", ["one", "several"])
async def test_a_damaged_journal_ends_its_run_and_no_other(tmp_path: Path, damage: bytes, rows: str):
    """PER-15: whether the writer found its entries all at once or one by one."""
    run_id, interaction = await waiting(tmp_path)
    if rows == "one":
        merge_journal(tmp_path)
    edit(tmp_path, "UPDATE journal SET entries = ? WHERE seq = 1", damage)
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        paid = house(ex)
        record = await ex.resume(run_id, interaction, "approve")
        assert (record.status, record.error and record.error["code"], paid) == ("failed", "internal", [])
        assert (await ex.run("1 + 1")).unwrap() == 2


@pytest.mark.parametrize("cut", [b"\x93\x02\x01", b"\x94\x04\x01\xc0\xc0\x93", b"\xc1"])
def test_a_journal_that_is_cut_off_is_not_read_as_a_shorter_one(cut: bytes):
    """PER-15"""
    assert journal.read(b"\x93\x04\x01\xc0") == [[4, 1, None]]
    with pytest.raises(FrameError):
        journal.read(b"\x93\x04\x01\xc0" + cut)


async def test_many_waiting_runs_survive_a_restart_and_all_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """PER-01, POL-29: they hold no worker and no memory while they wait."""
    monkeypatch.setattr(patience, "LINGER_S", 0.0)
    async with Executor.open(tmp_path, config=Config(workers=2)) as ex:
        house(ex)
        runs = [await ex.run("await tools.p.org.main.pay({n: input})", input=n) for n in range(WAITING)]
        with anyio.fail_after(60):
            while ex._parts.runs._live:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
        assert ex.health()["isolation"]["running"] == 0
    async with Executor.open(tmp_path, config=Config(workers=2)) as ex:
        paid = house(ex)
        assert ex.health()["runs"]["left_at_start"] == 0
        ids = [(run.run_id, run.interactions[0]["id"]) for run in runs]
        records = await asyncio.gather(*(ex.resume(run_id, id, "approve") for run_id, id in ids))
        assert {record.status for record in records} == {"completed"}
        assert sorted(args["n"] for args in paid) == list(range(WAITING))


async def test_a_host_that_dies_between_a_yes_and_its_call_makes_the_call_once(tmp_path: Path):
    """POL-30: the yes is on disk, nothing was sent: the next host sends it."""
    run_id, interaction = await waiting(tmp_path)
    edit(tmp_path, "UPDATE interactions SET state = 'approved', decided_at = 1, decided_by = 'x'")
    edit(tmp_path, "UPDATE runs SET status = 'running'")
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        paid = house(ex)
        assert ex.health()["runs"]["left_at_start"] == 1
        assert (await ex.wait_run(run_id)).unwrap() == "paid"
        assert len(paid) == 1
        # The same answer again does not send it again.
        assert (await ex.resume(run_id, interaction, "approve")).unwrap() == "paid"
        assert len(paid) == 1


async def test_a_host_that_dies_after_its_call_left_tells_the_script_that_nobody_knows(tmp_path: Path):
    """PER-17, POL-30"""
    run_id, _ = await waiting(tmp_path)
    edit(tmp_path, "UPDATE interactions SET state = 'approved', decided_at = 1, decided_by = 'x'")
    edit(tmp_path, "UPDATE runs SET status = 'running'")
    facts = {"id": 2, "path": "p.org.main.pay", "outcome": "sending", "side_effect": "write", "started_at": 1.0}
    insert = "INSERT INTO calls (run, id, path, outcome, started_at, facts) VALUES (1, 2, ?, 'sending', 1.0, ?)"
    edit(tmp_path, insert, facts["path"], json.dumps(facts))
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        paid = house(ex)
        record = await ex.wait_run(run_id)
        assert (record.unwrap(), paid) == ("outcome_unknown", [])
        assert [call["outcome"] for call in record.calls] == ["done", "unknown"]


async def test_a_backup_made_while_runs_are_written_opens_elsewhere(tmp_path: Path):
    """PER-22: with the key everything is there, without it the secrets stay sealed."""
    home, other, key = tmp_path / "home", tmp_path / "other", tmp_path / "key"
    config = Config(workers=1, key_file=key)
    async with Executor.open(home, config=config) as ex:
        await ex.toolbox.set_secret("token", "a-very-secret-value")
        runs = [asyncio.create_task(ex.run(f"{n}")) for n in range(40)]
        first = await runs[0]
        size = await asyncio.to_thread(backup, home, tmp_path / "copy.db")
        await asyncio.gather(*runs)
    copy = tmp_path / "copy.db"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert copy.stat().st_size == size
    assert b"a-very-secret-value" not in copy.read_bytes()
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]
    with pytest.raises(ConfigError, match="exists already"):
        backup(home, copy)
    other.mkdir()
    copy.rename(other / "executor.db")
    with pytest.raises(ConfigError):
        async with Executor.open(other, config=Config(workers=1, key_file=tmp_path / "another")):
            pass
    async with Executor.open(other, config=config) as ex:
        assert (await ex.get_run(first.run_id)).result == 0
        assert await ex.toolbox.secret_names() == ["token"]


def test_a_backup_on_the_command_line_works_beside_a_server(tmp_path: Path):
    """PER-22"""
    with serving(tmp_path / "home") as server:
        server.run("1 + 1")
        done = cli(tmp_path / "home", "backup", str(tmp_path / "copy.db"), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["bytes"] == (tmp_path / "copy.db").stat().st_size
        again = cli(tmp_path / "home", "backup", str(tmp_path / "copy.db"))
        assert (again.returncode, "exists already" in again.stderr) == (1, True)
    assert cli(tmp_path / "none", "backup", str(tmp_path / "nothing.db")).returncode == 1


async def test_old_runs_go_by_age_with_all_that_is_theirs(tmp_path: Path):
    """PER-20"""
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        paid = house(ex)
        old = await ex.run("await tools.p.org.main.pay({n: 1}).catch(e => e.code)")
        await ex.resume(old.run_id, old.interactions[0]["id"], "approve")
        kept = await ex.run("await tools.p.org.main.pay({n: 2})")
        assert (kept.status, len(paid)) == ("waiting", 1)
    edit(tmp_path, "UPDATE runs SET ended_at = ended_at - 3 * 86400 WHERE id = ?", old.run_id)
    async with Executor.open(tmp_path, config=Config(workers=1, keep_days=2)) as ex:
        assert [run.run_id for run in (await ex.list_runs()).items] == [kept.run_id]
        for table in ("journal", "calls", "interactions"):
            query = f"SELECT count(*) FROM {table} WHERE run = 1"
            assert await ex._parts.store.database.read(lambda c, q=query: c.execute(q).fetchone()) == (0,), table


async def test_a_disk_that_fails_is_not_called_full(tmp_path: Path):
    """PER-03"""
    home = tmp_path / "home"
    home.mkdir()
    (home / "executor.db-wal").mkdir()
    with pytest.raises(ConfigError, match="cannot be opened: disk I/O error"):
        await Database.open(home / "executor.db")


def test_the_engine_keeps_no_cache_of_its_own():
    """PER-12: code is cached by us, under our key, or not at all."""
    source = Path(settings.__file__).read_text()
    assert ".cache" not in source
