"""The accounts of integrations: listed, shown, and tried with one call that only reads."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any, Final

from bridge.accounts import Auth, placements, unset
from bridge.calls import CallContext
from bridge.proxy import ToolProxy
from bridge.secrets.local import LocalSecrets
from bridge.secrets.ports import SecretMissing, SecretUnavailable
from bridge.secrets.providers import Providers
from bridge.secrets.references import check_permitted
from bridge.wire.errors import ConfigError, Forbidden, InvalidRequest, NotFound, ToolError
from catalog.model import Connection, Diagnostic, Manifest, Placement, Tool, ToolSpec
from catalog.oauth import OAuthClient
from catalog.registry import Installed, Registry

_TELLING = "me whoami myself self viewer current user account profile session token auth ping status health"
TELLING: Final = tuple(_TELLING.split())
"""Words of tools that a credential is commonly tried with, the most telling first."""

ACTING: Final = frozenset(
    [
        "login",
        "logout",
        "signin",
        "signout",
        "sign",
        "refresh",
        "reset",
        "revoke",
        "rotate",
        "delete",
        "stop",
        "restart",
    ]
)
"""Words of tools that are called by GET in some documents and still do something."""

_NEVER: Final = (9, 0, 0, "")
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class Connections:
    """What there is to say about connections. Changing them is the toolbox's business."""

    def __init__(
        self, registry: Registry, providers: Providers, local: LocalSecrets, http_references: Sequence[str]
    ) -> None:
        self._registry = registry
        self._providers = providers
        self._local = local
        self._http_references = http_references

    def check_references(self, references: Sequence[Any]) -> None:
        """Raises Forbidden for a reference that a caller over the network may not name."""
        check_permitted(references, self._http_references)

    def permits(self, references: Sequence[Any]) -> bool:
        """Whether a caller over the network may name all of them."""
        try:
            self.check_references(references)
        except Forbidden:
            return False
        return True

    def account(
        self, manifest: Manifest, label: tuple[str, str, str], auth: Auth, secret: str | None, probe: str | None
    ) -> Connection:
        """A connection as asked for. `label` is integration, scope and name. Raises InvalidRequest."""
        integration, scope, name = label
        if probe is not None:
            spec = next((spec for spec in manifest.tools if spec.name == probe), None)
            if spec is None:
                raise InvalidRequest(f"{integration} has no tool {probe[:120]!r} that could be the probe.")
            if why := _unfit(spec):
                raise InvalidRequest(
                    f"{probe} cannot be the probe: {why}.", hint="A probe reads and takes no argument."
                )
        return Connection(integration, scope, name, placements(manifest, auth, secret), probe or "")

    async def diagnostics(self, account: Connection) -> list[Diagnostic]:
        """What it refers to that is not there."""
        if not account.references:
            return []
        absent = await self._providers.absent(account.references)
        return unset(account, await self._local.names(account.scope), absent)

    def get(self, integration: str, scope: str, name: str) -> Connection:
        """Raises NotFound."""
        installed = self._registry.installed(integration)
        if installed is None:
            raise NotFound(f"There is no integration {integration[:80]!r}.", hint="`GET /integrations` lists them.")
        account = installed.connections.get((scope, name))
        if account is None:
            known = ", ".join(one.label for one in installed.connections.values())
            raise NotFound(
                f"{integration} has no connection {scope[:80]}.{name[:80]}.",
                hint=f"It has {known}." if known else f"Make one: executor connect {integration} --bearer REFERENCE",
            )
        return account

    def all(self, integration: str | None = None, scope: str | None = None) -> list[dict[str, Any]]:
        """Every connection as `described`, in the order of their paths."""
        found = [
            account
            for installed in self._registry.integrations()
            for account in installed.connections.values()
            if integration in (None, account.integration) and scope in (None, account.scope)
        ]
        return [self.described(account) for account in sorted(found, key=lambda one: one.label)]

    def described(self, account: Connection) -> dict[str, Any]:
        """`{path, integration, scope, name, secrets, placements, probe, tools}`: references, never a value."""
        prefix = account.label + "."
        tools = sum(1 for tool in self._registry.tools(integration=account.integration) if tool.path.startswith(prefix))
        return {
            "path": account.label,
            "integration": account.integration,
            "scope": account.scope,
            "name": account.name,
            "secrets": account.references,
            "placements": [_described(one) for one in account.placements],
            "probe": account.probe or None,
            "tools": tools,
        } | ({} if account.oauth is None else {"oauth": _oauth(account.oauth)})

    async def check(self, account: Connection, proxy: ToolProxy, ctx: CallContext) -> dict[str, Any]:
        """Whether the credential works: `{connection, status, probe, http_status?, message?, hint?, duration_ms}`.

        `status` is `ok`, `connection_missing` (a secret is not there), `credential_rejected`, `unreachable`, or
        `failed` where the answer says nothing about the credential. Raises InvalidRequest without a tool to try it
        with, and ToolError where a policy does not let that tool be called.
        """
        installed = self._registry.installed(account.integration)
        assert installed is not None
        tool = self._probe(installed, account)
        began = time.perf_counter()
        facts = await self._tried(account, tool, proxy, ctx)
        took = round((time.perf_counter() - began) * 1000, 1)
        return {"connection": account.label, "probe": tool.name} | facts | {"duration_ms": took}

    async def _tried(self, account: Connection, tool: Tool, proxy: ToolProxy, ctx: CallContext) -> dict[str, Any]:
        for ref in account.references:
            try:
                await self._providers.resolve(account.scope, ref)
            except (SecretMissing, ConfigError) as e:
                return {"status": "connection_missing", "message": f"{ref}: {e}.", "hint": _remedy(ref, account, e)}
        try:
            outcome = await proxy.call(ctx, tool.path, {})
        except ToolError as e:
            return _verdict(e)
        return {"status": "ok", "http_status": outcome.record.status}

    def _probe(self, installed: Installed, account: Connection) -> Tool:
        """The declared tool, else the most telling one that may be called as it is. Raises InvalidRequest."""
        if account.probe:
            tool = self._registry.find(f"{account.label}.{account.probe}")
            if tool is not None and not _unfit(tool.spec):
                return tool
            what = f"The probe {account.probe} is not a tool of {account.integration} that reads any more."
        else:
            prefix = account.label + "."
            tools = [one for one in self._registry.tools(integration=installed.name) if one.path.startswith(prefix)]
            fit = {tool.path: _telling(tool, installed, account) for tool in tools if not _unfit(tool.spec)}
            if fit and (best := min(fit, key=lambda path: fit[path])) and fit[best] < _NEVER:
                return next(tool for tool in tools if tool.path == best)
            what = f"{installed.name} has no tool that could be a probe: one that reads and needs no argument."
        raise InvalidRequest(what, hint=f"Declare one: executor connect {installed.name} --probe TOOL --replace …")


def _described(placement: Placement) -> dict[str, Any]:
    """A value that is no reference is not shown: somebody may have taken it for a place to keep a secret."""
    facts = {
        "type": placement.carrier,
        "name": None if placement.carrier == "basic" else placement.field,
        "scheme": placement.name,
        "prefix": placement.prefix,
        "username": placement.username,
        "username_secret": placement.username_secret,
        "secret": placement.secret,
        "literal": bool(placement.value),
    }
    return {key: value for key, value in facts.items() if value}


def _oauth(client: OAuthClient) -> dict[str, Any]:
    facts = client.as_dict() | {"scopes": list(client.scopes), "parameters": dict(client.parameters)}
    return {key: value for key, value in facts.items() if value and key not in ("iss_promised", "by_document")}


def _unfit(spec: ToolSpec) -> str | None:
    if spec.side_effect != "read":
        return "it does more than read"
    required = (spec.input_schema or {}).get("required")
    return f"it needs {', '.join(map(str, required[:3]))}" if required else None


def _telling(tool: Tool, installed: Installed, account: Connection) -> tuple[int, int, int, str]:
    """How good a probe the tool is, the best first: only a call that carries the credential says anything about it, one
    that asks for it says more, and some tools that read do more than that."""
    words = [word.lower() for word in _WORD.findall(tool.name)]
    credentialed = getattr(installed.integration, "credentialed", None)
    asks = True if credentialed is None or not account.placements else credentialed(tool, account)
    if asks is False or ACTING.intersection(words):
        return _NEVER
    rank = min((TELLING.index(word) for word in words if word in TELLING), default=len(TELLING))
    size = len((tool.input_schema or {}).get("properties", {})) + len(words)
    return int(asks is None), rank, size, tool.path


def _verdict(error: ToolError) -> dict[str, Any]:
    if error.code in ("blocked", "approval_required", "approval_denied", "approval_expired", "tool_not_found"):
        raise error
    status = error.status
    verdict = "failed"
    if error.code in ("credential_rejected", "connection_missing"):
        verdict = error.code
    elif (status is not None and 200 <= status < 300) or error.code == "too_large":
        # It answered with what it was asked for: what is odd about the answer is not the credential.
        return {"status": "ok", "http_status": status}
    elif error.code in ("upstream_timeout", "upstream_unreachable", "egress_denied") or (status or 0) >= 500:
        verdict = "unreachable"
    facts = {"http_status": status, "message": error.message, "hint": error.hint}
    return {"status": verdict} | {key: value for key, value in facts.items() if value is not None}


def _remedy(ref: str, account: Connection, error: Exception) -> str:
    provider, _, key = ref.partition(":")
    if isinstance(error, SecretUnavailable):
        return "It may work again later: see that the server which keeps the secret is up."
    if provider == "local":
        return f"executor secret set {key} --scope {account.scope}"
    return "Put it there, or connect again with another reference: executor connect … --replace"
