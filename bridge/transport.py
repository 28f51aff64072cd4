"""What httpx2 sends through: connections that were vetted, kept apart by grant, few per host.

httpx2 is given the origin alone as the URL of a request, and the raw target beside it, as the `target` extension. It
tidies the path of a URL (`/a/../b` becomes `/b`) and logs the URL at INFO, a credential in the query with it.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final

import anyio
import httpx2

from bridge.dial import Resolver, dial
from bridge.egress import Grant, denied
from bridge.http1 import Connection, Received, Stale
from bridge.orders import Order
from bridge.own import Own
from catalog.origin import Url

IDLE_S: Final = 15.0
IDLE_S_UNSAFE: Final = 2.0
"""A request that must not be sent twice takes only a connection that was used this recently."""
MAX_IDLE: Final = 8
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

ORDER: Final = "executor.order"
RECEIVED: Final = "executor.received"
TARGET: Final = "target"

_Key = tuple[Grant, str]


class Transport(httpx2.AsyncBaseTransport):
    """Sends each request over a connection to an address that its order allows. Closed, it keeps no connection."""

    def __init__(self, resolver: Resolver, own: Own, context: ssl.SSLContext, connections_per_host: int) -> None:
        self._resolver = resolver
        self._own = own
        self._context = context
        self._per_host = connections_per_host
        self._idle: dict[_Key, list[Connection]] = {}
        self._places: dict[str, anyio.Semaphore] = {}
        self._waiting: dict[str, int] = {}
        self._closed = False
        self._swept = time.monotonic()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises ToolError. A safe method is sent again, once, when a kept connection turns out to have been closed."""
        order = request.extensions.get(ORDER)
        if not isinstance(order, Order) or not _is_ordered(request, order.url):
            raise denied("The request is not the one that was checked.")
        body = await request.aread()
        key = order.grant, order.url.origin
        if order.opened:
            # It may stay open for hours: it takes none of the places that calls wait for.
            return await self._open(request, body, order, key)
        async with self._place(key[1]):
            connection = await self._take(request.method, order, key)
            if order.before_sending is not None:
                await self._guarded(connection, order.before_sending)
            try:
                received = await self._run(connection, request, body, order, key)
            except Stale:
                if request.method not in SAFE:
                    raise connection.gone() from None
                received = await self._run(await self._connect(order, key), request, body, order, key)
        return _Response(
            received.status,
            headers=received.headers,
            stream=httpx2.ByteStream(received.body),
            extensions={"reason_phrase": b"", RECEIVED: received},
        )

    async def _open(self, request: httpx2.Request, body: bytes, order: Order, key: _Key) -> httpx2.Response:
        connection = await self._take(request.method, order, key)
        try:
            received = await self._begun(connection, request, body)
        except Stale:
            if request.method not in SAFE:
                raise connection.gone() from None
            connection = await self._connect(order, key)
            received = await self._begun(connection, request, body)
        return _Response(
            received.status,
            headers=received.headers,
            stream=_Body(connection, lambda whole: self._release(connection, key, whole)),
            extensions={"reason_phrase": b"", RECEIVED: received},
        )

    async def _begun(self, connection: Connection, request: httpx2.Request, body: bytes) -> Received:
        try:
            return await connection.begin(request.method, request.extensions[TARGET], request.headers.raw, body)
        except BaseException:
            await connection.close()
            raise

    async def aclose(self) -> None:
        self._closed = True
        kept, self._idle = self._idle, {}
        for connections in kept.values():
            for connection in connections:
                await connection.close()

    async def _guarded(self, connection: Connection, action: Callable[[], Awaitable[None]]) -> None:
        try:
            await action()
        except BaseException:
            await connection.close()
            raise

    async def _run(
        self, connection: Connection, request: httpx2.Request, body: bytes, order: Order, key: _Key
    ) -> Received:
        target: bytes = request.extensions[TARGET]
        try:
            received = await connection.exchange(
                request.method, target, request.headers.raw, body, order.limit, order.deadline
            )
        except BaseException:
            await connection.close()
            raise
        await self._release(connection, key, True)
        return received

    async def _release(self, connection: Connection, key: _Key, whole: bool) -> None:
        """Keep a connection for the next request when its exchange is `whole`, and close it otherwise."""
        idle = self._idle.setdefault(key, [])
        if whole and connection.reusable() and len(idle) < MAX_IDLE and not self._closed:
            idle.append(connection)
        else:
            await connection.close()
        await self._sweep()

    async def _sweep(self) -> None:
        """Close what has been idle too long, a few times a minute."""
        now = time.monotonic()
        if now - self._swept < IDLE_S / 2:
            return
        self._swept = now
        for key in list(self._idle):
            old = [one for one in self._idle[key] if now - one.idle_since >= IDLE_S]
            self._idle[key] = [one for one in self._idle[key] if one not in old]
            if not self._idle[key]:
                del self._idle[key]
            for one in old:
                await one.close()

    async def _take(self, method: str, order: Order, key: _Key) -> Connection:
        idle = self._idle.get(key, [])
        longest = IDLE_S if method in SAFE else IDLE_S_UNSAFE
        while idle:
            connection = idle.pop()
            if time.monotonic() - connection.idle_since < longest and connection.alive():
                return connection
            await connection.close()
        return await self._connect(order, key)

    async def _connect(self, order: Order, key: _Key) -> Connection:
        return Connection(await dial(order.url, order.grant, self._resolver, self._own, self._context), key[1])

    @asynccontextmanager
    async def _place(self, origin: str) -> AsyncIterator[None]:
        """One of the few places that an origin has; a slow host keeps only its own callers waiting."""
        place = self._places.setdefault(origin, anyio.Semaphore(self._per_host, fast_acquire=True))
        self._waiting[origin] = self._waiting.get(origin, 0) + 1
        try:
            async with place:
                yield
        finally:
            self._waiting[origin] -= 1
            if self._waiting[origin] == 0:
                del self._waiting[origin], self._places[origin]


class _Body(httpx2.AsyncByteStream):
    """The body of an answer as it comes. Close it: whatever has been read by then, the connection is given back."""

    def __init__(self, connection: Connection, release: Callable[[bool], Awaitable[None]]) -> None:
        self._connection = connection
        self._release = release
        self._whole = False
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._connection.parts()) as parts:
            async for part in parts:
                yield part
        self._whole = True

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await self._release(self._whole)


class _Response(httpx2.Response):
    """One whose redirect is nobody's business here: httpx2 would read the location even of one it does not follow."""

    @property
    def has_redirect_location(self) -> bool:
        return False


def _is_ordered(request: httpx2.Request, url: Url) -> bool:
    """Whether `request` leads to `url` and nowhere else, byte for byte, and its URL says no more than the origin."""
    return (
        str(request.url) == url.origin
        and request.extensions.get(TARGET) == url.target.encode("ascii")
        and [value for name, value in request.headers.raw if name.lower() == b"host"] == [url.netloc.encode("ascii")]
    )
