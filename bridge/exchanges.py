"""What `Client` makes its exchanges with: httpx2 over our own transport, with our headers and no others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import lru_cache
from http.cookiejar import CookieJar
from typing import Any, Final

import httpx2

from bridge.client import USER_AGENT, Answer, Opened
from bridge.http1 import Received
from bridge.orders import Order
from bridge.transport import ORDER, RECEIVED, TARGET, Transport

_BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})
_origin: Final = lru_cache(1024)(httpx2.URL)


class Exchanges:
    """Close it when done; it holds no cookies, follows nothing, reads no environment."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.http = httpx2.AsyncClient(
            transport=transport, trust_env=False, follow_redirects=False, timeout=None, cookies=NoCookies()
        )

    async def whole(self, method: str, headers: Sequence[tuple[str, str]], body: bytes | None, order: Order) -> Answer:
        response = await self.http.send(_request(method, headers, body, order), stream=True)
        # The body has been decoded within the limit, where httpx2 would do it without one.
        data = b"".join([part async for part in response.aiter_raw()])
        received: Received = response.extensions[RECEIVED]
        return Answer(response.status_code, _headers(response), data, received.reason, received.cut)

    async def opened(self, method: str, headers: Sequence[tuple[str, str]], body: bytes | None, order: Order) -> Opened:
        response = await self.http.send(_request(method, headers, body, order), stream=True)
        received: Received = response.extensions[RECEIVED]
        return Opened(response.status_code, _headers(response), received.reason, _parts(response), response.aclose)

    async def close(self) -> None:
        await self.transport.aclose()


def _headers(response: httpx2.Response) -> list[tuple[str, str]]:
    return [(name.decode("ascii"), value.decode("latin-1")) for name, value in response.headers.raw]


def _parts(response: httpx2.Response) -> AsyncGenerator[bytes]:
    return response.aiter_raw()


def _request(method: str, headers: Sequence[tuple[str, str]], body: bytes | None, order: Order) -> httpx2.Request:
    url = order.url
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
