"""The integrations of a home: added, refreshed, reviewed, connected and removed, one change at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import structlog

from bridge.accounts import Auth, oauth_part
from bridge.connections import Connections
from bridge.documents import Documents, Source, recorded
from bridge.oauth import clients
from bridge.oauth.accounts import OAuth
from bridge.refresh import Accept, RefreshReport, awaiting, covers, describer, let_in, refreshed, widened
from bridge.repeats import check_patterns
from bridge.rules import Rules
from bridge.wire.errors import Conflict, InvalidRequest, NotFound
from catalog import address, rows
from catalog.kinds.code import Code, Function, bind, schema_check
from catalog.model import AddReport, Connection, Integration, Manifest, Schema, SideEffect, Tool, ToolSpec
from catalog.registry import Installed, Registry
from catalog.store import CatalogStore

UNLISTED: Final = "unlisted"
"""In the configuration of what says only to somebody who has signed in what its tools are, before anybody has."""
_NOTHING: Final = (None, None, None)
_log = structlog.get_logger("executor.toolbox")


class Integrations:
    """The part of the toolbox that changes what there is."""

    def __init__(
        self,
        catalog: CatalogStore,
        registry: Registry,
        rules: Rules,
        connections: Connections,
        documents: Documents,
        oauth: OAuth,
    ) -> None:
        self.connections = connections
        self.oauth = oauth
        self._catalog = catalog
        self._registry = registry
        self._rules = rules
        self._documents = documents
        self._changing = anyio.Lock()

    async def add_openapi(
        self,
        name: str,
        source: str | Path | bytes | Mapping[str, Any],
        *,
        base_url: str | None = None,
        server: str | None = None,
        server_variables: Mapping[str, str] | None = None,
        scope: str = "org",
        connection: str = "main",
        auth: Auth = None,
        secret: str | None = None,
        probe: str | None = None,
        allow_private: Sequence[str] = (),
        idempotent: Sequence[str] = (),
        replace: bool = False,
        host: bool = True,
    ) -> AddReport:
        """Add the API that an OpenAPI document describes. `source` is a URL, a path, the document's text or its data.

        `server` (its URL in the document, or its description) and `server_variables` choose among the document's
        servers for every call; what they leave open, a call may choose. `base_url` replaces them all. `idempotent` are
        patterns over the names of tools that may be called again when nobody knows what became of a call.

        Accounts that an integration of that name had are kept. `host` says that the caller is at this machine, and may
        send the credentials of those to the new places.

        Raises ImportFailed (the document, its base URL, or fetching it), InvalidRequest (an argument), Conflict (the
        name is taken and `replace` is not set); nothing is added then.
        """
        self._check_new(name, scope, connection, replace)
        asked: dict[str, Any] = {"base_url": base_url, "allow_private": list(allow_private)}
        asked |= {"server": server, "server_variables": dict(server_variables or {})}
        asked["idempotent"] = check_patterns(idempotent)
        integration, config, manifest = await self._read("openapi", name, asked, source)
        made = Installed(integration, config, manifest, time.time())
        account = await self._account(made, (scope, connection), auth, secret, probe)
        return await self._install(made, account, replace=replace, host=host, asked=(auth, secret, probe) != _NOTHING)

    async def _account(
        self, installed: Installed, place: tuple[str, str], auth: Auth, secret: str | None, probe: str | None
    ) -> Connection:
        """The account as asked for; what it needs to know of an authorization server is asked there. Raises
        InvalidRequest, ImportFailed."""
        account = self.connections.account(installed.manifest, (installed.name, *place), auth, secret, probe)
        part = oauth_part(auth, secret)
        if part is None:
            return account
        private = self.oauth.private(installed)
        url = str(installed.config.get("url") or "") if installed.kind == "mcp" else ""
        client = await clients.client_of(part, installed.manifest, self.oauth.servers, private, mcp=url)
        return changed(account, oauth=client)

    async def _read(
        self, kind: str, name: str, config: Mapping[str, Any], source: Source
    ) -> tuple[Integration, dict[str, Any], Manifest]:
        """What the document at `source` makes of the integration. Raises ImportFailed."""
        private = config["allow_private"]
        document, remembered = await self._documents.open(source, private)
        known = {**config, **remembered}
        integration = rows.KINDS[kind](name)
        # Reading a large document takes seconds, and the event loop has better things to do.
        manifest = await anyio.to_thread.run_sync(
            integration.resolve_tools, known | {"document": document, "fetch": self._documents.others(private)}
        )
        await self._documents.check_reach(manifest, private)
        return integration, known, manifest

    async def refresh(self, name: str, source: str | Path | bytes | Mapping[str, Any] | None = None) -> RefreshReport:
        """Read the description again from where it came, or a new one from `source`, and put it in force.

        What was added awaits review, and so does what changed its side effect or its destination. Raises NotFound,
        ImportFailed and InvalidRequest (there is nowhere to read it again): then everything is as it was.
        """
        old = self._existing(name)
        describer(old)
        account = next(iter(old.connections.values()), None)
        if source is None and account is not None and await self.listed_first(account) is not None:
            old = self._existing(name)
        integration, config, manifest = await self._read_again(old, source)
        async with self._changing:
            if self._existing(name) is not old:
                raise Conflict(f"{name} was changed while its description was read.", hint="Refresh it again.")
            new, report = await anyio.to_thread.run_sync(refreshed, old, integration, config, manifest)
            await self._catalog.put_integration(await anyio.to_thread.run_sync(rows.row_of, new), [])
            await self._index(self._registry.install(new))
        _log.info("integration_refreshed", integration=name, awaiting=len(report.awaiting), held=len(report.held))
        return report

    async def listed_first(self, account: Connection) -> list[str] | None:
        """The tools of what was added before anybody could ask it for them; None where there is nothing to do. Nothing
        of it awaits review: it was added for what it has. Raises ImportFailed."""
        old = self._registry.installed(account.integration)
        if old is None or not old.config.get(UNLISTED):
            return None
        integration, config, manifest = await self._described_to(account, old)
        known = {key: value for key, value in config.items() if key != UNLISTED}
        async with self._changing:
            if self._registry.installed(old.name) is not old:
                return None
            new = Installed(integration, known, manifest, old.created_at, dict(old.connections))
            await self._catalog.put_integration(await anyio.to_thread.run_sync(rows.row_of, new), [])
            tools = self._registry.install(new)
            await self._index(tools)
        _log.info("integration_listed", integration=old.name, tools=len(tools))
        return [tool.path for tool in tools]

    async def _described_to(self, account: Connection, old: Installed) -> tuple[Integration, dict[str, Any], Manifest]:
        """What an integration is to one of its accounts. Raises ImportFailed."""
        return await self._read_again(old, None)

    async def _read_again(
        self, old: Installed, source: str | Path | bytes | Mapping[str, Any] | None
    ) -> tuple[Integration, dict[str, Any], Manifest]:
        again = recorded(old.config.get("source"), old.name) if source is None else source
        return await self._read(old.kind, old.name, old.config, again)

    def awaiting_review(self, name: str) -> dict[str, Any]:
        """`{name, tools, held}`: see `bridge.refresh.awaiting`. Raises NotFound."""
        return awaiting(self._existing(name))

    async def review(self, name: str, accept: Accept, *, host: bool = True) -> dict[str, Any]:
        """Let in what awaits review: `all`, or names, paths and held places. The answer is what still awaits it, with
        `accepted`. Raises NotFound; nothing is let in then.

        Credentials go along to new places, but not at the word of a caller who is not at this machine (`host`) and
        could not have named them: those accounts are in `unconnected`, and must be connected again.
        """
        async with self._changing:
            old = self._existing(name)
            new, names = let_in(old, accept)
            accounts = [self._carried(account, new, host) for account in old.connections.values()]
            new.connections.update(((one.scope, one.name), one) for one in accounts)
            kept = [rows.row_of_connection(one, time.time()) for one in accounts]
            await self._catalog.put_integration(await anyio.to_thread.run_sync(rows.row_of, new), kept)
            await self._index(self._registry.install(new))
        left = [one.label for one in accounts if one.placements and not covers(one, new)]
        return awaiting(new) | {"accepted": names, "unconnected": left}

    def _carried(self, account: Connection, installed: Installed, host: bool) -> Connection:
        # A token is for nobody to name, so that nobody sends it elsewhere but who is at this machine.
        if host or (account.oauth is None and self.connections.permits(account.references)):
            return widened(account, installed)
        return account if account.reach is not None else changed(account, reach=())

    async def _index(self, tools: Sequence[Tool]) -> None:
        """Let `tools` be found, but for those that await review."""
        ready = [tool for tool in tools if not tool.awaits]
        await anyio.to_thread.run_sync(self._registry.index.add, ready)

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
        host: bool = True,
    ) -> AddReport:
        """Add raw HTTP to the places in `allow`, each `[METHODS ]scheme://host[:port][/prefix]`. With `fetch`, the
        `fetch` of a script may go there too. Raises as `add_openapi` does."""
        self._check_new(name, scope, connection, replace)
        config = {"allow": list(allow), "allow_private": list(allow_private), "fetch": fetch}
        integration = rows.KINDS["http"](name)
        manifest = integration.resolve_tools(config)
        await self._documents.check_reach(manifest, allow_private)
        made = Installed(integration, config, manifest, time.time())
        account = await self._account(made, (scope, connection), auth, secret, probe)
        return await self._install(made, account, replace=replace, host=host, asked=(auth, secret, probe) != _NOTHING)

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
        idempotent: bool = False,
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
        spec = changed(spec, idempotent=idempotent)
        self._registry.add_tool(where.integration, where.scope, where.connection, spec)

    async def remove(self, name: str, *, connections: bool = False) -> int:
        """Remove the integration and the rules that target it; the answer is how many rules that were. Raises NotFound.

        Its connections are kept for an integration of the same name, where their credentials go to the places that
        they were given for and nowhere else; with `connections` they go too, also those kept from an earlier removal.
        """
        async with self._changing:
            kept = await self._kept(name) if connections else []
            if not kept:
                self._existing(name)
            rules = self._rules.targeting(name)
            # A rule left behind must not loosen what comes after, nor its absence what is still there.
            await self._rules.forget(rules, loosening=True)
            await self._catalog.delete_integration(name, connections=connections)
            self._registry.remove(name)
            for account in kept:
                await self.oauth.forget(account)
            await self._rules.forget(rules, loosening=False)
        _log.info("integration_removed", integration=name, rules=len(rules))
        return len(rules)

    async def _kept(self, name: str) -> list[Connection]:
        """The connections of the name in the store, whether or not there is such an integration."""
        return [rows.connection_of(row) for row in await self._catalog.connections() if row.integration == name]

    def integrations(self) -> list[dict[str, Any]]:
        """Every integration: name, kind, title, number of tools, connections, origins, private hosts, diagnostics."""
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
        """Add an account to an integration. `probe` is the tool that `check_connection` tries it with. Raises NotFound,
        Conflict (it exists and `replace` is not set), InvalidRequest."""
        address.check_scope(scope)
        address.check_name(connection, "connection")
        installed = self._existing(integration)
        self._check_unconnected(installed, scope, connection, replace)
        account = widened(await self._account(installed, (scope, connection), auth, secret, probe), installed)
        async with self._changing:
            if self._existing(integration) is not installed:
                raise Conflict(f"{integration} was changed while it was connected.", hint="Connect it again.")
            self._check_unconnected(installed, scope, connection, replace)
            await self._forget_other(installed.connections.get((scope, connection)), account)
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
            await self.oauth.forget(installed.connections[scope, connection])
            self._registry.disconnect(integration, scope, connection)
            await self._rules.forget(rules, loosening=False)
        return len(rules)

    def _check_unconnected(self, installed: Installed, scope: str, connection: str, replacing: bool) -> None:
        if (scope, connection) in installed.connections and not replacing:
            raise Conflict(f"{installed.name} has a connection {scope}.{connection} already.")

    async def _forget_other(self, before: Connection | None, after: Connection) -> None:
        """Forget the tokens of an account that signs in elsewhere from now on, or not at all."""
        if before is not None and before.oauth is not None and self.oauth.apart(before, after):
            await self.oauth.forget(before)

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
        self, installed: Installed, account: Connection, *, replace: bool, host: bool, asked: bool
    ) -> AddReport:
        """`asked`: it was said how the account authenticates, so that it takes the place of one that is there."""
        async with self._changing:
            self._check_free(installed.name, replace)
            earlier = self._registry.installed(installed.name)
            known = list(earlier.connections.values()) if earlier is not None else await self._kept(installed.name)
            for one in known:
                installed.connections[one.scope, one.name] = self._carried(one, installed, host)
            key = account.scope, account.name
            if key not in installed.connections or asked:
                await self._forget_other(installed.connections.get(key), account)
                installed.connections[key] = widened(account, installed)
            accounts = [rows.row_of_connection(one, installed.created_at) for one in installed.connections.values()]
            await self._catalog.put_integration(await anyio.to_thread.run_sync(rows.row_of, installed), accounts)
            return await self._opened(installed, installed.connections[key], self._registry.install(installed))

    async def _opened(self, installed: Installed, account: Connection, tools: list[Tool]) -> AddReport:
        await self._index(tools)
        return AddReport(
            installed.name,
            installed.kind,
            [tool.path for tool in tools if not tool.awaits],
            [
                *await self.connections.diagnostics(account),
                *await self.oauth.diagnostics(account),
                *installed.manifest.diagnostics,
            ],
            [str(reach) for reach in installed.reach],
            list(installed.config.get("allow_private", ())),
        )

    def _existing(self, name: str) -> Installed:
        installed = self._registry.installed(name)
        if installed is None:
            raise NotFound(f"There is no integration {name[:80]!r}.")
        return installed
