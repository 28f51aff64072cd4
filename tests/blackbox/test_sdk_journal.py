"""The journal of real runs: what replay needs is there, secrets and arguments are not."""

import hashlib
from typing import Any

import msgpack
import pytest

from executor import Config, Executor
from runtime import journal

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex():
    async with Executor.open(config=Config(workers=1)) as executor:
        executor.tool("j.org.main.echo", lambda args: args.get("v"), side_effect="read")
        executor.tool("j.org.main.write", lambda args: "written", side_effect="write")
        await executor.toolbox.add_policy("j", "*", "approve")
        yield executor


async def entries(ex: Executor, run_id: str) -> list[list[Any]]:
    row = await ex._parts.store.runs.get(run_id)
    assert row is not None
    return journal.read(await ex._parts.store.runs.journal(row.n))


async def test_a_journal_has_the_seed_the_clock_and_every_answer_in_order(ex: Executor):
    answer = await ex.run(
        """
        const first = await tools.j.org.main.echo({v: "secret argument"})
        await new Promise(done => setTimeout(done, 5))
        const [a, b] = await Promise.all([tools.j.org.main.write({}), tools.no.such.tool.here({}).catch(e => e.code)])
        emit(a); Date.now()
        """
    )
    assert answer.status == "completed", answer.error
    row = await ex._parts.store.runs.get(answer.run_id)
    assert row is not None
    log = await entries(ex, answer.run_id)
    assert log[0] == [journal.START, journal.VERSION, "typescript", row.seed, row.clock_us, row.image]
    back = [entry for entry in log if entry[0] == journal.ANSWER]
    assert [entry[2:] for entry in back] == [[True, msgpack.packb("written")]]
    assert [entry[0] for entry in log if entry[0] != journal.ANSWER] == [
        journal.START,
        journal.PAUSE,
        journal.RESUME,
        journal.PAUSE,
        journal.RESUME,
        journal.PAUSE,
        *([journal.RESUME, journal.PAUSE] * ([e[0] for e in log].count(journal.RESUME) - 3)),
        journal.RESUME,
        journal.END,
    ]
    asked = [call[1] for entry in log if entry[0] == journal.PAUSE for call in entry[2]]
    assert asked == ["j.org.main.echo", "j.org.main.write", "no.such.tool.here"]
    answers = {id: (ok, value) for entry in log if entry[0] == journal.RESUME for id, ok, value in entry[2]}
    ids = [call["id"] for call in answer.calls]
    assert answers[ids[0]] == (True, msgpack.packb("secret argument"))
    # What a call with an effect gave is kept as soon as it is there, and once.
    assert answers[ids[1]] == (True, None)
    assert answers[ids[2]][0] is False
    assert msgpack.unpackb(answers[ids[2]][1])["code"] == "tool_not_found"
    clocks = [entry[1] for entry in log if entry[0] == journal.RESUME]
    assert clocks == sorted(clocks)
    assert answer.result * 1000 <= clocks[-1]
    fuel = [entry[1] for entry in log if entry[0] == journal.PAUSE]
    assert fuel == sorted(fuel)
    assert log[-1] == [journal.END, answer.usage["fuel"], None]


async def test_the_clock_of_a_script_moves_only_at_its_steps(ex: Executor):
    answer = await ex.run(
        "const a = Date.now(); for (let i = 0; i < 3e6; i++); const b = Date.now(); await tools.j.org.main.echo({}); "
        "[b - a <= 1, Math.abs(a - input) < 60000]",
        input=int((await ex.run("Date.now()")).result),
    )
    # Each reading takes a microsecond of the virtual clock, so the second may fall into the next millisecond.
    assert answer.unwrap() == [True, True]


async def test_arguments_are_kept_as_a_hash_alone(ex: Executor):
    answer = await ex.run("await tools.j.org.main.write({password: 'correct horse'}); 1")
    (pause,) = [entry for entry in await entries(ex, answer.run_id) if entry[0] == journal.PAUSE]
    assert pause[2][0][3] == hashlib.sha256(msgpack.packb({"password": "correct horse"})).digest()
    row = await ex._parts.store.runs.get(answer.run_id)
    assert row is not None
    assert b"correct horse" not in row.calls
    assert b"correct horse" not in msgpack.packb(await entries(ex, answer.run_id))


async def test_a_call_with_an_effect_is_committed_before_it_leaves(ex: Executor):
    seen: list[Any] = []

    async def look(args: dict) -> None:
        database = ex._parts.store.database
        seen.append(
            await database.read(lambda c: c.execute("SELECT path, outcome FROM calls ORDER BY n DESC").fetchone())
        )

    ex.tool("look.org.main.now", look, side_effect="delete")
    await ex.toolbox.add_policy("look", "*", "approve")
    answer = await ex.run("await tools.look.org.main.now({})")
    assert answer.status == "completed", answer.error
    assert seen == [("look.org.main.now", "sending")]
    assert answer.calls[0]["outcome"] == "done"


async def test_a_direct_call_with_an_effect_is_recorded_too(ex: Executor):
    assert await ex.call("j.org.main.write", {}) == "written"
    last = "SELECT run, path, outcome FROM calls ORDER BY n DESC"
    assert await ex._parts.store.database.read(lambda c: c.execute(last).fetchone()) == (0, "j.org.main.write", "done")


async def test_two_runs_draw_different_numbers_and_one_run_the_same_ones_from_its_seed(ex: Executor):
    script = "[Math.random(), crypto.randomUUID()]"
    first, second = (await ex.run(script)).result, (await ex.run(script)).result
    assert first != second
