"""The catalog and the bridge behind one handle: what the doors compose."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import anyio
import anyio.to_thread
import structlog

from bridge.accounts import Auth
from bridge.calls import CallContext
from bridge.client import Client
from bridge.connections import Connections
from bridge.dial import Resolver
from bridge.discovery import Discovery
from bridge.documents import fetch, is_url, read
from bridge.egress import Gate, Grant
from bridge.explain import explain
from bridge.outbound import Passage
from bridge.policy import Effect, MemoryPolicies, Policy, PolicyStore
from bridge.proxy import ToolProxy
from bridge.reach import check_reach
from bridge.rules import Rules
from bridge.secrets import masterkey
from bridge.secrets.local import LocalSecrets
from bridge.secrets.ports import KeyStore, MemorySecrets, SecretStore
from bridge.secrets.providers import Providers
from bridge.settings import ToolboxSettings
from bridge.toolkits import MemoryToolkits, Toolkits, ToolkitStore
from bridge.view import Narrowing
from bridge.wire.errors import Conflict, InvalidRequest, NotFound
from catalog import address, rows
from catalog.kinds.code import Code, Function, bind, schema_check
from catalog.model import AddReport, Connection, Integration, Manifest, Schema, SideEffect, Tool, ToolSpec
from catalog.ranking import Ranker
from catalog.registry import Installed, Registry
from catalog.store import CatalogStore, MemoryCatalog

__all__ = ["AddReport", "Auth", "Toolbox", "ToolboxSettings"]

_log = structlog.get_logger("executor.toolbox")
_DEFAULT: Final = ToolboxSettings()


class Toolbox:
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
        self._catalog = catalog or MemoryCatalog()
        self._gate = Gate.configured(settings.egress_allow, settings.allow_private)
        self._client = Client(
            resolver=resolver, ca_file=settings.ca_file, connections_per_host=settings.connections_per_host
        )
        self.own = self._client.own
        self.local = LocalSecrets(secrets or memory, keys or memory, None if ephemeral else key_file)
        self._providers = Providers(
            self.local, vault=settings.vault, onepassword=settings.onepassword, cache_s=settings.secret_cache_s
        )
        self._changing = anyio.Lock()
        self._registry = Registry(ranker)
        self.connections = Connections(self._registry, self._providers, self.local, settings.http_references)
        self._policy = Policy()
        self._rules = Rules(policies or MemoryPolicies(), self._policy, self._registry)
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
            await anyio.to_thread.run_sync(self._registry.index.add, self._registry.install(installed))

    # Integrations

    async def add_openapi(
        self,
        name: str,
        source: str | Path | bytes | Mapping[str, Any],
        *,
        base_url: str | None = None,
        scope: str = "org",
        connection: str = "main",
        auth: Auth = None,
        secret: str | None = None,
        probe: str | None = None,
        allow_private: Sequence[str] = (),
        replace: bool = False,
    ) -> AddReport:
        """Add the API that an OpenAPI document describes. `source` is a URL, a path, the document's text or its data.

        Raises ImportFailed (the document, its base URL, or fetching it), InvalidRequest (an argument), Conflict (the
        name is taken and `replace` is not set); nothing is added then.
        """
        self._check_new(name, scope, connection, replace)
        grant = self._gate.grant((), allow_private)
        limit, url = self._settings.document_bytes, None
        document: Any
        if isinstance(source, str) and is_url(source):
            document, url = await fetch(source, self._client, self._gate, grant, limit)
        else:
            document = await read(source, limit)
        config = {"base_url": base_url, "document_url": url, "allow_private": list(allow_private)}
        integration = rows.KINDS["openapi"](name)
        # Reading a large document takes seconds, and the event loop has better things to do.
        manifest = await anyio.to_thread.run_sync(integration.resolve_tools, config | {"document": document})
        await check_reach(manifest, self._gate.grant(manifest.reach, allow_private), self._gate, self._client)
        account = self.connections.account(manifest, (name, scope, connection), auth, secret, probe)
        return await self._install(integration, config, manifest, account, replace)

    async def add_http(
        self,
        name: str,
        allow: Sequence[str],
        *,
        scope: str = "org",
        connection: str = "main",
        auth: Auth = None,
        secret: str | None = None,
        probe: str | None = None,
        allow_private: Sequence[str] = (),
        fetch: bool = False,
        replace: bool = False,
    ) -> AddReport:
        """Add raw HTTP to the places in `allow`, each `[METHODS ]scheme://host[:port][/prefix]`. With `fetch`, the
        `fetch` of a script may go there too. Raises as `add_openapi` does."""
        self._check_new(name, scope, connection, replace)
        config = {"allow": list(allow), "allow_private": list(allow_private), "fetch": fetch}
        integration = rows.KINDS["http"](name)
        manifest = integration.resolve_tools(config)
        await check_reach(manifest, self._gate.grant(manifest.reach, allow_private), self._gate, self._client)
        account = self.connections.account(manifest, (name, scope, connection), auth, secret, probe)
        return await self._install(integration, config, manifest, account, replace)

    def add_code_tool(
        self,
        path: str,
        fn: Function,
        *,
        title: str = "",
        description: str = "",
        input_schema: Schema | None = None,
        output_schema: Schema | None = None,
        side_effect: SideEffect = "unknown",
    ) -> None:
        """Make `fn` callable at `path` while this process lives; it gets the arguments as a dict.

        A coroutine function is awaited, anything else runs in a thread. A tool already at the path is replaced. Raises
        InvalidRequest for a path or schema that is not one, Conflict when the integration is of another kind.
        """
        where = address.parse(path)
        if where is None or where.integration in address.RESERVED:
            raise InvalidRequest(
                f"{path[:120]!r} is not a tool path.", hint="A path is <integration>.<scope>.<connection>.<tool>."
            )
        address.check_scope(where.scope)
        installed = self._registry.installed(where.integration)
        if installed is None:
            code = Code(where.integration)
            installed = Installed(code, {}, code.resolve_tools({}), time.time())
            self._registry.install(installed)
        elif installed.kind != "code":
            raise Conflict(f"The integration {where.integration} is of kind {installed.kind}, not code.")
        installed.connections.setdefault(
            (where.scope, where.connection), Connection(where.integration, where.scope, where.connection)
        )
        binding = bind(fn, schema_check(output_schema))
        schema_check(input_schema)
        spec = ToolSpec(where.tool, title, description, input_schema, output_schema, side_effect, binding=binding)
        self._registry.add_tool(where.integration, where.scope, where.connection, spec)

    async def remove(self, name: str) -> int:
        """Remove the integration, its connections, and the rules that target them; the answer is how many rules that
        were. Raises NotFound."""
        async with self._changing:
            self._existing(name)
            rules = self._rules.targeting(name)
            # A rule left behind must not loosen what comes after, nor its absence what is still there.
            await self._rules.forget(rules, loosening=True)
            await self._catalog.delete_integration(name)
            self._registry.remove(name)
            await self._rules.forget(rules, loosening=False)
        _log.info("integration_removed", integration=name, rules=len(rules))
        return len(rules)

    def integrations(self) -> list[dict[str, Any]]:
        return self._registry.facts()

    async def connect(
        self,
        integration: str,
        *,
        scope: str = "org",
        connection: str = "main",
        auth: Auth = None,
        secret: str | None = None,
        probe: str | None = None,
        replace: bool = False,
    ) -> AddReport:
        """Add an account; `check_connection` tries it with `probe`. Raises NotFound, Conflict, InvalidRequest."""
        address.check_scope(scope)
        address.check_name(connection, "connection")
        async with self._changing:
            installed = self._existing(integration)
            if (scope, connection) in installed.connections and not replace:
                raise Conflict(f"{integration} has a connection {scope}.{connection} already.")
            account = self.connections.account(
                installed.manifest, (integration, scope, connection), auth, secret, probe
            )
            if installed.kind in rows.KINDS:
                await self._catalog.put_connection(rows.row_of_connection(account, time.time()))
            return await self._opened(installed, account, self._registry.connect(account))

    async def disconnect(self, integration: str, *, scope: str = "org", connection: str = "main") -> int:
        """Remove an account and the rules that target it, of which the answer is the number; the integration stays.
        Raises NotFound."""
        async with self._changing:
            installed = self._existing(integration)
            if (scope, connection) not in installed.connections:
                raise NotFound(f"{integration} has no connection {scope}.{connection}.")
            rules = self._rules.targeting(f"{integration}.{scope}.{connection}")
            await self._rules.forget(rules, loosening=True)
            await self._catalog.delete_connection(integration, scope, connection)
            self._registry.disconnect(integration, scope, connection)
            await self._rules.forget(rules, loosening=False)
        return len(rules)

    async def check_connection(
        self, integration: str, *, scope: str = "org", connection: str = "main", ctx: CallContext | None = None
    ) -> dict[str, Any]:
        """See `Connections.check`. Raises NotFound, InvalidRequest, ToolError."""
        account = self.connections.get(integration, scope, connection)
        return await self.connections.check(account, self.proxy, ctx or CallContext())

    def _check_new(self, name: str, scope: str, connection: str, replacing: bool) -> None:
        address.check_name(name, "integration")
        if name in address.RESERVED:
            raise InvalidRequest(f"The name {name} is taken by tools.{name} itself.")
        address.check_scope(scope)
        address.check_name(connection, "connection")
        self._check_free(name, replacing)

    def _check_free(self, name: str, replacing: bool) -> None:
        if self._registry.installed(name) is not None and not replacing:
            raise Conflict(f"There is an integration {name} already.", hint="Remove it first, or replace it.")

    async def _install(
        self,
        integration: Integration,
        config: dict[str, Any],
        manifest: Manifest,
        account: Connection,
        replacing: bool,
    ) -> AddReport:
        async with self._changing:
            self._check_free(integration.name, replacing)
            installed = Installed(integration, config, manifest, time.time())
            earlier = self._registry.installed(integration.name)
            if earlier is not None:
                installed.connections.update(earlier.connections)
            installed.connections[account.scope, account.name] = account
            row = await anyio.to_thread.run_sync(rows.row_of, installed)
            await self._catalog.put_integration(row, [rows.row_of_connection(account, installed.created_at)])
            return await self._opened(installed, account, self._registry.install(installed))

    async def _opened(self, installed: Installed, account: Connection, tools: list[Tool]) -> AddReport:
        await anyio.to_thread.run_sync(self._registry.index.add, tools)
        return AddReport(
            installed.name,
            installed.kind,
            [tool.path for tool in tools],
            [*await self.connections.diagnostics(account), *installed.manifest.diagnostics],
            [str(reach) for reach in installed.manifest.reach],
            list(installed.config.get("allow_private", ())),
        )

    def _existing(self, name: str) -> Installed:
        installed = self._registry.installed(name)
        if installed is None:
            raise NotFound(f"There is no integration {name[:80]!r}.")
        return installed

    def _passage(self, tool: Tool, limit: int, announce: Any) -> Passage:
        installed = self._existing(tool.integration)
        return Passage(
            self._client,
            self._gate,
            self._grant(installed),
            self._registry.connection(tool),
            self._providers,
            min(limit, self._settings.response_bytes),
            announce,
        )

    def _grant(self, installed: Installed) -> Grant:
        known = self._grants.get(installed.name)
        if known is None or known[0] is not installed:
            grant = self._gate.grant(installed.manifest.reach, installed.config.get("allow_private", ()))
            known = self._grants[installed.name] = (installed, grant)
        return known[1]

    # Discovery

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
        self, target: str, pattern: str, effect: Effect, *, scope: str = "org", reason: str = ""
    ) -> dict[str, Any]:
        """Add a rule, in force when this returns; the answer also says how many tools it `matches` now.

        `target` is `*`, an integration that there is, or its `integration.scope.connection`; `pattern` a glob over the
        tool part. Raises InvalidRequest.
        """
        async with self._changing:
            return await self._rules.add(target, pattern, effect, scope=scope, reason=reason)

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
