"""HTTP/1.1 to one origin over one stream: every size bounded while it arrives, nothing followed, nothing kept.

Built on h11 rather than httpcore2 because a kept connection must be dropped when an answer has bytes behind it: a pool
that keeps it hands one caller's answer to the next (seen with httpcore2 2.16).
"""

from __future__ import annotations

import re
import select
import time
import zlib
from collections.abc import AsyncGenerator, Sequence
from typing import Final, NamedTuple, NoReturn

import anyio
import h11
from anyio.abc import ByteStream, SocketAttribute

from bridge.streaming import Stream
from bridge.wire.errors import ToolError
from catalog.model import Cut

MAX_HEADER_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 100
MAX_REASON: Final = 200
MAX_INFORMATIONAL: Final = 16
CHUNK: Final = 64 * 1024

MAX_CHUNK: Final = 1 << 40
"""Bytes that no chunk has: one that says more never ends."""
_CHUNK_HEAD: Final = re.compile(rb"\A[0-9A-Fa-f]{1,20}[ \t]*(;[^\r\n]{0,1024})?\r?\Z")
"""The beginning of a chunk's first line. Nothing else can become one, however long one waits (RFC 9112 7.1)."""
_ZLIB: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}

Fields = Sequence[tuple[bytes, bytes]]


class Received(NamedTuple):
    """An answer: header names in lower case, the body whole and without the content coding that the headers name.

    `cut` says why reading stopped, where the body is the beginning of a stream."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    reason: str = ""
    cut: Cut | None = None


class Stale(Exception):
    """Raised when a kept connection ended before a byte of the answer came."""


class Connection:
    """A stream to `origin` that carries one exchange after another. Close it after any exception."""

    def __init__(self, stream: ByteStream, origin: str) -> None:
        self._stream = stream
        self._socket = stream.extra(SocketAttribute.raw_socket, None)  # noqa: S610 - not Django
        self._origin = origin
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEADER_BYTES)
        self._received = 0
        self._ended = False
        self._used = False
        self.idle_since = 0.0

    async def exchange(
        self, method: str, target: bytes, headers: Fields, body: bytes, limit: int, deadline: float | None = None
    ) -> Received:
        """Send one request, its headers exactly `headers`, and read its answer, at most `limit` bytes of body.

        Of a stream of records the beginning is read, within bounds of its own and before the `deadline` of the call.

        Raises ToolError (upstream_error, upstream_unreachable, too_large) or Stale.
        """
        self._received = 0
        kept, self._used = self._used, True
        try:
            await self._send(method, target, headers, body)
            response = await self._head()
            fields = list(response.headers)
            stream = Stream.of(fields, limit, deadline) if method != "HEAD" else None
            if stream is not None:
                records, cut = await self._records(stream)
                return Received(response.status_code, fields, records, _reason(response), cut)
            data = await self._body(response, limit, method)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, h11.RemoteProtocolError) as e:
            if kept and self._received == 0:
                raise Stale from e
            self._refuse(e)
        decoded = _decoded(data, fields, limit, self._origin)
        return Received(response.status_code, fields, decoded, _reason(response))

    async def begin(self, method: str, target: bytes, headers: Fields, body: bytes) -> Received:
        """Send one request and read the head of its answer; `parts` reads the body. Raises as `exchange` does."""
        self._received = 0
        kept, self._used = self._used, True
        try:
            await self._send(method, target, headers, body)
            response = await self._head()
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, h11.RemoteProtocolError) as e:
            if kept and self._received == 0:
                raise Stale from e
            self._refuse(e)
        fields = list(response.headers)
        if any(name == b"content-encoding" and value.strip().lower() != b"identity" for name, value in fields):
            raise self._broken("has a content coding that was not asked for")
        return Received(response.status_code, fields, b"", _reason(response))

    async def parts(self) -> AsyncGenerator[bytes]:
        """The body of what was begun, as it comes; whoever reads it counts. Raises ToolError."""
        try:
            while isinstance(event := await self._event(), h11.Data):
                yield bytes(event.data)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, h11.RemoteProtocolError) as e:
            self._refuse(e)
        if not isinstance(event, h11.EndOfMessage):
            raise self.gone()

    async def _send(self, method: str, target: bytes, headers: Fields, body: bytes) -> None:
        out = self._h11.send(h11.Request(method=method, target=target, headers=list(headers))) or b""
        if body:
            out += self._h11.send(h11.Data(data=body)) or b""
        out += self._h11.send(h11.EndOfMessage()) or b""
        try:
            await self._stream.send(out)
        except (OSError, anyio.BrokenResourceError):
            # A server may answer and close before it has read all of the body; the answer is still worth reading.
            if not body:
                raise

    async def _head(self) -> h11.Response:
        for _ in range(MAX_INFORMATIONAL):
            event = await self._event()
            if isinstance(event, h11.Response):
                if len(event.headers) > MAX_HEADERS:
                    raise self._broken(f"has more than {MAX_HEADERS} headers")
                return event
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                break
        raise self._broken("does not begin with a status that was asked for")

    async def _body(self, response: h11.Response, limit: int, method: str) -> bytes:
        declared = next((value for name, value in response.headers if name == b"content-length"), b"0")
        if method != "HEAD" and int(declared) > limit:
            raise too_large(self._origin, limit)
        data = bytearray()
        while True:
            event = await self._event()
            if isinstance(event, h11.Data):
                data += event.data
                if len(data) > limit:
                    raise too_large(self._origin, limit)
            elif isinstance(event, h11.EndOfMessage):
                return bytes(data)
            else:
                raise self.gone()

    async def _records(self, stream: Stream) -> tuple[bytes, Cut | None]:
        """The beginning of a stream, or all of it when it ends in time."""
        data = bytearray()
        with anyio.move_on_after(stream.bounds.seconds):
            while isinstance(event := await self._event(), h11.Data):
                data += event.data
                if (cut := stream.over(data)) is not None:
                    return bytes(data), cut
            if isinstance(event, h11.EndOfMessage):
                return bytes(data), None
            raise self.gone()
        return bytes(data), stream.late()

    async def _event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            self._check_framing()
            try:
                chunk = await self._stream.receive(CHUNK)
                self._received += len(chunk)
            except anyio.EndOfStream:
                self._ended, chunk = True, b""
            self._h11.receive_data(chunk)
        return event

    def _check_framing(self) -> None:
        """Refuse at once what can no longer become a chunk; h11 waits for the end of its line. Between chunks alone
        does h11 keep bytes back, and in the trailers, which are headers and not meant here."""
        if self._h11.their_state is h11.SEND_BODY and getattr(self._h11._reader, "_reading_trailer", True) is False:
            if getattr(self._h11._reader, "_bytes_in_chunk", 0) > MAX_CHUNK:
                raise h11.RemoteProtocolError("a chunk larger than anything")
            kept = self._h11.trailing_data[0]
            if kept and not _CHUNK_HEAD.match(kept):
                raise h11.RemoteProtocolError("illegal chunk header")

    def _refuse(self, error: Exception) -> NoReturn:
        if isinstance(error, h11.RemoteProtocolError) and not self._ended:
            raise self._broken("is not well-formed HTTP") from None
        raise self.gone() from None

    def gone(self) -> ToolError:
        """The connection ended, however it did, before there was an answer: what became of the request is not known."""
        when = "in the middle of its answer" if self._received else "before it answered"
        return ToolError("upstream_unreachable", f"{self._origin} closed the connection {when}.")

    def _broken(self, what: str) -> ToolError:
        return ToolError("upstream_error", f"The answer of {self._origin} {what}.", retryable=False)

    def reusable(self) -> bool:
        """Whether the next exchange may begin: this one is complete and nothing came behind it."""
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            return False
        if self._h11.trailing_data[0] or self._readable():
            return False
        self._h11.start_next_cycle()
        self.idle_since = time.monotonic()
        return True

    def alive(self) -> bool:
        """Whether an idle connection can still be used. One that has something to read was closed or abused."""
        return not self._readable()

    def _readable(self) -> bool:
        if self._socket is None or (descriptor := self._socket.fileno()) < 0:
            return True
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))

    async def close(self) -> None:
        await anyio.aclose_forcefully(self._stream)


def too_large(origin: str, limit: int) -> ToolError:
    return ToolError(
        "too_large",
        f"The answer of {origin} is larger than {limit} bytes.",
        hint="Ask for less: a page, a range, or fewer fields.",
        details={"limit": limit},
    )


def _reason(response: h11.Response) -> str:
    return bytes(response.reason).decode("latin-1")[:MAX_REASON]


def _decoded(data: bytes, fields: Fields, limit: int, origin: str) -> bytes:
    """The body without its content coding. `identity` was asked for; gzip and deflate are borne, within the limit."""
    values = [value.decode("latin-1") for name, value in fields if name == b"content-encoding"]
    codings = [coding.strip().lower() for value in values for coding in value.split(",")]
    codings = [coding for coding in codings if coding not in ("", "identity")]
    if not codings or not data:
        return data
    if len(codings) > 1 or codings[0] not in _ZLIB:
        raise ToolError(
            "upstream_error", f"The answer of {origin} has a content coding that is not read.", retryable=False
        )
    for bits in (_ZLIB[codings[0]], -15):
        decoder = zlib.decompressobj(bits)
        try:
            out = decoder.decompress(data, limit + 1)
        except zlib.error:
            if codings[0] == "deflate":
                continue
            break
        if len(out) > limit:
            raise too_large(origin, limit)
        if decoder.eof:
            return out
        break
    raise ToolError("upstream_error", f"The answer of {origin} is not what its content coding says.", retryable=False)
