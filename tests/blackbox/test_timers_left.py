"""Timers that are still set when a script ends: the run is over, and nothing else happens."""

from __future__ import annotations

from typing import Any

import pytest

from executor import Executor

pytestmark = pytest.mark.anyio

ENDS: list[tuple[str, Any]] = [
    ("setTimeout(() => {}, 10); 5", 5),
    ("setInterval(() => {}, 1); 'done'", "done"),
    ("await Promise.race([new Promise(r => setTimeout(r, 5000)), Promise.resolve(3)])", 3),
    ("AbortSignal.timeout(1000); 5", 5),
]


async def test_a_run_ends_with_its_script_whatever_timers_are_set() -> None:
    async with Executor.open() as ex:
        for script, result in ENDS:
            answer = await ex.run(script)
            assert (answer.status, answer.result) == ("completed", result), script


async def test_a_timer_that_throws_ends_the_run_with_its_own_error() -> None:
    async with Executor.open() as ex:
        answer = await ex.run("setInterval(() => { throw new TypeError('late') }, 0);\nawait new Promise(() => {})")
        assert answer.error is not None
        facts = (answer.error["code"], answer.error["name"], answer.error["message"], answer.error["line"])
        assert facts == ("script_error", "TypeError", "late", 1)
        assert (await ex.run("setTimeout(() => {}, 9); throw new Error('x')")).error["code"] == "script_error"  # type: ignore[index]
