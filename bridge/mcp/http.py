"""What the SDK sends through: each request checked at the egress gate, given its credential, and bounded.

The SDK takes an exception from its HTTP client for the end of the session, and says little about a refusal. So every
failure here becomes the JSON-RPC error of the request that it befell, with a number under which the session finds the
ToolError that it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final

import anyio
import httpx2

from bridge.client import Opened
from bridge.exchanges import NoCookies
from bridge.http1 import too_large
from bridge.mcp.errors import Lost
from bridge.outbound import REDIRECTS, Passage
from bridge.secrets.ports import Secret
from bridge.wire.errors import ToolError
from catalog.kinds import payload
from catalog.model import OutboundRequest, OutboundResponse
from catalog.origin import BadUrl, parse_url

MAX_REFUSAL: Final = 64 * 1024
MAX_FAILURES: Final = 1000
GOODBYE_S: Final = 2.0
FAILED: Final = -32099
"""The code of the errors that are made here."""
REFERENCE: Final = "executor"
"""The key in such an error's data."""
SESSION: Final = "mcp-session-id"

_OURS: Final = re.compile(r"\A(accept|content-type|last-event-id|mcp-[a-z0-9_-]{1,120})\Z")
"""Of what the SDK sets; the rest (a user agent with its version, content codings) is not sent."""


class Gated(httpx2.AsyncBaseTransport):
    """`passage` makes a way out for one request. `revealed` is every secret that was sent."""

    def __init__(self, passage: Callable[[], Passage], limit: int, label: str) -> None:
        self._passage = passage
        self._limit = limit
        self._label = label
        self._failures: dict[str, ToolError] = {}
        self.revealed: dict[str, Secret] = {}

    def client(self) -> httpx2.AsyncClient:
        """A client that sends through this alone. Close it when done."""
        return httpx2.AsyncClient(
            transport=self, trust_env=False, follow_redirects=False, timeout=None, cookies=NoCookies()
        )

    def failure(self, data: Any) -> ToolError | None:
        """The failure that an error's data refers to, once."""
        reference = data.get(REFERENCE) if isinstance(data, dict) else None
        return self._failures.pop(reference, None) if isinstance(reference, str) else None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        if request.method == "DELETE":
            # The session is over for us, whatever the server makes of it.
            with anyio.move_on_after(GOODBYE_S):
                return await self._exchanged(request, body)
            raise httpx2.ConnectTimeout("no answer", request=request)
        return await self._exchanged(request, body)

    async def _exchanged(self, request: httpx2.Request, body: bytes) -> httpx2.Response:
        asked = _asked(body)
        passage = self._passage()
        try:
            opened = await passage.open(_outbound(request, body))
        except ToolError as e:
            return self._failed(request, asked, e)
        finally:
            self.revealed.update(passage.revealed)
        try:
            return await self._answered(request, asked, opened, passage)
        except ToolError as e:
            await opened.close()
            return self._failed(request, asked, e)
        except BaseException:
            await opened.close()
            raise

    async def _answered(self, request: httpx2.Request, asked: Any, opened: Opened, passage: Passage) -> httpx2.Response:
        media = next((value for name, value in opened.headers if name == "content-type"), "")
        if media.partition(";")[0].strip().lower() == "text/event-stream" and opened.status < 300:
            return _response(request, opened.status, opened.headers, _Stream(opened))
        size = MAX_REFUSAL if opened.status >= 300 else self._limit
        data = await opened.read(size)
        await opened.close()
        if len(data) > size and opened.status < 300:
            raise too_large(self._label, self._limit)
        if opened.status >= 400 and request.method == "POST":
            await self._refuse(request, opened, data[:size], passage)
        if opened.status in REDIRECTS and not any(name == "location" for name, _ in opened.headers):
            raise ToolError("upstream_error", f"{self._label} redirects without saying where.", status=opened.status)
        return _response(request, opened.status, opened.headers, httpx2.ByteStream(data[:size]))

    async def _refuse(self, request: httpx2.Request, opened: Opened, data: bytes, passage: Passage) -> None:
        """Raises ToolError unless the body is the JSON-RPC error of a server that has something to say."""
        if opened.status not in (401, 403) and _is_error(data):
            return
        if opened.status == 404 and request.headers.get(SESSION):
            raise Lost("upstream_unreachable", f"{self._label} has forgotten the session.", status=404)
        remedy = passage.remedy(opened)
        headers, data = await passage.masked(opened.status, opened.headers, data)
        answer = OutboundResponse(opened.status, headers, data, passage.credentialed, remedy=remedy)
        raise payload.failure(answer, connection=self._label)

    def _failed(self, request: httpx2.Request, asked: Any, error: ToolError) -> httpx2.Response:
        if request.method != "POST":
            raise httpx2.ConnectError(error.code, request=request)
        if asked is None:
            return _response(request, 202, [], httpx2.ByteStream(b""))
        while len(self._failures) >= MAX_FAILURES:
            del self._failures[next(iter(self._failures))]
        reference = f"{id(request):x}-{len(self._failures)}"
        self._failures[reference] = error
        answer = {"code": FAILED, "message": error.code, "data": {REFERENCE: reference}}
        data = json.dumps({"jsonrpc": "2.0", "id": asked, "error": answer}).encode()
        return _response(request, 200, [("content-type", "application/json")], httpx2.ByteStream(data))


class _Stream(httpx2.AsyncByteStream):
    """Server-sent events as they come; the SDK bounds each of them."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        try:
            async with aclosing(self._opened.parts()) as parts:
                async for part in parts:
                    yield part
        except ToolError as e:
            raise httpx2.ReadError(e.code) from None

    async def aclose(self) -> None:
        await self._opened.close()


def _asked(body: bytes) -> Any:
    """The id of the request in a body; None for a notification or an answer."""
    try:
        message = json.loads(body) if body else None
    except ValueError:
        return None
    return message.get("id") if isinstance(message, dict) and "method" in message else None


def _outbound(request: httpx2.Request, body: bytes) -> OutboundRequest:
    """Raises ToolError for a URL that is not one."""
    try:
        url = parse_url(str(request.url))
    except BadUrl as e:
        raise ToolError("egress_denied", f"The server redirects to what cannot be called: {e}.") from None
    headers = [(name.lower(), value) for name, value in request.headers.items() if _OURS.match(name.lower())]
    return OutboundRequest(request.method, url, headers, body if request.method == "POST" else None)


def _is_error(data: bytes) -> bool:
    try:
        message = json.loads(data)
    except ValueError:
        return False
    error = message.get("error") if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None
    return isinstance(error, dict) and isinstance(error.get("code"), int)


def _response(
    request: httpx2.Request, status: int, headers: list[tuple[str, str]], stream: httpx2.AsyncByteStream
) -> httpx2.Response:
    kept = [(name, value) for name, value in headers if name not in ("content-encoding", "set-cookie")]
    return httpx2.Response(status, headers=kept, stream=stream, request=request)
