"""The tokens of an account as they are kept: one sealed row for each, changed only by compare-and-swap."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from bridge.oauth.servers import Credentials, ServerRefused
from bridge.secrets.local import LocalSecrets
from bridge.secrets.ports import MIN_LENGTH
from catalog.model import Connection
from catalog.oauth import OAuthClient, is_scope

MAX_TOKEN: Final = 16 * 1024
MAX_SCOPES: Final = 200
MAX_LIFETIME_S: Final = 10 * 366 * 86_400
EARLY_S: Final = 60.0
"""A token is renewed this long before it expires, or when a fifth of its life is left if that is sooner."""
EARLY_SHARE: Final = 0.2

_TOKEN: Final = re.compile(r"\A[\x21-\x7e]+\Z")


@dataclass(frozen=True, slots=True)
class Lease:
    """Who renews, as `host:pid:number`, and until when, in seconds since 1970, nobody else does."""

    by: str
    until: float


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an account has. `access` and `refresh` are secrets, and so is the secret of a client that registered itself.

    `bound` ties them to the client and the server that they came from. Times are seconds since 1970; `expires_at` None:
    nobody said. `failed` is why there is no refresh token any more.
    """

    bound: str
    access: str = ""
    refresh: str = ""
    obtained_at: float = 0.0
    expires_at: float | None = None
    scopes: tuple[str, ...] = ()
    client_id: str = ""
    client_secret: str = ""
    client_redirect: str = ""
    lease: Lease | None = None
    failed: str = ""

    def __repr__(self) -> str:
        return "Tokens(…)"

    def valid(self, now: float) -> bool:
        """Whether the access token has not expired, as far as anybody said."""
        return bool(self.access) and (self.expires_at is None or now < self.expires_at)

    def fresh(self, now: float) -> bool:
        """Whether it need not be renewed yet either."""
        if self.expires_at is None or not self.valid(now):
            return self.valid(now)
        early = min(EARLY_S, EARLY_SHARE * max(0.0, self.expires_at - self.obtained_at))
        return now < self.expires_at - early

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Tokens:
        """Raises ValueError, TypeError or KeyError for what this version cannot read."""
        data = json.loads(text)
        lease = None if data["lease"] is None else Lease(**data["lease"])
        return cls(**(data | {"scopes": tuple(data["scopes"]), "lease": lease}))


def answered(found: Mapping[str, Any], asked: Sequence[str], before: Tokens) -> Tokens:
    """`before` with what a token endpoint answered (RFC 6749 §5.1). A refresh token stays where no new one came, and so
    do the scopes. Raises ServerRefused for an answer that cannot be used."""
    access, refresh = found.get("access_token"), found.get("refresh_token") or ""
    if not _usable(access):
        raise ServerRefused("invalid_token_response", "its answer has no access token that a header can carry")
    if refresh and not _usable(refresh):
        raise ServerRefused("invalid_token_response", "its answer has a refresh token that is none")
    kind = found.get("token_type", "bearer")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise ServerRefused("invalid_token_response", "its token is of another type than Bearer")
    now = time.time()
    lifetime = _seconds(found.get("expires_in"))
    scopes = _scopes(found.get("scope"))
    return replace(
        before,
        access=str(access),
        refresh=str(refresh) or before.refresh,
        obtained_at=now,
        expires_at=None if lifetime is None else now + lifetime,
        scopes=scopes if scopes is not None else before.scopes or tuple(asked),
        lease=None,
        failed="",
    )


def _usable(token: Any) -> bool:
    """RFC 6750 §2.1, and long enough to be masked where it comes back."""
    return isinstance(token, str) and MIN_LENGTH <= len(token) <= MAX_TOKEN and _TOKEN.match(token) is not None


def _seconds(lifetime: Any) -> float | None:
    """A lifetime, also as text, as some servers have it; None when it is none that could be meant."""
    try:
        seconds = float(lifetime)
    except (TypeError, ValueError):
        return None
    return min(seconds, MAX_LIFETIME_S) if math.isfinite(seconds) and seconds > 0 else None


def _scopes(text: Any) -> tuple[str, ...] | None:
    if not isinstance(text, str):
        return None
    return tuple(one for one in text[: MAX_SCOPES * 100].split() if is_scope(one))[:MAX_SCOPES]


def bound(account: Connection) -> str:
    """What ties tokens to the account's client: tokens of another client or server are none of it."""
    client = account.oauth
    assert client is not None
    facts = [account.label, client.flow, client.token_url, client.client_id, client.issuer, client.resource]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


class Shelf:
    """Where the tokens of accounts are kept: sealed in the store of secrets, under names that no reference can have."""

    def __init__(self, local: LocalSecrets) -> None:
        self._local = local

    async def read(self, account: Connection) -> tuple[int | None, Tokens | None]:
        """The version that is stored and the account's tokens in it: None when there are none, or none of this client.
        Raises ConfigError (the master key)."""
        version, text = await self._local.kept(account.scope, _name(account))
        if text is None:
            return version, None
        try:
            tokens = Tokens.of_text(text)
        except (ValueError, TypeError, KeyError):
            return version, None
        return version, tokens if tokens.bound == bound(account) else None

    async def swap(self, account: Connection, tokens: Tokens, expected: int | None) -> int | None:
        """Keep `tokens` in place of version `expected`. The new version; None when another one is there by now."""
        return await self._local.keep(account.scope, _name(account), tokens.as_text(), expected=expected)

    async def put(self, account: Connection, tokens: Tokens) -> None:
        """Keep `tokens`, whatever was there."""
        while True:
            version, _ = await self._local.kept(account.scope, _name(account))
            if await self.swap(account, tokens, version) is not None:
                return

    async def forget(self, account: Connection) -> None:
        await self._local.forget(account.scope, _name(account))


def _name(account: Connection) -> str:
    return f"oauth:{account.integration}.{account.name}"


def credentials(client: OAuthClient, tokens: Tokens | None, secret: str) -> Credentials:
    """Who the client is: as it was given, or as it registered itself."""
    if client.client_id or tokens is None:
        return Credentials(client.client_id, secret, client.token_auth)
    return Credentials(tokens.client_id, tokens.client_secret, client.token_auth if tokens.client_secret else "none")
