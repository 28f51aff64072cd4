"""The way out of one call: checked, recorded, credentialed, sent, and followed only where it is harmless."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import anyio
import structlog
from pydantic_core import to_json

from bridge.asking import Put, Resumed
from bridge.calls import ARGS_BYTES, CallContext
from bridge.client import Answer, Client, Opened
from bridge.egress import Gate, Grant, denied
from bridge.oauth.accounts import OAuth
from bridge.placement import Credential, place
from bridge.scrub import Scrubber
from bridge.secrets.ports import Secret, SecretMissing, SecretUnavailable
from bridge.secrets.providers import Providers
from bridge.wire.errors import ConfigError, ToolError
from catalog.large import LARGE, beside
from catalog.model import Connection, OutboundRequest, OutboundResponse, Placement
from catalog.oauth import TOKEN
from catalog.origin import BadUrl, Reach, Url, hides_dots, join_url
from catalog.patience import repeatable, retry_after_ms

MAX_REDIRECTS: Final = 3
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
REFUSALS: Final = frozenset({401, 403})
FOLLOWED: Final = frozenset({"GET", "HEAD"})
"""Only a request without a body and without an effect goes on; anything else stops and says where it was pointed."""

BUSY: Final = frozenset({429, 503})
"""Refusals that say that nothing was done: what may be repeated is repeated, after the wait that is asked for."""
MAX_REPEATS: Final = 2
MAX_WAIT_S: Final = 20.0
"""All waits of a call together; a server that asks for more is left to the caller."""
FIRST_WAIT_S: Final = 0.25
"""Before the first repeat where the server does not say; doubled for the next, and spread by up to a half."""
SHARE_OF_TIME: Final = 0.8
"""Of the time that is left to the call, a wait takes at most this."""

_REFUSED: Final = TOKEN + "#refused"
_PLAIN: Final = frozenset({"accept", "accept-language"})
pause: Final = anyio.sleep
_log = structlog.get_logger("executor.outbound")


ToolCaller = Callable[["Passage", str, dict[str, Any]], Awaitable[dict[str, Any]]]


def written_limit(size: int) -> int:
    """Bytes that values of `size` bytes in msgpack may take as they are written for a server. Control characters take
    six times as much in JSON, what people write at most about twice."""
    return 2 * size + 64 * 1024


_BODY_LIMIT: Final = written_limit(ARGS_BYTES)


class Passage:
    """An `Outbound` for one call. `announce_first` is awaited once, before the first byte leaves; `tools` calls a tool
    of the integration's MCP server."""

    __slots__ = (
        "_announce_first",
        "_announced",
        "_client",
        "_connection",
        "_gate",
        "_grant",
        "_limit",
        "_oauth",
        "_providers",
        "_tools",
        "_waited_s",
        "body_limit",
        "context",
        "credentialed",
        "deadline",
        "put",
        "repeatable",
        "resumed",
        "revealed",
        "status",
    )

    def __init__(
        self,
        client: Client,
        gate: Gate,
        grant: Grant,
        connection: Connection,
        providers: Providers,
        oauth: OAuth,
        limit: int,
        announce_first: Callable[[], Awaitable[None]],
        tools: ToolCaller | None = None,
    ) -> None:
        self._client = client
        self._gate = gate
        self._grant = grant
        self._connection = connection
        self._providers = providers
        self._oauth = oauth
        self._limit = limit
        self._announce_first = announce_first
        self._tools = tools
        self._announced = False
        self._waited_s = 0.0
        self.revealed: dict[str, Secret] = {}
        self.status: int | None = None
        self.repeatable = False
        """Whether whatever it sends may be sent again, as the tool is declared."""
        self.credentialed = False
        """Whether the last request that was opened carried a credential."""
        self.context: CallContext | None = None
        """Whose call it is, and within which bounds."""
        self.deadline: float | None = None
        """When the call ends, on the loop's clock; whoever makes it sets this and ends it."""
        self.put: Put | None = None
        """Asks a person what the server asks in the middle of the call; None where nobody can wait for that."""
        self.resumed: Resumed | None = None
        """The question that the call goes on from, and its answer."""
        self.body_limit = _BODY_LIMIT
        """Bytes that a request's body may have. Whoever makes the call sets this by the size of its arguments."""

    async def announce(self) -> None:
        if not self._announced:
            self._announced = True
            await self._announce_first()

    async def call_tool(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """The result of a tool of the MCP server behind the integration. Raises ToolError."""
        assert self._tools is not None
        self._check_size(len(to_json(args, bytes_mode="base64", fallback=str)))
        return await self._tools(self, name, args)

    async def environment(self, place: Reach) -> dict[str, str]:
        """The variables that the connection gives the program or package that is `place`.

        Raises ToolError(connection_missing).
        """
        placements = self._connection.placements
        if placements and self._connection.reach is not None and place not in self._connection.reach:
            raise ToolError(
                "connection_missing",
                f"The secrets of {self._connection.label} were not given for what would get them now.",
                hint="Connect the account again to use them with it.",
            )
        found = {one.field: (await self._credential(one)).value.reveal() for one in placements}
        if any("\0" in value for value in found.values()):
            raise ToolError("connection_missing", f"A secret of {self._connection.label} cannot be a variable.")
        return found

    async def send(self, request: OutboundRequest) -> OutboundResponse:
        """The answer; a busy server (429, 503) is asked again where that is harmless and there is time.

        Raises ToolError: egress_denied, connection_missing, upstream_*, too_large.
        """
        self._check_size(len(request.body or b""))
        url = request.url
        seen = {str(url)}
        at_home = True
        for _ in range(MAX_REDIRECTS + 1):
            at_home = at_home and url.origin == request.url.origin
            self._gate.check(request.method, url, self._grant)
            credentials = await self._credentials(request) if at_home else []
            headers = [one for one in request.headers if at_home or one[0] in _PLAIN]
            sent_url, sent_headers = place(url, headers, credentials, self._connection.label)
            body = request.body if at_home else None
            answer = await self._patient(request.method, sent_url, sent_headers, body)
            if credentials and answer.status in REFUSALS:
                self._providers.refused()
                if answer.status == 401 and await self._another_token():
                    # A refusal did nothing, so that the same request goes out again, once.
                    credentials = await self._credentials(request)
                    sent_url, sent_headers = place(url, headers, credentials, self._connection.label)
                    answer = await self._patient(request.method, sent_url, sent_headers, body)
            if answer.status not in REDIRECTS or request.method not in FOLLOWED or not request.follow:
                kept, data = await self.masked(answer.status, answer.headers, answer.body)
                return OutboundResponse(
                    answer.status,
                    kept,
                    data,
                    bool(credentials),
                    url,
                    answer.reason,
                    answer.cut,
                    self._oauth.remedy(self._connection, answer.status, answer.headers),
                )
            url = self._next(url, answer, seen)
        raise ToolError("upstream_error", f"{request.url.origin} redirects more than {MAX_REDIRECTS} times.")

    async def masked(
        self, status: int, headers: Sequence[tuple[str, str]], body: bytes
    ) -> tuple[Sequence[tuple[str, str]], bytes]:
        """Headers and body without the secrets that were sent, before anything is cut out of them: half a secret at the
        end of what is shown would be found by nobody any more."""
        if len(body) > LARGE and self.revealed:
            return await beside(self._masked, status, headers, body)
        return self._masked(status, headers, body)

    def _masked(
        self, status: int, headers: Sequence[tuple[str, str]], body: bytes
    ) -> tuple[Sequence[tuple[str, str]], bytes]:
        revealed = [secret.reveal() for secret in self.revealed.values()]
        if status < 300:
            # Whatever is kept of the headers is masked with the value, and digits may be part of a number.
            return headers, Scrubber(one for one in revealed if not one.isdigit()).data(body)
        scrubber = Scrubber(revealed)
        return [(name, scrubber.text(value)) for name, value in headers], scrubber.data(body)

    def _check_size(self, size: int) -> None:
        if size > self.body_limit:
            raise ToolError(
                "too_large",
                f"The request's body takes {size} bytes as written; at most {self.body_limit} are sent.",
                hint="Send less, or in several calls.",
                details={"limit": self.body_limit, "size": size},
            )

    async def open(self, request: OutboundRequest) -> Opened:
        """Check, credential and send `request` once; its answer is read as it comes, and may be a redirect.

        Raises ToolError as `send` does.
        """
        self._gate.check(request.method, request.url, self._grant)
        answer = await self._opened(request)
        if self.credentialed and answer.status in REFUSALS:
            self._providers.refused()
            if answer.status == 401 and await self._another_token(answer.close):
                answer = await self._opened(request)
        self.status = answer.status
        return answer

    async def _opened(self, request: OutboundRequest) -> Opened:
        credentials = await self._credentials(request)
        self.credentialed = bool(credentials)
        url, headers = place(request.url, list(request.headers), credentials, self._connection.label)
        return await self._client.open(request.method, url, headers, request.body, grant=self._grant)

    def remedy(self, answer: Opened) -> str:
        """What helps where the answer refuses the credential, "" where nothing is known to."""
        return self._oauth.remedy(self._connection, answer.status, answer.headers)

    async def _patient(self, method: str, url: Url, headers: list[tuple[str, str]], body: bytes | None) -> Answer:
        repeat = 0 if self.repeatable or repeatable(method, headers) else MAX_REPEATS
        while True:
            answer = await self._client.exchange(
                method,
                url,
                headers,
                body,
                grant=self._grant,
                limit=self._limit,
                before_sending=self.announce,
                deadline=self.deadline,
            )
            self.status = answer.status
            if answer.status not in BUSY or repeat == MAX_REPEATS or not await self._wait(answer, repeat):
                return answer
            repeat += 1

    async def _wait(self, answer: Answer, repeat: int) -> bool:
        """Wait as long as the server asks; False, at once, when there is not that much time."""
        asked = retry_after_ms(answer.headers)
        spread = 1 + random.random() / 2  # noqa: S311 - no secret
        seconds = FIRST_WAIT_S * 2**repeat * spread if asked is None else asked / 1000
        if self._waited_s + seconds > MAX_WAIT_S:
            return False
        if self.deadline is not None and seconds > (self.deadline - anyio.current_time()) * SHARE_OF_TIME:
            return False
        self._waited_s += seconds
        await pause(seconds)
        return True

    def _next(self, url: Url, answer: Answer, seen: set[str]) -> Url:
        location = next((value for name, value in answer.headers if name == "location"), None)
        if location is None:
            raise ToolError("upstream_error", f"{url.origin} redirects without saying where.", status=answer.status)
        try:
            following = join_url(url, location)
        except BadUrl as e:
            raise denied(f"{url.origin} redirects to what cannot be called: {e}.") from None
        if hides_dots(following.path):
            raise denied(f"{url.origin} redirects to a path with hidden dot segments.")
        if str(following) in seen:
            raise ToolError("upstream_error", f"{url.origin} redirects in a circle.", status=answer.status)
        seen.add(str(following))
        return following

    async def _credentials(self, request: OutboundRequest) -> list[Credential]:
        asked = request.credentials
        placements = [one for one in self._connection.placements if asked is None or one.name in asked]
        reach = self._connection.reach
        if placements and reach is not None and not any(one.covers(request.method, request.url) for one in reach):
            # The credential was given for other places: what a new description says does not send it elsewhere.
            raise ToolError(
                "connection_missing",
                f"The credential of {self._connection.label} was not given for {request.url.origin}.",
                hint="Connect the account again to use it there.",
            )
        return [await self._credential(placement) for placement in placements]

    async def _credential(self, placement: Placement) -> Credential:
        username, value = Secret(placement.username), Secret(placement.value)
        if placement.username_secret:
            username = await self._secret(placement.username_secret)
        if placement.secret:
            value = await self._secret(placement.secret)
        elif placement.value:
            # It is no secret, but it goes where secrets go: what comes back is masked alike.
            self.revealed[f"={placement.value}"] = value
        return Credential(placement, value, username)

    async def _secret(self, ref: str) -> Secret:
        """The value behind `ref`, read once in a call. What exactly is missing is logged, not told."""
        if ref == TOKEN and ref not in self.revealed:
            self.revealed[ref] = await self._oauth.token(self._connection, self._grant.private)
        elif ref not in self.revealed:
            label = self._connection.label
            try:
                self.revealed[ref] = await self._providers.resolve(self._connection.scope, ref)
            except (SecretMissing, ConfigError) as e:
                passing = isinstance(e, SecretUnavailable)
                _log.warning("secret_missing", connection=label, reason=str(e))
                raise ToolError(
                    "connection_missing",
                    f"The credential of the connection {label} is not available{' at the moment' if passing else ''}.",
                    hint=f"An operator can see why: executor connections check {label}",
                    retryable=passing,
                ) from None
        return self.revealed[ref]

    async def _another_token(self, done: Callable[[], Awaitable[None]] | None = None) -> bool:
        """Whether there is another access token than the one that was refused, the first time in a call; then, and when
        it fails, `done` is awaited. Raises ToolError(credential_rejected) when only a person can help."""
        refused = self.revealed.get(TOKEN)
        if refused is None or _REFUSED in self.revealed:
            return False
        try:
            fresh = await self._oauth.instead(self._connection, self._grant.private, refused.reveal())
        except BaseException:
            if done is not None:
                await done()
            raise
        if fresh is None:
            return False
        if done is not None:
            await done()
        # What comes back may still hold the old one.
        self.revealed |= {_REFUSED: refused, TOKEN: fresh}
        return True
