"""HTTP/1.1 on one connection: hypercorn's protocol without its other protocols.

What is refused here never reaches the application: a head that two parsers could read differently (bare line feeds,
folded headers), a head over its size, an HTTP version other than 1.0 and 1.1. An `Upgrade` header is ignored, as
RFC 9110 §7.8 allows, so that neither h2c nor a WebSocket is ever negotiated and no 101 is ever sent.
"""

from __future__ import annotations

import json
from typing import Any, Final

import h11
from hypercorn.events import Closed, RawData, Updated
from hypercorn.protocol.events import Body, EndBody, Request, Response, StreamClosed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream

HEAD_BYTES: Final = 16 * 1024
REQUEST_LINE_BYTES: Final = 8 * 1024
HEADERS: Final = 100

_REFUSALS: Final[dict[int, tuple[str, str]]] = {
    400: ("invalid_request", "the request is not well-formed HTTP/1.1"),
    414: ("uri_too_long", f"the request line is longer than {REQUEST_LINE_BYTES} bytes"),
    431: ("headers_too_large", f"the headers are larger than {HEAD_BYTES} bytes, or more than {HEADERS}"),
    501: ("not_implemented", "no transfer coding but chunked is understood"),
    505: ("version_not_supported", "only HTTP/1.0 and HTTP/1.1 are spoken"),
}


def head_refusal(data: bytes) -> int | None:
    """The status to refuse a request's head with, or None when it is sound or not yet complete.

    `data` starts at the head. RFC 9112 §2.2 lets a server treat a bare LF as a line end, and §5.2 lets it refuse
    folded headers; both are refused, since a proxy in front may have read them differently.
    """
    end = data.find(b"\r\n\r\n")
    head = data if end < 0 else data[: end + 2]
    line = head.find(b"\r\n")
    if (line < 0 and len(head) > REQUEST_LINE_BYTES) or line > REQUEST_LINE_BYTES:
        return 414
    if len(head) > HEAD_BYTES or head.count(b"\r\n") > HEADERS + 1:
        return 431
    if head.count(b"\n") != head.count(b"\r\n") or b"\r\n " in head or b"\r\n\t" in head:
        return 400
    return None


class EdgeProtocol(H11Protocol):
    """One connection's requests, one after another. `max_body` bounds what a `100 Continue` invites."""

    max_body: int = 0
    _held: bytes = b""
    _handling: bool = False

    async def initiate(self) -> None:
        await self.can_read.set()

    async def _check_protocol(self, event: h11.Request) -> None:
        """Nothing is negotiated: hypercorn would answer `Upgrade: h2c` with a 101 here."""

    async def _create_stream(self, request: h11.Request) -> None:
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=list(request.headers),
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii"),
                raw_path=request.target,
                state=self.connection_state,
            )
        )
        self.keep_alive_requests += 1

    async def _handle_events(self) -> None:
        if self._handling:
            return
        self._handling = True
        try:
            await self._take_events()
        finally:
            self._handling = False

    async def _take_events(self) -> None:
        connection = self.connection
        assert isinstance(connection, h11.Connection)
        while True:
            if connection.their_state is h11.IDLE and await self._refuse_head(connection):
                return
            try:
                event = connection.next_event()
            except h11.RemoteProtocolError as error:
                await self._refuse(error.error_status_hint)
                return
            if isinstance(event, h11.Request):
                await self.send(Updated(idle=False))
                if event.http_version not in (b"1.0", b"1.1"):
                    await self._refuse(505)
                    return
                await self._create_stream(event)
                if connection.they_are_waiting_for_100_continue and self._body_is_welcome(event):
                    await self._send_h11_event(h11.InformationalResponse(status_code=100, headers=[]))
            elif event is h11.PAUSED:
                # A pipelined request waits in h11's buffer until `_maybe_recycle` comes back for it.
                if len(connection.trailing_data[0]) > HEAD_BYTES:
                    await self.can_read.clear()
                return
            elif event is h11.NEED_DATA or isinstance(event, h11.ConnectionClosed) or self.stream is None:
                return
            elif isinstance(event, h11.Data):
                await self.stream.handle(Body(stream_id=STREAM_ID, data=bytes(event.data)))
            elif isinstance(event, h11.EndOfMessage):
                await self.stream.handle(EndBody(stream_id=STREAM_ID))

    def _body_is_welcome(self, request: h11.Request) -> bool:
        lengths = [value for name, value in request.headers if name == b"content-length"]
        return not lengths or int(lengths[0]) <= self.max_body

    async def _refuse_head(self, connection: h11.Connection) -> bool:
        data = connection.trailing_data[0]
        status = head_refusal(data) if data else None
        if status is not None:
            await self._refuse(status)
        return status is not None

    async def _refuse(self, status: int) -> None:
        if self.connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self._send_error_response(status)
        await self.send(Closed())

    async def _send_error_response(self, status_code: int) -> None:
        status = status_code if status_code in _REFUSALS else 400
        code, message = _REFUSALS[status]
        body = json.dumps({"error": {"code": code, "message": message}}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *self.config.response_headers("h11"),
        ]
        data = self.connection.send(h11.Response(status_code=status, headers=headers))
        data += self.connection.send(h11.Data(data=body))
        data += self.connection.send(h11.EndOfMessage())
        await self.send(RawData(data=data))

    async def stream_send(self, event: StreamEvent) -> None:
        """Head and first body part leave in one write: one packet for a short answer."""
        if isinstance(event, Response):
            headers = [*event.headers, *self.config.response_headers("h11")]
            if self.context.terminated.is_set():
                headers.append((b"connection", b"close"))
            self._held = self._bytes_of(h11.Response(headers=headers, status_code=event.status_code))
        elif isinstance(event, Body):
            await self._write(self._bytes_of(h11.Data(data=event.data)))
        elif isinstance(event, EndBody):
            await self._write(self._bytes_of(h11.EndOfMessage()))
        elif isinstance(event, StreamClosed):
            await self._maybe_recycle()

    async def _write(self, data: bytes) -> None:
        data, self._held = self._held + data, b""
        if data:
            await self.send(RawData(data=data))

    def _bytes_of(self, event: Any) -> bytes:
        try:
            data = self.connection.send(event)
        except h11.LocalProtocolError:
            # The peer broke the protocol while the application was answering: there is nobody left to answer.
            if self.connection.their_state is not h11.ERROR:
                raise
            return b""
        return bytes(data or b"")

    async def _maybe_recycle(self) -> None:
        await super()._maybe_recycle()
        if self.connection.our_state is h11.IDLE and self.connection.trailing_data[0]:
            await self._handle_events()
