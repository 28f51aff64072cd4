"""The rest of the BUD group: what adds up over pauses, and what failing or stuck workers leave behind."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.wire import frames
from bridge.wire.frames import Ended
from executor import Config, Executor, RunResult
from runtime import patience
from runtime.dispatcher import Dispatcher, DispatcherSettings, Lost
from runtime.link import Died, Link
from tests.blackbox.rogue import DONE, READY, CompiledHere, guest, worker
from tests.blackbox.runs import LIMITS, Inbox, begin, run

pytestmark = pytest.mark.anyio

ROUNDS = 20


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


TRAPS = {
    "a division by zero": "(i64.div_s (i64.const 1) (i64.const 0))",
    "a load out of bounds": "(i64.load (i32.const -8))",
    "an unreachable": "unreachable",
}


@pytest.mark.parametrize("trap", TRAPS)
async def test_one_trap_ends_the_run_and_its_store_is_not_entered_again(trap: str) -> None:
    """BUD-13"""
    images = {"traps": guest(TRAPS[trap], DONE), "honest": guest()}
    settings = DispatcherSettings(workers=1, images=images)
    async with Dispatcher(settings, cache=CompiledHere()) as dispatcher:
        inbox = Inbox()
        slot = await dispatcher.acquire(inbox)
        begin(slot, "", language="traps")
        frame = await inbox.next()
        assert isinstance(frame, Ended)
        assert frame.failure is not None
        assert (frame.failure.code, frame.recycle) == ("internal", True)
        # A step after the trap would be served by `resume`, which is honest: nothing reaches it any more.
        slot.resume(0, [])
        slot.release()
        assert (await run(dispatcher, "", language="honest")).result == b"\x02"
        assert inbox.empty


@pytest.fixture
def failing(long: bool) -> int:
    return 10_000 if long else 600


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def resident_mib() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def children() -> dict[int, str]:
    """The state of each child of this process, by its id; Z is one that nobody has waited for."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = entry.read_text().rpartition(") ")
        except OSError:
            continue
        state, parent, *_ = rest.split()
        if int(parent) == os.getpid():
            found[int(name.partition(" ")[0])] = state
    return found


FAILS = [
    *(
        "let a = ;",
        "throw 1",
        "return tools.call(5)",
        "null.x",
        "await {then() {}}",
        "import 'fs'",
        "\0",
        "return () => 1",
    ),
    *("}{", "`${", "for (;;) a++; let a", "return 10n ** 40n", "return Symbol()", "const a = a", "super()", "#"),
]


async def test_runs_that_fail_at_once_leave_nothing_behind(failing: int) -> None:
    """BUD-25"""
    async with Executor.open(config=Config(workers=1)) as ex:

        async def fail(number: int) -> None:
            answer = await ex.run(FAILS[number % len(FAILS)], language="javascript")
            assert answer.status == "failed", answer

        for number in range(150):
            await fail(number)
        memory, files, processes = resident_mib(), descriptors(), children()
        for number in range(failing):
            await fail(number)
        assert (descriptors(), children().keys()) == (files, processes.keys())
        assert "Z" not in children().values()
        assert resident_mib() - memory < 16
        assert (await ex.run("1 + 1")).unwrap() == 2


async def test_workers_that_die_while_they_start_leave_nothing_behind(failing: int) -> None:
    """BUD-25"""
    boot = frames.pack(frames.Boot(1, frames.BOOT, 0, {}, 1, "process"))
    command = ["/bin/false"]
    for _ in range(3):
        await _stillborn(boot, command)
    files, processes = descriptors(), children()
    for _ in range(failing // 20):
        await _stillborn(boot, command)
    with anyio.fail_after(10):
        while descriptors() > files:  # noqa: ASYNC110 - a transport closes its socket in a later turn of the loop
            await anyio.sleep(0.01)
    assert children() == processes


async def _stillborn(boot: bytes, command: list[str]) -> None:
    with pytest.raises(Died):
        await Link.spawn(boot, mode="fibers", grace_s=0.2, closed=lambda link: None, command=command)


ASKING = """
let sum = 0;
for (let round = 0; round < input.rounds; round++) {
  for (let i = 0; i < 100000; i++) sum += i;
  await tools.p.org.main.pay({ round });
}
sum"""


class House:
    """What a run with approvals is driven by; `reopen` closes the service and opens it on the same home."""

    def __init__(self, home: Path | None) -> None:
        self.home = home
        self.paid: list[Any] = []

    async def open(self) -> None:
        self._opened = Executor.open(self.home, config=Config(workers=1))
        self.ex = await self._opened.__aenter__()
        self.ex.tool("p.org.main.pay", self.paid.append, side_effect="write")

    async def close(self) -> None:
        await self._opened.__aexit__(None, None, None)

    async def approve(self, run: RunResult) -> RunResult:
        (asked,) = run.interactions
        return await self.ex.resume(run.run_id, asked["id"], "approve")

    async def through(self, run: RunResult, *, reopen_at: int | None = None) -> tuple[RunResult, int]:
        """The run after every yes it asks for, and how many those were."""
        given = 0
        while run.status == "waiting":
            run = await self.approve(run)
            given += 1
            if given == reopen_at:
                await self.close()
                await self.open()
        return run, given


@pytest.fixture(params=["kept", "given up", "restarted"])
async def house(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """A house whose runs keep their isolate while they wait, give it up at once, or outlive their service."""
    if request.param != "kept":
        monkeypatch.setattr(patience, "LINGER_S", 0.0)
    made = House(tmp_path / "home" if request.param == "restarted" else None)
    await made.open()
    yield made, (ROUNDS // 2 if request.param == "restarted" else None)
    await made.close()


async def test_budgets_add_up_over_twenty_approvals(house: tuple[House, int | None]) -> None:
    """BUD-30"""
    here, reopen_at = house
    one, _ = await here.through(await here.ex.run(ASKING, input={"rounds": 1}))
    two, _ = await here.through(await here.ex.run(ASKING, input={"rounds": 2}))
    each = two.usage["fuel"] - one.usage["fuel"]
    assert each > 1_000_000
    started = await here.ex.run(ASKING, input={"rounds": ROUNDS}, budgets={"wall_ms": 60_000})
    whole, given = await here.through(started, reopen_at=reopen_at)
    assert (whole.status, given) == ("completed", ROUNDS)
    assert whole.usage["bridge_calls"] == ROUNDS
    assert whole.usage["fuel"] == pytest.approx(one.usage["fuel"] + each * (ROUNDS - 1), rel=0.01)

    fuel = one.usage["fuel"] + each * 9 + each // 2
    started = await here.ex.run(ASKING, input={"rounds": ROUNDS}, budgets={"fuel": fuel})
    spent, given = await here.through(started, reopen_at=5 if reopen_at else None)
    assert spent.error is not None
    assert (spent.error["code"], given, spent.usage["fuel"]) == ("fuel_exhausted", 10, fuel)

    started = await here.ex.run(ASKING, input={"rounds": ROUNDS}, budgets={"bridge_calls": 10})
    spent, given = await here.through(started, reopen_at=5 if reopen_at else None)
    assert spent.error is not None
    assert (spent.error["code"], given) == ("calls_exhausted", 10)


SLOWLY = """
for (let round = 0; round < 20; round++) {
  await Promise.all([new Promise(done => setTimeout(done, 100)), tools.p.org.main.look({})]);
  await tools.p.org.main.pay({ round });
}"""


async def test_the_wall_adds_up_over_approvals_without_the_waiting(house: tuple[House, int | None]) -> None:
    """BUD-30"""
    here, _ = house
    here.ex.tool("p.org.main.look", lambda args: 1, side_effect="read")
    started = await here.ex.run(SLOWLY, budgets={"wall_ms": 1000})
    ended, given = await here.through(started)
    assert ended.error is not None
    assert ended.error["code"] == "deadline_exceeded", ended.error
    assert given < 10
    assert ended.usage["wall_ms"] >= 1000


async def test_a_worker_that_is_stopped_is_replaced_and_its_run_ends_soon_after_its_deadline() -> None:
    """BUD-32"""
    async with Executor.open(config=Config(workers=1)) as ex:
        ex.tool("t.org.main.stop", lambda args: _stop(ex), side_effect="read")
        with anyio.fail_after(20):
            # The answer to the call is never taken: the worker is stopped when it comes.
            answer = await ex.run("await tools.t.org.main.stop({}); 1", budgets={"wall_ms": 500})
        assert answer.error is not None
        assert answer.error["code"] in ("deadline_exceeded", "worker_lost")
        assert answer.usage["wall_ms"] < 1500 + 500 * 10
        with anyio.fail_after(20):
            assert (await ex.run("1 + 1")).unwrap() == 2
        assert "T" not in children().values()


def _stop(ex: Executor) -> None:
    for link in ex._parts.dispatcher._links:
        os.kill(link.pid, signal.SIGSTOP)


FLOODS = {
    "its standard output": "os.write(1, b'x' * 2**20)",
    "its standard error": "os.write(2, b'x' * 2**20)",
    "both, by print": "print('x' * 2**20, flush=True); print('x' * 2**20, file=sys.stderr, flush=True)",
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_worker_that_floods_its_standard_streams_is_still_heard(flood: str) -> None:
    """BUD-34"""
    script = READY + f"receive()\nfor _ in range(64): {FLOODS[flood]}\n"
    script += f"send({[1, frames.ENDED, 1, bytes([2]), None, [], [], [10, 65_536, 5, 0], False]!r})\n"
    boot = frames.pack(frames.Boot(1, frames.BOOT, 0, {}, 1, "process"))
    link = await Link.spawn(boot, mode="fibers", grace_s=0.2, closed=lambda link: None, command=worker(script))
    try:
        inbox = Inbox()
        slot = link.open_slot(inbox)
        begin(slot, "1", limits=LIMITS)
        frame = await inbox.next()
        assert not isinstance(frame, Lost), frame
        assert isinstance(frame, Ended)
        assert frame.result == b"\x02"
        slot.release()
    finally:
        await link.close()
