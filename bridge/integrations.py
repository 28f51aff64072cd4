"""The integrations of a home: added, refreshed, reviewed, connected and removed, one change at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace as changed
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
import structlog

from bridge.accounts import Auth
from bridge.adding import Adding, Given
from bridge.kinds import ROOMS, Kinds
from bridge.kinds.port import UNLISTED, Asked, Found, Means, PackageHost
from bridge.oauth.part import part_of
from bridge.refresh import Accept, RefreshReport, awaiting, covers, describer, let_in, refreshed, widened
from bridge.rules import Rules
from bridge.wire.errors import Conflict, Forbidden, InvalidRequest, NotFound
from catalog import address, rows
from catalog.kinds.code import Code, Function, bind, schema_check
from catalog.model import AddReport, Connection, Schema, SideEffect, Tool, ToolSpec
from catalog.origin import PACKAGE
from catalog.registry import Installed, Registry
from catalog.store import CatalogStore, ConnectionRow

_log = structlog.get_logger("executor.toolbox")


class Disconnected(NamedTuple):
    """What went with an account: the number of rules, and why tokens of it may still be good at the server that gave
    them. None: they were taken back, or there were none; "": that server has no way to take them back."""

    rules: int
    unrevoked: str | None

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()


class Removed(NamedTuple):
    """What went with an integration: the number of rules, and by the label of each account whose tokens may still be
    good, why; "" as in `Disconnected`."""

    rules: int
    unrevoked: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        return self._asdict()


class Integrations(Adding):
    """The part of the toolbox that changes what there is. `packages` gives what runs those of npm,
    once there is one."""

    def __init__(self, means: Means, catalog: CatalogStore, registry: Registry, rules: Rules) -> None:
        self.means = means
        self.connections = means.connections
        self.oauth = means.oauth
        self.packages: Callable[[], PackageHost] | None = None
        self.kinds = Kinds(self)
        self._catalog = catalog
        self._registry = registry
        self._rules = rules
        self._changing = anyio.Lock()

    async def add(
        self,
        kind: str,
        name: str,
        *,
        scope: str = "org",
        connection: str = "main",
        auth: Auth = None,
        secret: str | None = None,
        probe: str | None = None,
        replace: bool = False,
        host: bool = True,
        **options: Any,
    ) -> AddReport:
        """Add an integration of a kind, whose own options are those of `add_<kind>`. Accounts that an integration of
        that name had are kept. `host` says that the caller is at this machine, and may send the credentials of those
        to the new places. Raises ImportFailed, InvalidRequest, Forbidden and Conflict; nothing is added then."""
        asked = Asked(name, scope, connection, auth, secret, probe, replace, host)
        found = self.kinds[kind]
        self._check_new(asked)
        return await self._install(*await found.proposed(asked, **options), asked)

    async def account(self, installed: Installed, asked: Asked, probe: str | None = None) -> Connection:
        """The account as asked for; what it needs to know of an authorization server is asked there. Raises
        InvalidRequest, ImportFailed."""
        auth, secret = asked.auth, asked.secret
        account = self.connections.account(installed.manifest, (installed.name, *asked.place), auth, secret, probe)
        part = part_of(auth, secret)
        if part is None:
            return account
        from bridge.oauth.clients import client_of

        private = self.oauth.private(installed)
        url = self.kinds[installed.kind].protected(installed.config) if installed.kind in ROOMS else ""
        client = await client_of(part, installed.manifest, self.oauth.servers, private, mcp=url)
        return changed(account, oauth=client)

    async def kept(self, asked: Asked) -> Connection | None:
        """The account of that place that the name has already, or that is kept for it."""
        known = await self._known(asked.name)
        return next((one for one in known if (one.scope, one.name) == asked.place), None)

    async def _known(self, name: str) -> list[Connection]:
        earlier = self._registry.installed(name)
        return list(earlier.connections.values()) if earlier is not None else await self._kept(name)

    def installed(self, name: str) -> Installed | None:
        return self._registry.installed(name)

    async def refresh(self, name: str, source: Given | None = None) -> RefreshReport:
        """Read the description again from where it came, or a new one from `source`, and put it in force.

        What was added awaits review, and so does what changed its side effect or its destination. Raises NotFound,
        ImportFailed and InvalidRequest (there is nowhere to read it again): then everything is as it was.
        """
        old = self._existing(name)
        describer(old)
        account = next(iter(old.connections.values()), None)
        if source is None and account is not None and await self.listed_first(account) is not None:
            old = self._existing(name)
        found = await self.kinds[old.kind].read_again(old, source)
        async with self._changing:
            if self._existing(name) is not old:
                raise Conflict(f"{name} was changed while its description was read.", hint="Refresh it again.")
            new, report = await anyio.to_thread.run_sync(refreshed, old, *found)
            await self._put(new)
        await self.kinds[old.kind].refreshed(new)
        _log.info("integration_refreshed", integration=name, awaiting=len(report.awaiting), held=len(report.held))
        return report

    async def listed_first(self, account: Connection) -> list[str] | None:
        """The tools of what was added before anybody could ask it for them; None where there is nothing to do. Nothing
        of it awaits review: it was added for what it has. Raises ImportFailed."""
        old = self._registry.installed(account.integration)
        if old is None or not old.config.get(UNLISTED):
            return None
        integration, config, manifest = await self.kinds[old.kind].told_to(account, old)
        known = {key: value for key, value in config.items() if key != UNLISTED}
        async with self._changing:
            if self._registry.installed(old.name) is not old:
                return None
            new = Installed(integration, known, manifest, old.created_at, dict(old.connections))
            tools = await self._put(new)
        _log.info("integration_listed", integration=old.name, tools=len(tools))
        return [tool.path for tool in tools]

    async def relisted(self, old: Installed, found: Found) -> None:
        """An integration has said by itself that its tools are others now: that goes the way of every refresh."""
        async with self._changing:
            if self._registry.installed(old.name) is not old:
                return
            new, report = await anyio.to_thread.run_sync(refreshed, old, *found)
            if not (report.added or report.removed or report.changed):
                return
            await self._put(new)
        _log.info(
            "integration_relisted", integration=old.name, awaiting=len(report.awaiting), removed=len(report.removed)
        )

    async def offered(self, account: Connection, without: Sequence[str]) -> None:
        """Take note of which tools of its integration an account is not offered."""
        async with self._changing:
            installed = self._registry.installed(account.integration)
            now = None if installed is None else installed.connections.get((account.scope, account.name))
            if now is None or now.without == tuple(without):
                return
            new = changed(now, without=tuple(without))
            await self._catalog.put_connection(rows.row_of_connection(new, time.time()))
            await self._index(self._registry.connect(new))
        _log.info("account_offered_other_tools", connection=account.label, without=len(without))

    async def _put(self, new: Installed, accounts: Sequence[ConnectionRow] = ()) -> list[Tool]:
        """Keep the integration, and put it in force."""
        await self._catalog.put_integration(await anyio.to_thread.run_sync(rows.row_of, new), list(accounts))
        tools = self._registry.install(new)
        await self._index(tools)
        return tools

    async def moved(self, account: Connection) -> Connection:
        """The account, whose server may name another authorization server by now."""
        installed = self._existing(account.integration)
        if installed.kind not in ROOMS:
            return account
        found = await self.kinds[installed.kind].moved(account, installed)
        if found is None:
            return account
        async with self._changing:
            if installed.connections.get((account.scope, account.name)) is not account:
                return account
            new = changed(account, oauth=found)
            await self._catalog.put_connection(rows.row_of_connection(new, time.time()))
            await self.oauth.forget(account)
            installed.connections[account.scope, account.name] = new
        _log.info("authorization_server_moved", connection=account.label, issuer=found.issuer)
        return new

    def check_programs(self, *, host: bool) -> None:
        """Raises Forbidden when the caller is not at this machine and may not have programs run on it."""
        if not host and not self.means.settings.http_programs:
            raise Forbidden(
                "Programs of this machine are not started at the word of a caller over the network.",
                hint="Add it on the machine itself while no server holds the home, "
                "or set http_programs = true in the config.toml of that home.",
            )

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
            accounts = [self.carried(account, new, host) for account in old.connections.values()]
            new.connections.update(((one.scope, one.name), one) for one in accounts)
            kept = [rows.row_of_connection(one, time.time()) for one in accounts]
            await self._put(new, kept)
        left = [one.label for one in accounts if one.placements and not covers(one, new)]
        return awaiting(new) | {"accepted": names, "unconnected": left}

    def may_go_on(self, account: Connection, host: bool) -> bool:
        """Whether whoever asks may send the credentials of an account to new places. A token is for nobody to name, so
        that nobody sends it elsewhere but who is at this machine."""
        return host or (account.oauth is None and self.connections.permits(account.references))

    def carried(self, account: Connection, installed: Installed, host: bool) -> Connection:
        """The account with the places of the integration, as far as `host` may send its credentials there."""
        if self.may_go_on(account, host):
            return widened(account, installed)
        return account if account.reach is not None else changed(account, reach=())

    async def _index(self, tools: Sequence[Tool]) -> None:
        """Let `tools` be found, but for those that await review."""
        ready = [tool for tool in tools if not tool.awaits]
        await anyio.to_thread.run_sync(self._registry.index.add, ready)

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

    async def remove(self, name: str, *, connections: bool = False) -> Removed:
        """Remove the integration and the rules that target it. Raises NotFound.

        Its connections are kept for an integration of the same name, where their credentials go to the places that
        they were given for and nowhere else; with `connections` they go too, also those kept from an earlier removal.
        """
        async with self._changing:
            kept = await self._kept(name) if connections else []
            if not kept:
                self._existing(name)
            installed = self._registry.installed(name)
            private = self.oauth.private(installed) if installed is not None else ()
            rules = self._rules.targeting(name)
            # A rule left behind must not loosen what comes after, nor its absence what is still there.
            await self._rules.forget(rules, loosening=True)
            await self._catalog.delete_integration(name, connections=connections)
            self._registry.remove(name)
            partings = [await self.oauth.part(account, private) for account in kept]
            await self._rules.forget(rules, loosening=False)
        await self.kinds.let_go(name)
        told = await asyncio.gather(*(parting() for parting in partings))
        _log.info("integration_removed", integration=name, rules=len(rules))
        return Removed(len(rules), {one.label: why for one, why in zip(kept, told, strict=True) if why is not None})

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
        asked = Asked(integration, scope, connection, auth, secret, probe, replace)
        account = widened(await self.account(installed, asked, probe), installed)
        async with self._changing:
            if self._existing(integration) is not installed:
                raise Conflict(f"{integration} was changed while it was connected.", hint="Connect it again.")
            self._check_unconnected(installed, scope, connection, replace)
            await self._forget_other(installed.connections.get((scope, connection)), account)
            if installed.kind in ROOMS:
                await self._catalog.put_connection(rows.row_of_connection(account, time.time()))
            report = await self._opened(installed, account, self._registry.connect(account))
        await self.kinds.let_go(integration, scope, connection)
        return report

    async def disconnect(self, integration: str, *, scope: str = "org", connection: str = "main") -> Disconnected:
        """Remove an account and the rules that target it; the integration stays. Tokens that it signed in for are taken
        back at their server, where that has a way to. Raises NotFound."""
        async with self._changing:
            installed = self._existing(integration)
            if (scope, connection) not in installed.connections:
                raise NotFound(f"{integration} has no connection {scope}.{connection}.")
            rules = self._rules.targeting(f"{integration}.{scope}.{connection}")
            await self._rules.forget(rules, loosening=True)
            await self._catalog.delete_connection(integration, scope, connection)
            account = installed.connections[scope, connection]
            parting = await self.oauth.part(account, self.oauth.private(installed))
            self._registry.disconnect(integration, scope, connection)
            await self._rules.forget(rules, loosening=False)
        await self.kinds.let_go(integration, scope, connection)
        return Disconnected(len(rules), await parting())

    def _check_unconnected(self, installed: Installed, scope: str, connection: str, replacing: bool) -> None:
        if (scope, connection) in installed.connections and not replacing:
            raise Conflict(
                f"{installed.name} has a connection {scope}.{connection} already.",
                hint="Name it otherwise, or replace it.",
            )

    async def _forget_other(self, before: Connection | None, after: Connection) -> None:
        """Forget the tokens of an account that signs in elsewhere from now on, or not at all."""
        if before is not None and before.oauth is not None and self.oauth.apart(before, after):
            await self.oauth.forget(before)

    def _check_new(self, asked: Asked) -> None:
        address.check_name(asked.name, "integration")
        if asked.name in address.RESERVED:
            raise InvalidRequest(f"The name {asked.name} is taken by tools.{asked.name} itself.")
        address.check_scope(asked.scope)
        address.check_name(asked.connection, "connection")
        self._check_free(asked)

    def _check_free(self, asked: Asked) -> None:
        if self._registry.installed(asked.name) is not None and not asked.replace:
            raise Conflict(f"There is an integration {asked.name} already.", hint="Remove it first, or replace it.")

    async def _install(self, installed: Installed, account: Connection, asked: Asked) -> AddReport:
        async with self._changing:
            self._check_free(asked)
            for one in await self._known(installed.name):
                installed.connections[one.scope, one.name] = self.carried(one, installed, asked.host)
            key = account.scope, account.name
            if key not in installed.connections or asked.tells:
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
            [str(reach) for reach in installed.reach if reach.scheme != PACKAGE],
            list(installed.config.get("allow_private", ())),
        )

    def _existing(self, name: str) -> Installed:
        installed = self._registry.installed(name)
        if installed is None:
            raise NotFound(f"There is no integration {name[:80]!r}.", hint="`GET /integrations` lists them.")
        return installed
