"""How a connection authenticates: from what the operator wrote to the places where its secrets go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

from bridge.secrets.ports import parse_ref
from bridge.wire.errors import InvalidRequest
from catalog.kinds.openapi import security
from catalog.model import Carrier, Connection, Diagnostic, Manifest, Placement

Auth = Literal["bearer", "basic"] | Mapping[str, Any] | None
"""How a connection authenticates: `"bearer"`, `"basic"`, `{"type": "header"|"query"|"cookie", "name": …, "prefix"?}`,
`{"type": "basic", "username"?}`, `{"type": "scheme", "scheme": <name in the document>, "username"?}`, or None: the
document's own security decides, and bearer where it says nothing. `{"type": "schemes", "schemes": {name: secret ref}}`
gives several credentials at once, each for the scheme of that name."""

_HINT: Final = 'auth is "bearer", "basic", or an object such as {"type": "header", "name": "X-Api-Key"}.'
_CARRIERS: Final = ("header", "query", "cookie")
_ACCEPTED: Final = {
    "bearer": {"type"},
    "basic": {"type", "username"},
    "header": {"type", "name", "prefix"},
    "query": {"type", "name"},
    "cookie": {"type", "name"},
    "scheme": {"type", "scheme", "username"},
    "schemes": {"type", "schemes", "username"},
}


def placements(manifest: Manifest, auth: Auth, secret: str | None) -> tuple[Placement, ...]:
    """Where the secret behind `secret` (a SecretRef) goes. Raises InvalidRequest for what cannot be understood."""
    facts = {"type": auth} if isinstance(auth, str) else dict(auth) if auth is not None else {}
    kind = facts.get("type")
    if kind is not None and (kind not in _ACCEPTED or set(facts) - _ACCEPTED[kind]):
        raise InvalidRequest(f"This auth is not understood: {sorted(map(str, facts))}.", hint=_HINT)
    username = str(facts.get("username", ""))
    if kind == "schemes":
        return _several(manifest, facts.get("schemes"), username)
    if secret is None:
        if kind is not None:
            raise InvalidRequest("auth is given without a secret.", hint="Name one, such as secret='env:TOKEN'.")
        return ()
    parse_ref(secret)
    if kind is None:
        names = security.placements(manifest.schemes, [tuple(one) for one in manifest.security or ()])
        return (_scheme(manifest, names[0], secret, username),) if names else (_bearer(secret),)
    if kind == "bearer":
        return (_bearer(secret),)
    if kind == "basic":
        return (Placement("", "basic", "Authorization", secret, username=username),)
    if kind == "scheme":
        return (_scheme(manifest, str(facts.get("scheme")), secret, username),)
    return (_named(cast(Carrier, kind), facts, secret),)


def _bearer(secret: str) -> Placement:
    return Placement("", "header", "Authorization", secret, prefix="Bearer ")


def _named(carrier: Carrier, facts: dict[str, Any], secret: str) -> Placement:
    name, prefix = facts.get("name"), facts.get("prefix", "")
    if not isinstance(name, str) or not name.isascii() or not name.isprintable() or not name or " " in name:
        raise InvalidRequest(f"auth of type {carrier} needs the name of the {carrier}.", hint=_HINT)
    if carrier != "query" and any(mark in name for mark in ':;=,"'):
        raise InvalidRequest(f"{name[:80]!r} is not a name for a {carrier}.")
    return Placement("", carrier, name, secret, prefix=str(prefix))


def _scheme(manifest: Manifest, name: str, secret: str, username: str) -> Placement:
    scheme = manifest.schemes.get(name)
    if scheme is None:
        known = ", ".join(manifest.schemes) or "none that a secret can satisfy"
        raise InvalidRequest(f"The document has no security scheme {name[:80]!r}.", hint=f"It has: {known}.")
    return Placement(name, scheme["carrier"], scheme["field"], secret, scheme["prefix"], username)


def _several(manifest: Manifest, schemes: Any, username: str) -> tuple[Placement, ...]:
    if not isinstance(schemes, Mapping) or not schemes:
        raise InvalidRequest("auth of type schemes maps scheme names to secret references.", hint=_HINT)
    for ref in schemes.values():
        parse_ref(str(ref))
    return tuple(_scheme(manifest, str(name), str(ref), username) for name, ref in schemes.items())


def unset(account: Connection, names: Sequence[str]) -> list[Diagnostic]:
    """The local secrets of a connection that are not among the `names` in its scope."""
    wanted = {one.secret.removeprefix("local:") for one in account.placements if one.secret.startswith("local:")}
    text = f"is not set in scope {account.scope}: every call fails until it is"
    return [Diagnostic("secret", f"local:{name} {text}") for name in sorted(wanted.difference(names))]
