"""Single exchanges over httpx2: our headers and no others, nothing followed, no cookie kept, every answer bounded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import lru_cache
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2

from bridge.dial import Resolver, resolve, system_resolver, tls_context
from bridge.egress import Grant
from bridge.http1 import Received
from bridge.own import Own
from bridge.transport import ORDER, RECEIVED, TARGET, Order, Transport
from bridge.wire.errors import ToolError
from catalog.model import Cut
from catalog.origin import Url

USER_AGENT: Final = "executor"
"""Fixed, so that nothing about this host or version leaves with a request."""

_BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})
_origin: Final = lru_cache(1024)(httpx2.URL)


class Answer(NamedTuple):
    """Header names are lower case; the body is decoded, and whole unless `cut` says why it is not."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    reason: str = ""
    cut: Cut | None = None


class Opened:
    """An answer that is still coming. Header names are lower case. Close it, however much of it was read."""

    def __init__(self, status: int, headers: list[tuple[str, str]], reason: str, response: httpx2.Response) -> None:
        self.status = status
        self.headers = headers
        self.reason = reason
        self._response = response

    def parts(self) -> AsyncGenerator[bytes]:
        """The body. Raises ToolError when it ends too early."""
        return self._response.aiter_raw()

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
        await self._response.aclose()


class Client:
    """Makes single exchanges. Close it when done; it holds no cookies, follows nothing, reads no environment."""

    def __init__(
        self, *, resolver: Resolver | None = None, ca_file: Path | None = None, connections_per_host: int = 32
    ) -> None:
        self._resolver = resolver or system_resolver
        self.own = Own()
        self._transport = Transport(self._resolver, self.own, tls_context(ca_file), connections_per_host)
        self._http = httpx2.AsyncClient(
            transport=self._transport, trust_env=False, follow_redirects=False, timeout=None, cookies=NoCookies()
        )

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
        response = await self._http.send(_request(method, url, headers, body, order), stream=True)
        # The body has been decoded within the limit, where httpx2 would do it without one.
        data = b"".join([part async for part in response.aiter_raw()])
        answered = [(name.decode("ascii"), value.decode("latin-1")) for name, value in response.headers.raw]
        received: Received = response.extensions[RECEIVED]
        return Answer(response.status_code, answered, data, received.reason, received.cut)

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
        response = await self._http.send(_request(method, url, headers, body, order), stream=True)
        answered = [(name.decode("ascii"), value.decode("latin-1")) for name, value in response.headers.raw]
        return Opened(response.status_code, answered, response.extensions[RECEIVED].reason, response)

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
        await self._transport.aclose()


def _request(
    method: str, url: Url, headers: Sequence[tuple[str, str]], body: bytes | None, order: Order
) -> httpx2.Request:
    fields = [("host", url.netloc), ("accept-encoding", "identity"), *headers]
    if all(name != "user-agent" for name, _ in headers):
        fields.insert(1, ("user-agent", USER_AGENT))
    if body is not None or method in _BODY_METHODS:
        fields.append(("content-length", str(len(body or b""))))
    # Given a stream and not built by the client, a request gets no header that is not in `fields`.
    return httpx2.Request(
        method,
        _origin(url.origin),
        headers=fields,
        stream=httpx2.ByteStream(body or b""),
        extensions={TARGET: url.target.encode("ascii"), ORDER: order},
    )


class NoCookies(CookieJar):
    """A jar that reads no cookie and has none."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        return
