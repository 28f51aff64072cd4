"""What servers publish of themselves: authorization servers (RFC 8414, OpenID Connect) and resources (RFC 9728)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bridge.egress import Named
from bridge.oauth.servers import Greeting, Servers, endpoint
from bridge.wire.errors import ImportFailed, InvalidRequest, ToolError
from catalog.oauth import TokenAuth, is_scope
from catalog.origin import Url

OPENID: Final = "/.well-known/openid-configuration"
OAUTH: Final = "/.well-known/oauth-authorization-server"
RESOURCE: Final = "/.well-known/oauth-protected-resource"
METHODS: Final[Mapping[str, TokenAuth]] = {
    "client_secret_basic": "basic",
    "client_secret_post": "post",
    "none": "none",
}

_PARAMETER: Final = re.compile(r'([A-Za-z_]{1,40})=(?:"((?:[^"\\]|\\.){0,2048})"|([^\s,"]{1,2048}))')


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is used of an authorization server's metadata. `pkce` None: it does not say; `scopes` None likewise."""

    issuer: str
    authorization_url: str
    token_url: str
    registration_url: str
    iss_promised: bool
    pkce: tuple[str, ...] | None
    scopes: tuple[str, ...] | None
    token_auths: tuple[TokenAuth, ...]
    by_document: bool
    flows: tuple[str, ...]
    revocation_url: str = ""

    def token_auth(self, *, secret: bool) -> TokenAuth:
        """How a client authenticates; basic where nothing else is said (RFC 8414 §2)."""
        if not secret:
            return "none"
        return next((one for one in self.token_auths if one != "none"), "basic")


@dataclass(frozen=True, slots=True)
class Resource:
    """A protected resource: its identifier, its authorization servers, and the scopes that it asks for."""

    resource: str
    servers: tuple[str, ...]
    scopes: tuple[str, ...]


async def of_issuer(servers: Servers, issuer: str, private: Sequence[Named]) -> Metadata:
    """The metadata of the authorization server `issuer`. Raises ImportFailed, InvalidRequest."""
    base = endpoint(issuer, private, "issuer")
    path = base.path.rstrip("/")
    # MCP 2025-11-25, authorization server metadata discovery: in this order.
    places = [OAUTH + path, OPENID + path, *([path + OPENID] if path else [])]
    return await _first(servers, [base.at(place) for place in places], issuer, private)


async def of_document(servers: Servers, url: str, private: Sequence[Named]) -> Metadata:
    """The metadata at a discovery URL, as OpenAPI's `openIdConnectUrl` has it. Raises ImportFailed, InvalidRequest."""
    place = endpoint(url, private, "discovery document")
    for suffix in (OPENID, OAUTH):
        if url.endswith(suffix):
            return await _first(servers, [place], url.removesuffix(suffix), private)
    return await _first(servers, [place], None, private)


async def _first(servers: Servers, places: Sequence[Url], issuer: str | None, private: Sequence[Named]) -> Metadata:
    said = "no metadata"
    for place in places:
        try:
            status, found = await servers.get(place, private)
        except ToolError as e:
            raise ImportFailed(f"The authorization server cannot be asked: {e.message}", hint=e.hint) from None
        if status == 200 and found is not None:
            return _metadata(found, issuer, private)
        said = f"{status} and no metadata"
    raise ImportFailed(
        f"The authorization server at {places[0].origin} publishes nothing of itself: it answered {said}.",
        hint="Give its URLs: --authorization-url and --token-url.",
    )


def _metadata(found: Mapping[str, Any], issuer: str | None, private: Sequence[Named]) -> Metadata:
    """RFC 8414 §3.3: the issuer is the one that was asked, or none of the rest may be used."""
    named = found.get("issuer")
    if not isinstance(named, str) or not named or len(named) > 2048:
        raise ImportFailed("The authorization server does not say who it is (issuer).")
    if issuer is not None and not _same(named, issuer):
        raise ImportFailed(
            f"The authorization server at {issuer[:200]} says that it is another one: {_shown(named)}.",
            hint="Its issuer must be exactly the one that is named.",
        )
    token_url = str(endpoint(found.get("token_endpoint"), private, "token endpoint"))
    urls = {}
    for key, what in (("authorization_endpoint", "authorization page"), ("registration_endpoint", "registration")):
        urls[key] = str(endpoint(found[key], private, what)) if isinstance(found.get(key), str) else ""
    methods = _texts(found.get("token_endpoint_auth_methods_supported"))
    return Metadata(
        named,
        urls["authorization_endpoint"],
        token_url,
        urls["registration_endpoint"],
        found.get("authorization_response_iss_parameter_supported") is True,
        _texts(found.get("code_challenge_methods_supported")),
        _texts(found.get("scopes_supported")),
        tuple(METHODS[one] for one in methods or () if one in METHODS),
        found.get("client_id_metadata_document_supported") is True,
        _texts(found.get("grant_types_supported")) or (),
        _revocation(found, private),
    )


def _revocation(found: Mapping[str, Any], private: Sequence[Named]) -> str:
    """Where tokens are taken back; "" where that is nowhere that could be used, which is no reason not to sign in."""
    try:
        return str(endpoint(found.get("revocation_endpoint"), private, "revocation endpoint"))
    except InvalidRequest:
        return ""


def check_pkce(metadata: Metadata, *, strict: bool) -> None:
    """Raises ImportFailed for a server that does not do S256; `strict`: also for one that does not say that it does."""
    methods = metadata.pkce if metadata.pkce is not None or not strict else ()
    if methods is not None and "S256" not in methods:
        raise ImportFailed(
            f"The authorization server {_shown(metadata.issuer)} does not offer PKCE with S256, without which signing"
            " in is not safe.",
        )


async def of_resource(
    servers: Servers, url: str, private: Sequence[Named], greetings: Sequence[Greeting] = ()
) -> Resource:
    """What protects the resource at `url`: from the challenge of an answer without a credential, else from the
    well-known places. Without either, its own origin is the server. `greetings` are
    posted in turn where a GET says nothing. Raises ImportFailed, InvalidRequest."""
    target = endpoint(url, private, "resource")
    try:
        challenge: dict[str, str] = {}
        for greeting in greetings or (None,):
            status, headers = await servers.probe(target, private, greeting)
            if status in (401, 403):
                challenge = challenged(headers)
                break
        places = [target.at(RESOURCE + target.path.rstrip("/")), target.at(RESOURCE)]
        if "resource_metadata" in challenge:
            places.insert(0, endpoint(challenge["resource_metadata"], private, "resource metadata"))
        for place in dict.fromkeys(places):
            status, found = await servers.get(place, private)
            if status == 200 and found is not None:
                return _resource(found, target, challenge, private)
            if status >= 500 or status == 429:
                raise ImportFailed(f"{place.origin} cannot say how it is protected: it answered {status}.")
    except ToolError as e:
        raise ImportFailed(f"{target.origin} cannot be asked how it is protected: {e.message}", hint=e.hint) from None
    return Resource(str(target), (target.origin,), _asked(challenge))


def _resource(
    found: Mapping[str, Any], target: Url, challenge: Mapping[str, str], private: Sequence[Named]
) -> Resource:
    """RFC 9728 §3.3 and RFC 8707 §2: the resource is what was asked about, or what that lies in."""
    named = found.get("resource")
    try:
        whole = endpoint(named, private, "resource")
    except InvalidRequest:
        raise ImportFailed(f"What {target.origin} publishes of its protection names no resource.") from None
    inside = whole.path.rstrip("/")
    if whole.origin != target.origin or not (target.path == inside or target.path.startswith(inside + "/")):
        raise ImportFailed(
            f"What {target.origin} publishes of its protection is about another resource: {_shown(str(named))}."
        )
    listed = _texts(found.get("authorization_servers")) or (target.origin,)
    scopes = _asked(challenge) or tuple(one for one in _texts(found.get("scopes_supported")) or () if is_scope(one))
    return Resource(str(named), listed, scopes)


def challenged(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The parameters of the Bearer challenge in an answer (RFC 6750 §3)."""
    for name, value in headers:
        scheme = value[:8192].lower().find("bearer")
        if name == "www-authenticate" and scheme >= 0:
            pairs = _PARAMETER.findall(value[scheme + 6 : 8192])
            return {key.lower(): re.sub(r"\\(.)", r"\1", quoted) or bare for key, quoted, bare in reversed(pairs)}
    return {}


def needed(headers: Sequence[tuple[str, str]]) -> tuple[str, ...] | None:
    """The scopes that an answer says to need (RFC 6750 §3.1 insufficient_scope); None when it says nothing of it."""
    challenge = challenged(headers)
    return _asked(challenge) if challenge.get("error") == "insufficient_scope" else None


def _asked(challenge: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(one for one in challenge.get("scope", "").split() if is_scope(one))[:100]


def _texts(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(one for one in value[:1000] if isinstance(one, str) and len(one) <= 2048)


def _same(one: str, other: str) -> bool:
    """The same string (RFC 3986 §6.2.1), except that an origin may end in a slash or not."""
    shorter, longer = sorted((one, other), key=len)
    return one == other or (longer == shorter + "/" and shorter.count("/") == 2)


def _shown(text: str) -> str:
    return "".join(one for one in text[:200] if one.isprintable())
