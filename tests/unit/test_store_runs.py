"""Runs at rest: recovery after a crash, retention, blobs, idempotency."""

import hashlib
import json
from pathlib import Path

import msgpack
import pytest

from bridge.wire import frames
from bridge.wire.errors import Conflict
from runtime import journal
from runtime.journal import Journal
from runtime.store.interactions import Denials, InteractionRow, Pending
from runtime.store.runs import NO_RUN, CallRow, Retention, RunRow, RunStore, put_blob
from runtime.store.sqlite import Database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def database(tmp_path: Path):
    database = await Database.open(tmp_path / "executor.db")
    yield database
    await database.close()


async def opened(database: Database, runs: int = 10_000) -> RunStore:
    store = RunStore(database, Retention(runs=runs))
    await store.load()
    return store


def row(store: RunStore, status: str = "completed", **other: object) -> RunRow:
    n = store.number()
    ended = status not in ("queued", "running", "waiting")
    return RunRow(
        n=n,
        id=f"run_{n}",
        status=status,
        language="javascript",
        isolation="shared",
        principal="sdk",
        toolkit=None,
        labels="{}",
        created_at=float(n),
        started_at=None,
        ended_at=float(n) if ended else None,
        source_sha256="",
        error=None,
        limit_hit=None,
        usage="{}",
        budgets="{}",
        idempotency_key=None,
        request_sha256=None,
        seed=1,
        clock_us=None,
        journal_whole=1,
        result_ref=None,
        source="1",
        input=b"\xc0",
        result=b"\x01",
        logs=b"\x90",
        emitted=b"\x90",
        calls=b"\x90",
        timeline=b"\x90",
    )._replace(**other)  # type: ignore[arg-type]


def call(run: int, id: int, outcome: str) -> CallRow:
    return CallRow(run, id, "a.b.c.d", outcome, 1.0, json.dumps({"id": id, "outcome": outcome}))


def interaction(run: int, **other: object) -> InteractionRow:
    row = InteractionRow("int_1", run, 1, "approval", "a.b.c.d", "{}", 1, "", "write", "bound", "pending", 0.0, 100.0)
    return row._replace(**other)  # type: ignore[arg-type]


def yes() -> bool:
    return True


async def test_what_was_in_progress_when_the_host_died_is_found_and_stays_as_it_was(database: Database):
    """PER-01"""
    store = await opened(database)
    rows = [row(store, status) for status in ("queued", "running", "waiting", "completed", "failed")]
    for each in rows:
        await store.accept(each)
    again = RunStore(database, Retention())
    await store.interactions.add(interaction(rows[2].n), None, Pending(9, 999, 999), Denials(5, 0.0))
    await again.load()
    assert again.left == [rows[0].id, rows[1].id]
    found = [await again.get(each.id) for each in rows]
    assert [each.status for each in found if each] == ["queued", "running", "waiting", "completed", "failed"]
    # One that waits for nothing that is open has gone on without a word of it.
    await store.interactions.decide("int_1", "approved", now=1.0, by="me")
    await database.write(lambda c: c.execute("UPDATE runs SET status = 'waiting' WHERE n = ?", (rows[2].n,)))
    await again.load()
    assert again.left == [rows[0].id, rows[1].id, rows[2].id]
    assert again.number() == rows[-1].n + 1


async def test_a_call_that_was_leaving_when_the_host_died_is_unknown(database: Database):
    """PER-17"""
    store = await opened(database)
    running = row(store, "running")
    await store.accept(running)
    await store.sending(call(running.n, 1, "sending"))
    await store.sending(call(running.n, 2, "sending"))
    store.called(call(running.n, 2, "done"))
    await RunStore(database, Retention()).load()
    assert await store.calls(running.n) == [
        {"id": 1, "outcome": "unknown", "code": "outcome_unknown"},
        {"id": 2, "outcome": "done"},
    ]


async def test_calls_outside_any_run_are_numbered_on(database: Database):
    store = await opened(database)
    first = store.direct_number()
    await store.sending(call(NO_RUN, first, "sending"))
    again = RunStore(database, Retention())
    await again.load()
    assert again.direct_number() == first + 1


async def test_the_oldest_ended_runs_go_first_with_all_that_is_theirs(database: Database):
    """PER-20"""
    store = await opened(database, runs=2)
    waiting = row(store, "waiting", labels='{"a": "b"}')
    await store.accept(waiting)
    ended = [row(store) for _ in range(5)]
    for each in ended:
        await store.sending(call(each.n, 1, "done"))
        await database.write(lambda c, n=each.n: c.execute("INSERT INTO journal VALUES (?, 1, x'90')", (n,)))
        await store.finish(each, [b"mine %d" % each.n, b"shared"], yes)
    await store.load()
    left = [r.n for r in await store.page(status=None, label=None, limit=10, before=None)]
    assert left == [ended[4].n, ended[3].n, waiting.n]
    for table in ("calls", "journal", "blob_uses"):
        owners = await database.read(lambda c, t=table: {n for (n,) in c.execute(f"SELECT run FROM {t}")})
        assert owners == {ended[4].n, ended[3].n}, table
    assert await database.read(lambda c: c.execute("SELECT count(*) FROM blobs").fetchone()) == (3,)


async def test_runs_that_wait_take_no_place_of_those_that_ended(database: Database):
    store = RunStore(database, Retention(runs=3))
    waiting = [row(store, "waiting", ended_at=None) for _ in range(5)]
    for one in waiting:
        await store.accept(one)
    for _ in range(6):
        await store.finish(row(store), [], yes)
    await store.sweep()
    kept = await database.read(lambda c: c.execute("SELECT status, count(*) FROM runs GROUP BY status").fetchall())
    assert dict(kept) == {"completed": 3, "waiting": 5}


async def test_the_database_stays_below_its_cap_in_bytes(database: Database):
    """PER-20"""
    store = RunStore(database, Retention(runs=10_000, bytes=2_000_000))
    for _ in range(200):
        await store.finish(row(store, source="x" * 50_000), [], yes)
    (count,) = await database.read(lambda c: c.execute("SELECT count(*) FROM runs").fetchone())
    assert 10 < count < 110


async def test_a_run_that_ended_before_its_start_was_written_is_written_once(database: Database):
    store = await opened(database)
    statements: list[str] = []
    await database.write(lambda c: c.set_trace_callback(statements.append))
    started = row(store, "running")
    forget = store.begin(lambda: started)
    forget()
    await store.finish(started._replace(status="completed", ended_at=1.0), [], yes)
    assert sum("INSERT INTO runs" in statement for statement in statements) == 1
    found = await store.get(started.id)
    assert found is not None
    assert found.status == "completed"


async def test_an_idempotency_key_is_one_run_of_one_principal(database: Database):
    store = await opened(database)
    first = row(store, idempotency_key="k")
    await store.accept(first)
    with pytest.raises(Conflict):
        await store.accept(row(store, idempotency_key="k"))
    await store.accept(row(store, idempotency_key="k", principal="other"))
    assert await store.by_idempotency_key("sdk", "k") == first


async def test_a_blob_is_read_by_the_run_that_has_it_alone(database: Database):
    store = await opened(database)
    data = bytes(range(256)) * 100
    sha256 = await database.write(lambda c: put_blob(c, 1, data))
    assert sha256 == hashlib.sha256(data).digest()
    assert await store.blob(1, sha256) == (data, len(data))
    assert await store.blob(1, sha256, 100, 50) == (data[100:150], len(data))
    assert await store.blob(1, sha256, len(data) + 1) == (b"", len(data))
    assert await store.blob(2, sha256) is None


async def test_a_journal_holds_every_answer_in_order_and_large_ones_as_blobs(database: Database):
    store = await opened(database)
    log = Journal(store, 7, max_bytes=10_000_000)
    large = msgpack.packb("x" * 100_000)
    log.started("javascript", 42, 1_000, "img")
    log.paused(10, [frames.Call(1, "a.b.c.d", b"\x80", False)], 2_000)
    log.resumed(1_500, [frames.Answer(1, True, b"\x05")])
    await database.read(lambda c: None)
    log.paused(20, [frames.Call(2, "a.b.c.e", b"\x81\xa1x\x01", True)], None)
    log.resumed(1_600, [frames.Answer(2, False, large)])
    log.ended(30, None)
    digest = hashlib.sha256(large).digest()
    assert journal.read(await store.journal(7)) == [
        [journal.START, journal.VERSION, "javascript", 42, 1_000, "img"],
        [journal.PAUSE, 10, [[1, "a.b.c.d", False, hashlib.sha256(b"\x80").digest()]], 2_000],
        [journal.RESUME, 1_500, [[1, True, b"\x05"]]],
        [journal.PAUSE, 20, [[2, "a.b.c.e", True, hashlib.sha256(b"\x81\xa1x\x01").digest()]], None],
        [journal.RESUME, 1_600, [[2, False, [digest, len(large)]]]],
        [journal.END, 30, None],
    ]
    assert log.whole
    assert await store.blob(7, digest) == (large, len(large))


async def test_a_run_that_never_paused_has_no_journal(database: Database):
    store = await opened(database)
    log = Journal(store, 7, max_bytes=1000)
    log.started("javascript", 42, 1_000, "img")
    log.ended(10, None)
    assert await store.journal(7) == b""


async def test_a_journal_past_its_size_ends_and_says_that_it_is_not_whole(database: Database):
    store = await opened(database)
    log = Journal(store, 7, max_bytes=500)
    log.started("javascript", 42, 1_000, "img")
    for step in range(100):
        log.resumed(step, [frames.Answer(step, True, b"\x05")])
    assert not log.whole
    assert 0 < len(await store.journal(7)) < 1000
    ended = row(store)
    await store.finish(ended, [], lambda: log.whole)
    found = await store.get(ended.id)
    assert found is not None
    assert found.journal_whole == 0
