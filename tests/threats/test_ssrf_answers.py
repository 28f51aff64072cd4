"""The SSRF group of the threat catalogue: what a server answers stays within limits."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from typing import Any

import anyio
import pytest

from bridge.client import Client
from bridge.egress import Grant, parse_named
from bridge.wire.errors import ExecutorError, ToolError
from catalog.origin import parse_url, reach_of
from tests.threats.guarded import MIB, guarded
from tests.unit.upstream import (
    Seen,
    bomb,
    call,
    response,
    toolbox,
    upstream,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "headers",
    [
        {"X": "a\r\nInjected: 1"},
        {"X": "a\nb"},
        {"X": "a\0"},
        {"X": "ünï"},
        {"X": "a" * 65_536},
        {"X Y": "1"},
        {"X:Y": "1"},
        {"": "1"},
        {"Transfer-Encoding": "chunked"},
        {"Content-Length": "5"},
        {"Host": "evil.test"},
        {"Connection": "upgrade"},
        {"Proxy-Authorization": "x"},
        {"Expect": "100-continue"},
    ],
)
async def test_a_header_that_could_be_read_two_ways_is_an_argument_error(headers: dict[str, str]) -> None:
    """SSRF-36 SSRF-37"""
    async with guarded() as (box, server, _):
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.get", {"path": "/x", "headers": headers})
        assert caught.value.code == "invalid_arguments"
        assert server.seen == []


async def _answer(raw: Any, *, limit: int = 5 * MIB) -> ToolError:
    async with upstream() as server:
        server.answers["/"] = raw
        client = Client()
        url = parse_url(server.base + "/")
        grant = Grant((reach_of(url),), (parse_named("127.0.0.1"),))
        with pytest.raises(ToolError) as caught, anyio.fail_after(30):
            await client.exchange("GET", url, [], None, grant=grant, limit=limit)
        assert client.exchanges.transport._idle.get((grant, url.origin), []) == []
        await client.close()
        return caught.value


@pytest.mark.parametrize(
    ("coding", "body", "code"),
    [
        ("gzip", bomb(256), "too_large"),
        ("gzip, gzip", bomb(1), "upstream_error"),
        ("br", b"\x00" * 10, "upstream_error"),
        ("zstd", b"\x00" * 10, "upstream_error"),
        ("sundry", b"\x00" * 10, "upstream_error"),
        ("gzip", b"this is not gzip at all", "upstream_error"),
        ("gzip", bomb(1)[:100], "upstream_error"),
        ("deflate", b"\xff\xff\xff\xff", "upstream_error"),
    ],
)
async def test_a_compressed_answer_cannot_grow_over_its_limit(coding: str, body: bytes, code: str) -> None:
    """SSRF-40"""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = await _answer(response(body, headers={"content-encoding": coding}))
    assert error.code == code
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024


async def test_a_compressed_answer_within_its_limit_is_read() -> None:
    """SSRF-40: `identity` is asked for, and what comes compressed all the same is borne."""
    import gzip
    import zlib

    async with guarded() as (box, server, _):
        squeezed = zlib.compressobj(wbits=-15)
        for coding, body in (
            ("gzip", gzip.compress(b'{"a":1}', mtime=0)),
            ("deflate", zlib.compress(b'{"a":1}')),
            ("deflate", squeezed.compress(b'{"a":1}') + squeezed.flush()),
        ):
            server.reply("/z", body, headers={"content-encoding": coding})
            assert (await call(box, "web.org.main.http.get", {"path": "/z"})).value == {"a": 1}
        assert server.seen[0].header("accept-encoding") == "identity"


async def _endless(seen: Seen, reader: Any, writer: Any) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        await writer.drain()


async def test_an_endless_answer_stops_at_its_limit() -> None:
    """SSRF-41"""
    assert (await _answer(_endless)).code == "too_large"


def _drip(prefix: bytes) -> Any:
    async def drip(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(prefix)
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    return drip


async def _silence(seen: Seen, reader: Any, writer: Any) -> None:
    await reader.read()


@pytest.mark.parametrize(
    "script",
    [_drip(b"HTTP/1.1 200 OK\r\n\r\n"), _drip(b"HTTP/1.1 200 OK\r\nx-slow: "), _silence],
    ids=["body", "headers", "silence"],
)
async def test_a_dripping_or_silent_server_is_left_at_the_total_deadline(script: Any) -> None:
    """SSRF-41 SSRF-42"""
    async with upstream() as server, toolbox(tool_timeout_s=0.4) as box:
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        server.answers["/"] = script
        with pytest.raises(ToolError) as caught, anyio.fail_after(10):
            await call(box, "web.org.main.http.get", {"path": "/"})
        assert caught.value.code == "upstream_timeout"


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: 1\r\n" % one for one in range(10_000)),
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * MIB + b"\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"set-cookie: a=1\r\n" * 101,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 1000 + b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n",
        b"ICY 200 OK\r\n",
    ],
    ids=["many", "huge", "cookies", "continue", "hints", "switch", "not-http"],
)
async def test_a_flood_of_headers_is_an_upstream_error(head: bytes) -> None:
    """SSRF-43"""
    assert (await _answer(head + b"content-length: 0\r\n\r\n")).code == "upstream_error"


async def _short(seen: Seen, reader: Any, writer: Any) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello")
    writer.close()


@pytest.mark.parametrize(
    "raw",
    [
        _short,
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"f" * 18 + b"\r\nhello",
    ],
    ids=["short", "negative", "two", "chunk", "endless chunk"],
)
async def test_a_wrong_length_is_an_upstream_error(raw: Any) -> None:
    """SSRF-44"""
    assert (await _answer(raw)).code == ("upstream_unreachable" if raw is _short else "upstream_error")


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    """SSRF-44"""

    async def old(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\nhello")
        writer.close()

    async with guarded() as (box, server, _):
        server.answers["/old"] = old
        assert (await call(box, "web.org.main.http.get", {"path": "/old"})).value == "hello"


async def test_bytes_behind_an_answer_never_reach_the_next_caller() -> None:
    """SSRF-44 SSRF-45"""
    async with guarded() as (box, server, _):
        server.answers["/extra"] = response("mine") + response("smuggled")
        server.answers["/twenty"] = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n" + b"x" * 20
        for path in ("/extra", "/twenty"):
            before = server.connections
            await call(box, "web.org.main.http.get", {"path": path})
            answer = await call(box, "web.org.main.http.get", {"path": "/next"})
            assert answer.value["target"] == "/next"
            assert server.connections > before


async def test_an_error_names_no_internal_address() -> None:
    """SSRF-14 with invariant G8: what a caller reads holds neither the address nor a path of this machine."""
    async with guarded(inner_test=[["10.1.2.3"]]) as (box, _, _):
        with pytest.raises(ExecutorError) as caught:
            await box.add_http("b", ["http://inner.test"])
        shown = str(caught.value.as_dict())
        assert "10.1.2.3" not in shown
        assert os.getcwd() not in shown


async def test_an_introspection_of_fifty_mebibytes_stops_at_its_limit() -> None:
    """SSRF-54: over raw HTTP, which is how a GraphQL endpoint is reached without a description of its own."""
    async with guarded() as (box, server, _):
        written = 0

        async def huge(seen: Seen, reader: Any, writer: Any) -> None:
            nonlocal written
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + b'{"data":{"__schema":"')
            for _ in range(50):
                writer.write(b"x" * MIB)
                await writer.drain()
                written += MIB

        server.answers["/graphql"] = huge
        for head in (huge, b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 52428800\r\n\r\n"):
            server.answers["/graphql"] = head
            with pytest.raises(ToolError) as caught:
                await call(
                    box, "web.org.main.http.request", {"method": "POST", "path": "/graphql", "body": {"query": "{}"}}
                )
            assert caught.value.code == "too_large"
        assert written < 40 * MIB


async def test_what_a_graphql_endpoint_answers_and_is_asked_is_data_within_limits() -> None:
    """SSRF-54: a field named __proto__, types that point at themselves, a flood of aliases, a query of depth 1000."""
    async with guarded() as (box, server, _):
        cyclic = {"data": {"__proto__": {"isAdmin": True}, "a": {"ofType": {"name": "A", "fields": [{"type": "A"}]}}}}
        server.reply("/graphql", cyclic)
        request = {"method": "POST", "path": "/graphql"}
        flood = "{" + " ".join(f"a{n}: me {{ id }}" for n in range(10_000)) + "}"
        batch = [{"query": "{ me { id } }"}] * 1000
        for body in ({"query": flood}, {"query": "{a" * 1000 + "}" * 1000}, batch):
            outcome = await call(box, "web.org.main.http.request", request | {"body": body})
            assert outcome.value == cyclic
        assert json.loads(server.seen[0].body) == {"query": flood}
        server.answers["/graphql"] = response(b'{"data":' * 5000 + b"1" + b"}" * 5000)
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.request", request | {"body": {}})
        assert caught.value.code == "too_large"
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.request", request | {"body": {"query": "x" * 2 * MIB}})
        assert caught.value.code == "too_large"


async def test_five_hundred_calls_to_a_slow_host_keep_nobody_else_waiting() -> None:
    """SSRF-58"""
    async with upstream() as slow, upstream() as quick, toolbox(connections_per_host=8) as box:
        await box.add_http("slow", [slow.base], allow_private=["127.0.0.1"])
        await box.add_http("quick", [quick.base], allow_private=["127.0.0.1"])
        full = asyncio.Event()

        async def waiting(seen: Seen, reader: Any, writer: Any) -> None:
            if len(slow.seen) >= 8:
                full.set()
            await slow.released.wait()
            writer.write(response({}))

        slow.answers["/"] = waiting
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(500):
                    group.start_soon(call, box, "slow.org.main.http.get", {"path": "/"})
                await full.wait()
                for _ in range(20):
                    assert (await call(box, "quick.org.main.http.get", {"path": "/x"})).value["target"] == "/x"
                assert (slow.connections, len(slow.seen)) == (8, 8)
                slow.released.set()
        assert len(slow.seen) == 500
        assert slow.connections == 8
