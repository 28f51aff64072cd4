"""Server-sent events (WHATWG HTML §9.2): a run's events as they happen, with ids to resume from and a heartbeat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from starlette.types import Receive, Scope, Send

from executor.http.answers import encode
from executor.http.presence import while_present
from runtime.results import RunEvent

HEARTBEAT_S: Final = 15.0
HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def frame(event: RunEvent) -> bytes:
    """JSON has no raw line breaks, so that one data line always holds the whole."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.type.encode(), encode(event.data))


class EventStream:
    """An ASGI answer that sends events until the last one, or until the client leaves."""

    def __init__(self, events: AsyncIterator[RunEvent], *, heartbeat: float = HEARTBEAT_S) -> None:
        self._events = events
        self._heartbeat = heartbeat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        await while_present(receive, self._send_all(send))

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.body", "body": b": events follow\n\n", "more_body": True})
        coming = asyncio.ensure_future(anext(self._events, None))
        try:
            while True:
                done, _ = await asyncio.wait([coming], timeout=self._heartbeat)
                if not done:
                    await send({"type": "http.response.body", "body": b": still here\n\n", "more_body": True})
                    continue
                event = coming.result()
                if event is None:
                    break
                await send({"type": "http.response.body", "body": frame(event), "more_body": True})
                coming = asyncio.ensure_future(anext(self._events, None))
        finally:
            coming.cancel()
            await asyncio.wait([coming])
            if isinstance(self._events, AsyncGenerator):
                await self._events.aclose()
        await send({"type": "http.response.body", "body": b""})
