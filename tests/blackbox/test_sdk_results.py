"""Results: in the answer, or stored beside it and read in ranges."""

import json

import pytest

from executor import Config, Conflict, Executor, InvalidRequest, NotFound
from runtime.budgets import MIB

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=["memory", "file"])
async def ex(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("home") if request.param == "file" else None
    async with Executor.open(home, config=Config(workers=1)) as executor:
        yield executor


async def test_a_result_above_the_inline_limit_is_stored_with_a_preview(ex: Executor):
    answer = await ex.run("'x'.repeat(2_000_000)")
    assert answer.status == "completed", answer.error
    assert answer.unwrap() is None
    ref = answer.result_ref
    assert ref is not None
    assert ref["bytes"] == 2_000_002
    assert ref["preview"] == '"' + "x" * 1023
    assert "result" not in answer.as_dict()
    assert answer.usage["result_bytes"] > 2_000_000
    assert await ex.run_result(answer.run_id) == "x" * 2_000_000


async def test_a_stored_result_is_read_in_ranges(ex: Executor):
    answer = await ex.run("[...Array(5000)].map((_, i) => ({i, b: new Uint8Array([i])}))", budgets={"result_bytes": 0})
    first = await ex.run_result(answer.run_id, offset=0, length=100)
    assert (len(first.data), first.offset) == (100, 0)
    whole = b""
    while len(whole) < first.total:
        whole += (await ex.run_result(answer.run_id, offset=len(whole), length=10_000)).data
    assert json.loads(whole)[4999] == {"i": 4999, "b": {"$bytes": "hw=="}}
    assert (await ex.run_result(answer.run_id, offset=first.total + 5)).data == b""


async def test_bytes_of_a_stored_result_come_back_as_bytes(ex: Executor):
    answer = await ex.run("({a: new Uint8Array([1, 2])})", budgets={"result_bytes": 0})
    assert answer.result_ref is not None
    assert await ex.run_result(answer.run_id) == {"a": b"\x01\x02"}


async def test_an_inline_result_is_read_the_same_way(ex: Executor):
    answer = await ex.run("({a: [1, 2, 3]})")
    assert await ex.run_result(answer.run_id) == {"a": [1, 2, 3]}
    part = await ex.run_result(answer.run_id, offset=1, length=3)
    assert (part.data, part.total) == (b'"a"', 13)


@pytest.mark.parametrize("window", [{"offset": -1}, {"offset": "0"}, {"offset": 0, "length": -1}, {"offset": 1.5}])
async def test_a_range_that_is_none_is_refused(ex: Executor, window: dict):
    answer = await ex.run("1")
    with pytest.raises(InvalidRequest):
        await ex.run_result(answer.run_id, **window)


async def test_a_run_without_a_result_has_none_to_read(ex: Executor):
    answer = await ex.run("throw 1")
    with pytest.raises(Conflict, match="failed"):
        await ex.run_result(answer.run_id)


async def test_a_larger_inline_limit_keeps_a_result_inline(ex: Executor):
    answer = await ex.run("'x'.repeat(2_000_000)", budgets={"result_bytes": 4 * MIB})
    assert answer.result == "x" * 2_000_000
    assert (await ex.get_run(answer.run_id)).result == answer.result


async def test_a_large_emitted_value_is_stored_and_read_by_its_number(ex: Executor):
    answer = await ex.run("emit('small'); emit('x'.repeat(500)); emit('also small'); 1", budgets={"result_bytes": 100})
    assert answer.status == "completed", answer.error
    assert (answer.emitted[0], answer.emitted[2]) == ("small", "also small")
    assert answer.emitted[1]["$ref"]["bytes"] == 502
    assert await ex.run_result(answer.run_id, emitted=1) == "x" * 500
    assert (await ex.run_result(answer.run_id, emitted=1, offset=1, length=3)).data == b"xxx"
    assert await ex.run_result(answer.run_id, emitted=0) == "small"
    with pytest.raises(NotFound):
        await ex.run_result(answer.run_id, emitted=3)


async def test_the_same_result_is_stored_once(ex: Executor):
    first, second = [await ex.run("'same'.repeat(1000)", budgets={"result_bytes": 0}) for _ in range(2)]
    assert first.result_ref is not None
    assert second.result_ref is not None
    assert first.result_ref["sha256"] == second.result_ref["sha256"]
    database = ex._parts.store.database
    (count,) = await database.read(
        lambda c: c.execute(
            "SELECT count(*) FROM blobs WHERE sha256 = ?", (bytes.fromhex(first.result_ref["sha256"]),)
        ).fetchone()
    )
    assert count == 1
