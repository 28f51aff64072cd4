"""The rest of the ESC group: code from text, thenables, ways out of other sandboxes, inputs that broke interpreters.

`javascript_attacks.txt` holds the scripts: `=== kind | name | expected`, and the script. An escape's road leads to the
guest's own function constructor (`road`) or is not there (`closed`); a thenable has its code; a crash may end as any
script may. `./scripts/corpora` runs whole published collections.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from executor import Config, Executor, RunResult

pytestmark = pytest.mark.anyio

_PARTS = ("\n" + (Path(__file__).parent / "javascript_attacks.txt").read_text()).split("\n=== ")[1:]
ATTACKS = [(*head.split(" | "), source) for head, _, source in (part.partition("\n") for part in _PARTS)]
FUEL = 10**9
BUDGETS = {"fuel": FUEL, "wall_ms": 10_000, "memory_bytes": 64 << 20}
CONTAINED = {
    *("script_error", "syntax_error", "never_settles", "stack_exhausted", "unserializable", "result_too_large"),
    *("fuel_exhausted", "memory_exhausted", "deadline_exceeded", "calls_exhausted"),
}
"""What a hostile script may end as. A trap that the interpreter did not mean is `internal`, and is none of them."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex() -> AsyncIterator[Executor]:
    async with Executor.open(config=Config(workers=1)) as opened:
        opened.tool("t.org.main.echo", lambda args: args.get("v"), side_effect="read")
        yield opened


async def hostile(ex: Executor, code: str) -> RunResult:
    """The answer to a script under small budgets; the run after it is served right."""
    answer = await ex.run(code, budgets=BUDGETS)
    assert answer.status in ("completed", "failed"), answer
    assert answer.status == "completed" or answer.error is not None
    assert (await ex.run("[1, 2].map(x => x * 21)")).unwrap() == [21, 42]
    return answer


def code_of(answer: RunResult) -> str | None:
    return None if answer.error is None else str(answer.error["code"])


FROM_TEXT = {
    "eval": "eval({})",
    "indirect eval": "(0, eval)({})",
    "eval by another name": "const e = globalThis['ev' + 'al']; e({})",
    "Function": "Function('return ' + {})()",
    "new Function": "new Function('return ' + {})()",
    "the constructor of an arrow": "(() => 0).constructor('return ' + {})()",
    "the constructor of a generator": "(function* () {{}}).constructor('return ' + {})().next().value",
    "the constructor of an async function": "await (async () => 0).constructor('return ' + {})()",
}


@pytest.mark.parametrize("way", FROM_TEXT)
async def test_code_from_text_runs_in_the_guest(ex: Executor, way: str) -> None:
    """ESC-03"""
    template = FROM_TEXT[way]
    found = template.format("'[typeof process, typeof require, typeof globalThis.tools]'")
    assert (await hostile(ex, found)).unwrap() == ["undefined", "undefined", "function"]
    asked = template.format("'(() => { for (;;); })()'")
    ended = await hostile(ex, asked)
    assert (code_of(ended), ended.usage["fuel"]) == ("fuel_exhausted", FUEL)


async def test_code_from_text_has_the_same_names_as_the_script(ex: Executor) -> None:
    """ESC-03"""
    names = "Object.getOwnPropertyNames(globalThis).sort()"
    own, evaluated = (await hostile(ex, f"[{names}, (0, eval)({names!r})]")).unwrap()
    assert own == evaluated


def attacks(kind: str) -> pytest.MarkDecorator:
    chosen = [(expected, source) for one, _, expected, source in ATTACKS if one == kind]
    return pytest.mark.parametrize(
        ("expected", "script"), chosen, ids=[name for one, name, *_ in ATTACKS if one == kind]
    )


@attacks("thenable")
async def test_a_thenable_ends_the_run_once(ex: Executor, expected: str, script: str) -> None:
    """ESC-13"""
    answer = await hostile(ex, script)
    assert (code_of(answer) or "completed") == expected
    kept = await ex.get_run(answer.run_id)
    assert (kept.status, kept.result) == (answer.status, answer.result)
    events = [event.data["status"] async for event in ex.events(answer.run_id) if event.type == "status"]
    assert events == ["queued", "running", answer.status]


OUT = "const out = f => { try { return f('return process')() } catch { return null } };"


@attacks("escape")
async def test_a_way_out_of_other_sandboxes_leads_nowhere(ex: Executor, expected: str, script: str) -> None:
    """ESC-26: and with something at its end, each road that there is would show it."""
    assert (await hostile(ex, OUT + script)).unwrap() is None
    control = await ex.run(f"globalThis.process = 7; {OUT}{script}")
    assert control.unwrap() == (7 if expected == "road" else None)


@attacks("crash")
async def test_what_crashed_interpreters_before_ends_with_a_typed_code(
    ex: Executor, expected: str, script: str
) -> None:
    """ESC-27"""
    answer = await hostile(ex, script)
    assert code_of(answer) in {None, *CONTAINED}, answer.error
