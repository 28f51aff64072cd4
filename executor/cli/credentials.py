"""Options that say how a connection authenticates. Secrets are given by reference, never by value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from cyclopts import Parameter

from executor.cli.options import UsageError, read_json, read_pairs

Many = Annotated[list[str] | None, Parameter(negative="", group="Credentials")]
One = Annotated[str | None, Parameter(group="Credentials")]

_PROVIDERS: Final = ("local:", "env:", "file:", "keychain:", "vault:", "op:")


@Parameter(name="*")
@dataclass(frozen=True)
class Credentials:
    """How the account authenticates. Several may be given; all of them are sent.

    Parameters
    ----------
    secret
        A secret, by reference, that goes where the document says: local:NAME, env:NAME, file:/PATH,
        keychain:SERVICE/ACCOUNT, vault:MOUNT/PATH#FIELD or op:VAULT/ITEM/FIELD.
    bearer
        A bearer token, by reference.
    header
        A header that carries a secret, such as X-Api-Key=env:NAME or "Authorization=Token env:NAME". May be repeated.
    query
        A query parameter that carries a secret, such as api_key=env:NAME. May be repeated.
    cookie
        A cookie that carries a secret, such as sid=env:NAME. May be repeated.
    basic
        User name and password, either by reference or as it is: ann=env:NAME, env:KEY= or env:KEY=x. Or a reference to
        both, joined by a colon.
    env
        A variable that a program or a package gets as a secret: NAME=REFERENCE, or NAME alone for NAME=env:NAME. May be
        repeated.
    set
        A variable that it gets and that is no secret, such as LOG_LEVEL=debug. May be repeated.
    scheme
        A security scheme of the document, such as apiKey=env:NAME. May be repeated.
    oauth
        Sign in with OAuth: as the document or the server says, and as the options below do.
    client_id
        The client's id at the authorization server, where it does not register clients by itself.
    client_secret
        The client's secret, by reference.
    issuer
        The authorization server, such as https://login.example.com, which says itself where its pages are.
    authorization_url
        The page where a person signs in.
    token_url
        Where tokens come from.
    oauth_scopes
        What to ask for, such as "read write".
    flow
        authorization_code or client_credentials.
    token_auth
        How the client proves itself: basic, post or none.
    oauth_parameter
        One more parameter of the request, such as audience=https://api.example.com. May be repeated.
    auth
        All of it as JSON, as the HTTP API takes it.
    probe
        A tool that reads and takes no argument; `executor connections check` calls it.
    """

    secret: One = None
    bearer: One = None
    header: Many = None
    query: Many = None
    cookie: Many = None
    basic: One = None
    env: Many = None
    set: Many = None
    scheme: Many = None
    oauth: Annotated[bool, Parameter(negative="", show_default=False, group="Credentials")] = False
    client_id: One = None
    client_secret: One = None
    issuer: One = None
    authorization_url: One = None
    token_url: One = None
    oauth_scopes: One = None
    flow: One = None
    token_auth: One = None
    oauth_parameter: Many = None
    auth: One = None
    probe: One = None

    def options(self) -> dict[str, Any]:
        """`auth`, `secret` and `probe` as the API takes them. Raises UsageError."""
        parts = self._parts()
        if self.auth is not None and parts:
            raise UsageError("use --auth or the options for single credentials, not both")
        auth = read_json(self.auth, "--auth") if self.auth is not None else parts or None
        secret = None if self.secret is None else _reference(self.secret)
        return {"auth": auth, "secret": secret, "probe": self.probe}

    def _parts(self) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        if self.bearer is not None:
            parts.append({"type": "bearer", "secret": _reference(self.bearer)})
        for kind in ("header", "query", "cookie"):
            for pair in getattr(self, kind) or ():
                parts.append(_named(kind, pair))
        if self.basic is not None:
            parts.append(_basic(self.basic))
        for pair in self.env or ():
            name, _, ref = pair.partition("=")
            parts.append({"type": "env", "name": name, "secret": _reference(ref or f"env:{name}")})
        for pair in self.set or ():
            name, value = _split(pair, "set")
            parts.append({"type": "env", "name": name, "value": value})
        for pair in self.scheme or ():
            name, ref = _split(pair, "scheme")
            parts.append({"type": "scheme", "scheme": name, "secret": _reference(ref)})
        if (oauth := self._oauth()) is not None:
            parts.append(oauth)
        return parts

    def _oauth(self) -> dict[str, Any] | None:
        facts: dict[str, Any] = {
            "secret": None if self.client_secret is None else _reference(self.client_secret),
            "scopes": None if self.oauth_scopes is None else self.oauth_scopes.split(),
            "parameters": read_pairs(self.oauth_parameter, "parameter") if self.oauth_parameter else None,
        }
        for name in ("client_id", "issuer", "authorization_url", "token_url", "flow", "token_auth"):
            facts[name] = getattr(self, name)
        given = {name: value for name, value in facts.items() if value is not None}
        return {"type": "oauth2"} | given if given or self.oauth else None

    @property
    def asks_again(self) -> bool:
        """Whether nothing is said but which scopes to ask for, at most."""
        return replace(self, oauth=False, oauth_scopes=None) == NONE


NONE: Final = Credentials()


def _reference(text: str) -> str:
    if not text.startswith(_PROVIDERS):
        raise UsageError(
            "a secret is given by reference, never by value",
            hint="local:NAME from `executor secret set NAME`, env:NAME, file:/PATH, or another kind of docs/secrets.md",
        )
    return text


def _split(pair: str, what: str) -> tuple[str, str]:
    name, equals, rest = pair.partition("=")
    if not equals or not name:
        raise UsageError(f"this is not a {what}", hint=f"write it like --{what} NAME=env:NAME")
    return name, rest


def _named(kind: str, pair: str) -> dict[str, Any]:
    name, rest = _split(pair, kind)
    before, space, ref = rest.rpartition(" ")
    part = {"type": kind, "name": name, "secret": _reference(ref)}
    if space and kind != "header":
        raise UsageError(f"only a header has something before its secret, not a {kind}")
    return part | {"prefix": before + space} if space else part


def _basic(text: str) -> dict[str, Any]:
    name, equals, rest = text.partition("=")
    if not equals:
        return {"type": "basic", "secret": _reference(text)}
    part: dict[str, Any] = {"type": "basic"}
    # A user name has no colon in it (RFC 7617), so what has one is a reference.
    part |= {"username_secret": _reference(name)} if ":" in name else {"username": name}
    if rest.startswith(_PROVIDERS):
        return part | {"secret": rest}
    return part | ({"password": rest} if rest or ":" not in name else {})
