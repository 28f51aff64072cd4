"""Every limit through real workers, with scripts that catch whatever they can."""

import asyncio
from typing import Any

import anyio
import pytest

from executor import Config, Executor, RunResult
from runtime.budgets import MIB

pytestmark = pytest.mark.anyio

SWALLOW = "while (true) {{ try {{ {code} }} catch (e) {{}} finally {{ try {{ {code} }} catch {{}} }} }}"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Tools:
    """Tools that say how many of their calls overlapped."""

    def __init__(self, ex: Executor) -> None:
        self.now = self.most = self.made = 0
        self.release = asyncio.Event()
        ex.tool("t.org.main.echo", lambda args: args.get("v"), side_effect="read")
        ex.tool("t.org.main.gate", self._gate, side_effect="read")
        ex.tool("t.org.main.hang", self._hang, side_effect="read")
        ex.tool("t.org.main.write", self._hang, side_effect="write")
        ex.tool("t.org.main.count", self._count, side_effect="read")

    def reset(self) -> None:
        self.now = self.most = self.made = 0
        self.release = asyncio.Event()

    async def _gate(self, args: dict) -> int:
        """Answers once as many calls as `args["together"]` have come."""
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now >= args["together"]:
            self.release.set()
        await self.release.wait()
        self.now -= 1
        return self.most

    async def _hang(self, args: dict) -> None:
        await asyncio.Event().wait()

    def _count(self, args: dict) -> int:
        self.made += 1
        return self.made


@pytest.fixture(scope="module")
async def opened():
    async with Executor.open(config=Config(workers=2, tool_timeout_s=600)) as ex:
        made = Tools(ex)
        await ex.toolbox.add_policy("t", "write", "approve")
        yield ex, made


@pytest.fixture
def ex(opened) -> Executor:
    return opened[0]


@pytest.fixture
def tools(opened) -> Tools:
    opened[1].reset()
    return opened[1]


def ended_by(answer: RunResult, code: str) -> dict[str, Any]:
    assert answer.status == "failed", answer
    assert answer.error is not None
    assert answer.error["code"] == code, answer.error
    assert answer.limit is not None
    assert answer.limit["used"] >= answer.limit["limit"]
    return answer.limit


@pytest.mark.parametrize(
    "code",
    [
        "for (;;);",
        SWALLOW.format(code="for (let i = 0; i < 1e6; i++);"),
        "while (true) { try { await 0 } catch {} }",
        "const again = () => queueMicrotask(again); again(); await new Promise(() => {})",
        r"try { /(a+)+$/.test('a'.repeat(40) + '!') } catch {} for (;;);",
        "try { for (;;); } finally { for (;;); }",
    ],
)
async def test_fuel_ends_a_run_whatever_it_catches(ex: Executor, code: str):
    """BUD-01 BUD-02 BUD-03"""
    answer = await ex.run(code, budgets={"fuel": 50_000_000})
    assert ended_by(answer, "fuel_exhausted") == {"name": "fuel", "limit": 50_000_000, "used": 50_000_000}
    assert answer.usage["fuel"] <= 50_000_000


async def test_the_same_script_uses_the_same_fuel(ex: Executor):
    """BUD-01"""
    script = "let n = 0; for (let i = 0; i < 1e5; i++) n += i; n"
    assert len({(await ex.run(script)).usage["fuel"] for _ in range(5)}) == 1


@pytest.mark.parametrize(
    "code",
    [
        "for (;;);",
        SWALLOW.format(code="await new Promise(done => setTimeout(done, 10))"),
        "await new Promise(done => setTimeout(done, 1e9))",
        "try { await tools.t.org.main.hang({}) } catch {} for (;;);",
        "try { await tools.t.org.main.hang({}) } finally { await tools.t.org.main.hang({}) }",
    ],
)
async def test_the_deadline_ends_a_run_wherever_it_is(ex: Executor, tools: Tools, code: str):
    """BUD-14"""
    with anyio.fail_after(20):
        answer = await ex.run(code, budgets={"wall_ms": 150, "fuel": 10**12})
    limit = ended_by(answer, "deadline_exceeded")
    assert (limit["name"], limit["limit"]) == ("wall_ms", 150)
    assert answer.usage["wall_ms"] >= 150


async def test_a_call_cut_off_by_the_deadline_is_unknown_where_it_has_an_effect(ex: Executor, tools: Tools):
    answer = await ex.run(
        "await Promise.all([tools.t.org.main.write({}), tools.t.org.main.hang({})])", budgets={"wall_ms": 150}
    )
    ended_by(answer, "deadline_exceeded")
    assert [(call["path"], call["outcome"], call["code"]) for call in answer.calls] == [
        ("t.org.main.write", "unknown", "outcome_unknown"),
        ("t.org.main.hang", "failed", "cancelled"),
    ]


@pytest.mark.parametrize(
    "code",
    [
        "let s = 'a'; for (;;) s += s",
        "const all = []; for (;;) all.push(new ArrayBuffer(1 << 20))",
        "new Array(2 ** 32 - 1).fill(0)",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, {i})",
        "const all = []; for (;;) all.push(new Promise(() => {}))",
        "'x'.padEnd(2 ** 29).replace(/ /g, 'yyyyyyyy')",
    ],
)
async def test_memory_ends_a_run_or_the_script_catches_it(ex: Executor, code: str):
    """BUD-04 BUD-05 BUD-08"""
    answer = await ex.run(code, budgets={"memory_bytes": 16 * MIB})
    assert answer.status == "failed"
    assert answer.error is not None
    assert answer.error["code"] in ("memory_exhausted", "script_error", "fuel_exhausted"), answer.error
    assert answer.usage["memory_bytes"] <= 16 * MIB
    if answer.error["code"] == "memory_exhausted":
        assert answer.limit is not None
        assert answer.limit["name"] == "memory_bytes"
    assert (await ex.run("1 + 1")).result == 2


async def test_calls_end_a_run_when_their_budget_is_used_up(ex: Executor, tools: Tools):
    """BUD-09"""
    code = "for (let i = 0; i < 1e6; i++) { try { await tools.t.org.main.count({}) } catch {} }"
    answer = await ex.run(code, budgets={"bridge_calls": 10})
    assert ended_by(answer, "calls_exhausted") == {"name": "bridge_calls", "limit": 10, "used": 10}
    assert tools.made == 10
    assert (len(answer.calls), answer.usage["bridge_calls"]) == (10, 10)


async def test_calls_that_are_refused_count_too(ex: Executor):
    """BUD-11"""
    code = "for (;;) { try { await tools.no.such.tool.here({}) } catch {} }"
    answer = await ex.run(code, budgets={"bridge_calls": 10})
    ended_by(answer, "calls_exhausted")
    assert [call["code"] for call in answer.calls] == ["tool_not_found"] * 10


async def test_a_flood_of_calls_at_once_stays_within_both_limits(ex: Executor, tools: Tools):
    """BUD-10"""
    code = (
        "for (let i = 0; i < 10000; i++) tools.t.org.main.count({}); await new Promise(done => setTimeout(done, 1e9))"
    )
    answer = await ex.run(code, budgets={"bridge_calls": 50, "bridge_calls_in_flight": 8})
    ended_by(answer, "calls_exhausted")
    assert tools.made <= 50
    assert answer.usage["bridge_calls_in_flight"] <= 8


async def test_ten_calls_at_once_are_in_flight_together(ex: Executor, tools: Tools):
    answer = await ex.run("(await Promise.all([...Array(10)].map(() => tools.t.org.main.gate({together: 10}))))")
    assert answer.result == [10] * 10
    assert answer.usage["bridge_calls_in_flight"] == 10


async def test_calls_above_the_limit_in_flight_wait_their_turn(ex: Executor, tools: Tools):
    code = "(await Promise.all([...Array(40)].map(() => tools.t.org.main.gate({together: 4})))).length"
    answer = await ex.run(code, budgets={"bridge_calls_in_flight": 4})
    assert (answer.result, tools.most, answer.usage["bridge_calls_in_flight"]) == (40, 4, 4)


async def test_arguments_above_their_size_are_an_error_that_a_script_can_catch(ex: Executor):
    """BUD-12"""
    code = """
        const big = 'x'.repeat(2000), seen = []
        try { await tools.t.org.main.echo({v: big}) } catch (e) { seen.push(e.code) }
        seen
    """
    answer = await ex.run(code, budgets={"call_args_bytes": 1000})
    assert answer.unwrap() == ["too_large"]


async def test_fifty_calls_with_large_arguments_are_allowed(ex: Executor):
    """BUD-12"""
    code = "const v = 'x'.repeat(255 * 1024); for (let i = 0; i < 50; i++) await tools.t.org.main.echo({v}); 'ok'"
    answer = await ex.run(code)
    assert answer.unwrap() == "ok"
    assert answer.usage["call_args_bytes"] > 255 * 1024


@pytest.mark.parametrize(
    "code",
    [
        "for (let i = 0; i < 100000; i++) console.log('line ' + i)",
        "console.log('x'.repeat(5_000_000))",
        "for (let i = 0; i < 1e5; i++) console.log('')",
        "console.log('€'.repeat(100_000))",
    ],
)
async def test_logs_are_cut_with_a_marker_and_never_end_a_run(ex: Executor, code: str):
    """BUD-16"""
    answer = await ex.run(f"{code}; 'done'", budgets={"log_bytes": 10_000})
    assert answer.unwrap() == "done"
    assert 0 < sum(len(line["text"].encode()) for line in answer.logs) <= 10_000
    assert len(answer.logs) <= 10_001
    assert answer.logs[-1]["truncated"] is True
    assert sum("truncated" in line for line in answer.logs) == 1
    assert answer.usage["log_bytes"] <= 10_000


@pytest.mark.parametrize(
    ("code", "codes"),
    [
        ("'x'.repeat(70 * 1024 * 1024)", {"result_too_large", "memory_exhausted"}),
        ("let a = {}; for (let i = 0; i < 28; i++) a = {l: a, r: a}; a", {"result_too_large"}),
        ("let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a", {"unserializable", "result_too_large"}),
        ("new Array(2 ** 21).fill(0)", {"result_too_large"}),
        ("const a = {}; a.self = a; a", {"unserializable"}),
        ("[() => {}]", {"unserializable"}),
        ("({at: {deep: [Symbol('x')]}})", {"unserializable"}),
        (
            "let a = {}; for (let i = 0; i < 28; i++) a = {l: a, r: a}; emit(a); 1",
            {"script_error"},
        ),
    ],
)
async def test_a_result_that_cannot_leave_is_named(ex: Executor, code: str, codes: set[str]):
    """BUD-17"""
    answer = await ex.run(code, budgets={"memory_bytes": 256 * MIB})
    assert answer.status == "failed", answer.status
    assert answer.error is not None
    assert answer.error["code"] in codes, answer.error


async def test_a_run_just_under_every_limit_completes_every_time(ex: Executor, tools: Tools):
    """BUD-19"""
    code = """
        for (let i = 0; i < 50; i++) await tools.t.org.main.echo({v: 'x'.repeat(990)})
        console.log('x'.repeat(60_000)); const kept = new Uint8Array(10 * 1024 * 1024); 'x'.repeat(1_000_000)
    """
    budgets = {"bridge_calls": 50, "call_args_bytes": 1000, "log_bytes": 60_010, "memory_bytes": 32 * MIB}
    for _ in range(10):
        answer = await ex.run(code, budgets=budgets)
        assert answer.status == "completed", answer.error
        assert answer.result == "x" * 1_000_000


async def test_timers_by_the_thousand_end_at_the_deadline(ex: Executor):
    """BUD-15"""
    code = (
        "setInterval(() => {}, 0); setTimeout(() => {}, 2 ** 31); setTimeout(() => {}, -1); setTimeout(() => {}, NaN);"
    )
    answer = await ex.run(f"{code} await new Promise(() => {{}})", budgets={"wall_ms": 200})
    ended_by(answer, "deadline_exceeded")


async def test_sleeping_costs_no_fuel_and_takes_its_time(ex: Executor):
    answer = await ex.run("const t = Date.now(); await new Promise(done => setTimeout(done, 50)); Date.now() - t >= 50")
    assert answer.result is True
    assert answer.usage["wall_ms"] >= 50


async def test_the_code_of_a_limit_cannot_be_forged(ex: Executor):
    answer = await ex.run("throw Object.assign(new Error('fuel_exhausted'), {code: 'fuel_exhausted', name: 'Limit'})")
    assert answer.error is not None
    assert answer.error["code"] == "script_error"
    assert answer.limit is None


async def test_hostile_runs_leave_the_others_alone(ex: Executor, tools: Tools):
    """BUD-24"""
    hostile = [
        "for (;;);",
        "let s = 'a'; for (;;) s += s",
        "for (;;) tools.t.org.main.count({})",
        "while (true) await 0",
    ]
    benign = "let n = 0; for (let i = 0; i < 1000; i++) n += i; await tools.t.org.main.echo({v: n})"
    answers = await asyncio.gather(
        *(ex.run(code, budgets={"fuel": 30_000_000, "memory_bytes": 16 * MIB}) for code in hostile * 5),
        *(ex.run(benign) for _ in range(20)),
    )
    assert all(answer.status == "failed" for answer in answers[:20])
    assert [answer.result for answer in answers[20:]] == [499500] * 20
