"""Memory of the host over many runs."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from executor import Config, Executor, NotFound
from executor.composition import IN_MEMORY
from runtime.store.runs import PRUNE_EVERY

pytestmark = pytest.mark.anyio


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def test_a_thousand_runs_leave_no_memory_behind(tmp_path: Path):
    """PER-20"""
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        ex.tool("m.org.main.echo", lambda args: args, side_effect="read")
        scripts = ["1 + 1", "emit('x'.repeat(1000)); await tools.m.org.main.echo({v: 'x'.repeat(1000)})", "throw 1"]

        async def many(count: int) -> None:
            for n in range(count):
                await ex.run(scripts[n % len(scripts)], language="javascript")

        await many(300)
        before = resident_bytes()
        await many(1000)
        assert resident_bytes() - before < 6 * 1024 * 1024


async def test_a_home_in_memory_forgets_the_oldest_that_ended_and_none_that_waits():
    assert (IN_MEMORY.runs, IN_MEMORY.bytes) == (1_000, 64 * 1024**2)
    async with Executor.open(config=Config(workers=1, keep_bytes=1024**2)) as ex:
        ex.tool("m.org.main.write", lambda args: args, side_effect="write")
        waiting = await ex.run("await tools.m.org.main.write({})", language="javascript")
        first = await ex.run("'first'", language="javascript")
        for _ in range(2 * PRUNE_EVERY):
            last = await ex.run("'x'.repeat(15_000)", language="javascript")
        with pytest.raises(NotFound):
            await ex.get_run(first.run_id)
        assert (await ex.get_run(last.run_id)).status == "completed"
        assert (await ex.get_run(waiting.run_id)).status == "waiting"


STARTED = """
import asyncio
from executor import Config, Executor
from runtime.memory import give_back
from tests.blackbox.test_sdk_memory import resident_bytes

async def main():
    async with Executor.open(config=Config(workers=1, search="words")):
        held = resident_bytes()
        give_back()
        print(held - resident_bytes())

asyncio.run(main())
"""


def test_what_it_took_to_start_the_workers_is_given_back():
    said = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True, timeout=120, check=True)
    assert int(said.stdout) < 16 * 1024 * 1024
