"""How a connection signs in with OAuth 2: the client that it is, and the server that gives it tokens, by no secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

Flow = Literal["authorization_code", "client_credentials"]
TokenAuth = Literal["basic", "post", "none"]

TOKEN: Final = "oauth:token"  # noqa: S105 - a reference
"""What a placement names as its secret where the access token goes. It is no SecretRef that anybody may give."""

_SCOPE: Final = re.compile(r"\A[\x21\x23-\x5b\x5d-\x7e]{1,200}\Z")


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """What a connection was told at the time it was made; a later description of the API changes nothing of it.

    `client_id` is empty where the client registers itself when somebody signs in, at `registration_url` (RFC 7591) or,
    where `by_document`, by the URL of its own metadata. `secret` is the SecretRef of the client secret. `parameters` go
    along in the authorization request, or in the token request of client credentials. `iss_promised`: the answer of
    the authorization server names its issuer (RFC 9207). `revocation_url` is where it takes tokens back (RFC 7009).
    """

    flow: Flow
    token_url: str
    authorization_url: str = ""
    client_id: str = ""
    secret: str = ""
    scopes: tuple[str, ...] = ()
    token_auth: TokenAuth = "none"  # noqa: S105 - a method
    issuer: str = ""
    iss_promised: bool = False
    resource: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    registration_url: str = ""
    by_document: bool = False
    revocation_url: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON data, for the store."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OAuthClient:
        """Raises TypeError or KeyError for what this version cannot read."""
        lists = {"scopes": tuple(data["scopes"]), "parameters": tuple((one[0], one[1]) for one in data["parameters"])}
        return cls(**(dict(data) | lists))


def is_scope(text: Any) -> bool:
    """Whether `text` is one scope (RFC 6749 §3.3)."""
    return isinstance(text, str) and _SCOPE.match(text) is not None
