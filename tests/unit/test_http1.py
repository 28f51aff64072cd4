"""HTTP/1.1 over one stream: what is an answer, what is none, and when the connection may carry another exchange."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Iterator
from typing import Any

import anyio
import h11
import pytest
from anyio.abc import SocketAttribute

from bridge import http1
from bridge.http1 import Connection, Stale
from bridge.wire.errors import ToolError


def gzipped(data: bytes, level: int = 9) -> bytes:
    """Without the time of day, which would be in the name of a case."""
    return gzip.compress(data, level, mtime=0)


pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\n"
LIMIT = 100


class Scripted:
    """A stream that says its parts one after another, then that it has ended; an exception is raised in its turn."""

    def __init__(self, *parts: bytes | Exception, sends: Exception | None = None, raw: Any = None) -> None:
        self._parts, self._sends, self._raw = list(parts), sends, raw
        self.sent, self.closed = b"", False

    def extra(self, key: object, default: object) -> object:
        return self._raw if key is SocketAttribute.raw_socket else default

    async def receive(self, most: int) -> bytes:
        if not self._parts:
            raise anyio.EndOfStream
        part = self._parts.pop(0)
        if isinstance(part, Exception):
            raise part
        return part

    async def send(self, data: bytes) -> None:
        if self._sends is not None:
            raise self._sends
        self.sent += data

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def connection(*parts: bytes | Exception, **more: Any) -> Connection:
    return Connection(Scripted(*parts, **more), "https://a.test")  # type: ignore[arg-type]


async def exchange(over: Connection, method: str = "GET", body: bytes = b"", limit: int = LIMIT) -> http1.Received:
    fields = [(b"host", b"a.test")] + ([(b"content-length", str(len(body)).encode())] if body else [])
    return await over.exchange(method, b"/x", fields, body, limit)


async def refused(*parts: bytes | Exception, method: str = "GET", limit: int = LIMIT) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await exchange(connection(*parts), method, limit=limit)
    return caught.value


async def test_an_answer_is_its_status_its_headers_and_its_body() -> None:
    over = connection(b"HTTP/1.1 201 Made it\r\nX-One: 1\r\nContent-Le", b"ngth: 2\r\n\r\no", b"k")
    assert await exchange(over, "POST", b"in") == (
        *(201, [(b"x-one", b"1"), (b"content-length", b"2")], b"ok", "Made it", None),
    )
    assert over._stream.sent == b"POST /x HTTP/1.1\r\nhost: a.test\r\ncontent-length: 2\r\n\r\nin"  # type: ignore[attr-defined]


async def test_a_reason_has_its_bound() -> None:
    for length in (http1.MAX_REASON, http1.MAX_REASON + 1):
        over = connection(b"HTTP/1.1 200 " + b"r" * length + b"\r\ncontent-length: 0\r\n\r\n")
        assert (await exchange(over)).reason == "r" * http1.MAX_REASON


@pytest.mark.parametrize("headers", [http1.MAX_HEADERS, http1.MAX_HEADERS + 1])
async def test_headers_are_counted(headers: int) -> None:
    """SSRF-43"""
    lines = b"".join(b"h%d: 1\r\n" % number for number in range(headers - 1))
    answer = OK + b"content-length: 0\r\n" + lines + b"\r\n"
    if headers > http1.MAX_HEADERS:
        error = await refused(answer)
        assert (error.code, error.retryable) == ("upstream_error", False)
        assert "more than 100 headers" in str(error)
    else:
        assert len((await exchange(connection(answer))).headers) == headers


@pytest.mark.parametrize("times", [http1.MAX_INFORMATIONAL - 1, http1.MAX_INFORMATIONAL])
async def test_answers_before_the_answer_are_counted(times: int) -> None:
    over = connection(b"HTTP/1.1 103 Early\r\n\r\n" * times + OK + b"content-length: 0\r\n\r\n")
    if times < http1.MAX_INFORMATIONAL:
        assert (await exchange(over)).status == 200
    else:
        with pytest.raises(ToolError, match="does not begin with a status"):
            await exchange(over)


async def test_a_change_of_protocol_was_not_asked_for() -> None:
    error = await refused(b"HTTP/1.1 101 Switching\r\n\r\n")
    assert error.code == "upstream_error"


@pytest.mark.parametrize("length", [LIMIT, LIMIT + 1])
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "not declared"])
async def test_a_body_is_read_up_to_the_limit(length: int, declared: bool) -> None:
    head = b"content-length: %d\r\n" % length if declared else b"connection: close\r\n"
    parts = (OK + head + b"\r\n", b"x" * 60, b"x" * (length - 60))
    if length > LIMIT:
        # What is declared is refused before any of it is read.
        error = await refused(*parts[: 1 if declared else 3])
        assert (error.code, error.details) == ("too_large", {"limit": LIMIT})
    else:
        assert (await exchange(connection(*parts))).body == b"x" * length


async def test_the_length_of_a_body_that_does_not_come_is_no_matter() -> None:
    over = connection(OK + b"content-length: 5000\r\n\r\n")
    assert (await exchange(over, "HEAD")).body == b""


@pytest.mark.parametrize(
    "parts",
    [
        (b"SSH-2.0-x\r\n\r\n",),
        (b"HTTP/1.1 2000 OK\r\n\r\n",),
        (OK + b"transfer-encoding: chunked\r\n\r\nzz",),
        (OK + b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n" % (http1.MAX_CHUNK + 1), b"a" * 2 * LIMIT),
        (OK + b"x: " + b"y" * http1.MAX_HEADER_BYTES, b"y"),
    ],
)
async def test_what_is_not_http_is_the_servers_fault(parts: tuple[Any, ...]) -> None:
    """SSRF-44"""
    error = await refused(*parts)
    assert (error.code, error.retryable) == ("upstream_error", False)


@pytest.mark.parametrize("begun", [b"zz", b"-1", b"1" * 21, b"3\r\nabcx", b"%x\r\n" % (http1.MAX_CHUNK + 1)])
async def test_what_can_no_longer_become_a_chunk_is_not_waited_for(begun: bytes) -> None:
    """SSRF-44: nothing more is read, which could be for ever."""
    over = connection(OK + b"transfer-encoding: chunked\r\n\r\n" + begun, b"more")
    with pytest.raises(ToolError) as caught:
        await exchange(over)
    assert caught.value.code == "upstream_error"
    assert over._stream._parts == [b"more"]  # type: ignore[attr-defined]


async def test_a_chunk_as_large_as_a_chunk_may_be_is_waited_for() -> None:
    parts = (OK + b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n" % http1.MAX_CHUNK, b"x" * 60, b"x" * 60)
    assert (await refused(*parts)).code == "too_large"


@pytest.mark.parametrize("chunk", [b"3", b"3;a=b", b"3 "])
async def test_a_chunks_line_may_come_in_parts(chunk: bytes) -> None:
    over = connection(
        OK + b"transfer-encoding: chunked\r\n\r\n" + chunk, b"\r\nabc\r\n0\r\n", b"tra", b"iler: 1\r\n\r\n"
    )
    assert (await exchange(over)).body == b"abc"


@pytest.mark.parametrize(
    "failure", [None, ConnectionResetError(), anyio.BrokenResourceError(), anyio.ClosedResourceError()]
)
async def test_who_goes_before_answering_is_unreachable(failure: Exception | None) -> None:
    error = await refused(*([failure] if failure else []))
    assert error.code == "upstream_unreachable"


async def test_a_kept_connection_that_ends_before_an_answer_is_stale_and_a_new_one_is_not(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    answer = OK + b"content-length: 2\r\n\r\nok"
    for last, raised in (((), Stale), ((b"HTTP/1.1",), ToolError)):
        over = connection(answer, *last, raw=pair[0])
        await exchange(over)
        assert over.reusable()
        with pytest.raises(raised):
            await exchange(over)


async def test_what_was_begun_on_a_kept_connection_is_stale_as_well(pair: tuple[socket.socket, socket.socket]) -> None:
    for last, raised in (((), Stale), ((b"HTTP/1.1",), ToolError)):
        over = connection(OK + b"content-length: 2\r\n\r\nok", *last, raw=pair[0])
        await exchange(over)
        assert over.reusable()
        with pytest.raises(raised):
            await over.begin("GET", b"/", [(b"host", b"a.test")], b"")


async def test_an_answer_to_a_body_that_was_not_read_whole_is_worth_reading() -> None:
    answer = b"HTTP/1.1 413 Too much\r\ncontent-length: 0\r\n\r\n"
    assert (await exchange(connection(answer, sends=anyio.BrokenResourceError()), "POST", b"long")).status == 413
    with pytest.raises(ToolError) as caught:
        await exchange(connection(answer, sends=anyio.BrokenResourceError()))
    assert caught.value.code == "upstream_unreachable"


async def test_a_connection_is_used_again_only_when_nothing_came_behind_the_answer(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """SSRF-45"""
    ours, theirs = pair
    answer = OK + b"content-length: 2\r\n\r\nok"
    fresh = connection(answer, answer, raw=ours)
    assert not fresh.reusable()
    assert (await exchange(fresh)).body == b"ok"
    assert fresh.reusable()
    assert fresh.idle_since > 0
    assert (await exchange(fresh)).body == b"ok"
    behind = connection(answer + b"HTTP/1.1 200 OK\r\n", raw=ours)
    await exchange(behind)
    assert not behind.reusable()
    closing = connection(OK + b"connection: close\r\n\r\nok", raw=ours)
    await exchange(closing)
    assert not closing.reusable()
    unseen = connection(answer)
    await exchange(unseen)
    assert not unseen.reusable()
    half = connection(OK + b"content-length: 5\r\n\r\nabc", raw=ours)
    with pytest.raises(ToolError):
        await exchange(half)
    assert not half.reusable()
    much = connection(OK + b"content-length: 200\r\n\r\n", raw=ours)
    with pytest.raises(ToolError):
        await exchange(much)
    assert not much.reusable()
    later = connection(answer, raw=ours)
    await exchange(later)
    assert later.alive()
    theirs.send(b"HTTP/1.1 200 OK\r\n")
    assert not later.alive()
    assert not later.reusable()
    ours.close()
    assert not later.alive()


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        (b"gzip", gzipped(b"hello")),
        (b"X-GZIP", gzipped(b"hello")),
        (b"deflate", zlib.compress(b"hello")),
        (b"deflate", zlib.compress(b"hello")[2:-4]),
        (b"identity", b"hello"),
        (b" , identity", b"hello"),
        (b"identity, gzip", gzipped(b"hello")),
    ],
)
async def test_a_content_coding_is_undone(coding: bytes, packed: bytes) -> None:
    answer = OK + b"content-encoding: %s\r\ncontent-length: %d\r\n\r\n" % (coding, len(packed)) + packed
    assert (await exchange(connection(answer))).body == b"hello"


@pytest.mark.parametrize(
    ("coding", "packed", "code"),
    [
        (b"br", b"x", "upstream_error"),
        (b"gzip, gzip", gzipped(gzipped(b"a")), "upstream_error"),
        (b"gzip", b"no gzip", "upstream_error"),
        (b"gzip", gzipped(b"hello")[:-4], "upstream_error"),
        (b"gzip", zlib.compress(b"hello")[2:-4], "upstream_error"),
        (b"deflate", b"\xff\xff\xff", "upstream_error"),
        (b"gzip", gzipped(b"x" * (LIMIT + 1)), "too_large"),
        (b"gzip", gzipped(b"x" * 50_000_000, 9)[:90], "too_large"),
    ],
)
async def test_a_content_coding_is_not_believed(coding: bytes, packed: bytes, code: str) -> None:
    """SSRF-40: what it unpacks to has the limit of what was sent."""
    error = await refused(OK + b"content-encoding: %s\r\ncontent-length: %d\r\n\r\n" % (coding, len(packed)) + packed)
    assert (error.code, error.retryable) == (code, False)


async def test_what_unpacks_to_the_limit_exactly_is_taken() -> None:
    packed = gzipped(b"x" * LIMIT)
    over = connection(OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed) + packed)
    assert (await exchange(over)).body == b"x" * LIMIT


async def test_nothing_is_unpacked_to_nothing() -> None:
    assert (await exchange(connection(OK + b"content-encoding: br\r\ncontent-length: 0\r\n\r\n"))).body == b""


async def test_a_body_that_was_begun_comes_in_parts_and_whole() -> None:
    over = connection(OK + b"content-length: 4\r\ncontent-encoding: identity\r\n\r\n", b"ab", b"cd")
    received = await over.begin("GET", b"/", [(b"host", b"a.test")], b"")
    assert (received.status, received.body) == (200, b"")
    assert [part async for part in over.parts()] == [b"ab", b"cd"]


async def _read_in_parts(over: Connection) -> None:
    await over.begin("GET", b"/", [(b"host", b"a.test")], b"")
    async for _ in over.parts():
        pass


@pytest.mark.parametrize(
    "parts",
    [
        (OK + b"content-length: 4\r\n\r\n", b"ab"),
        (OK + b"content-length: 4\r\n\r\n", b"ab", ConnectionResetError()),
        (OK + b"content-length: 4\r\n\r\n",),
        (OK + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",),
        (OK + b"conten",),
    ],
    ids=["ended", "reset", "ended at once", "ended between chunks", "ended in the head"],
)
@pytest.mark.parametrize("begun", [True, False])
async def test_an_answer_that_breaks_off_is_none_however_it_does(parts: tuple[Any, ...], begun: bool) -> None:
    """SSRF-44"""
    over = connection(*parts)
    with pytest.raises(ToolError, match="in the middle of its answer") as caught:
        await (_read_in_parts(over) if begun else exchange(over))
    assert (caught.value.code, caught.value.retryable) == ("upstream_unreachable", True)


async def test_a_coding_that_was_not_asked_for_begins_nothing() -> None:
    over = connection(OK + b"content-length: 4\r\ncontent-encoding: gzip\r\n\r\n")
    with pytest.raises(ToolError, match="not asked for"):
        await over.begin("GET", b"/", [(b"host", b"a.test")], b"")


async def test_a_stream_of_records_is_read_as_far_as_its_bounds() -> None:
    head = OK + b"content-type: text/event-stream\r\n\r\n"
    whole = await exchange(connection(head, b"data: 1\n\n", b"data: 2\n\n"))
    assert (whole.body, whole.cut) == (b"data: 1\n\ndata: 2\n\n", None)
    much = await exchange(connection(head, *[b"data: 1\n\n"] * 20), limit=50)
    assert much.cut is not None
    assert len(much.body) < 180
    assert (await exchange(connection(head), "HEAD")).cut is None
    with pytest.raises(ToolError, match="in the middle of its answer"):
        await exchange(
            connection(OK + b"content-type: text/event-stream\r\ncontent-length: 50\r\n\r\n", b"data: 1\n\n")
        )


async def test_a_connection_is_closed() -> None:
    over = connection()
    await over.close()
    assert over._stream.closed  # type: ignore[attr-defined]


def test_h11_says_between_chunks_what_is_looked_at() -> None:
    """The framing is checked by two fields of h11's reader: another version may have others."""
    reader = h11._readers.ChunkedReader()  # type: ignore[attr-defined]
    assert (reader._bytes_in_chunk, reader._reading_trailer) == (0, False)
