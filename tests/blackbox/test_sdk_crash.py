"""Processes that die: the host, a worker, the disk. What was acknowledged is kept, what is not known is said."""

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from executor import Config, ConfigError, Executor, StorageFull

pytestmark = pytest.mark.anyio

HOST = """
import asyncio, json, sys
from executor import Config, Executor

def say(**facts):
    print(json.dumps(facts), flush=True)

async def main():
    async with Executor.open(sys.argv[1], config=Config(workers=1)) as ex:
        async def write(args):
            say(effect=args["n"])
            await asyncio.Event().wait()
        ex.tool("h.org.main.write", write, side_effect="write")
        ex.tool("h.org.main.read", lambda args: 1, side_effect="read")
        await ex.toolbox.add_policy("h", "*", "approve")
        {body}

asyncio.run(main())
"""

MANY = """
        async def client(name):
            for n in range(10_000):
                answer = await ex.run(f"await tools.h.org.main.read({{}}); {n}", labels={"client": name})
                say(run=answer.run_id, result=answer.result)
                queued = await ex.run("1", wait=False)
                say(run=queued.run_id)
        await asyncio.gather(*(client(f"c{n}") for n in range(4)))
"""

ONE = """
        queued = await ex.run("await tools.h.org.main.read({}); await tools.h.org.main.write({n: 7})", wait=False)
        say(run=queued.run_id)
        await asyncio.Event().wait()
"""


class Host:
    """An Executor in a process of its own, and what it says line by line."""

    def __init__(self, home: Path, body: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST.replace("{body}", body.strip()), str(home)], stdout=subprocess.PIPE, text=True
        )

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith("\n"), "the host ended"
        said: dict[str, Any] = json.loads(line)
        return said

    def kill(self) -> list[dict[str, Any]]:
        """Kill it and return what it had still said; a last line that was cut off was said to nobody."""
        self.process.kill()
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait()
        return [json.loads(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]


async def test_no_acknowledged_run_is_lost_when_the_host_is_killed(tmp_path: Path):
    """PER-01"""
    for round in range(3):
        host = Host(tmp_path, MANY)
        said = [host.read() for _ in range(50 + 30 * round)]
        said += host.kill()
        acknowledged = {fact["run"]: fact.get("result") for fact in said if "run" in fact}
        assert len(acknowledged) >= 50
        async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
            for run_id, result in acknowledged.items():
                record = await ex.wait_run(run_id)
                if result is not None:
                    assert (record.status, record.result) == ("completed", result)
        connection = sqlite3.connect(tmp_path / "executor.db")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


async def test_a_run_cut_off_by_the_hosts_death_is_reported_with_its_unknown_call(tmp_path: Path):
    """PER-17"""
    host = Host(tmp_path, ONE)
    run_id = host.read()["run"]
    assert host.read() == {"effect": 7}
    host.kill()
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        assert ex.health()["runs"]["left_at_start"] == 1
        record = await ex.wait_run(run_id)
        assert (record.status, record.error and record.error["details"]["code"]) == ("failed", "outcome_unknown")
        outcomes = [(call["path"], call["outcome"]) for call in record.calls]
        assert outcomes == [("h.org.main.read", "done"), ("h.org.main.write", "unknown")]
        events = [event async for event in ex.events(run_id)]
        assert events[-1].data["error"]["details"]["code"] == "outcome_unknown"


async def test_a_run_cancelled_after_its_host_died_tells_what_it_had_used(tmp_path: Path):
    host = Host(tmp_path, ONE)
    run_id = host.read()["run"]
    assert host.read() == {"effect": 7}
    host.kill()
    async with Executor.open(tmp_path, config=Config(workers=1), take_up=False) as ex:
        record = await ex.cancel_run(run_id)
        assert (record.status, record.usage["bridge_calls"]) == ("cancelled", 2)
        assert record.usage["fuel"] > 0


async def test_a_home_in_use_is_refused_until_its_process_is_gone(tmp_path: Path):
    """PER-06"""
    host = Host(tmp_path, ONE)
    host.read()
    with pytest.raises(ConfigError, match="open in another process"):
        async with Executor.open(tmp_path):
            pass
    host.kill()
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        assert (await ex.run("1")).result == 1


def workers_of(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


async def test_a_run_whose_worker_is_killed_while_it_waits_goes_on_in_another():
    """PER-18"""
    async with Executor.open(config=Config(workers=1)) as ex:

        async def kill(args: dict) -> str:
            killed = workers_of(os.getpid())
            for worker in killed:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            # The answer comes when the loss has been noticed: the run only waits by then.
            while set(killed) & set(workers_of(os.getpid())):  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
            return "killed"

        ex.tool("k.org.main.kill", kill, side_effect="read")
        with anyio.fail_after(30):
            answer = await ex.run("console.log('before'); await tools.k.org.main.kill({})")
            assert answer.unwrap() == "killed"
            assert answer.logs == [{"level": "log", "text": "before"}]
            assert [call["outcome"] for call in answer.calls] == ["done"]
            assert (await ex.replay_run(answer.run_id)).same
            assert (await ex.run("1 + 1")).result == 2


async def test_a_full_disk_refuses_runs_and_recovers_by_itself(tmp_path: Path):
    """PER-03"""
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        kept = await ex.run("1")
        database = ex._parts.store.database

        def cap(pages: int):
            return lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone()

        (pages,) = await database.write(lambda c: c.execute("PRAGMA page_count").fetchone())
        await database.write(cap(pages))
        large = "/*" + "x" * 200_000 + "*/ 1"
        with pytest.raises(StorageFull):
            await ex.run(large, wait=False)
        assert ex.health()["status"] == "degraded"
        calls: list[dict] = []
        ex.tool("d.org.main.note", calls.append, side_effect="read")
        with pytest.raises(StorageFull):
            await ex.run("await tools.d.org.main.note({});" + large)
        assert calls == []
        assert (await ex.get_run(kept.run_id)).result == 1
        await database.write(cap(1_000_000))
        answer = await ex.run(large)
        assert answer.status == "completed"
        assert ex.health()["status"] == "ok"
        assert (await ex.get_run(answer.run_id)).result == 1


async def test_a_run_whose_record_does_not_fit_is_an_error_and_is_recorded_when_there_is_room(tmp_path: Path):
    """PER-03"""
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        database = ex._parts.store.database
        (pages,) = await database.write(lambda c: c.execute("PRAGMA page_count").fetchone())
        await database.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 5}").fetchone())
        with pytest.raises(StorageFull) as refusal:
            await ex.run("'x'.repeat(500_000)")
        assert refusal.value.details is not None
        run_id = refusal.value.details["run_id"]
        assert (await ex.get_run(run_id)).result == "x" * 500_000
        await database.write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone())
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        assert (await ex.get_run(run_id)).result == "x" * 500_000
