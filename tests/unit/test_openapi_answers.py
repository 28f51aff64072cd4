"""What the answer of an operation becomes."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.wire import codec
from bridge.wire.errors import ToolError
from tests.unit.upstream import call, document, operation, toolbox, upstream

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("media", "body", "value"),
    [
        ("application/json", b'{"a":1}', {"a": 1}),
        ("application/json; charset=utf-8", b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        ("application/problem+json", b"0", 0),
        ("application/json", b"", None),
        ("application/json", b'{"n":18446744073709551615}', {"n": 18446744073709551615}),
        ("application/json", b'{"n":' + b"1" * 5000 + b"}", {"n": "1" * 5000}),
        ("application/json", b'{"n":1e999}', {"n": "1e999"}),
        ("application/json", b'{"a":1,"a":2}', {"a": 2}),
        ("application/json; charset=iso-8859-1", b'"\xe9"', "é"),
        ("text/plain", b"007", "007"),
        ("text/plain; charset=iso-8859-1", b"na\xefve", "naïve"),
        ("text/plain; charset=klingon", b"x", "x"),
        ("text/plain; charset=rot13", b"x", "x"),
        ("application/octet-stream", b"\xff\x00", b"\xff\x00"),
        ("image/png", b"\x89PNG", b"\x89PNG"),
        ("application/x-ndjson", b'{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
        ("", b'{"a":1}', {"a": 1}),
        ("", b"\xff\xfe", b"\xff\xfe"),
        ("nonsense", b"plain", "plain"),
    ],
)
async def test_an_answer_becomes_a_value(media: str, body: bytes, value: Any) -> None:
    async with upstream() as server, toolbox() as box:
        server.reply("/x", body, headers={"content-type": media})
        await box.add_openapi("api", document({"/x": {"get": operation()}}, server.base), allow_private=["127.0.0.1"])
        assert (await call(box, "api.org.main.op")).value == value


@pytest.mark.parametrize("body", [b'{"a":', b"{broken", b"NaN", b'{"a":-Infinity}', b"OK", b'"\xe9"', b"<html>"])
async def test_an_answer_that_says_json_and_is_not_is_an_error_that_shows_how_it_begins(body: bytes) -> None:
    async with upstream() as server, toolbox() as box:
        server.reply("/x", body)
        await box.add_openapi("api", document({"/x": {"get": operation()}}, server.base), allow_private=["127.0.0.1"])
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        for path, args in (("api.org.main.op", {}), ("web.org.main.http.get", {"path": "/x"})):
            with pytest.raises(ToolError, match="says that it is JSON") as caught:
                await call(box, path, args)
            assert (caught.value.code, caught.value.status) == ("upstream_error", 200)
            assert caught.value.details == {"body": body.decode(errors="replace")}


@pytest.mark.parametrize("levels", [101, 128, 200, 600, 20_000])
@pytest.mark.parametrize("media", ["application/json", ""])
async def test_an_answer_nested_too_deeply_is_too_large(levels: int, media: str) -> None:
    """MSG-16"""
    async with upstream() as server, toolbox() as box:
        server.reply("/x", b"[" * levels + b"]" * levels, headers={"content-type": media})
        server.reply("/fine", b"[" * 100 + b"]" * 100)
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        with pytest.raises(ToolError, match="nested deeper than 100 levels") as caught:
            await call(box, "web.org.main.http.get", {"path": "/x"})
        assert caught.value.code == "too_large"
        fine = await call(box, "web.org.main.http.get", {"path": "/fine"}, meta=True)
        assert codec.decode(fine.encoded)["value"] == fine.value


@pytest.mark.parametrize("body", [b"[" * 20_000, b"[" * 300 + b"]" * 300, b'{"a":'])
async def test_a_refusal_whose_body_cannot_be_a_value_shows_its_text(body: bytes) -> None:
    async with upstream() as server, toolbox() as box:
        server.reply("/x", body, status=500)
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.get", {"path": "/x"})
        assert (caught.value.code, caught.value.status) == ("upstream_error", 500)
        assert caught.value.details == {"body": body.decode()[: 16 * 1024]}


async def test_an_integer_beyond_64_bits_comes_as_its_digits() -> None:
    """MSG-16"""
    async with upstream() as server, toolbox() as box:
        server.reply("/x", b"[9007199254740993,18446744073709551616,-123456789012345678901234567890]")
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        outcome = await call(box, "web.org.main.http.get", {"path": "/x"})
        expected = [9007199254740993, "18446744073709551616", "-123456789012345678901234567890"]
        assert codec.decode(outcome.encoded) == expected


async def test_an_answer_to_head_and_one_without_content_are_null() -> None:
    async with upstream() as server, toolbox() as box:
        server.answers["/x"] = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\netag: 1\r\n\r\n"
        server.answers["/y"] = b"HTTP/1.1 204 No Content\r\n\r\n"
        paths = {"/x": {"head": operation()}, "/y": {"get": operation(operationId="none")}}
        await box.add_openapi("api", document(paths, server.base), allow_private=["127.0.0.1"])
        outcome = await call(box, "api.org.main.op", meta=True)
        assert (outcome.value, outcome.http["headers"]["etag"]) == (None, "1")
        assert (await call(box, "api.org.main.none")).value is None
