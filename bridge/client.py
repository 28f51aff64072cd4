"""Exchanges with many origins: connections kept apart by grant, few per host, none that was not vetted."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from bridge.dial import Resolver, dial, resolve, system_resolver, tls_context
from bridge.egress import Grant
from bridge.http1 import Answer, Connection, Stale
from bridge.wire.errors import ToolError
from catalog.origin import Url

IDLE_S: Final = 15.0
IDLE_S_UNSAFE: Final = 2.0
"""A request that must not be sent twice takes only a connection that was used this recently."""
MAX_IDLE: Final = 8
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_Key = tuple[Grant, str]


class Client:
    """Makes single exchanges. Close it when done; it holds no cookies, follows nothing, reads no environment."""

    def __init__(
        self, *, resolver: Resolver | None = None, ca_file: Path | None = None, connections_per_host: int = 32
    ) -> None:
        self._resolver = resolver or system_resolver
        self._context = tls_context(ca_file)
        self._per_host = connections_per_host
        self._idle: dict[_Key, list[Connection]] = {}
        self._places: dict[str, anyio.Semaphore] = {}
        self._waiting: dict[str, int] = {}
        self._closed = False
        self._swept = time.monotonic()

    async def exchange(
        self,
        method: str,
        url: Url,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        *,
        grant: Grant,
        limit: int,
        before_sending: Callable[[], Awaitable[None]] | None = None,
    ) -> Answer:
        """One request and its answer. `before_sending` runs when the connection stands and before a byte leaves.

        Raises ToolError; the caller sets the deadline. A safe method is sent again, once, when a kept connection
        turns out to have been closed.
        """
        async with self._place(url.origin):
            connection = await self._take(method, url, grant)
            if before_sending is not None:
                await self._guarded(connection, before_sending)
            try:
                return await self._run(connection, method, url, headers, body, grant, limit)
            except Stale:
                if method not in SAFE:
                    raise connection.gone() from None
            connection = Connection(await dial(url, grant, self._resolver, self._context), url.origin)
            return await self._run(connection, method, url, headers, body, grant, limit)

    async def vet(self, url: Url, grant: Grant) -> None:
        """Refuse a host whose addresses may not be reached, before anything is sent to it. A name that does not
        resolve now is let pass: it is checked again at each connection. Raises ToolError(egress_denied)."""
        try:
            await resolve(url.host, url.port, grant, self._resolver)
        except ToolError as e:
            if e.code == "egress_denied":
                raise

    async def _guarded(self, connection: Connection, action: Callable[[], Awaitable[None]]) -> None:
        try:
            await action()
        except BaseException:
            await connection.close()
            raise

    async def _run(
        self,
        connection: Connection,
        method: str,
        url: Url,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        grant: Grant,
        limit: int,
    ) -> Answer:
        try:
            answer = await connection.exchange(method, url, headers, body, limit)
        except BaseException:
            await connection.close()
            raise
        idle = self._idle.setdefault((grant, url.origin), [])
        if connection.reusable() and len(idle) < MAX_IDLE and not self._closed:
            idle.append(connection)
        else:
            await connection.close()
        await self._sweep()
        return answer

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

    async def _take(self, method: str, url: Url, grant: Grant) -> Connection:
        idle = self._idle.get((grant, url.origin), [])
        longest = IDLE_S if method in SAFE else IDLE_S_UNSAFE
        while idle:
            connection = idle.pop()
            if time.monotonic() - connection.idle_since < longest and connection.alive():
                return connection
            await connection.close()
        return Connection(await dial(url, grant, self._resolver, self._context), url.origin)

    @asynccontextmanager
    async def _place(self, origin: str) -> AsyncIterator[None]:
        """One of the few places that an origin has; a slow host keeps only its own callers waiting."""
        place = self._places.setdefault(origin, anyio.Semaphore(self._per_host))
        self._waiting[origin] = self._waiting.get(origin, 0) + 1
        try:
            async with place:
                yield
        finally:
            self._waiting[origin] -= 1
            if self._waiting[origin] == 0:
                del self._waiting[origin], self._places[origin]

    async def close(self) -> None:
        self._closed = True
        kept, self._idle = self._idle, {}
        for connections in kept.values():
            for connection in connections:
                await connection.close()
