"""Hosts and workers that are killed in the middle of runs with effects: none is repeated, none is hidden."""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from executor import Config, Executor
from runtime.dispatcher import Dispatcher

pytestmark = pytest.mark.anyio

ROUNDS = int(os.environ.get("EXECUTOR_TEST_KILLS", "5"))
RUNS = int(os.environ.get("EXECUTOR_TEST_KILLED_RUNS", "24"))

SCRIPT = """
const told = [];
for (let step = 0; step < 6; step++) {
    await tools.h.org.main.look({});
    const made = [0, 1].map(half => tools.h.org.main.act({key: `${input}/${step}/${half}`}).then(
        () => "done", e => e.code));
    told.push(...await Promise.all(made));
    await new Promise(r => setTimeout(r, 1));
}
told
"""

HOST = """
import asyncio, json, os, sys
from executor import Config, Executor

from executor import logs
logs.configure()
home, effects, script, first, last = sys.argv[1:6]
log = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

async def act(args):
    os.write(log, (args["key"] + "\\n").encode())
    await asyncio.sleep(0.002)
    return args["key"]

async def main():
    async with Executor.open(home, config=Config(workers=1)) as ex:
        ex.tool("h.org.main.act", act, side_effect="write")
        ex.tool("h.org.main.look", lambda args: 1, side_effect="read")
        if not ex.toolbox.policies():
            await ex.toolbox.add_policy("h", "*", "approve")
        ex.take_up()
        for n in range(int(first), int(last)):
            run = await ex.run(script, input=n, wait=False)
            print(json.dumps([n, run.run_id]), flush=True)
        print(json.dumps("all"), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def lived(home: Path, effects: Path, first: int, last: int, seconds: float) -> dict[int, str]:
    """Let a host start runs and kill it after so many seconds; what it had acknowledged."""
    command = [sys.executable, "-c", HOST, str(home), str(effects), SCRIPT, str(first), str(last)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    said: list[Any] = []
    with anyio.move_on_after(30):
        said.append(json.loads(await process.stdout.readline()))
    await asyncio.sleep(seconds)
    process.kill()
    rest = (await process.stdout.read()).decode()
    await process.wait()
    said += [json.loads(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    return {one[0]: one[1] for one in said if one != "all"}


async def test_a_host_killed_at_any_moment_loses_no_run_and_repeats_no_effect(tmp_path: Path):
    """PER-01, PER-17, POL-30: an effect happened at most once; the script was told of each exactly what is known."""
    home, effects = tmp_path / "home", tmp_path / "effects"
    dice = random.Random(7)
    acknowledged: dict[int, str] = {}
    for round in range(ROUNDS):
        first, last = round * RUNS // ROUNDS, (round + 1) * RUNS // ROUNDS
        acknowledged |= await lived(home, effects, first, last, dice.uniform(0, 0.25))
    assert len(acknowledged) >= ROUNDS
    async with Executor.open(home, config=Config(workers=1)) as ex:
        log = effects.open("ab", buffering=0)

        async def act(args: dict) -> str:
            log.write((args["key"] + "\n").encode())
            return str(args["key"])

        ex.tool("h.org.main.act", act, side_effect="write")
        ex.tool("h.org.main.look", lambda args: 1, side_effect="read")
        unknown = 0
        with anyio.fail_after(120):
            for n, run_id in acknowledged.items():
                record = await ex.wait_run(run_id)
                assert record.status == "completed", record.error
                made = Counter(effects.read_text().splitlines())
                keys = [f"{n}/{step}/{half}" for step in range(6) for half in (0, 1)]
                for key, told in zip(keys, record.result, strict=True):
                    assert (told, made[key]) in [("done", 1), ("outcome_unknown", 0), ("outcome_unknown", 1)], key
                unknown += record.result.count("outcome_unknown")
                outcomes = [call["outcome"] for call in record.calls if call["path"] == "h.org.main.act"]
                assert len(outcomes) == 12
                assert (await ex.replay_run(run_id)).divergence is None
        log.close()
        assert max(Counter(effects.read_text().splitlines()).values()) == 1
        assert (await ex.list_runs(status="running")).items == []
    assert unknown > 0 or ROUNDS < 20


def workers_of(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def kill_workers() -> list[int]:
    """`ps` is a child, too, and gone by now."""
    found = workers_of(os.getpid())
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found


async def test_workers_killed_at_any_moment_repeat_no_effect(tmp_path: Path):
    """PER-18: a run whose worker was lost while it waited goes on in another; one that computed then ends as lost."""
    made: Counter[str] = Counter()
    async with Executor.open(tmp_path, config=Config(workers=2)) as ex:

        async def act(args: dict) -> str:
            made[args["key"]] += 1
            await asyncio.sleep(0.002)
            return str(args["key"])

        ex.tool("h.org.main.act", act, side_effect="write")
        ex.tool("h.org.main.look", lambda args: 1, side_effect="read")
        await ex.toolbox.add_policy("h", "*", "approve")
        dice = random.Random(3)
        runs = [await ex.run(SCRIPT, input=n, wait=False) for n in range(RUNS)]
        for _ in range(ROUNDS):
            await asyncio.sleep(dice.uniform(0.01, 0.08))
            kill_workers()
        with anyio.fail_after(120):
            records = [await ex.wait_run(run.run_id) for run in runs]
        for record in records:
            if record.status == "completed":
                assert record.result == ["done"] * 12
            else:
                assert record.error is not None
                assert record.error["code"] == "worker_lost"
        assert max(made.values()) == 1
        assert sum(record.status == "completed" for record in records) > len(records) // 2
        assert (await ex.run("1 + 1")).result == 2


async def test_a_run_whose_next_worker_dies_as_well_is_taken_to_another(monkeypatch: pytest.MonkeyPatch):
    """PER-18"""
    asked, answer = asyncio.Event(), asyncio.Event()

    async def act(args: dict) -> str:
        asked.set()
        await answer.wait()
        return "done"

    async with Executor.open(config=Config(workers=1)) as ex:
        ex.tool("h.org.main.act", act, side_effect="write")
        await ex.toolbox.add_policy("h", "*", "approve")
        run = await ex.run("await tools.h.org.main.act({})", wait=False)
        with anyio.fail_after(20):
            await asked.wait()
        acquire, victims = Dispatcher.acquire, []

        async def fatal(self: Dispatcher, *args: Any, **options: Any) -> Any:
            slot = await acquire(self, *args, **options)
            if not victims:
                victims.extend(kill_workers())
            return slot

        monkeypatch.setattr(Dispatcher, "acquire", fatal)
        kill_workers()
        with anyio.fail_after(30):
            while not victims:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            answer.set()
            assert (await ex.wait_run(run.run_id)).unwrap() == "done"


async def test_a_run_that_nobody_waits_for_outlives_an_orderly_stop(tmp_path: Path):
    """PER-24: calls under way come back first, so that nothing is unknown; the rest happens after the next start."""
    code = "const a = await tools.h.org.main.act({key: 'one'}); [a, await tools.h.org.main.act({key: 'two'})]"
    made: list[str] = []
    begun = asyncio.Event()

    async def act(args: dict) -> str:
        made.append(args["key"])
        begun.set()
        await asyncio.sleep(0.2)
        return str(args["key"])

    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        ex.tool("h.org.main.act", act, side_effect="write")
        await ex.toolbox.add_policy("h", "*", "approve")
        run = await ex.run(code, wait=False, labels={"a": "b"})
        with anyio.fail_after(20):
            await begun.wait()
    assert made == ["one"]
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        ex.tool("h.org.main.act", act, side_effect="write")
        assert ex.health()["runs"]["left_at_start"] == 1
        with anyio.fail_after(20):
            record = await ex.wait_run(run.run_id)
        assert (record.unwrap(), record.labels, made) == (["one", "two"], {"a": "b"}, ["one", "two"])
        assert (await ex.replay_run(run.run_id)).same


async def test_a_command_leaves_what_others_left_alone(tmp_path: Path):
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        run = await ex.run("await new Promise(r => setTimeout(r, 300)); 1", wait=False)
    async with Executor.open(tmp_path, config=Config(workers=1), take_up=False) as ex:
        assert (await ex.run("1 + 1")).unwrap() == 2
        assert (await ex.get_run(run.run_id)).status in ("queued", "running")
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        with anyio.fail_after(20):
            assert (await ex.wait_run(run.run_id)).unwrap() == 1


async def test_a_run_that_was_left_can_be_cancelled_before_it_is_taken_up(tmp_path: Path):
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        run = await ex.run("console.log(1); await new Promise(r => setTimeout(r, 60000))", wait=False)
    async with Executor.open(tmp_path, config=Config(workers=1), take_up=False) as ex:
        assert (await ex.cancel_run(run.run_id)).status == "cancelled"
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        assert ex.health()["runs"]["left_at_start"] == 0
        assert (await ex.get_run(run.run_id)).status == "cancelled"
