"""Values of tools that are too large to be handed over: a handle stands for them, and only their maker reads them."""

import asyncio
import json
from typing import Any

import pytest

from executor import Config, Executor, NotFound

pytestmark = pytest.mark.anyio

READ_ALL = """
const big = await tools.v.org.main.get({n: input.n});
let text = "", at = 0, parts = 0;
while (at !== null) {
    const part = await tools.executor.results.read({id: big.$ref.id, offset: at, length: input.length});
    text += part.text; at = part.next; parts++;
}
const value = JSON.parse(text);
const bytes = new TextEncoder().encode(text).length;
[value.length, value.slice(0, 3), parts, big.$ref.bytes === bytes, big.$ref.preview.length]
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex():
    async with Executor.open(config=Config(workers=1)) as executor:
        executor.tool("v.org.main.get", lambda args: "ü€x" * args["n"], side_effect="read")
        executor.tool("v.org.main.bytes", lambda args: b"\0" * args["n"], side_effect="read")
        yield executor


async def handle(ex: Executor, n: int = 5000, **options: Any) -> dict[str, Any]:
    answer = await ex.run(f"await tools.v.org.main.get({{n: {n}}})", budgets={"call_value_bytes": 1000}, **options)
    return dict(answer.unwrap()["$ref"])


@pytest.mark.parametrize("length", [4, 1000, 4096, 100_000])
async def test_a_script_reads_a_large_value_in_parts_that_end_between_characters(ex: Executor, length: int):
    n = 100 if length == 4 else 5000
    budgets = {"call_value_bytes": 400 if length == 4 else 20_000, "bridge_calls": 1000}
    answer = await ex.run(READ_ALL, input={"n": n, "length": length}, budgets=budgets)
    count, start, parts, whole, preview = answer.unwrap()
    assert (count, start, whole, preview > 0) == (3 * n, "ü€x", True, True)
    assert parts >= 6 * n // max(length, 4)
    assert (await ex.replay_run(answer.run_id)).same


async def test_a_small_value_is_itself_and_a_large_one_says_how_to_read_it(ex: Executor):
    assert (await ex.run("await tools.v.org.main.get({n: 10})")).unwrap() == "ü€x" * 10
    ref = await handle(ex)
    assert ref["id"].startswith("res_")
    assert ref["bytes"] == 6 * 5000 + 2
    assert ref["preview"].startswith('"ü€x')
    assert "results.read" in ref["read"]
    document = (await ex.read_result(ref["id"])).data
    assert json.loads(document) == "ü€x" * 5000
    part = await ex.read_result(ref["id"], offset=1, length=2)
    assert (part.data.decode(), part.total) == ("ü", 30_002)


async def test_with_meta_the_handle_is_the_value(ex: Executor):
    code = "await tools.call('v.org.main.bytes', {n: 3000}, {meta: true})"
    answer = await ex.run(code, budgets={"call_value_bytes": 1000})
    kept = (await ex.read_result(answer.unwrap()["value"]["$ref"]["id"])).data
    assert json.loads(kept)["$bytes"].startswith("AAAA")
    assert answer.calls[0]["value_bytes"] == 3003


async def test_only_whoever_it_was_made_for_reads_a_handle(ex: Executor):
    """POL-27: another's, a guessed and an unknown handle are the same: not there."""
    ref = await handle(ex, principal="ann")
    assert (await ex.read_result(ref["id"], principal="ann")).total == ref["bytes"]
    for id, principal in [(ref["id"], "sdk"), ("res_" + "0" * 32, "ann"), ("", "ann"), ("run_x", "ann")]:
        with pytest.raises(NotFound):
            await ex.read_result(id, principal=principal)
    steal = "await tools.executor.results.read({id: input}).catch(e => [e.code, e.message])"
    told = (await ex.run(steal, input=ref["id"], principal="eve")).unwrap()
    assert told == (await ex.run(steal, input="res_" + "0" * 32, principal="eve")).unwrap()
    assert told[0] == "invalid_arguments"
    assert (await ex.run(steal, input=ref["id"], principal="ann")).unwrap()["bytes"] == ref["bytes"]


async def test_a_stored_result_of_a_run_is_read_by_its_id(ex: Executor):
    answer = await ex.run("emit('y'.repeat(2000)); 'x'.repeat(5000)", budgets={"result_bytes": 1000})
    assert answer.result_ref is not None
    code = "(await tools.executor.results.read({id: input})).text.slice(0, 4)"
    assert (await ex.run(code, input=answer.result_ref["id"])).unwrap() == '"xxx'
    record = await ex.get_run(answer.run_id)
    assert (await ex.run(code, input=record.emitted[0]["$ref"]["id"])).unwrap() == '"yyy'
    denied = await ex.run(f"{code[:-12]}", input=answer.result_ref["id"], principal="eve")
    assert denied.status == "failed"


@pytest.mark.parametrize(
    "args",
    [
        "{}",
        "{id: 1}",
        "{id: 'x', offset: -1}",
        "{id: 'x', length: 0}",
        "{id: 'x', offset: 1.5}",
        "{id: 'x', more: 1}",
        "{id: 'x', offset: 2n ** 60n}",
    ],
)
async def test_a_question_that_is_none_is_refused(ex: Executor, args: str):
    answer = await ex.run(f"await tools.executor.results.read({args}).catch(e => e.code)")
    assert answer.unwrap() == "invalid_arguments"


async def test_a_part_beyond_the_end_is_empty_and_says_so(ex: Executor):
    ref = await handle(ex)
    code = "await tools.executor.results.read({id: input, offset: 1e9})"
    assert (await ex.run(code, input=ref["id"])).unwrap() == {
        "text": "",
        "offset": 10**9,
        "next": None,
        "bytes": ref["bytes"],
    }


async def test_values_beyond_what_is_kept_are_too_large(ex: Executor):
    answer = await ex.run(
        "await tools.v.org.main.bytes({n: 17 * 1024 * 1024}).catch(e => e.code)", budgets={"call_value_bytes": 1000}
    )
    assert answer.unwrap() == "too_large"


async def test_handles_go_with_their_run(ex: Executor):
    ref = await handle(ex)
    database = ex._parts.store.database
    await database.write(lambda c: c.execute("UPDATE runs SET ended_at = 1"))
    keeping = ex._parts.store.runs
    keeping._retention = type(keeping._retention)(seconds=10.0)
    await keeping.sweep()
    keeping._retention = type(keeping._retention)()
    with pytest.raises(NotFound):
        await ex.read_result(ref["id"])
    count = "SELECT (SELECT count(*) FROM handles) + (SELECT count(*) FROM blobs)"
    assert await database.read(lambda c: c.execute(count).fetchone()) == (0,)
    await asyncio.sleep(0)


async def test_a_python_script_reads_handles_too(ex: Executor):
    answer = await ex.run(
        "big = await tools.v.org.main.get(n=3000)\n"
        "part = await tools.executor.results.read(id=big['$ref']['id'], length=100)\n"
        "[part['text'][:4], part['next'], part['bytes']]",
        language="python",
        budgets={"call_value_bytes": 1000},
    )
    assert answer.unwrap() == ['"ü€x', 99, 18_002]
