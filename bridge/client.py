"""Single exchanges: our headers and no others, nothing followed, no cookie kept, every answer bounded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bridge.dial import Resolver, resolve, system_resolver, tls_context
from bridge.egress import Grant
from bridge.orders import Order
from bridge.own import Own
from bridge.wire.errors import ToolError
from catalog.model import Cut
from catalog.origin import Url

if TYPE_CHECKING:
    from bridge.exchanges import Exchanges

USER_AGENT: Final = "executor"
"""Fixed, so that nothing about this host or version leaves with a request."""


class Answer(NamedTuple):
    """Header names are lower case; the body is decoded, and whole unless `cut` says why it is not."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    reason: str = ""
    cut: Cut | None = None


class Opened:
    """An answer that is still coming. Header names are lower case. Close it, however much of it was read."""

    def __init__(
        self,
        status: int,
        headers: list[tuple[str, str]],
        reason: str,
        parts: AsyncGenerator[bytes],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.status = status
        self.headers = headers
        self.reason = reason
        self._parts = parts
        self._close = close

    def parts(self) -> AsyncGenerator[bytes]:
        """The body. Raises ToolError when it ends too early."""
        return self._parts

    async def read(self, limit: int) -> bytes:
        """The body, or somewhat more than its first `limit` bytes where it is longer. Raises ToolError."""
        data = bytearray()
        async with aclosing(self.parts()) as parts:
            async for part in parts:
                data += part
                if len(data) > limit:
                    break
        return bytes(data)

    async def close(self) -> None:
        await self._close()


class Client:
    """Makes single exchanges. Close it when done; it holds no cookies, follows nothing, reads no environment."""

    def __init__(
        self, *, resolver: Resolver | None = None, ca_file: Path | None = None, connections_per_host: int = 32
    ) -> None:
        self._resolver = resolver or system_resolver
        self.own = Own()
        self._context = tls_context(ca_file)
        self._per_host = connections_per_host

    @cached_property
    def exchanges(self) -> Exchanges:
        """What sends, and what that stands on, imported when something is sent."""
        from bridge.exchanges import Exchanges
        from bridge.transport import Transport

        return Exchanges(Transport(self._resolver, self.own, self._context, self._per_host))

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
        deadline: float | None = None,
    ) -> Answer:
        """One request and its answer. `before_sending` runs when the connection stands and before a byte leaves.

        Raises ToolError; the caller keeps the deadline, which is told here so that a stream ends before it. A safe
        method is sent again, once, when a kept connection turns out to have been closed.
        """
        order = Order(url, grant, limit, before_sending, deadline)
        return await self.exchanges.whole(method, headers, body, order)

    async def open(
        self,
        method: str,
        url: Url,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        *,
        grant: Grant,
    ) -> Opened:
        """One request, and its answer as it comes; whoever reads it counts. Raises ToolError."""
        order = Order(url, grant, 0, opened=True)
        return await self.exchanges.opened(method, headers, body, order)

    async def vet(self, url: Url, grant: Grant) -> None:
        """Refuse a host whose addresses may not be reached, before anything is sent to it. A name that does not
        resolve now is let pass: it is checked again at each connection. Raises ToolError(egress_denied)."""
        try:
            await resolve(url.host, url.port, grant, self._resolver, self.own)
        except ToolError as e:
            if e.code == "egress_denied":
                raise

    async def close(self) -> None:
        """Close what is kept. An exchange that is under way ends as it would have, and its connection with it."""
        if "exchanges" in self.__dict__:
            await self.exchanges.close()
