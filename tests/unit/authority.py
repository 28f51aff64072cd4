"""An authorization server on loopback that keeps the rules strictly, and breaks them where it is told to. It serves
an API that takes its tokens, too, and counts what it is asked."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

import httpx2

from bridge.oauth.flows import Callback
from bridge.toolbox import Toolbox
from tests.unit.upstream import Seen, Upstream, call, redirect, response, upstream

Answering = Callable[[dict[str, str]], bytes | None]

CLIENT = "executor-tests"
SECRET = "cnry_client_secret_0123456789abcdef"

GET = "api.org.main.http.get"


@dataclass
class Authority:
    """`tokens` are those that the API takes now; a refresh token is good for one use, and a second revokes its family.

    `answer` may answer a token request in place of the server, or give None to let it; `hold` keeps one waiting before
    it is looked at, and `keep` an answer before it is sent.
    """

    server: Upstream
    lifetime: Any = 3600
    promises_iss: bool = False
    iss: str | None = None
    secret: str = SECRET
    rotates: bool = True
    answer: Answering | None = None
    hold: Callable[[], Awaitable[None]] | None = None
    keep: Callable[[], Awaitable[None]] | None = None
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    issued: list[str] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    authorized: list[dict[str, str]] = field(default_factory=list)
    registered: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    revocations: list[dict[str, str]] = field(default_factory=list)
    takes_back: int | None = 200
    """What a revocation is answered with; None: nothing, ever."""

    @property
    def base(self) -> str:
        return self.server.base

    @property
    def refreshes(self) -> int:
        return sum(one["grant_type"] == "refresh_token" for one in self.asked)

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.base,
            "authorization_endpoint": self.base + "/authorize",
            "token_endpoint": self.base + "/token",
            "registration_endpoint": self.base + "/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
            "authorization_response_iss_parameter_supported": self.promises_iss,
        } | self.extra

    async def authorize(self, seen: Seen, reader: Any, writer: Any) -> None:
        """A person who always agrees."""
        asked = dict(parse_qsl(seen.target.partition("?")[2], keep_blank_values=True))
        self.authorized.append(asked)
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        facts = {"code": code, "state": asked["state"]}
        if self.promises_iss or self.iss is not None:
            facts["iss"] = self.iss or self.base
        writer.write(redirect(asked["redirect_uri"] + "?" + urlencode(facts)))

    async def token(self, seen: Seen, reader: Any, writer: Any) -> None:
        fields = dict(parse_qsl(seen.body.decode(), keep_blank_values=True))
        self.asked.append(fields)
        if self.hold is not None:
            await self.hold()
        said = self.answer(fields) if self.answer is not None else None
        said = said if said is not None else self._answered(seen, fields)
        if self.keep is not None:
            await self.keep()
        writer.write(said)

    def _answered(self, seen: Seen, fields: dict[str, str]) -> bytes:
        if not self._known(seen, fields):
            return response({"error": "invalid_client"}, status=401)
        grant = fields["grant_type"]
        if grant == "client_credentials":
            return self._issue("", fields.get("scope", ""), refresh=False)
        if grant == "authorization_code":
            asked = self.codes.pop(fields["code"], None)
            challenge = base64.urlsafe_b64encode(hashlib.sha256(fields["code_verifier"].encode()).digest())
            fits = asked is not None and asked["redirect_uri"] == fields["redirect_uri"]
            if asked is None or not fits or asked["code_challenge"] != challenge.rstrip(b"=").decode():
                return response({"error": "invalid_grant"}, status=400)
            return self._issue(secrets.token_hex(4), asked.get("scope", ""))
        assert grant == "refresh_token"
        family = self.families.get(fields["refresh_token"])
        if family is None or (self.rotates and fields["refresh_token"] in self.used):
            # Reuse: everything that came of it is revoked (RFC 9700 §4.14.2).
            self.families = {token: one for token, one in self.families.items() if one != family}
            self.tokens = {token: one for token, one in self.tokens.items() if one != family}
            return response({"error": "invalid_grant", "error_description": "reused or revoked"}, status=400)
        self.used.add(fields["refresh_token"])
        return self._issue(family, fields.get("scope", ""), refresh=self.rotates)

    def _known(self, seen: Seen, fields: dict[str, str]) -> bool:
        basic = (seen.header("authorization") or "").removeprefix("Basic ")
        if basic:
            name, _, secret = base64.b64decode(basic).decode().partition(":")
            return (unquote_plus(name), unquote_plus(secret)) == (CLIENT, self.secret)
        if any(one["client_id"] == fields.get("client_id") for one in self.registered):
            return True
        return (fields.get("client_id"), fields.get("client_secret", "")) == (CLIENT, self.secret)

    def _issue(self, family: str, scope: str, *, refresh: bool = True) -> bytes:
        access = f"cnry_access_{secrets.token_hex(16)}"
        self.tokens[access] = family
        self.issued.append(access)
        facts: dict[str, Any] = {"access_token": access, "token_type": "Bearer"}
        if self.lifetime is not None:
            facts["expires_in"] = self.lifetime
        if scope:
            facts["scope"] = scope
        if refresh:
            token = f"cnry_refresh_{secrets.token_hex(16)}"
            self.families[token] = family
            self.issued.append(token)
            facts["refresh_token"] = token
        return response(facts, headers={"cache-control": "no-store"})

    async def register(self, seen: Seen, reader: Any, writer: Any) -> None:
        asked = json.loads(seen.body)
        self.registered.append(asked | {"client_id": f"client-{len(self.registered)}"})
        writer.write(response(self.registered[-1], status=201))

    async def api(self, seen: Seen, reader: Any, writer: Any) -> None:
        token = (seen.header("authorization") or "").removeprefix("Bearer ")
        if token in self.tokens:
            writer.write(response({"ok": True, "target": seen.target}))
        else:
            headers = {"www-authenticate": 'Bearer error="invalid_token"'}
            writer.write(response({"error": {"message": "no such token"}}, status=401, headers=headers))

    async def revocation(self, seen: Seen, reader: Any, writer: Any) -> None:
        fields = dict(parse_qsl(seen.body.decode(), keep_blank_values=True))
        self.revocations.append(fields)
        if self.takes_back is None:
            await asyncio.Event().wait()
        if not self._known(seen, fields):
            writer.write(response({"error": "invalid_client"}, status=401))
        elif self.takes_back != 200:
            said = {"error": "server_error", "error_description": f"not now, {fields['token']}"}
            writer.write(response(said, status=self.takes_back or 500))
        else:
            self.families.pop(fields["token"], None)
            self.tokens.pop(fields["token"], None)
            writer.write(response({}))

    def revoke(self) -> None:
        """No access token is good any more; refresh tokens are."""
        self.tokens.clear()


@asynccontextmanager
async def authority(**settings: Any) -> AsyncIterator[Authority]:
    async with upstream() as server:
        one = Authority(server, **settings)

        async def described(seen: Seen, reader: Any, writer: Any) -> None:
            writer.write(response(one.metadata()))

        server.answers |= {
            "/.well-known/oauth-authorization-server": described,
            "/authorize": one.authorize,
            "/token": one.token,
            "/register": one.register,
            "/revoke": one.revocation,
            "/api": one.api,
        }
        server.answers["/.well-known/openid-configuration"] = response({}, status=404)
        yield one


@contextmanager
def authority_running(**settings: Any) -> Iterator[Authority]:
    """The same on a thread of this process, for servers under test."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    one = authority(**settings)
    try:
        yield asyncio.run_coroutine_threadsafe(one.__aenter__(), loop).result(10)
        asyncio.run_coroutine_threadsafe(one.__aexit__(None, None, None), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def visit(url: str) -> Callback:
    """What a person's browser comes back with from the page at `url`."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(url)
    assert answer.status_code == 302, answer.text
    return callback(answer.headers["location"])


def callback(location: str) -> Callback:
    facts = dict(parse_qsl(urlsplit(location).query, keep_blank_values=True))
    return Callback(**{name: value for name, value in facts.items() if name in Callback._fields})


def auth(one: Authority, **more: Any) -> dict[str, Any]:
    """An `auth` that signs in there."""
    facts = {"authorization_url": one.base + "/authorize", "token_url": one.base + "/token", "client_id": CLIENT}
    return {"type": "oauth2", "secret": "local:client", "scopes": ["a", "b"]} | facts | more


async def connected(box: Any, one: Authority, **more: Any) -> None:
    """The API of `one` as `api`, with an account that nobody has signed in to yet."""
    if not await box.secret_names():
        await box.set_secret("client", SECRET)
    await box.add_http("api", [one.base], auth=auth(one, **more), allow_private=["127.0.0.1"], replace=True)


REDIRECT = "http://127.0.0.1:1/callback"


async def signed_in(box: Any, **more: Any) -> dict[str, Any]:
    """What `finish_authorization` answers after a person has agreed."""
    begun = await box.authorize("api", redirect_uri=REDIRECT, **more)
    facts: dict[str, Any] = await box.finish_authorization(await visit(begun["url"]), principal="sdk")
    return facts


async def api(box: Toolbox) -> Any:
    return (await call(box, GET, {"path": "/api"})).value


async def aged(box: Toolbox, seconds: float) -> None:
    """Make the tokens of the account as old as that."""
    account = box.connections.get("api", "org", "main")
    version, tokens = await box.oauth.shelf.read(account)
    assert tokens is not None
    expires = None if tokens.expires_at is None else tokens.expires_at - seconds
    older = replace(tokens, obtained_at=tokens.obtained_at - seconds, expires_at=expires)
    assert await box.oauth.shelf.swap(account, older, version) is not None
