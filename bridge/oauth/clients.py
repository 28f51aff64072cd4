"""From what the operator wrote, the API's description, and what servers publish, to the client that a connection is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bridge.egress import Named
from bridge.oauth import discovery
from bridge.oauth.discovery import Metadata
from bridge.oauth.part import scheme_of
from bridge.oauth.servers import Greeting, Servers, endpoint
from bridge.secrets.references import check_ref
from bridge.wire.errors import InvalidRequest
from catalog.model import Manifest
from catalog.oauth import Flow, OAuthClient, TokenAuth, is_scope
from catalog.origin import BadUrl, Reach, join_url, parse_url

MANY_SCOPES: Final = 20
"""A document that declares more leaves it to the operator which of them to ask for."""
MAX_SCOPES: Final = 100
RESERVED: Final = frozenset(
    {
        "response_type",
        "client_id",
        "client_secret",
        "redirect_uri",
        "scope",
        "state",
        "code",
        "code_challenge",
        "code_challenge_method",
        "code_verifier",
        "grant_type",
        "refresh_token",
        "resource",
        "request",
        "request_uri",
        "response_mode",
    }
)
"""Parameters of requests that are ours to set."""

_FLOWS: Final = ("authorization_code", "client_credentials")
_AUTHS: Final = ("basic", "post", "none")
_CLIENT: Final = {"name": "executor", "version": "1"}
_META: Final = "io.modelcontextprotocol/"
_GREETINGS: Final = (
    Greeting(
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")],
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "server/discover",
            "params": {
                "_meta": {
                    f"{_META}protocolVersion": "2026-07-28",
                    f"{_META}clientInfo": _CLIENT,
                    f"{_META}clientCapabilities": {},
                }
            },
        },
    ),
    Greeting(
        [],
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT},
        },
    ),
)
"""What an MCP server of either era is greeted with."""
_HINT: Final = (
    'Such as {"type": "oauth2", "client_id": …, "secret": "env:…", "authorization_url": …, "token_url": …} or'
    ' {"type": "oauth2", "issuer": …, "client_id": …}.'
)


async def client_of(
    part: Mapping[str, Any], manifest: Manifest, servers: Servers, private: Sequence[Named], *, mcp: str = ""
) -> OAuthClient:
    """The client that `part`, an auth of type oauth2, describes. `mcp` is the URL of an MCP server, which says itself
    how it is protected. Raises InvalidRequest, ImportFailed (what a server publishes)."""
    declared = _declared(part, manifest)
    metadata = await _metadata(part, declared, servers, private)
    found_scopes: tuple[str, ...] = ()
    resource = _text(part, "resource") or mcp
    if metadata is None and not _text(part, "token_url") and resource:
        protected = await discovery.of_resource(servers, resource, private, _GREETINGS if mcp else ())
        metadata = await discovery.of_issuer(servers, protected.servers[0], private)
        resource, found_scopes = protected.resource, protected.scopes
        discovery.check_pkce(metadata, strict=True)
    flow = _flow(part, declared, metadata)
    facts = declared.get("flows", {}).get(flow, {})
    secret = check_ref(part["secret"]) if part.get("secret") is not None else ""
    authorization_url = _url(part, "authorization_url", facts, metadata, manifest, private)
    token_url = _url(part, "token_url", facts, metadata, manifest, private)
    if not token_url or (flow == "authorization_code" and not authorization_url):
        missing = "token_url" if not token_url else "authorization_url"
        raise InvalidRequest(f"auth of type oauth2 needs the {missing}: the API's description has none.", hint=_HINT)
    if flow == "authorization_code" and metadata is not None:
        discovery.check_pkce(metadata, strict=False)
    client_id = _text(part, "client_id")
    registration = metadata.registration_url if metadata is not None and not client_id else ""
    by_document = metadata is not None and metadata.by_document and not client_id
    if not client_id and (flow == "client_credentials" or not (registration or by_document)):
        raise InvalidRequest(
            "auth of type oauth2 needs a client_id: the authorization server registers no clients by itself.",
            hint="Register an application there, with a redirect to http://127.0.0.1 or to /oauth/callback of your"
            " server, and give its client id (--client-id) and secret by reference (--client-secret).",
        )
    if flow == "client_credentials" and not secret:
        raise InvalidRequest("The flow client_credentials needs the client's secret, by reference.", hint=_HINT)
    return OAuthClient(
        flow=flow,
        token_url=token_url,
        authorization_url=authorization_url if flow == "authorization_code" else "",
        client_id=client_id,
        secret=secret,
        scopes=_scopes(part, facts, found_scopes, flow, metadata),
        token_auth=_token_auth(part, metadata, secret or registration),
        issuer=metadata.issuer if metadata is not None else _text(part, "issuer"),
        iss_promised=metadata is not None and metadata.iss_promised,
        resource=resource,
        parameters=_parameters(part),
        registration_url=registration,
        by_document=by_document,
        revocation_url=metadata.revocation_url if metadata is not None else "",
    )


def _declared(part: Mapping[str, Any], manifest: Manifest) -> Mapping[str, Any]:
    """What the document says of the scheme: the named one, else the only one that is OAuth."""
    name = scheme_of(part, manifest)
    found: Mapping[str, Any] = manifest.schemes[name]["oauth"] if name else {}
    return found


async def _metadata(
    part: Mapping[str, Any], declared: Mapping[str, Any], servers: Servers, private: Sequence[Named]
) -> Metadata | None:
    if issuer := _text(part, "issuer"):
        given = _text(part, "token_url")
        return None if given else await discovery.of_issuer(servers, issuer, private)
    if "discovery" in declared and not _text(part, "token_url"):
        return await discovery.of_document(servers, declared["discovery"], private)
    return None


def _flow(part: Mapping[str, Any], declared: Mapping[str, Any], metadata: Metadata | None) -> Flow:
    asked = part.get("flow")
    if asked is not None:
        if asked not in _FLOWS:
            raise InvalidRequest(
                f"There is no flow {str(asked)[:40]!r}.",
                hint=f"Flows are {' and '.join(_FLOWS)}; implicit and password are no part of OAuth 2.1.",
            )
        return "authorization_code" if asked == "authorization_code" else "client_credentials"
    flows = declared.get("flows", {})
    if list(flows) == ["client_credentials"] and metadata is None and not _text(part, "authorization_url"):
        return "client_credentials"
    return "authorization_code"


def _url(
    part: Mapping[str, Any],
    key: str,
    facts: Mapping[str, Any],
    metadata: Metadata | None,
    manifest: Manifest,
    private: Sequence[Named],
) -> str:
    """As given, else as published, else as the document has it, where it may be relative to the API."""
    what = "authorization page" if key == "authorization_url" else "token endpoint"
    if given := _text(part, key):
        return str(endpoint(given, private, what))
    if metadata is not None:
        return metadata.authorization_url if key == "authorization_url" else metadata.token_url
    text = facts.get(key)
    if not text:
        return ""
    try:
        joined = join_url(parse_url(_base(manifest.reach[0])), text) if manifest.reach else parse_url(text)
    except BadUrl as e:
        raise InvalidRequest(f"The {what} in the API's description cannot be used: {e}.") from None
    return str(endpoint(str(joined), private, what))


def _base(reach: Reach) -> str:
    return str(Reach(reach.scheme, reach.host.removeprefix("*."), reach.port, reach.prefix))


def _scopes(
    part: Mapping[str, Any],
    facts: Mapping[str, Any],
    found: tuple[str, ...],
    flow: Flow,
    metadata: Metadata | None,
) -> tuple[str, ...]:
    given = part.get("scopes")
    if given is None:
        scopes = found or tuple(facts.get("scopes", ()))
        if len(scopes) > MANY_SCOPES:
            some = ", ".join(scopes[:5])
            raise InvalidRequest(
                f"The document declares {len(scopes)} scopes: say which ones to ask for.",
                hint=f"--oauth-scopes 'ONE TWO', of {some}, …",
            )
    else:
        scopes = checked_scopes(given)
    offered = metadata.scopes if metadata is not None else facts.get("scopes")
    if flow == "authorization_code" and "offline_access" in (offered or ()) and "offline_access" not in scopes:
        # Without it many servers give no refresh token.
        scopes = (*scopes, "offline_access")
    return tuple(dict.fromkeys(one for one in scopes if is_scope(one)))


def checked_scopes(given: Any) -> tuple[str, ...]:
    """Scopes as a list, or as one text with spaces. Raises InvalidRequest."""
    listed = given.split() if isinstance(given, str) else given
    if not isinstance(listed, Sequence) or len(listed) > MAX_SCOPES or not all(is_scope(one) for one in listed):
        raise InvalidRequest("scopes is a list of scopes, each without spaces and quotation marks.")
    return tuple(dict.fromkeys(listed))


def _token_auth(part: Mapping[str, Any], metadata: Metadata | None, secret: str) -> TokenAuth:
    given = part.get("token_auth")
    if given is not None and given not in _AUTHS:
        raise InvalidRequest(f"token_auth is {', '.join(_AUTHS[:-1])} or {_AUTHS[-1]}.")
    if given == "none" and part.get("secret") is not None:
        raise InvalidRequest("auth has a secret, and token_auth none has no place for it.")
    if given is not None:
        found: TokenAuth = given
        return found
    if metadata is not None:
        return metadata.token_auth(secret=bool(secret))
    return "basic" if secret else "none"


def _parameters(part: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    given = part.get("parameters")
    if given is None:
        return ()
    fits = isinstance(given, Mapping) and len(given) <= 20
    if not fits or not all(isinstance(one, str) and 0 < len(one) <= 1024 for pair in given.items() for one in pair):
        raise InvalidRequest("parameters maps names to texts.")
    if taken := sorted(RESERVED & {name.lower() for name in given}):
        raise InvalidRequest(f"parameters cannot set {', '.join(taken)}: that is set as the flow needs it.")
    return tuple(sorted(given.items()))


def _text(part: Mapping[str, Any], key: str) -> str:
    value = part.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or not value or len(value) > 2048 or not value.isprintable():
        raise InvalidRequest(f"The {key} of auth is text of at most 2048 printable characters.", hint=_HINT)
    return value
