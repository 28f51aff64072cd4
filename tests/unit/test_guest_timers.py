# ruff: noqa: E501 (a script is read in one piece)
"""Timers, the virtual clock, and that a run is the same whenever it is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from guest_host import Isolate, run, value

ROOT = Path(__file__).parents[2]


def test_a_timer_wakes_the_run_at_its_time() -> None:
    isolate = Isolate()
    step = isolate.start(
        "const r = []; setTimeout((a, b) => r.push(a, b), 20, 'x', 'y'); await new Promise((d) => setTimeout(d, 30)); r",
        now_us=5_000_000,
    )
    assert (step.status, step.wake_us) == ("pending", 5_020_000)
    step = isolate.resume(now_us=5_020_000)
    assert (step.status, step.wake_us) == ("pending", 5_030_000)
    assert isolate.resume(now_us=5_029_000).status == "pending"
    assert isolate.resume(now_us=5_030_000).payload == ["x", "y"]


def test_timers_fire_by_due_time_then_by_age_with_microtasks_between() -> None:
    source = """
      const r = [];
      setTimeout(() => r.push('c'), 2); setTimeout(() => { r.push('a'); queueMicrotask(() => r.push('a1')) }, 1);
      setTimeout(() => r.push('b'), 1); setImmediate(() => r.push('now')); queueMicrotask(() => r.push('micro'));
      await new Promise((d) => setTimeout(d, 3)); r
    """
    isolate = Isolate()
    isolate.start(source)
    assert isolate.resume(now_us=10_000).payload == ["micro", "now", "a", "a1", "b", "c"]


def test_a_delay_of_nothing_needs_no_pause() -> None:
    assert (
        value("await new Promise((d) => setTimeout(d)); await new Promise((d) => setTimeout(d, 0)); 'done'") == "done"
    )


@pytest.mark.parametrize("delay", ["-5", "NaN", "undefined", "'x'", "2 ** 31", "Infinity", "0.5"])
def test_a_delay_that_is_none_is_no_delay(delay: str) -> None:
    """BUD-15"""
    assert value(f"await new Promise((d) => setTimeout(d, {delay})); 'done'") == "done"


def test_an_interval_repeats_until_it_is_cleared_from_within() -> None:
    isolate = Isolate()
    step = isolate.start(
        "let n = 0; await new Promise((d) => { const t = setInterval(() => { if (++n === 3) { clearInterval(t); d() } }, 10) }); n"
    )
    for tick in (10_000, 20_000):
        assert step.wake_us == tick
        step = isolate.resume(now_us=tick)
    assert isolate.resume(now_us=30_000).payload == 3


def test_a_cleared_timer_neither_fires_nor_wakes() -> None:
    step = run(
        "clearTimeout(setTimeout(() => emit(1), 5)); clearTimeout(undefined); clearTimeout(99); clearTimeout({}); 'x'"
    )
    assert (step.payload, step.wake_us, step.emitted) == ("x", None, [])


def test_an_error_in_a_timer_ends_the_run_at_its_place() -> None:
    failure = run("setTimeout(() => { null.x });\nawait new Promise(() => {})").failure
    assert (failure["code"], failure["name"], failure["line"]) == ("script_error", "TypeError", 1)


def test_a_timer_that_the_script_did_not_wait_for_never_fires() -> None:
    step = run("setTimeout(() => { emit('late'); null.x }, 0); setInterval(() => emit('late'), 1); 'done'")
    assert (step.payload, step.emitted) == ("done", [])


def test_timers_fire_while_calls_that_nobody_awaits_are_outstanding() -> None:
    isolate = Isolate()
    step = isolate.start(
        "tools.a({}).then(() => new Promise((d) => setTimeout(d, 5))).then(() => tools.b({})); setTimeout(() => emit('due'), 1); 'done'"
    )
    assert (step.status, step.wake_us) == ("pending", 1000)
    assert isolate.resume(now_us=1000).emitted == ["due"]
    assert isolate.resume({1: None}, now_us=2000).payload == "done"


def test_timers_are_bounded() -> None:
    """BUD-15"""
    source = "let n = 0; try { for (;;) { setTimeout(() => {}, 1000); n++ } } catch (e) { [n, e.name] }"
    assert value(source) == [10_000, "RangeError"]
    assert value("for (let i = 0; i < 1e5; i++) clearTimeout(setTimeout(() => {}, 1000)); 'ok'") == "ok"


def test_the_clock_stands_still_but_for_being_read() -> None:
    """BUD-36"""
    isolate = Isolate()
    source = """
      const t = [Date.now(), new Date().toISOString(), performance.timeOrigin, performance.now()];
      for (let i = 0; i < 1e5; i++); t.push(Date.now()); await tools.x({}); t.push(Date.now(), Math.round(performance.now())); t
    """
    isolate.start(source, now_us=1_700_000_000_000_000)
    got = isolate.resume({1: None}, now_us=1_700_000_002_500_000).payload
    assert got[:2] == [1_700_000_000_000, "2023-11-14T22:13:20.000Z"]
    assert got[2] == 1_700_000_000_000
    assert 0 < got[3] < 1
    assert got[4:] == [1_700_000_000_000, 1_700_000_002_500, 2500]


def test_time_does_not_go_back_when_the_host_says_so() -> None:
    isolate = Isolate()
    isolate.start("const a = Date.now(); await tools.x({}); Date.now() >= a", now_us=10**15)
    assert isolate.resume({1: None}, now_us=5).payload is True


def test_a_loop_that_waits_for_time_to_pass_ends() -> None:
    assert value("const end = Date.now() + 50; let n = 0; while (Date.now() < end) n++; n > 1000") is True


def test_the_time_zone_is_utc() -> None:
    assert (
        value("new Date(0).getTimezoneOffset() + ' ' + new Date(2020, 5, 1).toISOString()")
        == "0 2020-06-01T00:00:00.000Z"
    )


def test_randomness_comes_from_the_seed() -> None:
    source = "[Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint32Array(4))], Math.random()]"
    assert value(source, seed=7) == value(source, seed=7)
    drawn = [value(source, seed=seed) for seed in (0, 1, 2, 2**64 - 1)]
    assert len({str(d) for d in drawn}) == 4
    assert len({d[0] for d in drawn}) == 4


def test_random_numbers_are_spread() -> None:
    counts = value("const c = Array(10).fill(0); for (let i = 0; i < 1e4; i++) c[Math.floor(Math.random() * 10)]++; c")
    assert all(850 < count < 1150 for count in counts)
    bits = value(
        "const b = crypto.getRandomValues(new Uint8Array(65536)); let n = 0; for (const x of b) for (let i = x; i; i >>= 1) n += i & 1; n"
    )
    assert abs(bits - 65536 * 4) < 3000


DETERMINISTIC = """
import sys; sys.path[:0] = [%r, %r]
from guest_host import Isolate
i = Isolate()
s = i.start('''
  const m = new Map(); for (let k = 0; k < 2000; k++) m.set({ k }, Math.random());
  const w = new WeakRef({}); const a = await Promise.all([tools.a({ r: Math.random() }), tools.b({ d: Date.now() })]);
  console.log(crypto.randomUUID(), [...m.values()].reduce((x, y) => x + y)); JSON.stringify(a) + (w.deref() ? 1 : 0)
''', seed=42, now_us=123)
t = i.resume({1: 'x' * 1000, 2: [1, 2]}, now_us=999)
print(s, t, i.used())
"""


def test_two_processes_give_the_same_bytes_for_the_same_fuel() -> None:
    code = DETERMINISTIC % (str(ROOT / "tests/unit"), str(ROOT))
    first, second = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "ab"
    )
    assert first == second
    assert "status='done'" in first


def test_a_small_script_costs_little() -> None:
    isolate = Isolate()
    isolate.start("1+1")
    assert isolate.used() < 60_000
