"""Runs done again from their journals: the same calls, fuel and result, and not a call outside."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from executor import Config, Conflict, Executor, NotFound
from runtime.store.sqlite import Database

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


made: list[Any] = []


@pytest.fixture(scope="module")
async def ex():
    async with Executor.open(config=Config(workers=2)) as executor:

        async def echo(args: dict) -> Any:
            made.append(args)
            await asyncio.sleep(args.get("ms", 0) / 1000)
            return args.get("v")

        executor.tool("r.org.main.echo", echo, side_effect="read")
        executor.tool("r.org.main.large", lambda args: "x" * args["n"], side_effect="read")
        yield executor


SCRIPTS = {
    "nothing": "1 + 1",
    "sequence": "let s = 0; for (let i = 0; i < 20; i++) s += await tools.r.org.main.echo({v: i}); s",
    "batches": """
        const order: number[] = [];
        await Promise.all([7, 1, 5, 3, 1].map(async (ms, i) => {
            await tools.r.org.main.echo({ms, v: i}); order.push(i); await tools.r.org.main.echo({v: ms}) }));
        console.log(order.join()); emit({order}); Date.now() + Math.random()""",
    "timers": """
        const seen = [];
        const beat = setInterval(() => seen.push(Date.now()), 2);
        await tools.r.org.main.echo({ms: 12}); clearInterval(beat); await new Promise(r => setTimeout(r, 3)); seen""",
    "slices": """
        const busy = n => { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s };
        const a = busy(1e5); const [b] = await Promise.all([tools.r.org.main.echo({v: 1}), 0]); [a, b, busy(1e5)]""",
    "large": "const t = await tools.r.org.main.large({n: 300000}); [t.length, t.slice(0, 3)]",
    "caught": "try { await tools.no.such.tool.here({}) } catch (e) { [e.code, e.message] }",
    "thrown": "await tools.r.org.main.echo({v: 1}); throw new TypeError('no')",
    "fuel": "await tools.r.org.main.echo({v: 1}); for (;;) {}",
    "stack": "await tools.r.org.main.echo({v: 1}); const f = () => 1 + f(); f()",
    "memory": "await tools.r.org.main.echo({v: 1}); const a = []; for (;;) a.push(new Uint8Array(1 << 20))",
    "pends": "await tools.r.org.main.echo({v: 1}); await new Promise(() => {})",
    "syntax": "let let = 1",
    "calls": "for (let i = 0; ; i++) await tools.r.org.main.echo({v: i})",
    "unserializable": "await tools.r.org.main.echo({v: 1}); ({a: [() => 1]})",
    "stored": "const t = await tools.r.org.main.large({n: 3000000}); t",
}
ENDS = {
    "thrown": "script_error",
    "fuel": "fuel_exhausted",
    "stack": "stack_exhausted",
    "memory": "memory_exhausted",
    "pends": "never_settles",
    "syntax": "syntax_error",
    "calls": "calls_exhausted",
    "unserializable": "unserializable",
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_replay_does_the_same_with_the_same_fuel_and_calls_nothing(ex: Executor, name: str):
    budgets = {"fuel": 600_000_000, "bridge_calls": 40}
    answer = await ex.run(SCRIPTS[name], budgets=budgets)
    assert (answer.error or {}).get("code") == ENDS.get(name), answer.error
    before = len(made)
    for _ in range(2):
        report = await ex.replay_run(answer.run_id)
        assert report.divergence is None
        assert (report.same, report.complete, report.same_image) == (True, True, True)
        assert report.fuel == {"recorded": answer.usage["fuel"], "replayed": answer.usage["fuel"]}
        assert report.calls == len(answer.calls)
    assert len(made) == before


async def test_replays_at_once_of_runs_that_ran_at_once_do_the_same(ex: Executor):
    names = [name for name in SCRIPTS if name not in ENDS] * 3
    answers = await asyncio.gather(*(ex.run(SCRIPTS[name]) for name in names))
    reports = await asyncio.gather(*(ex.replay_run(answer.run_id) for answer in answers))
    assert [(r.same, r.divergence) for r in reports] == [(True, None)] * len(names)


async def test_a_run_ended_from_outside_is_replayed_up_to_its_last_pause(ex: Executor):
    late = await ex.run(
        "await tools.r.org.main.echo({v: 1}); await tools.r.org.main.echo({ms: 60000})", budgets={"wall_ms": 300}
    )
    assert late.error is not None
    assert late.error["code"] == "deadline_exceeded"
    report = await ex.replay_run(late.run_id)
    assert (report.same, report.complete, report.steps, report.calls) == (True, False, 2, 2)
    busy = await ex.run("await tools.r.org.main.echo({v: 1}); for (;;) {}", budgets={"wall_ms": 300, "fuel": 10**12})
    report = await ex.replay_run(busy.run_id)
    assert (report.same, report.complete, report.steps) == (True, False, 1)


async def test_a_journal_that_says_something_else_is_found_out_at_its_first_step(ex: Executor):
    answer = await ex.run("const a = await tools.r.org.main.echo({v: 1}); await tools.r.org.main.echo({v: a}); a")
    row = await ex._parts.store.runs.get(answer.run_id)
    assert row is not None
    database = ex._parts.store.database

    async def changed(old: str, new: str) -> Any:
        def change(c: Any) -> None:
            rest = [d for (d,) in c.execute("SELECT entries FROM journal WHERE run = ? ORDER BY seq", (row.n,))]
            whole = b"".join(rest)
            assert old.encode() in whole
            c.execute("DELETE FROM journal WHERE run = ?", (row.n,))
            c.execute("INSERT INTO journal VALUES (?, 1, ?)", (row.n, whole.replace(old.encode(), new.encode(), 1)))

        await database.write(change)
        return (await ex.replay_run(answer.run_id)).divergence

    found = await changed("main.echo", "main.ecHo")
    assert (found["step"], found["what"]) == (1, "calls")
    assert found["recorded"][0]["path"] == "r.org.main.ecHo"
    await database.write(lambda c: c.execute("UPDATE runs SET source = source || ';0' WHERE n = ?", (row.n,)))
    assert (await changed("main.ecHo", "main.echo"))["what"] in ("fuel", "result")


async def test_a_changed_source_differs_at_the_step_that_it_changes(ex: Executor):
    answer = await ex.run("const a = await tools.r.org.main.echo({v: 1}); await tools.r.org.main.echo({v: 2}); a")
    change = "UPDATE runs SET source = replace(source, '{v: 2}', '{v: 3}') WHERE id = ?"
    await ex._parts.store.database.write(lambda c: c.execute(change, (answer.run_id,)))
    report = await ex.replay_run(answer.run_id)
    assert report.divergence is not None
    assert (report.same, report.divergence["step"], report.divergence["what"]) == (False, 2, "calls")


async def test_another_guest_image_is_said_and_its_fuel_not_compared(ex: Executor):
    """PER-16"""
    answer = await ex.run("await tools.r.org.main.echo({v: 1})")
    forget = "UPDATE runs SET image = 'other', usage = json_set(usage, '$.fuel', 1) WHERE id = ?"
    await ex._parts.store.database.write(lambda c: c.execute(forget, (answer.run_id,)))
    row = await ex._parts.store.runs.get(answer.run_id)
    assert row is not None
    plain = await ex.run("7")
    await ex._parts.store.database.write(lambda c: c.execute(forget, (plain.run_id,)))
    report = await ex.replay_run(plain.run_id)
    assert (report.same, report.same_image, report.image["recorded"]) == (True, False, "other")


async def test_what_cannot_be_replayed_is_refused(tmp_path: Path):
    async with Executor.open(config=Config(workers=1, journal_bytes=2000)) as ex:
        ex.tool("r.org.main.large", lambda args: "x" * 3000, side_effect="read")
        ex.tool("r.org.main.hang", lambda args: asyncio.Event().wait(), side_effect="read")
        with pytest.raises(NotFound):
            await ex.replay_run("run_none")
        long = await ex.run("(await tools.r.org.main.large({})).length")
        with pytest.raises(Conflict, match="not whole"):
            await ex.replay_run(long.run_id)
        queued = await ex.run("await new Promise(r => setTimeout(r, 60000))", wait=False)
        with pytest.raises(Conflict, match="only a run that has ended"):
            await ex.replay_run(queued.run_id)
        await ex.cancel_run(queued.run_id)


async def test_a_replay_leaves_no_trace(ex: Executor):
    answer = await ex.run(SCRIPTS["batches"])
    database: Database = ex._parts.store.database
    count = "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM journal), (SELECT count(*) FROM calls)"
    before = await database.read(lambda c: c.execute(count).fetchone())
    await ex.replay_run(answer.run_id)
    assert await database.read(lambda c: c.execute(count).fetchone()) == before


async def test_a_python_run_is_replayed_too(ex: Executor):
    answer = await ex.run(
        "import random, asyncio, time\n"
        "a, b = await asyncio.gather(tools.r.org.main.echo(v=1, ms=3), tools.r.org.main.echo(v=2))\n"
        "await asyncio.sleep(0.005)\nprint(a, b)\n[a, b, random.random(), time.time(), list({'p', 'q', 'r'})]",
        language="python",
    )
    assert answer.status == "completed", answer.error
    report = await ex.replay_run(answer.run_id)
    assert report.divergence is None
    assert report.fuel["replayed"] == answer.usage["fuel"]
