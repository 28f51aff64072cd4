"""How a connection authenticates: from what the operator wrote to the places where its secrets go."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

from bridge.oauth import part as signing
from bridge.secrets.references import check_ref
from bridge.wire.errors import InvalidRequest, ToolError
from catalog.kinds import headers
from catalog.model import Carrier, Connection, Diagnostic, Manifest, Placement
from catalog.oauth import TOKEN
from catalog.origin import LOCAL, PACKAGE

Auth = Literal["bearer", "basic", "oauth2", "none"] | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
"""How a connection authenticates: `"bearer"`, `"basic"`, `"none"`, `{"type": "header"|"query"|"cookie", "name": …}`
(a header may have a `prefix`), `{"type": "basic", "username"? | "username_secret"?, "password"?}`,
`{"type": "scheme", "scheme": <name in the document>}` with what its kind takes, `{"type": "oauth2", "client_id": …}`
(see `bridge.oauth.clients`; its secret is the client's), or a list of such objects, all of which are sent. A program on
this machine and a package take `{"type": "env", "name": …}` alone. Each takes its own `secret` (a SecretRef), else the
connection's; a header, query parameter, cookie or variable may have a `value` instead, which is no secret.
`{"type": "schemes", "schemes": {name: SecretRef}}` is short for several schemes.
None: the document's own security decides, and bearer where it says nothing."""

MAX_PARTS: Final = 16
MAX_LITERAL: Final = 1024

_VARIABLE: Final = re.compile(r"\A[A-Za-z_][A-Za-z0-9_]{0,127}\Z")

_HINT: Final = 'auth is "bearer", "basic", "none", or an object such as {"type": "header", "name": "X-Api-Key"}.'
_BASIC: Final = {"username", "username_secret", "password"}
_ACCEPTED: Final = {
    "none": {"type"},
    "bearer": {"type", "secret"},
    "basic": {"type", "secret", *_BASIC},
    "header": {"type", "secret", "name", "prefix", "value"},
    "query": {"type", "secret", "name", "value"},
    "cookie": {"type", "secret", "name", "value"},
    "env": {"type", "secret", "name", "value"},
    "scheme": {"type", "secret", "scheme", *_BASIC},
    "schemes": {"type", "schemes", "username"},
    "oauth2": signing.KEYS,
}


def placements(manifest: Manifest, auth: Auth, secret: str | None) -> tuple[Placement, ...]:
    """Where the secret behind `secret` (a SecretRef) goes. Raises InvalidRequest for what cannot be understood."""
    if secret is not None:
        check_ref(secret)
    if auth is None:
        return _by_document(manifest, secret)
    parts = [part for one in _listed(auth) for part in _unfolded(one)]
    if len(parts) > MAX_PARTS:
        raise InvalidRequest(f"A connection has at most {MAX_PARTS} credentials.")
    found = tuple(_placed(manifest, part, secret) for part in parts)
    _check_apart(found)
    _check_kind(manifest, found)
    if sum(one.secret == TOKEN for one in found) > 1:
        raise InvalidRequest("A connection signs in to one authorization server; auth has several.")
    taken = any(secret in one.references or one.secret == TOKEN for one in found)
    if secret is not None and not taken:
        raise InvalidRequest("A secret is given that auth has no place for.", hint=_HINT)
    return found


def references(auth: Any, secret: str | None) -> list[str]:
    """Every SecretRef that `auth` and `secret` name, whether or not they can be understood."""
    parts = list(auth) if isinstance(auth, Sequence) and not isinstance(auth, str) else [auth]
    found = [secret] if secret is not None else []
    for part in parts:
        if isinstance(part, Mapping):
            found += [part[key] for key in ("secret", "username_secret") if part.get(key) is not None]
            schemes = part.get("schemes")
            found += list(schemes.values()) if isinstance(schemes, Mapping) else []
    return found


def _by_document(manifest: Manifest, secret: str | None) -> tuple[Placement, ...]:
    """The scheme that one secret satisfies when nobody names one: the first that the document asks for alone, else the
    first that it declares."""
    if secret is None:
        return ()
    alone = [names[0] for names in manifest.security or () if len(names) == 1 and names[0] in manifest.schemes]
    scheme = next(iter([*alone, *manifest.schemes]), None)
    part: dict[str, Any] = {"type": "bearer"} if scheme is None else {"type": "scheme", "scheme": scheme}
    found = (_placed(manifest, part, secret),)
    _check_kind(manifest, found)
    return found


def _listed(auth: Any) -> list[dict[str, Any]]:
    """The parts of `auth`, each an object whose type is known and whose keys are that type's."""
    parts = list(auth) if isinstance(auth, Sequence) and not isinstance(auth, str) else [auth]
    if not parts:
        raise InvalidRequest("auth is an empty list.", hint=_HINT)
    found = []
    for part in parts:
        facts = {"type": part} if isinstance(part, str) else dict(part) if isinstance(part, Mapping) else {}
        kind = facts.get("type")
        if not isinstance(kind, str) or kind not in _ACCEPTED:
            what = "has no type" if kind is None else "is of no type that there is"
            raise InvalidRequest(f"This auth is not understood: it {what}.", hint=_HINT)
        if unknown := sorted(str(key)[:40] for key in set(facts) - _ACCEPTED[kind]):
            known = ", ".join(sorted(_ACCEPTED[kind]))
            raise InvalidRequest(f"auth of type {kind} does not take {', '.join(unknown)}.", hint=f"It takes {known}.")
        found.append({key: value for key, value in facts.items() if value is not None})
    return found


def _unfolded(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if part["type"] == "none":
        return
    if part["type"] != "schemes":
        yield part
        return
    schemes = part.get("schemes")
    if not isinstance(schemes, Mapping) or not schemes:
        raise InvalidRequest("auth of type schemes maps scheme names to secret references.", hint=_HINT)
    for name, ref in schemes.items():
        yield {"type": "scheme", "scheme": name, "secret": ref, "username": part.get("username", "")}


def _placed(manifest: Manifest, part: dict[str, Any], secret: str | None) -> Placement:
    kind = part["type"]
    if kind == "basic":
        return _basic("", part, secret)
    if kind == "scheme":
        return _scheme(manifest, part, secret)
    if kind == "oauth2":
        return Placement(signing.scheme_of(part, manifest), "header", "Authorization", TOKEN, prefix="Bearer ")
    if kind == "bearer":
        return Placement("", "header", "Authorization", _reference(part, secret), prefix="Bearer ")
    field = _field(cast(Carrier, kind), part.get("name"))
    prefix = _text(part, "prefix")
    if "value" in part:
        if "secret" in part:
            raise InvalidRequest("auth has both a secret and a value; it takes one of them.")
        value = _text(part, "value")
        if not value:
            raise InvalidRequest("The value of auth is empty.")
        _check_value(cast(Carrier, kind), field, prefix + value)
        return Placement("", cast(Carrier, kind), field, "", prefix, value=value)
    _check_value(cast(Carrier, kind), field, prefix + "x")
    return Placement("", cast(Carrier, kind), field, _reference(part, secret), prefix)


def _scheme(manifest: Manifest, part: dict[str, Any], secret: str | None) -> Placement:
    name = str(part.get("scheme"))
    scheme = manifest.schemes.get(name)
    if scheme is None:
        known = ", ".join(manifest.schemes) or "none that a secret can satisfy"
        raise InvalidRequest(f"The document has no security scheme {name[:80]!r}.", hint=f"It has: {known}.")
    if scheme["carrier"] == "basic":
        return _basic(name, part, secret)
    if given := sorted(key for key in _BASIC & set(part) if part[key] != ""):
        raise InvalidRequest(f"The scheme {name[:80]} is not basic, so it does not take {', '.join(given)}.")
    return Placement(name, scheme["carrier"], scheme["field"], _reference(part, secret), scheme["prefix"])


def _basic(name: str, part: dict[str, Any], secret: str | None) -> Placement:
    """RFC 7617: a user name, which may be a secret of its own, and a password, which may be none."""
    username, username_secret = _text(part, "username"), ""
    if ":" in username:
        raise InvalidRequest("A user name has no colon in it (RFC 7617).")
    if "username_secret" in part:
        if username:
            raise InvalidRequest("auth has both username and username_secret; it takes one of them.")
        username_secret = check_ref(part["username_secret"])
    password = _text(part, "password")
    if "password" in part and "secret" in part:
        raise InvalidRequest("auth has both a secret and a password; it takes one of them.")
    if "password" in part and not username and not username_secret:
        raise InvalidRequest("auth of type basic has a password and no user name.")
    # Where the key is the user name, there is often no password at all.
    alone = bool(username_secret) and "secret" not in part and secret is None
    if "password" in part or alone:
        return Placement(name, "basic", "Authorization", "", "", username, username_secret, password)
    return Placement(name, "basic", "Authorization", _reference(part, secret), "", username, username_secret)


def _reference(part: dict[str, Any], secret: str | None) -> str:
    ref = part.get("secret", secret)
    if ref is None:
        raise InvalidRequest("auth is given without a secret.", hint="Name one, such as secret='env:TOKEN'.")
    return check_ref(ref)


def _text(part: dict[str, Any], key: str) -> str:
    value = part.get(key, "")
    if not isinstance(value, str) or len(value) > MAX_LITERAL or not (value.isprintable() or not value):
        raise InvalidRequest(f"The {key} of auth is text of at most {MAX_LITERAL} printable characters.")
    return value


def _field(carrier: Carrier, name: Any) -> str:
    fits = isinstance(name, str) and name.isascii() and name.isprintable() and 0 < len(name) <= headers.MAX_NAME
    if not isinstance(name, str) or not fits or " " in name:
        raise InvalidRequest(f"auth of type {carrier} needs the name of the {carrier}.", hint=_HINT)
    if carrier == "env" and not _VARIABLE.match(name):
        raise InvalidRequest(f"{name[:80]!r} is not a name for an environment variable.")
    if carrier != "query" and any(mark in name for mark in ':;=,"'):
        raise InvalidRequest(f"{name[:80]!r} is not a name for a {carrier}.")
    return name


def _check_value(carrier: Carrier, field: str, value: str) -> None:
    """What would be sent, or something like it: a header that only the client sets is refused here, not at a call."""
    if carrier != "header":
        return
    try:
        headers.check("auth", field, value)
    except ToolError as e:
        raise InvalidRequest(e.message) from None


def _check_kind(manifest: Manifest, found: Sequence[Placement]) -> None:
    """A program takes its secrets as environment variables, and a request has none of those."""
    program = any(one.scheme in (LOCAL, PACKAGE) for one in manifest.reach)
    for one in found:
        if program and one.carrier != "env":
            raise InvalidRequest(
                "A program on this machine, or a package, takes its secrets as environment variables.",
                hint='Use --env NAME=REFERENCE, or {"type": "env", "name": NAME, "secret": REFERENCE}.',
            )
        if one.carrier == "env" and not program:
            raise InvalidRequest("Only a program on this machine, or a package, takes environment variables.")


def _check_apart(found: Sequence[Placement]) -> None:
    """Two credentials for every request cannot have one place. (Of two schemes an operation chooses.)"""
    places: set[tuple[str, str]] = set()
    for one in found:
        carrier = "header" if one.carrier == "basic" else one.carrier
        place = (carrier, one.field.lower() if carrier == "header" else one.field)
        if not one.name and place in places:
            raise InvalidRequest(f"Two credentials would go to the same {carrier} {one.field[:80]}.")
        if not one.name:
            places.add(place)


def unset(account: Connection, names: Sequence[str], providers: Mapping[str, str | None]) -> list[Diagnostic]:
    """What a connection refers to that is not there yet: local secrets that are not among the `names` in its scope, and
    providers that `providers` gives a reason against."""
    found = []
    for ref in account.references:
        provider, _, key = ref.partition(":")
        if provider == "local" and key not in names:
            text = f"{ref} is not set in scope {account.scope}: every call fails until it is"
            found.append(Diagnostic("secret", text))
        elif reason := providers.get(provider):
            found.append(Diagnostic("secret", f"{ref}: {reason}: every call fails until then"))
    return found
