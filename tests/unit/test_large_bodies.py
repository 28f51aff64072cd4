"""Large JSON bodies: refused unparsed where their value cannot be small enough, and else parsed beside the loop."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Sequence
from typing import Any, cast

import anyio
import anyio.from_thread
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.responses import Response

from bridge.calls import CallContext
from bridge.outbound import Passage
from bridge.values import encoded
from catalog.kinds import decoding, reading
from executor.http import strictjson
from executor.http.edge import ADMITTED, NO_BODY, Edge
from executor.http.metrics import Metrics
from executor.http.settings import EdgeSettings
from executor.keys import Keyring
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


@pytest.mark.anyio
async def test_secrets_are_masked_in_a_large_body_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTOR_T", "cnry_1_of_a_bearer")
    threads: dict[int, int] = {}
    mask = Passage._masked

    def noted(self: Passage, status: int, headers: Any, body: bytes) -> Any:
        threads[len(body)] = threading.get_ident()
        return mask(self, status, headers, body)

    monkeypatch.setattr(Passage, "_masked", noted)
    async with upstream() as server, toolbox() as box:
        for count in (1, 20_000):
            server.reply("/x", [["cnry_1_of_a_bearer"] * count])
            name, described = f"api{count}", document({"/x": {"get": operation()}}, server.base)
            await box.add_openapi(name, described, auth="bearer", secret="env:EXECUTOR_T", allow_private=[HOST])
            assert (await call(box, f"{name}.org.main.op")).value == [["[secret]"] * count]
    small, large = (threads[size] for size in sorted(threads))
    assert small == threading.get_ident() != large


@pytest.mark.anyio
async def test_another_request_is_answered_while_a_large_body_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsing, answered = anyio.Event(), threading.Event()
    parse = strictjson.loads

    def slow(data: bytearray, *, max_nodes: int) -> Any:
        anyio.from_thread.run_sync(parsing.set)
        assert answered.wait(10)
        return parse(data, max_nodes=max_nodes)

    monkeypatch.setattr(strictjson, "loads", slow)
    read: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        read.append(scope[ADMITTED].body)
        await Response(status_code=204)(scope, receive, send)

    edge = Edge(app, cast(Keyring, None), EdgeSettings(require_key=False), Metrics())
    async with anyio.create_task_group() as group:
        group.start_soon(_request, edge, "POST", json.dumps(ROWS).encode())
        with anyio.fail_after(10):
            await parsing.wait()
        assert await _request(edge, "GET") == 204
        answered.set()
    assert read == [NO_BODY, ROWS]


async def _request(edge: Edge, method: str, body: bytes = b"") -> int:
    """The status of the answer to a request."""
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    headers += [(b"content-length", b"%d" % len(body))] if body else []
    scope = {"type": "http", "method": method, "path": "/x", "raw_path": b"/x", "query_string": b"", "scheme": "http"}
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    await edge({**scope, "headers": headers, "client": None, "server": None}, receive, send)
    return int(sent[0]["status"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "holds"),
    [(b'{"$bytes": "AA=="}', True), (b'{"\\u0024bytes": "AA=="}', True), (b'{"bytes": "$"}', False)],
)
async def test_a_body_that_may_hold_bytes_is_known(body: bytes, holds: bool) -> None:
    found: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append(scope[ADMITTED].holds_bytes)
        await Response(status_code=204)(scope, receive, send)

    edge = Edge(app, cast(Keyring, None), EdgeSettings(require_key=False), Metrics())
    assert await _request(edge, "POST", body) == 204
    assert found == [holds]
