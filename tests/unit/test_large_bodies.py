"""Large JSON bodies: refused unparsed where their value cannot be small enough, and else parsed beside the loop."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.calls import CallContext
from bridge.values import encoded
from catalog.kinds import decoding, reading
from tests.unit.proxied import failing
from tests.unit.upstream import call, document, operation, toolbox, upstream

PATH = "api.org.main.op"
HOST = "127.0.0.1"
ROWS = [{"id": number, "name": "row"} for number in range(20_000)]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([-1e-7, 1e308, 2**64 - 1, 10**30, "true", "\u0000\x1f", "\U0001f600", "e", "null\\u0041"])
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@example("\u00ff" * 50, True, None)
@example([True, False, None] * 50, True, None)
@given(json_values, st.booleans(), st.sampled_from([None, 3]))
def test_no_value_is_smaller_than_what_its_text_promises(value: Any, ascii_only: bool, indent: int | None) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    read = decoding._read(body.decode("utf-8", "surrogatepass"))
    assert reading.at_least(body) <= len(encoded(read))


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-be", "utf-32", "utf-32-le"])
def test_nothing_is_promised_of_a_text_in_wide_characters(coding: str) -> None:
    assert reading.at_least(json.dumps(["x" * 50]).encode(coding)) == 0


async def _asked(answer: Any, value_bytes: int, parse: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "value_of", parse)
        async with upstream() as server, toolbox() as box:
            server.reply("/x", answer)
            await box.add_openapi("api", document({"/x": {"get": operation()}}, server.base), allow_private=[HOST])
            ctx = CallContext(value_bytes=value_bytes)
            if parse is _unparsed:
                return await failing(box, PATH, ctx=ctx)
            return (await call(box, PATH, ctx=ctx)).value


def _unparsed(response: Any) -> Any:
    raise AssertionError("it was parsed")


@pytest.mark.anyio
@pytest.mark.parametrize("answer", [["x" * 100_000] * 3, [{"name": "x" * 100}] * 3000], ids=["one", "many"])
async def test_a_body_whose_value_cannot_fit_is_refused_before_it_is_parsed(answer: Sequence[Any]) -> None:
    error = await _asked(answer, 290_000, _unparsed)
    assert (error.code, error.details, error.status) == ("too_large", {"limit": 290_000}, 200)


@pytest.mark.anyio
async def test_a_body_that_is_larger_than_its_value_may_be_is_read_where_the_value_fits() -> None:
    numbers = [1] * 200_000
    assert await _asked(numbers, 300_000, decoding.value_of) == numbers


@pytest.mark.anyio
async def test_a_large_body_is_parsed_in_another_thread_that_gives_the_loop_its_turns() -> None:
    threads: set[int] = set()
    collected: list[bool] = []

    def parse(response: Any) -> Any:
        threads.add(threading.get_ident())
        collected.append(gc.isenabled())
        return decoding.value_of(response)

    turns: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_turn", lambda found: turns.append(threading.get_ident()) or found)
        assert await _asked(ROWS, 8 << 20, parse) == ROWS
    assert threads == set(turns)
    assert threading.get_ident() not in threads
    assert len(turns) == len(ROWS)
    assert collected == [False]
    assert gc.isenabled()
