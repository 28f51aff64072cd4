"""What comes back: streams that are cut, busy servers that are asked again, errors that are dug out, every body."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import pytest

from bridge.calls import CallOutcome
from bridge.toolbox import Toolbox
from bridge.wire.errors import ToolError
from catalog.kinds import records
from catalog.kinds.payload import message_in
from catalog.patience import MAX_WAIT_MS, retry_after_ms
from tests.unit.upstream import Seen, Upstream, call, document, operation, response, toolbox, upstream

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def web(**settings: Any) -> AsyncIterator[tuple[Toolbox, Upstream]]:
    async with upstream() as server, toolbox(**settings) as box:
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        yield box, server


async def get(box: Toolbox, path: str = "/x", **more: Any) -> CallOutcome:
    return await call(box, "web.org.main.http.get", {"path": path}, meta=True, **more)


async def refused(box: Toolbox, method: str = "GET", **args: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await call(box, "web.org.main.http.request", {"path": "/x", "method": method, **args})
    return caught.value


# Streams


async def test_server_sent_events_come_as_a_list_with_their_data_parsed() -> None:
    text = (
        ': hello\nretry: 5\nevent: delta\nid: 7\ndata: {"a": 1}\n\n'
        "data: two\r\ndata: lines\r\n\r\ndata:[DONE]\n\nevent: nothing\n\ndata: last"
    )
    async with web() as (box, server):
        server.answers["/x"] = response(text.encode(), headers={"content-type": "text/event-stream; charset=utf-8"})
        outcome = await get(box)
    assert outcome.value == [
        {"data": {"a": 1}, "event": "delta", "id": "7"},
        {"data": "two\nlines", "id": "7"},
        {"data": "[DONE]", "id": "7"},
        {"data": "last", "id": "7"},
    ]
    assert outcome.http is not None
    assert "cut" not in outcome.http


@pytest.mark.parametrize("media", ["application/x-ndjson", "application/jsonl", "application/json-seq"])
async def test_json_line_by_line_comes_as_a_list(media: str) -> None:
    async with web() as (box, server):
        server.answers["/x"] = response(b'{"a":1}\r\n\n\x1e[2]\n"three"', headers={"content-type": media})
        assert (await get(box)).value == [{"a": 1}, [2], "three"]


async def test_a_line_that_is_not_json_is_an_upstream_error() -> None:
    async with web() as (box, server):
        server.answers["/x"] = response(b'{"a":1}\n{"a":', headers={"content-type": "application/x-ndjson"})
        error = await refused(box)
    assert (error.code, error.details) == ("upstream_error", {"body": '{"a":1}\n{"a":'})


def endless(record: bytes, media: str) -> Any:
    async def answer(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {media}\r\n\r\n".encode())
        while True:
            writer.write(record)
            await writer.drain()

    return answer


async def test_a_stream_without_end_is_cut_at_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSRF-41"""
    monkeypatch.setattr("bridge.streaming.MAX_RECORDS", 25)
    for record, media in (
        (b'data: {"a": 1}\n\n', "text/event-stream"),
        (b"data: 1\r\n\r\n", "text/event-stream"),
        (b'{"a":1}\n', "application/x-ndjson"),
    ):
        async with web() as (box, server):
            server.answers["/x"] = endless(record, media)
            with anyio.fail_after(20):
                outcome = await get(box)
            assert outcome.http is not None
            assert (len(outcome.value), outcome.http["cut"]) == (25, {"by": "records", "limit": 25})


async def test_a_stream_of_one_endless_record_is_cut_at_its_bytes() -> None:
    """SSRF-41"""
    async with web(response_bytes=100_000) as (box, server):
        server.answers["/x"] = endless(
            b"data: " + b"x" * 1000 + b"\n\n" + b"data: " + b"y" * 70_000, "text/event-stream"
        )
        with anyio.fail_after(20):
            outcome = await get(box)
    assert outcome.http is not None
    assert outcome.http["cut"] == {"by": "bytes", "limit": 25_000}
    assert outcome.value == [{"data": "x" * 1000}]


async def test_a_stream_that_goes_quiet_is_handed_on_before_the_deadline_of_its_call() -> None:
    async def quiet(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\ndata: 2\n\ndata: thr")
        await writer.drain()
        await reader.read()

    async with web(tool_timeout_s=1.0) as (box, server):
        server.answers["/x"] = quiet
        with anyio.fail_after(20):
            outcome = await get(box)
    assert outcome.http is not None
    assert outcome.value == [{"data": "1"}, {"data": "2"}]
    assert outcome.http["cut"]["by"] == "time"
    assert 0 < outcome.http["cut"]["limit"] <= 800


async def test_a_stream_that_breaks_off_is_no_answer() -> None:
    async def broken(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99\r\n\r\ndata: 1\n\n")
        writer.close()

    async with web() as (box, server):
        server.answers["/x"] = broken
        assert (await refused(box)).code == "upstream_unreachable"


def test_a_stream_that_is_cut_loses_the_record_it_was_cut_in() -> None:
    assert records.lines("1\n2\n3", False, json.loads) == [1, 2]
    assert records.lines("1\n2\n3", True, json.loads) == [1, 2, 3]
    assert records.events("data: 1\n\ndata: 2\n", False) == [{"data": "1"}]
    assert records.events("data: {\n\n", True) == [{"data": "{"}]


@pytest.mark.parametrize(
    ("media", "returns"),
    [
        ("text/event-stream", "Promise<{ data: unknown; event?: string; id?: string }[]>"),
        ("application/x-ndjson", "Promise<{ n?: number }[]>"),
    ],
)
async def test_a_stream_is_described_as_the_list_that_it_comes_as(media: str, returns: str) -> None:
    content = {media: {"schema": {"type": "object", "properties": {"n": {"type": "number"}}}}}
    one = operation() | {"responses": {"200": {"description": "a", "content": content}}}
    async with upstream() as server, toolbox() as box:
        described = document({"/x": {"get": one}}, server.base)
        await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        assert box.describe("api.org.main.op")["signature"].endswith(returns + ";")


# Framing


@pytest.mark.parametrize("tail", [b"zz", b"5\nhello\n", b"5\r\nhello\r\n5\n", b"1" * 30, b"5\r\nhello\r\n-"])
async def test_what_can_never_become_a_chunk_is_refused_while_the_connection_stays_open(tail: bytes) -> None:
    """SSRF-44"""

    async def bad(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + tail)
        await writer.drain()
        await reader.read()

    async with web(tool_timeout_s=600) as (box, server):
        server.answers["/x"] = bad
        with anyio.fail_after(20):
            error = await refused(box)
    assert (error.code, error.retryable) == ("upstream_error", False)


async def test_chunks_in_pieces_of_one_byte_with_extensions_and_trailers_are_read() -> None:
    async def slow(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n")
        for byte in b"5;name=value\r\nhello\r\nA \r\n, everyone\r\n0\r\nx-check: zz\r\n\r\n":
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)

    async with web() as (box, server):
        server.answers["/x"] = slow
        assert (await get(box)).value == "hello, everyone"


# Busy servers


def busy(answers: list[bytes]) -> Any:
    async def answer(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(answers.pop(0) if len(answers) > 1 else answers[0])

    return answer


LATER = response({"error": {"message": "slow down"}}, status=429, headers={"retry-after": "0"})


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
async def test_a_busy_server_is_asked_again_when_it_says_for_what_means_the_same_twice(method: str) -> None:
    async with web() as (box, server):
        server.answers["/x"] = busy([LATER.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == "HEAD" else LATER,
                                     b"HTTP/1.1 204 Done\r\n\r\n"])  # fmt: skip
        outcome = await call(box, "web.org.main.http.request", {"path": "/x", "method": method}, meta=True)
    assert outcome.value is None
    assert outcome.record.status == 204
    assert len(server.seen) == 2


async def test_a_busy_server_is_not_asked_again_for_what_could_happen_twice() -> None:
    async with web() as (box, server):
        server.answers["/x"] = busy([LATER, response({})])
        error = await refused(box, "POST", body={})
        assert (error.code, error.status, error.retryable, error.retry_after_ms) == ("upstream_error", 429, True, 0)
        assert len(server.seen) == 1
        server.seen.clear()
        server.answers["/x"] = busy([LATER, response({"done": True})])
        args = {"path": "/x", "method": "POST", "body": {}, "headers": {"Idempotency-Key": "k1"}}
        assert (await call(box, "web.org.main.http.request", args)).value == {"done": True}
        assert [one.header("idempotency-key") for one in server.seen] == ["k1", "k1"]


async def test_a_server_that_stays_busy_is_left_after_three_requests_and_its_wait_is_told() -> None:
    async with web() as (box, server):
        server.answers["/x"] = LATER
        error = await refused(box)
    assert (error.status, error.retryable, error.retry_after_ms) == (429, True, 0)
    assert error.message == "The server answered 429: slow down"
    assert error.as_dict()["retry_after_ms"] == 0
    assert len(server.seen) == 3


IN_AN_HOUR = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)


@pytest.mark.parametrize("after", ["3600", "21", IN_AN_HOUR], ids=["an hour", "too long", "a date"])
async def test_a_wait_that_does_not_fit_into_the_call_is_left_to_the_caller_at_once(after: str) -> None:
    async with web() as (box, server):
        server.answers["/x"] = response({}, status=503, headers={"retry-after": after})
        with anyio.fail_after(10):
            error = await refused(box)
    assert error.retry_after_ms is not None
    assert error.retry_after_ms > 20_000
    assert len(server.seen) == 1


async def test_without_a_word_on_when_the_waits_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("bridge.outbound.pause", pause)
    async with web() as (box, server):
        server.answers["/x"] = response({}, status=503)
        error = await refused(box)
    assert error.retry_after_ms is None
    assert 0.25 <= waits[0] < 0.375
    assert 0.5 <= waits[1] < 0.75


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_an_error_that_may_have_had_its_effect_is_not_repeated(status: int) -> None:
    async with web() as (box, server):
        server.answers["/x"] = response({}, status=status)
        assert (await refused(box)).retryable
    assert len(server.seen) == 1


def test_retry_after_is_seconds_or_a_date_and_nothing_else() -> None:
    def asked(value: str) -> int | None:
        return retry_after_ms([("x", "y"), ("retry-after", value)])

    assert asked("3") == 3000
    assert asked(" 0 ") == 0
    assert asked("9" * 400) == MAX_WAIT_MS
    assert asked("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert asked("Fri, 31 Dec 9999 23:59:59 GMT") == MAX_WAIT_MS
    for odd in ("", "-1", "1.5", "soon", "٣", "Wed, 99 Oct 2015 07:28:00 GMT", "1e3"):
        assert asked(odd) is None
    assert retry_after_ms([]) is None


# Values


@pytest.mark.parametrize(
    ("media", "body", "value"),
    [
        ("application/json", b"\xef\xbb\xbf[1]", [1]),
        ("application/json; charset=utf-16", "[1]".encode("utf-16"), [1]),
        ("application/json; charset=iso-8859-1", b'["\xe4"]', ["ä"]),
        ("application/vnd.api+json", b'{"data": null}', {"data": None}),
        ("application/problem+json", b"{}", {}),
        ("text/plain; charset=latin-1", b"\xe4", "ä"),
        ("text/plain", b"\xef\xbb\xbfhi", "hi"),
        ("text/html; charset=nonsense", "<p>ä".encode(), "<p>ä"),
        ("image/png", b"\x89PNG", b"\x89PNG"),
        ("application/json", b"", None),
        ("text/event-stream", b"", []),
        ("application/x-ndjson", b"", []),
    ],
)
async def test_a_body_becomes_what_its_type_says(media: str, body: bytes, value: Any) -> None:
    async with web() as (box, server):
        server.answers["/x"] = response(body, headers={"content-type": media})
        assert (await get(box)).value == value


@pytest.mark.parametrize("status", [204, 205, 304])
async def test_an_answer_without_a_body_is_null(status: int) -> None:
    async with web() as (box, server):
        server.answers["/x"] = f"HTTP/1.1 {status} Nothing\r\ncontent-length: 0\r\n\r\n".encode()
        outcome = await get(box)
    assert (outcome.value, outcome.record.status) == (None, status)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"type": "about:blank", "title": "Bad", "detail": "n is missing"}, "n is missing"),
        ({"error": {"code": 3, "message": "no such pet"}}, "no such pet"),
        ({"errors": [{"message": "one"}, {"message": "two"}]}, "one; two"),
        ({"errors": {"name": ["is too short"]}, "message": "invalid"}, "invalid"),
        ({"detail": [{"loc": ["body", "n"], "msg": "field required"}]}, "field required"),
        ({"error": "invalid_grant", "error_description": "expired"}, "expired"),
        ({"error": "invalid_grant"}, "invalid_grant"),
        ({"ok": False, "error": {"reason": "index missing"}}, "index missing"),
        ("plain  words\n", "plain words"),
        ("<html><head><title>502 Bad &amp; Gateway</title></head><h1>x</h1></html>", "502 Bad & Gateway"),
        ('<?xml version="1.0"?><Error><Code>A</Code><Message>No such key</Message></Error>', "No such key"),
        ("<html><body>nothing here", ""),
        ({"a": 1}, ""),
        ([], ""),
        (None, ""),
        ({"message": "x" * 5000}, "x" * 1000),
        ("<title>" + "<title>" * 3000, ""),
    ],
)
def test_what_an_upstream_says_went_wrong_is_found_in_the_shapes_that_are_common(body: Any, said: str) -> None:
    assert message_in(body) == said


async def test_an_error_page_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_KEY", "cnry_0123456789abcdef")
    async with upstream() as server, toolbox() as box:
        await box.add_http(
            "web",
            [server.base],
            allow_private=["127.0.0.1"],
            auth={"type": "header", "name": "x-key"},
            secret="env:WEB_KEY",
        )
        server.answers["/x"] = response(
            b"<title>key cnry_0123456789abcdef is bad</title>", status=403, headers={"content-type": "text/html"}
        )
        error = await refused(box)
    assert error.message.endswith(": key [secret] is bad")
    assert "cnry_" not in str(error.as_dict())


@pytest.mark.parametrize("media", ["text/plain", "text/html", "application/json", "application/octet-stream"])
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("cut", [500, 1000, 4096, 16 * 1024])
async def test_no_half_of_a_secret_stands_where_an_answer_is_cut(
    monkeypatch: pytest.MonkeyPatch, media: str, status: int, cut: int
) -> None:
    """A script that may choose what stands before an echoed credential would read it piece by piece."""
    secret = "cnry_0123456789abcdef0123456789abcdef"
    monkeypatch.setenv("WEB_KEY", secret)
    async with upstream() as server, toolbox() as box:
        await box.add_http(
            "web",
            [server.base],
            allow_private=["127.0.0.1"],
            auth={"type": "header", "name": "x-key"},
            secret="env:WEB_KEY",
        )
        for shown in range(0, 37, 6):
            text = "p" * (cut - shown) + secret + "q" * 100
            headers = {"content-type": media, "location": text, "x-request-id": text}
            server.answers["/x"] = response(text.encode(), status=status, headers=headers)
            try:
                told = str((await get(box)).value)
            except ToolError as e:
                told = str(e.as_dict())
            assert not any(secret[at : at + 6] in told for at in range(len(secret) - 5))
