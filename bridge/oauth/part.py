"""The part of an `auth` that is OAuth: what it takes, and which scheme of a document it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bridge.wire.errors import InvalidRequest
from catalog.model import Manifest

KEYS: Final = frozenset(
    {
        "type",
        "secret",
        "scheme",
        "flow",
        "issuer",
        "authorization_url",
        "token_url",
        "client_id",
        "scopes",
        "token_auth",
        "resource",
        "parameters",
    }
)
"""What auth of type oauth2 takes."""


def part_of(auth: Any, secret: str | None) -> dict[str, Any] | None:
    """The part of an `auth` that is OAuth, with the connection's secret if it has none of its own. `auth` is one that
    `bridge.accounts.placements` accepted."""
    parts = list(auth) if isinstance(auth, Sequence) and not isinstance(auth, str) else [auth]
    for part in parts:
        if part == "oauth2" or (isinstance(part, Mapping) and part.get("type") == "oauth2"):
            facts = {} if isinstance(part, str) else {key: value for key, value in part.items() if value is not None}
            return ({} if secret is None else {"secret": secret}) | facts
    return None


def scheme_of(part: Mapping[str, Any], manifest: Manifest) -> str:
    """The scheme of the document that `part` is about: the named one, else the only one that is OAuth, else "". Raises
    InvalidRequest."""
    known = [name for name, one in manifest.schemes.items() if "oauth" in one]
    name = part.get("scheme")
    if name is None:
        return known[0] if len(known) == 1 else ""
    if name not in known:
        raise InvalidRequest(
            f"The document has no OAuth scheme {str(name)[:80]!r}.", hint=f"It has: {', '.join(known) or 'none'}."
        )
    return str(name)
