"""Python through the SDK and through real workers, as a user meets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from executor import Executor
from guest import images

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex() -> AsyncIterator[Executor]:
    images.build(sets=("javascript", "python"))
    async with Executor.open() as executor:
        executor.tool(
            "demo.org.main.echo", lambda args: args, description="Gives its arguments back", side_effect="read"
        )
        executor.tool("demo.org.main.rows", _rows, side_effect="read")
        executor.tool("demo.org.main.slow", _slow, side_effect="read")
        yield executor


def _rows(args: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"id": i, "kind": "ab"[i % 2], "price": i * 1.5} for i in range(args["count"])]


async def _slow(args: dict[str, Any]) -> str:
    await asyncio.sleep(3600)
    return "never"


async def test_a_script_finds_describes_and_calls_tools_and_computes_an_answer(ex: Executor) -> None:
    code = """
from collections import defaultdict
from statistics import mean

found = tools.search("gives arguments back", limit=3)
print(tools.describe(found["items"][0]["path"])["path"])
groups = defaultdict(list)
for row in tools.demo.org.main.rows(count=10):
    groups[row["kind"]].append(row["price"])
{kind: mean(prices) for kind, prices in sorted(groups.items())}
"""
    run = await ex.run(code, language="python")
    assert run.status == "completed", run.error
    assert run.result == {"a": 6.0, "b": 7.5}
    assert [log["text"] for log in run.logs] == ["demo.org.main.echo"]
    assert [call["path"] for call in run.calls][-1] == "demo.org.main.rows"


@pytest.mark.parametrize("language", ["python", "javascript"])
@pytest.mark.parametrize("code", ["", " \n\t\n", "```\n```", "Nothing yet:\n```{}\n\n```\n"])
async def test_a_script_without_code_does_nothing(ex: Executor, language: Any, code: str) -> None:
    run = await ex.run(code.format(language), language=language)
    assert (run.status, run.result) == ("completed", None), run.error


async def test_code_in_another_language_alone_is_not_python(ex: Executor) -> None:
    run = await ex.run("```js\n1\n```", language="python")
    assert run.error is not None
    assert (run.error["code"], run.error["message"]) == (
        "syntax_error",
        "There is no Python to run: the code blocks are tagged js",
    )


async def test_python_and_javascript_take_turns_in_one_executor(ex: Executor) -> None:
    runs = [ex.run("input * 2", language=language, input=21) for language in ("python", "javascript") * 5]
    assert [run.result for run in await asyncio.gather(*runs)] == [42] * 10


async def test_a_function_that_waits_for_a_tool_does_not_hold_up_other_runs(ex: Executor) -> None:
    waiting = asyncio.create_task(
        ex.run("def f():\n    return tools.demo.org.main.slow()\nf()", language="python", budgets={"wall_ms": 60_000})
    )
    try:
        others = await asyncio.gather(*(ex.run("1 + 1", language="python") for _ in range(20)))
        assert [run.result for run in others] == [2] * 20
        assert not waiting.done()
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


@pytest.mark.parametrize(
    ("code", "budgets", "error", "name"),
    [
        ("while True: pass", {"fuel": 10**8}, "fuel_exhausted", "fuel"),
        ("import time\ntime.sleep(600)", {"wall_ms": 500}, "deadline_exceeded", "wall_ms"),
        ("tools.demo.org.main.slow()", {"wall_ms": 500}, "deadline_exceeded", "wall_ms"),
        ("def f():\n    tools.demo.org.main.slow()\nf()", {"wall_ms": 500}, "deadline_exceeded", "wall_ms"),
        ("s = 'a'\nwhile True:\n    s += s", {}, "memory_exhausted", "memory_bytes"),
        (
            "for i in range(9):\n    tools.demo.org.main.echo(i=i)",
            {"bridge_calls": 5},
            "calls_exhausted",
            "bridge_calls",
        ),
    ],
)
async def test_a_budget_ends_a_run_with_its_own_code(
    ex: Executor, code: str, budgets: dict[str, int], error: str, name: str
) -> None:
    run = await ex.run(code, language="python", budgets=budgets)
    assert run.status == "failed"
    assert run.error is not None
    assert run.limit is not None
    assert (run.error["code"], run.limit["name"]) == (error, name)
    assert set(run.usage) >= {"fuel", "memory_bytes", "wall_ms", "bridge_calls", "cpu_ms"}


async def test_a_run_can_be_cancelled_while_a_plain_function_waits(ex: Executor) -> None:
    started = await ex.run("def f():\n    return tools.demo.org.main.slow()\nf()", language="python", wait=False)
    async with asyncio.timeout(20):
        async for event in ex.events(started.run_id):
            if event.type == "call":
                break
        await ex.cancel_run(started.run_id)
        ended = [event async for event in ex.events(started.run_id)]
    assert ended[-1].type == "result"
    assert (await ex.get_run(started.run_id)).status == "cancelled"


@pytest.mark.parametrize(
    ("code", "line", "column"),
    [
        ("Sure! Here it is:\n\n```python\nx = 1\nx +* 2\n```\nEnjoy.", 5, 4),
        ("```py\n1 / 0\n```", 2, 1),
        ("    x = 1\n    1 / 0", 2, 5),
        ("\ufeffx = 1\r\n1 / 0\r\n", 2, 1),
    ],
)
async def test_an_error_is_placed_in_the_text_that_was_sent(ex: Executor, code: str, line: int, column: int) -> None:
    run = await ex.run(code, language="python")
    assert run.error is not None
    assert (run.error["line"], run.error["column"]) == (line, column)


async def test_code_is_taken_out_of_fences_and_common_indentation(ex: Executor) -> None:
    for code in ("Here:\n```python\nx = 20\nx + 1\n```\nDone.", "```\n7 * 3\n```", "    y = 20\n    y + 1"):
        assert (await ex.run(code, language="python")).result == 21


async def test_a_run_of_its_own_process_runs_python_too(ex: Executor) -> None:
    assert (await ex.run("sum(range(10))", language="python", isolation="run")).result == 45


async def test_text_without_code_names_what_is_missing(ex: Executor) -> None:
    run = await ex.run("```sql\nselect 1\n```", language="python")
    assert run.error is not None
    assert run.error["code"] == "syntax_error"
    assert "no Python" in run.error["message"]
