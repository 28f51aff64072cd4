"""The rest of the WRK group: no clock finer than the run's, and workers that are started, not forked."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from executor import Config, Executor
from guest import images
from runtime.engine import settings
from runtime.link import Link

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex() -> AsyncIterator[Executor]:
    images.build(sets=("javascript", "python"))
    async with Executor.open(config=Config(workers=1)) as opened:
        opened.tool("t.org.main.echo", lambda args: args.get("v"), side_effect="read")
        yield opened


def workers(ex: Executor) -> list[Link]:
    return [link for link in ex._parts.dispatcher._links if link.gone is None]


MEASURE = """
const microseconds = () => Math.round(performance.now() * 1000);
const took = work => { const began = microseconds(); work(); return microseconds() - began };
const short = took(() => { for (let i = 0; i < 10; i++); });
const long = took(() => { for (let i = 0; i < 3e6; i++); });
const heavy = took(() => "x".repeat(2 ** 16).split("").sort().length);
const day = Date.now(); for (let i = 0; i < 3e6; i++); [short === long, long === heavy, Date.now() === day]"""

MEASURE_PYTHON = """
import time
def took(clock, work):
    began = clock()
    work()
    return clock() - began
clocks = [time.time_ns, time.monotonic_ns, time.perf_counter_ns, time.process_time_ns]
[[took(clock, lambda: None), took(clock, lambda: sum(range(300_000)))] for clock in clocks]"""


async def test_work_takes_no_time_on_a_scripts_clock(ex: Executor) -> None:
    """WRK-06: each look at a clock takes the same, whatever was done since the last."""
    assert (await ex.run(MEASURE)).unwrap() == [True, True, True]


async def test_performance_now_counts_whole_microseconds(ex: Executor) -> None:
    looks = await ex.run("Array.from({ length: 50 }, () => performance.now() * 1000)")
    first, *others = looks.unwrap()
    assert others == pytest.approx([first + n for n in range(1, 50)], abs=1e-9)


async def test_a_counter_beside_the_work_needs_what_is_not_there(ex: Executor) -> None:
    """WRK-06"""
    names = ["SharedArrayBuffer", "Atomics", "Worker", "MessageChannel", "WebAssembly", "postMessage"]
    found = await ex.run("input.map(name => typeof globalThis[name])", input=names)
    assert found.unwrap() == ["undefined"] * len(names)
    shared = "try { new ArrayBuffer(8, { shared: true }).constructor.name } catch (e) { e.name }"
    assert (await ex.run(shared)).unwrap() == "ArrayBuffer"
    assert {"wasm_threads", "shared_memory"} <= set(settings.OFF)


async def test_the_finest_time_between_two_looks_is_a_round_trip(ex: Executor) -> None:
    """WRK-06: a timer in a loop of microtasks sees no time pass: only what leaves the isolate takes any."""
    script = """
      const marks = [Date.now()];
      for (let i = 0; i < 1000; i++) { await null; await Promise.resolve().then(() => {}); }
      marks.push(Date.now()); marks[0] === marks[1]"""
    assert (await ex.run(script)).unwrap() is True


async def test_a_run_can_have_its_process_to_itself(ex: Executor) -> None:
    """WRK-06: what shares no process with another shares none of its caches' timing within it."""
    shared = {link.pid for link in workers(ex)}
    seen: set[int] = set()

    def note(args: object) -> int:
        fresh = ex._parts.dispatcher._fresh
        assert fresh.running == 1
        found = set(_children()) - shared
        seen.update(found)
        return len(found)

    ex.tool("t.org.main.note", note, side_effect="read")
    for _ in range(2):
        alone = await ex.run("await tools.t.org.main.note({})", isolation="run")
        assert alone.unwrap() >= 1
    assert len(seen) >= 2


def _children() -> list[int]:
    listed = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(one) for path in listed for one in path.read_text().split()]


async def test_a_worker_is_a_new_program_and_no_fork_of_one_with_an_engine(ex: Executor) -> None:
    """WRK-07: started anew, it has none of the memory of this process, and nothing mapped that only the host loads."""
    assert workers(ex)
    for link in workers(ex):
        command = of(link.pid, "cmdline").split("\0")
        assert command != of(os.getpid(), "cmdline").split("\0")
        assert {"-I", "-S"} <= set(command), command
        assert "pydantic_core" not in of(link.pid, "maps")
    assert "pydantic_core" in of(os.getpid(), "maps")


async def test_an_engine_in_a_worker_has_no_threads_that_compile(ex: Executor) -> None:
    """WRK-07"""
    assert "parallel_compilation" in settings.OFF
    for link in workers(ex):
        # Threads of a compiler's pool have names of their own.
        assert len({path.read_text() for path in threads(link.pid)}) == 1


async def test_python_has_no_finer_clock_and_no_threads(ex: Executor) -> None:
    """WRK-06: last, since the workers are replaced when Python is first used."""
    assert (await ex.run(MEASURE_PYTHON, language="python")).unwrap() == [[1000, 1000]] * 4
    thread = await ex.run("import _thread\n_thread.start_new_thread(print, ())\n'ran'", language="python")
    assert thread.result is None


def of(pid: int, what: str) -> str:
    return Path(f"/proc/{pid}/{what}").read_text()


def threads(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").glob("*/comm"))
