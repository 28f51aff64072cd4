"""Hostile Python by the hundred: each script ends with its own code, harms no other run, and leaves nothing behind.

`python_attacks.txt` holds them: `=== name | code` (or `completed`; `any` where it depends on what lies in memory), and
the script. They cover PYE-01 to PYE-16 and the BUD group: ways to other modules and to the guest's own, tampering with
interpreter, bridge and loop, made-up code objects, forged exceptions, floods, bombs of every kind, recursion of every
shape.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from executor import Executor
from guest import images

pytestmark = pytest.mark.anyio

_PARTS = (Path(__file__).parent / "python_attacks.txt").read_text().split("=== ")[1:]
ATTACKS = [(*head.split(" | "), source) for head, _, source in (part.partition("\n") for part in _PARTS)]
BUDGETS = {"fuel": 5 * 10**8, "wall_ms": 1500}
CLEAN = (
    "import sys, builtins, json\n"
    "[len(dir(builtins)), len(sys.modules), json.dumps({'a': [1]}), sys.getrecursionlimit()]"
)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex() -> AsyncIterator[Executor]:
    images.build(sets=("javascript", "python"))
    async with Executor.open() as executor:
        executor.tool("demo.org.main.echo", lambda args: args, side_effect="read")
        yield executor


@pytest.fixture(scope="module")
async def untouched(ex: Executor) -> object:
    return (await ex.run(CLEAN, language="python")).result


@pytest.mark.parametrize(("name", "code", "source"), ATTACKS, ids=[name for name, *_ in ATTACKS])
async def test_a_hostile_script_ends_with_its_own_code_and_the_next_run_is_untouched(
    ex: Executor, untouched: object, name: str, code: str, source: str
) -> None:
    run = await ex.run(source, language="python", budgets=BUDGETS)
    # what is near the end of its fuel may meet that first: the seed of a run is a part of its input
    ended = run.error["code"] if run.error else "completed"
    assert ended in {code, "fuel_exhausted"} if code != "any" else ended != "internal"
    assert run.usage["fuel"] <= BUDGETS["fuel"]
    assert (await ex.run(CLEAN, language="python")).result == untouched


async def test_after_all_of_it_the_workers_are_those_that_were_there(ex: Executor) -> None:
    isolation = ex.health()["isolation"]
    assert isolation["running"] == isolation["queued"] == 0
    run = await ex.run("await tools.demo.org.main.echo(x=1)", language="python")
    assert run.result == {"x": 1}
