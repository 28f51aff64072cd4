"""Security schemes: how a connection can authenticate, and which of its credentials an operation asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from catalog.kinds.openapi.reader import BadReference, Document
from catalog.model import Connection

Requirement = tuple[str, ...]

_FLOWS: Final = {
    "authorizationCode": "authorization_code",
    "clientCredentials": "client_credentials",
    "accessCode": "authorization_code",
    "application": "client_credentials",
}
"""What OpenAPI 3 and Swagger 2.0 call the flows that there still are (OAuth 2.1 has no implicit and no password)."""


def schemes(document: Document) -> dict[str, dict[str, Any]]:
    """The document's schemes that a credential can satisfy: `{type, carrier, field, prefix}` by name.

    oauth2 and openIdConnect are bearer tokens, which come from the connection; what the document says of getting them
    is in `oauth`: `flows`, by the names that RFC 6749 has for them, or the `discovery` URL.
    """
    components = document.root.get("components")
    declared = components.get("securitySchemes") if isinstance(components, dict) else None
    found: dict[str, dict[str, Any]] = {}
    for name, node in declared.items() if isinstance(declared, dict) else ():
        try:
            scheme = _placed(document.follow(node))
        except BadReference:
            continue
        if scheme is not None:
            found[str(name)] = scheme
    return found


def _placed(node: Any) -> dict[str, Any] | None:
    if not isinstance(node, dict):
        return None
    kind = str(node.get("type", "")).lower()
    if kind == "apikey" and node.get("in") in ("header", "query", "cookie") and isinstance(node.get("name"), str):
        return {"type": "apiKey", "carrier": node["in"], "field": node["name"], "prefix": ""}
    if kind == "basic" or (kind == "http" and str(node.get("scheme", "")).lower() == "basic"):
        return {"type": "basic", "carrier": "basic", "field": "Authorization", "prefix": ""}
    if (kind == "http" and str(node.get("scheme", "")).lower() == "bearer") or kind in ("oauth2", "openidconnect"):
        bearer = {"type": "bearer", "carrier": "header", "field": "Authorization", "prefix": "Bearer "}
        return bearer if kind == "http" else bearer | {"oauth": _oauth(kind, node)}
    return None


def _oauth(kind: str, node: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "openidconnect":
        url = node.get("openIdConnectUrl")
        return {"discovery": url} if isinstance(url, str) else {}
    flows = node.get("flows")
    declared = flows if isinstance(flows, dict) else {node.get("flow"): node}
    found: dict[str, Any] = {}
    for name, flow in declared.items():
        if name in _FLOWS and isinstance(flow, dict):
            scopes = flow.get("scopes")
            facts: dict[str, Any] = {"scopes": [str(one) for one in scopes] if isinstance(scopes, dict) else []}
            for key, ours in (("authorizationUrl", "authorization_url"), ("tokenUrl", "token_url")):
                if isinstance(flow.get(key), str):
                    facts[ours] = flow[key]
            found[_FLOWS[name]] = facts
    return {"flows": found} if found else {}


def requirements(node: Any) -> tuple[Requirement, ...] | None:
    """The alternatives of a `security` list, each the schemes that it needs together; None when nothing is said."""
    if not isinstance(node, list):
        return None
    return tuple(tuple(map(str, alternative)) for alternative in node if isinstance(alternative, dict))


def chosen(security: Sequence[Requirement] | None, connection: Connection) -> tuple[str, ...] | None:
    """The credentials of `connection` that a request of the operation carries; None means all of them.

    Placements without a scheme's name go with every operation, an open one excepted. Of several alternatives the
    fullest that the connection can satisfy is taken; if there is none, what it has is sent and the server decides.
    """
    held = {placement.name for placement in connection.placements}
    if security is None or "" in held:
        return () if security == () else None
    full = [names for names in security if set(names) <= held]
    if full:
        return max(full, key=len)
    asked = {name for names in security for name in names}
    return tuple(sorted(asked & held))


def missing(security: Sequence[Requirement] | None, connection: Connection) -> list[str]:
    """The schemes that the connection lacks of an alternative it can satisfy only in part."""
    held = {placement.name for placement in connection.placements}
    if not security or "" in held or any(set(names) <= held for names in security):
        return []
    partial = [names for names in security if set(names) & held]
    return sorted(set(partial[0]) - held) if partial else []
