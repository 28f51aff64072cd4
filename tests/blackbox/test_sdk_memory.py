"""Memory of the host over many runs."""

import gc
from pathlib import Path

import pytest

from executor import Config, Executor

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
