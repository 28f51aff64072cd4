"""The catalog and the bridge behind one handle: what the doors compose."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import structlog

from bridge.accounts import Auth
from bridge.calls import CallContext
from bridge.client import Client
from bridge.connections import Connections
from bridge.dial import Resolver
from bridge.discovery import Discovery
from bridge.documents import Documents
from bridge.egress import Gate, Grant, Named
from bridge.explain import explain
from bridge.integrations import Integrations
from bridge.kinds import ROOMS
from bridge.kinds.port import Means
from bridge.oauth.accounts import OAuth
from bridge.outbound import Passage
from bridge.policy import Approver, Effect, MemoryPolicies, Policy, PolicyStore
from bridge.proxy import ToolProxy
from bridge.rules import Rules
from bridge.secrets import masterkey
from bridge.secrets.local import LocalSecrets
from bridge.secrets.ports import KeyStore, MemorySecrets, SecretStore
from bridge.secrets.providers import Providers
from bridge.settings import ToolboxSettings
from bridge.toolkits import MemoryToolkits, Toolkits, ToolkitStore
from bridge.view import Narrowing
from bridge.wire.errors import Conflict, ImportFailed
from catalog import address, rows
from catalog.model import AddReport, Connection
from catalog.ranking import Ranker
from catalog.registry import Installed, Registry
from catalog.store import CatalogStore, MemoryCatalog

if TYPE_CHECKING:
    from bridge.npm.installer import Installer, Progress
    from bridge.npm.settings import NpmSettings
    from bridge.oauth.flows import Callback

__all__ = ["AddReport", "Auth", "Toolbox", "ToolboxSettings"]

_log = structlog.get_logger("executor.toolbox")
_DEFAULT: Final = ToolboxSettings()


class Toolbox(Integrations):
    """Use as `async with Toolbox(...) as box`; entering loads the stores. All methods run on one event loop.

    Without stores everything is in memory. Raises ConfigError (on entering) for egress settings that are not rules, a
    master key that does not open the stored secrets, or a stored policy that cannot be read: nothing is skipped that
    could have forbidden something.
    """

    def __init__(
        self,
        settings: ToolboxSettings = _DEFAULT,
        *,
        catalog: CatalogStore | None = None,
        policies: PolicyStore | None = None,
        toolkits: ToolkitStore | None = None,
        secrets: SecretStore | None = None,
        keys: KeyStore | None = None,
        resolver: Resolver | None = None,
        ranker: Ranker | None = None,
    ) -> None:
        memory = MemorySecrets()
        key_file = settings.key_file or masterkey.default_path(settings.config_dir)
        ephemeral = settings.ephemeral_key or secrets is None
        self._settings = settings
        self._gate = Gate.configured(settings.egress_allow, settings.allow_private)
        self._client = Client(
            resolver=resolver, ca_file=settings.ca_file, connections_per_host=settings.connections_per_host
        )
        self.own = self._client.own
        self.local = LocalSecrets(secrets or memory, keys or memory, None if ephemeral else key_file)
        self._providers = Providers(
            self.local, vault=settings.vault, onepassword=settings.onepassword, cache_s=settings.secret_cache_s
        )
        self._policy = Policy(approver=settings.approver)
        oauth = OAuth(self._client, self._gate, self.local, self._providers)
        registry = Registry(ranker)
        means = Means(
            settings,
            self._client,
            self._gate,
            self._providers,
            Connections(registry, self._providers, self.local, settings.http_references),
            Documents(self._client, self._gate, settings.document_bytes, self._providers, oauth),
            oauth,
        )
        self._policy.changed.listen(registry.changed.fire)
        self.changed = registry.changed
        rules = Rules(policies or MemoryPolicies(), self._policy, registry)
        super().__init__(means, catalog or MemoryCatalog(), registry, rules)
        self.toolkits = Toolkits(toolkits or MemoryToolkits(), self._registry)
        self._grants: dict[str, tuple[Installed, Grant]] = {}
        self._discovery = Discovery(self._registry, self._policy)
        self.proxy = ToolProxy(
            self._registry,
            self._policy,
            self.toolkits,
            self._discovery,
            self._passage,
            timeout_s=settings.tool_timeout_s,
        )

    async def __aenter__(self) -> Toolbox:
        try:
            await self._load()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close connections and indexes. Safe to call again."""
        await self.kinds.aclose()
        await self.oauth.close()
        await self._client.close()
        await self._providers.close()
        self._registry.close()

    async def _load(self) -> None:
        await self.local.verify()
        await self._rules.load()
        await self.toolkits.load()
        connections = await self._catalog.connections()
        for row in await self._catalog.integrations():
            try:
                installed = rows.installed_of(row, [one for one in connections if one.integration == row.name])
            except (ValueError, KeyError, TypeError) as e:
                # One integration that cannot be read must not keep the others away.
                _log.error("integration_unreadable", integration=row.name, reason=repr(e)[:300])
                continue
            await self._index(self._registry.install(installed))

    async def check_connection(
        self, integration: str, *, scope: str = "org", connection: str = "main", ctx: CallContext | None = None
    ) -> dict[str, Any]:
        """See `Connections.check`. Raises NotFound, InvalidRequest, ToolError."""
        account = self.connections.get(integration, scope, connection)
        return await self.connections.check(account, self.proxy, ctx or CallContext())

    async def authorize(
        self,
        integration: str,
        *,
        scope: str = "org",
        connection: str = "main",
        redirect_uri: str | None = None,
        scopes: Sequence[str] = (),
        principal: str = "sdk",
    ) -> dict[str, Any]:
        """Begin to sign in to an account: `{url, redirect_uri, expires_in, state?}`; a person visits `url`.

        `redirect_uri` is on the loopback address of whoever asks, who hands what comes there to `finish_authorization`;
        left out, the person comes back to this server. `scopes` are asked for beside those that the account has. Raises
        NotFound, InvalidRequest, ToolError, Overloaded.
        """
        from bridge.oauth.clients import checked_scopes

        account = await self.moved(self.connections.get(integration, scope, connection))
        private = self.oauth.private(self._existing(integration))
        return await self.oauth.flows.begin(
            account, private, principal=principal, redirect_uri=redirect_uri, scopes=checked_scopes(scopes)
        )

    async def finish_authorization(
        self, came: Callback, *, principal: str | None, browser: str | None = None
    ) -> dict[str, Any]:
        """End a sign-in with what came back: `{connection, oauth}`, with the `tools` of an MCP server that can
        be asked for them only now, or the `problem` of doing so. See `Flows.finish`. Raises InvalidRequest,
        Forbidden, Conflict, ToolError."""
        flows = self.oauth.flows
        account, scopes = await flows.finish(came, principal=principal, browser=browser, private=self._begun_with)
        async with self._changing:
            installed = self._registry.installed(account.integration)
            key = account.scope, account.name
            current = installed.connections.get(key) if installed is not None else None
            if installed is not None and current is not None and current.oauth == account.oauth is not None:
                account = replace(current, oauth=replace(account.oauth, scopes=scopes))
                if account != current:
                    await self._catalog.put_connection(rows.row_of_connection(account, time.time()))
                    installed.connections[key] = account
        facts = {"connection": account.label, "oauth": await self.oauth.state(account)}
        try:
            tools = await self.listed_first(account)
        except ImportFailed as e:
            return facts | {"problem": f"{e.message} {e.hint or ''}".rstrip()}
        return facts if tools is None else facts | {"tools": tools}

    def _begun_with(self, account: Connection) -> tuple[Named, ...]:
        """Raises Conflict when the account is not any more what somebody began to sign in to."""
        installed = self._registry.installed(account.integration)
        current = None if installed is None else installed.connections.get((account.scope, account.name))
        if installed is None or current is None or current.oauth != account.oauth:
            raise Conflict(f"{account.label} was changed meanwhile.", hint="Begin again.")
        return self.oauth.private(installed)

    async def account_facts(self, integration: str, scope: str, connection: str) -> dict[str, Any]:
        """An account as `connections.described`, and with OAuth how it stands. Raises NotFound."""
        account = self.connections.get(integration, scope, connection)
        facts = self.connections.described(account)
        if account.oauth is not None:
            facts["oauth"] |= await self.oauth.state(account) or {}
        return facts

    def _passage(self, installed: Installed, account: Connection, limit: int, announce: Any) -> Passage:
        return Passage(
            self._client,
            self._gate,
            self._grant(installed),
            account,
            self._providers,
            self.oauth,
            min(limit, self._settings.response_bytes),
            announce,
            self.kinds[installed.kind].caller(installed, account) if installed.kind in ROOMS else None,
        )

    def _grant(self, installed: Installed) -> Grant:
        known = self._grants.get(installed.name)
        if known is None or known[0] is not installed:
            grant = self._gate.grant(installed.reach, installed.config.get("allow_private", ()))
            known = self._grants[installed.name] = (installed, grant)
        return known[1]

    def installer(self, settings: NpmSettings, progress: Progress | None = None) -> Installer:
        """What installs npm packages through this gate; whoever asked for it closes it. Raises ConfigError."""
        from bridge.npm.installer import Installer

        return Installer(settings, self._client, self._gate, progress=progress)

    # Discovery

    async def ready_to_search(self) -> None:
        """To be awaited before `search`: see `Discovery.ready`."""
        await self._discovery.ready()

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        cursor: str | None = None,
        integration: str | None = None,
        toolkit: str | None = None,
        narrowings: Sequence[Narrowing] = (),
    ) -> dict[str, Any]:
        """`{items: [{path, description, side_effect, signature?}], total, next}`. Raises ToolError, and InvalidRequest
        for a toolkit that there is not."""
        args = {"query": query, "limit": limit, "cursor": cursor, "integration": integration}
        return self._discovery.search(args, self.toolkits.view(toolkit, narrowings))

    def describe(
        self,
        path: str,
        *,
        schemas: bool = False,
        toolkit: str | None = None,
        narrowings: Sequence[Narrowing] = (),
    ) -> dict[str, Any]:
        """`{path, description, signature, python, side_effect, effect}`, with `schemas` also the JSON Schemas.
        Raises ToolError(tool_not_found), and InvalidRequest for a toolkit that there is not."""
        return self._discovery.describe({"path": path, "schemas": schemas}, self.toolkits.view(toolkit, narrowings))

    def seen_integrations(self, *, toolkit: str | None = None, narrowings: Sequence[Narrowing] = ()) -> list[str]:
        """The names of the integrations that have a tool that may be seen. Raises InvalidRequest for a toolkit that
        there is not."""
        return self._discovery.integrations(self.toolkits.view(toolkit, narrowings))

    def list_tools(
        self,
        *,
        integration: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        toolkit: str | None = None,
        narrowings: Sequence[Narrowing] = (),
    ) -> dict[str, Any]:
        """Every tool that may be seen, in order of its path, as `search` shows them."""
        view = self.toolkits.view(toolkit, narrowings)
        return self._discovery.listing(limit=max(1, limit), cursor=cursor, integration=integration, view=view)

    # Secrets

    async def set_secret(self, name: str, value: str, *, scope: str = "org") -> None:
        """Seal `value` as `local:NAME` of the scope. Raises InvalidRequest, ConfigError (the master key)."""
        address.check_scope(scope)
        await self.local.set(scope, name, value)

    async def delete_secret(self, name: str, *, scope: str = "org") -> bool:
        return await self.local.delete(scope, name)

    async def secret_names(self, *, scope: str = "org") -> list[str]:
        return await self.local.names(scope)

    # Policies

    async def add_policy(
        self,
        target: str,
        pattern: str,
        effect: Effect,
        *,
        scope: str = "org",
        reason: str = "",
        approver: Approver = "anyone",
    ) -> dict[str, Any]:
        """Add a rule, in force when this returns; the answer also says how many tools it `matches` now.

        `target` is `*`, an integration that there is, or its `integration.scope.connection`; `pattern` a glob over the
        tool part. `approver` `another`: what the rule requires approval for is not approved by the principal whose run
        makes the call. Raises InvalidRequest.
        """
        async with self._changing:
            return await self._rules.add(target, pattern, effect, scope=scope, reason=reason, approver=approver)

    async def remove_policy(self, rule_id: str) -> None:
        """Raises NotFound."""
        async with self._changing:
            await self._rules.remove(rule_id)

    def policies(self) -> list[dict[str, Any]]:
        return self._rules.all()

    def explain(self, path: str, *, toolkit: str | None = None, narrowings: Sequence[Narrowing] = ()) -> dict[str, Any]:
        """See `bridge.explain`; a blocked tool is explained too. Raises ToolError, and InvalidRequest for a toolkit
        that there is not."""
        tool, own = self._registry.find(path), self.toolkits.view(None, narrowings)
        if tool is None or not own.holds(tool):
            raise self._discovery.not_found(path, own)
        return explain(tool, self._policy, self.toolkits.view(toolkit, narrowings))

    def egress(self) -> dict[str, Any]:
        """The operator's bounds, and every private place that an integration was allowed to reach."""
        everything = {one.name: list(one.config.get("allow_private", ())) for one in self._registry.integrations()}
        private = {name: places for name, places in everything.items() if places}
        return self._gate.as_dict() | {"integrations": private}
