"""Signing in: authorization code with PKCE (RFC 6749 §4.1, RFC 7636), from the URL to visit to the tokens.

What is begun is in memory for ten minutes and finished once: by whoever began it, or in the browser that opened the
page which it began with. The verifier and the state never leave this process but to the server that they are for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import structlog

from bridge.egress import Named
from bridge.oauth import tokens as kept
from bridge.oauth.renewal import Renewal, sign_in
from bridge.oauth.servers import ServerRefused, Servers, endpoint, told
from bridge.oauth.tokens import Shelf, Tokens
from bridge.wire.errors import Forbidden, InvalidRequest, NotFound, Overloaded, ToolError
from catalog.model import Connection
from catalog.oauth import OAuthClient
from catalog.origin import BadUrl, parse_url

LIFE_S: Final = 600.0
MAX_PENDING: Final = 256
MAX_OWN: Final = 32
"""Sign-ins of one principal under way, so that nobody keeps the others from theirs."""
CALLBACK: Final = "/oauth/callback"
BEGIN: Final = "/oauth/begin"
DOCUMENT: Final = "/oauth/client.json"
LOOPBACK: Final = ("127.0.0.1", "::1")
NAME: Final = "Executor"

_CODE: Final = re.compile(r"\A[\x20-\x7e]{1,4096}\Z")
"""RFC 6749, appendix A.11."""
_log = structlog.get_logger("executor.oauth")


@dataclass(slots=True)
class Pending:
    """A sign-in under way. `browser` is the digest of what the browser that opened its page has as a cookie."""

    account: Connection
    principal: str
    redirect_uri: str
    hosted: bool
    state: str
    verifier: str
    scopes: tuple[str, ...]
    url: str
    expires: float
    client_id: str
    client_secret: str = ""
    browser: bytes = b""


class Callback(NamedTuple):
    """What came back with the browser (RFC 6749 §4.1.2, RFC 9207). Everything in it is a stranger's word."""

    state: str | None = None
    code: str | None = None
    iss: str | None = None
    error: str | None = None
    error_description: str | None = None

    @classmethod
    def of_url(cls, url: str) -> Callback:
        """Raises InvalidRequest for a URL that says something twice."""
        pairs = parse_qsl(urlsplit(url[:16384]).query, keep_blank_values=True)
        found = {name: value for name, value in pairs if name in cls._fields}
        if len(found) != sum(name in cls._fields for name, _ in pairs):
            raise InvalidRequest("The answer of the authorization server says something twice.", hint="Begin again.")
        return cls(**found)


class Flows:
    """Begins and finishes. `origin` is where browsers reach this server, None where there is none."""

    def __init__(
        self, shelf: Shelf, servers: Servers, renewal: Renewal, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.origin: str | None = None
        self._shelf = shelf
        self._servers = servers
        self._renewal = renewal
        self._clock = clock
        self._pending: dict[str, Pending] = {}
        self._tickets: dict[str, str] = {}

    async def begin(
        self,
        account: Connection,
        private: Sequence[Named],
        *,
        principal: str,
        redirect_uri: str | None,
        scopes: Sequence[str],
    ) -> dict[str, Any]:
        """`{url, redirect_uri, expires_in, state?}`: the URL that a person visits.

        With a `redirect_uri`, which is on the loopback address of whoever asks, the callback is theirs to hand to
        `finish`; without one it is this server's own. Raises InvalidRequest, ToolError, Overloaded.
        """
        client = account.oauth
        if client is None or client.flow != "authorization_code":
            raise InvalidRequest(
                f"Nobody signs in to {account.label}: it "
                + ("has a credential of its own." if client is None else "gets its token by the client's credentials."),
                hint=f"executor connect {account.integration} --oauth makes an account that is signed in to.",
            )
        hosted = redirect_uri is None
        redirect_uri = _loopback(redirect_uri) if redirect_uri is not None else self._own()
        self._make_room(principal)
        client_id, client_secret = await self._client(account, client, private, redirect_uri)
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
        asked = tuple(dict.fromkeys((*client.scopes, *scopes)))
        url = _authorization_url(client, private, client_id, redirect_uri, state, verifier, asked)
        self._make_room(principal)
        expires = self._clock() + LIFE_S
        self._pending[_digest(state)] = Pending(
            account, principal, redirect_uri, hosted, state, verifier, asked, url, expires, client_id, client_secret
        )
        facts = {"redirect_uri": redirect_uri, "expires_in": int(LIFE_S)}
        if not hosted:
            return {"url": url, "state": state} | facts
        ticket = secrets.token_urlsafe(32)
        self._tickets[_digest(ticket)] = _digest(state)
        return {"url": f"{self.origin}{BEGIN}?ticket={ticket}"} | facts

    def opened(self, ticket: str) -> tuple[Pending, str]:
        """The sign-in that a page is opened for, and what its browser keeps as a cookie from now on. Raises NotFound
        for a ticket of nothing that is under way."""
        self._expire()
        found = self._pending.get(self._tickets.get(_digest(ticket), ""))
        if found is None:
            raise NotFound("this sign-in is over, or never was", hint="ask for a new one")
        cookie = secrets.token_urlsafe(32)
        found.browser = hashlib.sha256(cookie.encode()).digest()
        return found, cookie

    async def finish(
        self, came: Callback, *, principal: str | None, browser: str | None, private: Callable[[Connection], Any]
    ) -> tuple[Connection, tuple[str, ...]]:
        """Exchange the code for tokens and keep them: the account and the scopes that were asked for.

        `principal` hands a callback over that came to a loopback address; for this server's own callback it is None
        and `browser` the cookie. `private` gives what the account may reach, and raises where it is not any more what
        was begun with. Whatever happens, what was begun is over. Raises InvalidRequest, Forbidden, ToolError.
        """
        self._expire()
        pending = self._pending.pop(_digest(came.state), None) if came.state else None
        if pending is None:
            raise InvalidRequest(
                "This answer belongs to no sign-in that is under way: it was used, it took too long, or it was not"
                " begun here.",
                hint="Begin again.",
            )
        self._tickets = {ticket: one for ticket, one in self._tickets.items() if one in self._pending}
        if pending.hosted:
            mine = hashlib.sha256((browser or "").encode()).digest()
            if principal is not None or not pending.browser or not hmac.compare_digest(mine, pending.browser):
                raise Forbidden("This sign-in was begun in another browser.", hint="Begin again, in this one.")
        elif principal != pending.principal:
            raise Forbidden("This sign-in was begun by somebody else.", hint="Begin again.")
        account = pending.account
        client = account.oauth
        assert client is not None
        _check_issuer(came, client)
        places = private(account)
        if came.error is not None or not came.code or not _CODE.match(came.code):
            raise _refused(account, came)
        tokens = await self._exchanged(account, client, pending, came.code, places)
        await self._shelf.put(account, tokens)
        _log.info("signed_in", connection=account.label, principal=pending.principal, scopes=tokens.scopes)
        return account, pending.scopes

    async def _exchanged(
        self, account: Connection, client: OAuthClient, pending: Pending, code: str, private: Sequence[Named]
    ) -> Tokens:
        fresh = Tokens(kept.bound(account))
        if not client.client_id:
            fresh = replace(
                fresh,
                client_id=pending.client_id,
                client_secret=pending.client_secret,
                client_redirect=pending.redirect_uri,
            )
        known = kept.credentials(client, fresh, await self._renewal.client_secret(account))
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending.redirect_uri,
            "code_verifier": pending.verifier,
            "resource": client.resource,
        }
        url = endpoint(client.token_url, private, "token endpoint")
        try:
            found = await self._servers.token(url, known, fields, private)
            return kept.answered(found, pending.scopes, fresh)
        except ServerRefused as e:
            if e.passing:
                raise ToolError(
                    "upstream_unreachable",
                    f"The authorization server gives no token: {e.sentence}.",
                    hint="Begin again.",
                ) from None
            hint = f"Begin again: {sign_in(account)}"
            if e.code in ("invalid_client", "unauthorized_client"):
                hint = "See that client id and secret are right; some servers want --token-auth post."
            raise ToolError(
                "credential_rejected",
                f"The authorization server gives no token: {e.sentence}.",
                hint=hint,
                details={"error": e.code},
            ) from None

    async def _client(
        self, account: Connection, client: OAuthClient, private: Sequence[Named], redirect_uri: str
    ) -> tuple[str, str]:
        """The id and secret to sign in with: as given, by our own document, or registered for this redirect."""
        if client.client_id:
            return client.client_id, ""
        if client.by_document and self.origin is not None and self.origin.startswith("https://"):
            return self.origin + DOCUMENT, ""
        _, tokens = await self._shelf.read(account)
        if tokens is not None and tokens.client_id and tokens.client_redirect == redirect_uri:
            return tokens.client_id, tokens.client_secret
        if not client.registration_url:
            raise InvalidRequest(
                f"The authorization server of {account.label} knows clients by the https URL of their description, and"
                " this server has none.",
                hint="Set public_url, or register a client there and give its id: --client-id.",
            )
        return await self._registered(client, private, redirect_uri)

    async def _registered(self, client: OAuthClient, private: Sequence[Named], redirect_uri: str) -> tuple[str, str]:
        # OpenID Connect Registration §2: what comes back to a loopback address is no web application.
        metadata = client_metadata([redirect_uri], web=self._is_own(redirect_uri))
        if client.token_auth in ("basic", "post"):
            metadata["token_endpoint_auth_method"] = f"client_secret_{client.token_auth}"
        if client.scopes:
            metadata["scope"] = " ".join(client.scopes)
        url = endpoint(client.registration_url, private, "registration")
        try:
            found = await self._servers.register(url, metadata, private)
        except ServerRefused as e:
            raise ToolError(
                "upstream_error",
                f"The authorization server registers no client: {e.sentence}.",
                hint="Register one there yourself and give its id: --client-id.",
                status=e.status,
            ) from None
        return _registration(found)

    def _is_own(self, redirect_uri: str) -> bool:
        return self.origin is not None and redirect_uri == self.origin + CALLBACK and redirect_uri.startswith("https:")

    def _own(self) -> str:
        if self.origin is None:
            raise InvalidRequest(
                "No browser can come back to this server: nobody has said what its address is.",
                hint="Set public_url, or name a redirect_uri on the loopback address of whoever asks.",
            )
        return self.origin + CALLBACK

    def _make_room(self, principal: str) -> None:
        self._expire()
        own = sum(one.principal == principal for one in self._pending.values())
        if len(self._pending) >= MAX_PENDING or own >= MAX_OWN:
            raise Overloaded("too many sign-ins are under way", retry_after_s=int(LIFE_S))

    def _expire(self) -> None:
        now = self._clock()
        if any(one.expires <= now for one in self._pending.values()):
            self._pending = {key: one for key, one in self._pending.items() if one.expires > now}
            self._tickets = {ticket: one for ticket, one in self._tickets.items() if one in self._pending}


def client_metadata(redirect_uris: Sequence[str], *, web: bool = False) -> dict[str, Any]:
    """What a client says of itself (RFC 7591 §2)."""
    return {
        "application_type": "web" if web else "native",
        "client_name": NAME,
        "redirect_uris": list(redirect_uris),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


def _registration(found: Mapping[str, Any]) -> tuple[str, str]:
    """Raises ToolError for an answer without a client that could be used."""
    client_id, secret = found.get("client_id"), found.get("client_secret") or ""
    fits = isinstance(client_id, str) and 0 < len(client_id) <= 1024 and client_id.isascii() and client_id.isprintable()
    if not fits or not isinstance(secret, str) or len(secret) > 4096:
        raise ToolError("upstream_error", "The authorization server's registration gives no client id.")
    method = found.get("token_endpoint_auth_method", "client_secret_basic" if secret else "none")
    if method not in ("none", "client_secret_basic", "client_secret_post"):
        raise ToolError(
            "upstream_error", f"The authorization server wants its clients to prove themselves by {told(str(method))}."
        )
    return str(client_id), "" if method == "none" else secret


def _authorization_url(
    client: OAuthClient,
    private: Sequence[Named],
    client_id: str,
    redirect_uri: str,
    state: str,
    verifier: str,
    scopes: Sequence[str],
) -> str:
    page = endpoint(client.authorization_url, private, "authorization page")
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    fields = dict(client.parameters) | {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "scope": " ".join(scopes),
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "resource": client.resource,
    }
    query = urlencode({name: value for name, value in fields.items() if value}, quote_via=quote)
    # A page may have parameters of its own (RFC 6749 §3.1); those that are ours are not among them.
    own = [one for one in page.query.split("&") if one and one.partition("=")[0] not in fields]
    return str(page.at(page.path + "?" + "&".join([*own, query])))


def _loopback(text: str) -> str:
    """RFC 8252 §7.3: http, an address of the loopback interface, any port; nothing else comes back to who asks."""
    try:
        url = parse_url(text)
    except BadUrl as e:
        raise InvalidRequest(f"The redirect_uri cannot be used: {e}.") from None
    if url.scheme != "http" or url.host.name not in LOOPBACK or url.query or "#" in text or str(url) != text:
        raise InvalidRequest(
            "A redirect_uri is on the loopback address of whoever asks, such as http://127.0.0.1:8400/callback.",
            hint="Leave it out to come back to this server.",
        )
    return text


def _check_issuer(came: Callback, client: OAuthClient) -> None:
    """RFC 9207 §2.4, against mix-up: as one string, and not to be left out where it was promised."""
    if came.iss is None and not client.iss_promised:
        return
    if client.issuer and came.iss != client.issuer:
        raise Forbidden(
            "The answer comes from another authorization server than the one that was asked, or does not say.",
            hint="Nothing was sent there. Begin again; if it happens again, the server is not to be trusted.",
        )


def _refused(account: Connection, came: Callback) -> ToolError:
    code = told(came.error)[:64] or "no_code"
    said = told(came.error_description)
    return ToolError(
        "credential_rejected",
        f"The authorization server did not let {account.label} in: {code}{': ' + said if said else ''}.",
        hint=f"Begin again: {sign_in(account)}",
        details={"error": code},
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
