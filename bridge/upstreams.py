"""MCP servers among the integrations of a home: added, listed again, and let go of with their sessions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from pathlib import Path, PurePath
from typing import Any, Final

import anyio.to_thread
import structlog

from bridge.accounts import Auth
from bridge.connections import Connections
from bridge.documents import Documents
from bridge.endpoints import Endpoints
from bridge.integrations import UNLISTED
from bridge.mcp.endpoint import checked
from bridge.mcp.servers import Servers, Upstream
from bridge.mcp.session import Listed
from bridge.oauth.accounts import OAuth
from bridge.oauth.clients import client_of
from bridge.outbound import Passage, ToolCaller
from bridge.refresh import refreshed
from bridge.rules import Rules
from bridge.wire.errors import Forbidden, ImportFailed, InvalidRequest, ToolError
from catalog import rows
from catalog.kinds.mcp import texts
from catalog.kinds.mcp.integration import place
from catalog.model import AddReport, Connection, Integration, Manifest
from catalog.registry import Installed, Registry
from catalog.store import CatalogStore

_NOTHING: Final = (None, None, None)
MAX_SAID: Final = 800
_log = structlog.get_logger("executor.toolbox")


class Upstreams(Endpoints):
    """The part of the toolbox that talks to MCP servers."""

    def __init__(
        self,
        catalog: CatalogStore,
        registry: Registry,
        rules: Rules,
        connections: Connections,
        documents: Documents,
        oauth: OAuth,
        servers: Servers,
        http_programs: bool = False,
    ) -> None:
        super().__init__(catalog, registry, rules, connections, documents, oauth)
        self._http_programs = http_programs
        self._servers = servers
        servers.relisted = self._relisted

    async def add_mcp(
        self,
        name: str,
        *,
        command: Sequence[str] | None = None,
        url: str | None = None,
        cwd: str | None = None,
        scope: str = "org",
        connection: str = "main",
        auth: Auth = None,
        secret: str | None = None,
        probe: str | None = None,
        allow_private: Sequence[str] = (),
        replace: bool = False,
        host: bool = True,
    ) -> AddReport:
        """Add the tools of an MCP server: a program of this machine (`command`, run in `cwd`), or one at a URL.

        A program runs with the rights of this process and gets of its environment what `bridge.mcp.endpoint` names,
        and the variables of its connection. `host` as for `add_openapi`. Raises ImportFailed (the server cannot be
        reached, or does not list its tools), InvalidRequest, Forbidden and Conflict; nothing is added then.
        """
        self._check_new(name, scope, connection, replace)
        if (command is None) == (url is None):
            raise InvalidRequest("An MCP server is added by a command or by a URL, and by one of them.")
        config: dict[str, Any] = {"url": url, "allow_private": list(allow_private)}
        if command is not None:
            self.check_programs(host=host)
            if not host and not (command and PurePath(str(command[0])).is_absolute()):
                raise InvalidRequest("Over the network a program is named by its absolute path.")
            config |= await anyio.to_thread.run_sync(checked, command, cwd)
        where = place(config)
        there = Manifest(tools=(), reach=(where,))
        if url is not None:
            await self._documents.check_reach(there, allow_private)
        asked = (auth, secret, probe) != _NOTHING
        nothing = Installed(rows.KINDS["mcp"](name), config, there, time.time())
        account = await self._account(nothing, (scope, connection), auth, secret, None)
        known = await self._account_of(name, scope, connection, host=host, where=there)
        account = account if known is None or asked else known
        account = account if known is not None and not asked else changed(account, reach=(where,))
        if await self.oauth.diagnostics(account):
            # Only who has signed in is told what there is: it is listed then.
            made = changed(nothing, config=config | {UNLISTED: True})
            return await self._install(made, account, replace=replace, host=host, asked=asked)
        integration, config, manifest = await self._listed(name, config, account, host=host)
        self.connections.account(manifest, (name, scope, connection), None, None, probe)
        account = changed(account, probe=probe or account.probe)
        made = Installed(integration, config, manifest, time.time())
        return await self._install(made, account, replace=replace, host=host, asked=asked)

    async def moved(self, account: Connection) -> Connection:
        """The account, whose server may name another authorization server by now: to sign in is to sign in there, as
        another client. What was not discovered but given stays as it is."""
        installed = self._existing(account.integration)
        client = account.oauth
        if client is None or client.client_id or installed.kind != "mcp":
            return account
        private, url = self.oauth.private(installed), str(installed.config.get("url"))
        try:
            found = await client_of({"type": "oauth2"}, installed.manifest, self.oauth.servers, private, mcp=url)
        except (ImportFailed, InvalidRequest):
            return account
        if found.issuer == client.issuer:
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
        if not host and not self._http_programs:
            raise Forbidden(
                "Programs of this machine are not started at the word of a caller over the network.",
                hint="Add it on the machine itself while no server holds the home, or set http_programs = true there.",
            )

    async def _account_of(
        self, name: str, scope: str, connection: str, *, host: bool, where: Manifest
    ) -> Connection | None:
        """The account that is kept for the name, with the places where its credentials may go."""
        earlier = self._registry.installed(name)
        known = list(earlier.connections.values()) if earlier is not None else await self._kept(name)
        one = next((one for one in known if (one.scope, one.name) == (scope, connection)), None)
        there = Installed(rows.KINDS["mcp"](name), {}, where, 0.0)
        return None if one is None else self._carried(one, there, host)

    async def _listed(
        self, name: str, config: Mapping[str, Any], account: Connection, *, host: bool = False
    ) -> tuple[Integration, dict[str, Any], Manifest]:
        """What the server lists to the account makes of the integration. Raises ImportFailed."""
        upstream = Upstream(name, config, account)
        try:
            listed = await self._servers.listing(upstream)
        except ToolError as e:
            await self._servers.drop(name, account.scope, account.name)
            said = texts.cleaned(self._servers.last_words.pop(upstream.key, "")[-MAX_SAID:], MAX_SAID)
            words = f" It said: {said}" if said and host else ""
            hint = e.hint
            if e.status == 401 and not account.placements:
                hint = "It wants to know who asks: add it with --oauth to sign in, or with a token (--bearer)."
            raise ImportFailed(f"The tools of {name} cannot be listed: {e.message}{words}", hint=hint) from None
        return await self._made(name, config, listed)

    async def _made(
        self, name: str, config: Mapping[str, Any], listed: Listed
    ) -> tuple[Integration, dict[str, Any], Manifest]:
        integration = rows.KINDS["mcp"](name)
        found = {key: value for key, value in config.items() if key != UNLISTED} | {"era": listed.era}
        manifest = await anyio.to_thread.run_sync(integration.resolve_tools, found | {"listing": listed.as_config()})
        return integration, found, manifest

    async def _described_to(self, account: Connection, old: Installed) -> tuple[Integration, dict[str, Any], Manifest]:
        if old.kind != "mcp":
            return await super()._described_to(account, old)
        await self._servers.drop(account.integration, account.scope, account.name)
        return await self._listed(old.name, old.config, account)

    async def _read_again(
        self, old: Installed, source: str | Path | bytes | Mapping[str, Any] | None
    ) -> tuple[Integration, dict[str, Any], Manifest]:
        if old.kind != "mcp":
            return await super()._read_again(old, source)
        if source is not None:
            raise InvalidRequest(f"{old.name} is an MCP server: it says itself what its tools are.")
        account = next(iter(old.connections.values()), None)
        if account is None:
            raise InvalidRequest(f"{old.name} has no connection that could ask it for its tools.")
        return await self._listed(old.name, old.config, account)

    async def _relisted(self, name: str, listed: Listed) -> None:
        """A server has said by itself that its tools are others now: that goes the way of every refresh."""
        old = self._registry.installed(name)
        if old is None or old.kind != "mcp":
            return
        integration, config, manifest = await self._made(name, old.config, listed)
        async with self._changing:
            if self._registry.installed(name) is not old:
                return
            new, report = await anyio.to_thread.run_sync(refreshed, old, integration, config, manifest)
            if not (report.added or report.removed or report.changed):
                return
            await self._catalog.put_integration(await anyio.to_thread.run_sync(rows.row_of, new), [])
            await self._index(self._registry.install(new))
        _log.info("integration_relisted", integration=name, awaiting=len(report.awaiting), removed=len(report.removed))

    def caller(self, installed: Installed, account: Connection) -> ToolCaller:
        """What calls the tools of an integration's server by one of its accounts."""
        first = next(iter(installed.connections.values()), None)
        upstream = Upstream(installed.name, installed.config, account, describes=first is account)

        async def call(passage: Passage, name: str, args: dict[str, Any]) -> dict[str, Any]:
            return await self._servers.call(upstream, passage, name, args)

        return call

    async def remove(self, name: str, *, connections: bool = False) -> int:
        removed = await super().remove(name, connections=connections)
        await self._servers.drop(name)
        return removed

    async def disconnect(self, integration: str, *, scope: str = "org", connection: str = "main") -> int:
        removed = await super().disconnect(integration, scope=scope, connection=connection)
        await self._servers.drop(integration, scope, connection)
        return removed

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
        report = await super().connect(
            integration, scope=scope, connection=connection, auth=auth, secret=secret, probe=probe, replace=replace
        )
        await self._servers.drop(integration, scope, connection)
        return report
