"""The outermost ASGI layer: a request is canonical, addressed to us, in our format, from someone known, whole and in
time before anything behind it sees it. The order of the checks is the order of the lines in `Edge._admit`.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import time
import traceback
from collections.abc import AsyncGenerator, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.wire.errors import (
    ExecutorError,
    Forbidden,
    InvalidRequest,
    NotFound,
    Overloaded,
    PayloadTooLarge,
    UnsupportedMediaType,
)
from catalog.large import LARGE, beside
from executor.http import strictjson, tpmjs
from executor.http.answers import (
    MethodNotAllowed,
    MisdirectedRequest,
    RequestTimeout,
    error_answer,
    internal_answer,
    unknown_path,
)
from executor.http.auth import Doorkeeper
from executor.http.metrics import Metrics
from executor.http.settings import EdgeSettings
from executor.keys import Access, Keyring

log = structlog.get_logger("executor.http")

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
WITH_BODY: Final = frozenset({"POST", "PUT"})
PUBLIC: Final = frozenset(
    {
        "/health",
        "/healthz",
        "/info",
        "/api/health",
        "/api/info",
        "/oauth/begin",
        "/oauth/callback",
        "/oauth/client.json",
    }
)
"""Paths that answer without a key."""
ADMITTED: Final = "executor.admitted"
INERT: Final = {
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
}
"""What makes an answer inert in a browser: it is what it says it is, runs nothing, is framed by nobody. A page of ours
says for itself what it needs."""

_PATH: Final = re.compile(rb"/|(?:/(?:[A-Za-z0-9\-._~!$&'()*+,=:@]|%[0-9A-Fa-f]{2})+)+")
_ESCAPE: Final = re.compile(rb"%(..)")
_NEVER_ESCAPED: Final = frozenset(
    [*range(0x20), 0x7F, *b"/\\%;", *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"]
)
"""Escapes of these hide structure (control characters, `/`, `\\`, `%`, `;`), or only add a second spelling."""
_HOST: Final = re.compile(
    rb"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?)(?::([0-9]{1,5}))?"
)
_BYTES: Final = (b"$bytes", b"\\u0024")
"""How a body that holds bytes says so, its sign perhaps escaped."""
_JSON_TYPE: Final = re.compile(rb'application/json(?:\s*;\s*charset="?utf-8"?)?', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the edge found out. `body` is the parsed JSON, `NO_BODY`, `UNREAD`, or bytes where another parser stands
    behind (`EdgeSettings.raw`); `principal` is a key's id or `anonymous`, `access` what it may do.

    `holds_bytes` says that the body may hold a `{"$bytes": …}`: most hold none, and need no search for it.
    """

    principal: str
    known: bool
    access: Access
    body: Any
    holds_bytes: bool = False


class _NoBody:
    """What stands where a body would."""


NO_BODY: Final = _NoBody()
UNREAD: Final = _NoBody()
"""A body came where none is taken; it is left unread, and its connection is closed."""


class ClientGone(Exception):
    """Raised inside the application when the client has left: there is nobody to answer."""


class Edge:
    """Wraps the routed application. Every error that comes out of it becomes a typed JSON answer here."""

    def __init__(self, app: ASGIApp, keyring: Keyring, settings: EdgeSettings, metrics: Metrics) -> None:
        self.app = app
        self.settings = settings
        self.metrics = metrics
        self.doorkeeper = Doorkeeper(keyring)
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"this application does not speak {scope['type']}")
        began = time.perf_counter()
        status = 0

        own = tpmjs.of_protocol(scope["path"]) is not None

        async def watched_send(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                said = {name for name, _ in message["headers"]}
                added = [pair for pair in INERT.items() if pair[0] not in said]
                added += tpmjs.CORS if own else []
                message = message | {"headers": [*message["headers"], *added]}  # type: ignore[operator]
            await send(message)
            if message["type"] == "http.response.start":
                status = message["status"]

        try:
            refusal = await self._answer(scope, receive, watched_send)
            if refusal is not None and not status:
                await refusal(scope, receive, watched_send)
        finally:
            self.metrics.note(scope.get("operation", "none"), status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Let the application answer; what is returned is the answer to give in its place."""
        request = _Request(scope, receive)
        refusal = tpmjs.refusal if request.of_protocol == tpmjs.EXECUTE else error_answer
        try:
            scope[ADMITTED] = await self._admit(request)
            if request.method == "OPTIONS" and request.of_protocol is not None:
                return Response(status_code=200)
            await self.app(scope, receive, send)
        except ClientGone:
            return None
        except ExecutorError as e:
            return refusal(e, close=request.unread)
        except HTTPException as e:
            if e.status_code == 404:
                # An unknown path is the protocol's to refuse too: its form has all that ours has.
                return unknown_path(close=request.unread)
            return refusal(_translate(e), close=request.unread)
        except Exception:
            correlation_id = f"err_{secrets.token_hex(8)}"
            # Text made here: a formatter that shows local variables would show the request's key.
            log.error("a request failed", correlation_id=correlation_id, exception=traceback.format_exc())
            if refusal is tpmjs.refusal:
                return tpmjs.defect(correlation_id, close=request.unread)
            return internal_answer(correlation_id, close=request.unread)
        return None

    async def _admit(self, request: _Request) -> Admitted:
        request.check_method_and_path()
        request.check_framing()
        request.check_host(self.settings)
        if not self._open_to_pages(request):
            request.check_origin(self.settings)
        principal, known, access = await self._principal(request)
        request.check_format()
        if not request.has_body:
            return Admitted(principal, known, access, NO_BODY)
        if request.method not in WITH_BODY:
            return Admitted(principal, known, access, UNREAD)
        async with self._body(request) as data:
            if self.settings.is_raw(request.scope["path"]):
                return Admitted(principal, known, access, bytes(data))
            if not data:
                return Admitted(principal, known, access, NO_BODY)
            _, nodes = self.settings.limits_of(request.scope["path"])
            parse = partial(_parsed, data, nodes or strictjson.MAX_NODES)
            body, holds_bytes = parse() if len(data) <= LARGE else await beside(parse)
            return Admitted(principal, known, access, body, holds_bytes)

    def _open_to_pages(self, request: _Request) -> bool:
        """Whether a page from anywhere may ask: where a key is needed, or nothing can be done."""
        guarded = self.settings.require_key or self.settings.tool_key is not None
        return request.of_protocol is not None and (
            guarded or request.of_protocol != tpmjs.EXECUTE or request.method == "OPTIONS"
        )

    async def _principal(self, request: _Request) -> tuple[str, bool, Access]:
        if request.of_protocol is not None and request.method == "OPTIONS":
            return "anonymous", False, Access("none")
        tool_key = self.settings.tool_key if request.of_protocol is not None else None
        if tool_key is not None and request.presents(tool_key):
            return "tpmjs", True, Access("run" if request.of_protocol == tpmjs.EXECUTE else "none")
        if not self.settings.require_key and (tool_key is None or request.of_protocol != tpmjs.EXECUTE):
            return "anonymous", True, Access()
        if request.scope["path"] in PUBLIC and b"authorization" not in request.headers:
            return "anonymous", False, Access("none")
        client = request.scope.get("client")
        address = client[0] if client else ""
        key = await self.doorkeeper.admit(request.scope["headers"], request.scope["query_string"], address)
        return key.id, True, Access(key.access, key.toolkit)

    @asynccontextmanager
    async def _body(self, request: _Request) -> AsyncGenerator[bytearray]:
        """The bytes of the body. They count as held until they are let go."""
        limit, _ = self.settings.limits_of(request.scope["path"])
        data = bytearray()
        try:
            await request.read_into(data, limit, self.settings.body_deadline, self._take)
            yield data
        finally:
            self._held -= len(data)

    def _take(self, size: int) -> None:
        """Count bytes of bodies that are being read. Raises Overloaded when they are too many, all clients together."""
        self._held += size
        if self._held > self.settings.bodies_bytes:
            raise Overloaded("too many large bodies are arriving at once")


class _Request:
    """One request's head, and its body while it is read."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope["method"]
        self.headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            self.headers.setdefault(name, []).append(value)
        length = self.headers.get(b"content-length")
        self.length = int(length[0]) if length else None
        self.has_body = bool(self.length) or b"transfer-encoding" in self.headers
        self.unread = self.has_body
        self.of_protocol = tpmjs.of_protocol(scope["raw_path"].decode("latin-1"))

    def presents(self, key: str) -> bool:
        """Whether the request has exactly this bearer key."""
        values = self.headers.get(b"authorization", [])
        scheme, _, given = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
        return hmac.compare_digest(given, key.encode()) and scheme.lower() == b"bearer"

    def check_method_and_path(self) -> None:
        """One spelling for each path, so that what is authorised and what is routed cannot differ."""
        if self.method not in METHODS:
            raise MethodNotAllowed(f"the method {self.method[:20]} is not served", allow=METHODS)
        raw: bytes = self.scope["raw_path"]
        if not raw.startswith(b"/"):
            raise InvalidRequest("the request target must be a path", hint="send `GET /path HTTP/1.1`")
        segments = raw.split(b"/")
        if not _PATH.fullmatch(raw) or b"." in segments or b".." in segments:
            raise NotFound("there is nothing at this path")
        if b"%" in raw and any(int(digits, 16) in _NEVER_ESCAPED for digits in _ESCAPE.findall(raw)):
            raise NotFound("there is nothing at this path")

    def check_framing(self) -> None:
        """RFC 9112 §6.1: a message with both is an attempt at smuggling, or as good as one."""
        if b"transfer-encoding" in self.headers and b"content-length" in self.headers:
            self.unread = True
            raise InvalidRequest("Content-Length and Transfer-Encoding must not come together")

    def check_host(self, settings: EdgeSettings) -> None:
        """Names we did not choose may point here by DNS rebinding; the address that was dialled cannot."""
        values = self.headers.get(b"host", [])
        match = _HOST.fullmatch(values[0]) if len(values) == 1 else None
        if match is not None:
            name = match[1].decode().lower()
            if name in settings.hosts:
                return
            server = self.scope.get("server")
            if server and name in (server[0], f"[{server[0]}]"):
                return
        raise MisdirectedRequest(
            "this server does not answer to that Host", hint="`executor serve --allowed-host NAME` adds a name"
        )

    def check_origin(self, settings: EdgeSettings) -> None:
        """A browser says where a script came from; ours is the only origin unless the operator named another."""
        values = self.headers.get(b"origin")
        if values is None:
            return
        own = b"%s://%s" % (self.scope["scheme"].encode(), self.headers[b"host"][0].lower())
        if len(values) != 1 or (values[0] != own and values[0].decode("latin-1") not in settings.origins):
            raise Forbidden("requests from that Origin are not accepted")

    def check_format(self) -> None:
        if self.method not in WITH_BODY:
            return
        types = self.headers.get(b"content-type", [])
        if (self.has_body or types) and not (len(types) == 1 and _JSON_TYPE.fullmatch(types[0].strip())):
            raise UnsupportedMediaType(
                "the body must be JSON in UTF-8", hint="send one header `Content-Type: application/json`"
            )
        if any(value.strip().lower() != b"identity" for value in self.headers.get(b"content-encoding", [])):
            raise UnsupportedMediaType("a compressed body is not accepted", hint="leave Content-Encoding out")

    async def read_into(self, data: bytearray, limit: int, deadline: float, take: Callable[[int], None]) -> None:
        """Append the body to `data`; `take` hears of each part.

        Raises PayloadTooLarge as soon as it is known to be, RequestTimeout, ClientGone, and what `take` raises.
        """
        if self.length is not None and self.length > limit:
            raise _too_large(limit)
        try:
            async with asyncio.timeout(deadline):
                more = True
                while more:
                    message = await self.receive()
                    if message["type"] != "http.request":
                        raise ClientGone
                    part = message.get("body", b"")
                    data += part
                    take(len(part))
                    if len(data) > limit:
                        raise _too_large(limit)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RequestTimeout(f"the body did not arrive within {deadline:g} seconds") from None
        self.unread = False


def _parsed(data: bytearray, nodes: int) -> tuple[Any, bool]:
    """The value of a body, and whether there may be bytes in it."""
    return strictjson.loads(data, max_nodes=nodes), any(sign in data for sign in _BYTES)


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"the body is larger than {limit} bytes", details={"limit": limit})


def _translate(error: HTTPException) -> ExecutorError:
    """starlette's router speaks HTTPException; nothing else of ours raises it."""
    if error.status_code == 404:
        return NotFound("there is nothing at this path")
    return InvalidRequest(error.detail)
