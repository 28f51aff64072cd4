"""MCP servers: added, listed again, called, and let go of with their sessions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

import anyio
import anyio.to_thread

from bridge.adding import Given
from bridge.kinds.port import UNLISTED, Asked, Found, House, Kind
from bridge.mcp.endpoint import checked
from bridge.mcp.servers import Servers, Upstream
from bridge.mcp.session import Listed
from bridge.oauth.clients import client_of
from bridge.outbound import Passage, ToolCaller
from bridge.wire.errors import ImportFailed, InvalidRequest, ToolError
from catalog import rows
from catalog.kinds.mcp import texts
from catalog.kinds.mcp.integration import place
from catalog.kinds.mcp.listing import side_effect
from catalog.model import Connection, Manifest
from catalog.oauth import OAuthClient
from catalog.registry import Installed

MAX_SAID: Final = 800
OTHERS_S: Final = 20.0
"""For all accounts but the one that describes the server, when it is read again."""
BY: Final = "by"
"""In the configuration: the account that the server described its tools to."""


class Upstreams(Kind):
    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._servers = Servers(
            self.means.client,
            self.means.gate,
            self.means.providers,
            self.means.oauth,
            self.means.settings.response_bytes,
        )
        self._servers.relisted = self._relisted
        self._servers.reoffered = self._reoffered

    async def proposed(
        self,
        asked: Asked,
        *,
        command: Sequence[str] | None = None,
        url: str | None = None,
        cwd: str | None = None,
        allow_private: Sequence[str] = (),
    ) -> tuple[Installed, Connection]:
        if (command is None) == (url is None):
            raise InvalidRequest("An MCP server is added by a command or by a URL, and by one of them.")
        config: dict[str, Any] = {"url": url, "allow_private": list(allow_private)}
        if command is not None:
            self.house.check_programs(host=asked.host)
            if not asked.host and not (command and PurePath(str(command[0])).is_absolute()):
                raise InvalidRequest("Over the network a program is named by its absolute path.")
            config |= await anyio.to_thread.run_sync(checked, command, cwd)
        where = place(config)
        there = Manifest(tools=(), reach=(where,))
        if url is not None:
            await self.means.documents.check_reach(there, allow_private)
        nothing = Installed(rows.integration("mcp", asked.name), config, there, time.time())
        account = await self.house.account(nothing, asked)
        known = await self.house.kept(asked)
        if known is None or asked.tells:
            account = replace(account, reach=(where,))
        else:
            account = self.house.carried(known, nothing, asked.host)
        if await self.means.oauth.diagnostics(account):
            # Only who has signed in is told what there is: it is listed then.
            return replace(nothing, config=config | {UNLISTED: True}), account
        found = await self._listed(asked.name, config, account, host=asked.host)
        self.means.connections.account(found.manifest, (asked.name, *asked.place), None, None, asked.probe)
        return Installed(*found, time.time()), replace(account, probe=asked.probe or account.probe)

    def protected(self, config: Mapping[str, Any]) -> str:
        return str(config.get("url") or "")

    async def moved(self, account: Connection, old: Installed) -> OAuthClient | None:
        """To sign in is to sign in there, as another client. What was not discovered but given stays as it is."""
        client, oauth = account.oauth, self.means.oauth
        if client is None or client.client_id:
            return None
        url = self.protected(old.config)
        try:
            found = await client_of({"type": "oauth2"}, old.manifest, oauth.servers, oauth.private(old), mcp=url)
        except (ImportFailed, InvalidRequest):
            return None
        return None if found.issuer == client.issuer else found

    async def _listed(self, name: str, config: Mapping[str, Any], account: Connection, *, host: bool = False) -> Found:
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
        return await self._made(name, config, listed, account)

    async def _made(
        self, name: str, config: Mapping[str, Any], listed: Listed, account: Connection | None = None
    ) -> Found:
        integration = rows.integration("mcp", name)
        found = {key: value for key, value in config.items() if key != UNLISTED} | {"era": listed.era}
        if account is not None:
            found[BY] = [account.scope, account.name]
        manifest = await anyio.to_thread.run_sync(integration.resolve_tools, found | {"listing": listed.as_config()})
        return Found(integration, found, manifest)

    async def told_to(self, account: Connection, old: Installed) -> Found:
        await self._servers.drop(account.integration, account.scope, account.name)
        return await self._listed(old.name, old.config, account)

    async def read_again(self, old: Installed, source: Given | None) -> Found:
        if source is not None:
            raise InvalidRequest(f"{old.name} is an MCP server: it says itself what its tools are.")
        account = next(iter(old.connections.values()), None)
        if account is None:
            raise InvalidRequest(f"{old.name} has no connection that could ask it for its tools.")
        return await self._listed(old.name, old.config, account)

    async def _relisted(self, name: str, listed: Listed) -> None:
        old = self.house.installed(name)
        if old is not None and old.kind == "mcp":
            await self.house.relisted(old, await self._made(name, old.config, listed))

    async def _reoffered(self, upstream: Upstream, listed: Listed) -> None:
        installed = self.house.installed(upstream.name)
        if installed is not None and installed.kind == "mcp":
            await self._note(installed, upstream.connection, {str(tool["name"]): None for tool in listed.tools})

    def caller(self, installed: Installed, account: Connection) -> ToolCaller:
        """What calls the tools of an integration's server by one of its accounts."""
        upstream = Upstream(installed.name, installed.config, account, describes=_describes(installed, account))

        async def call(passage: Passage, name: str, args: dict[str, Any]) -> dict[str, Any]:
            if not upstream.describes:
                await self._check_offered(installed, upstream, name)
            return await self._servers.call(upstream, passage, name, args)

        return call

    async def _check_offered(self, installed: Installed, upstream: Upstream, name: str) -> None:
        """What was let in is what the server told another account. Raises ToolError where it tells this one something
        else of the tool that a decision rests on, or does not offer it; nothing is sent then."""
        offered = await self._servers.offered(upstream)
        spec = next((one for one in installed.manifest.tools if one.binding["name"] == name), None)
        label = upstream.connection.label
        if name not in offered:
            await self._note(installed, upstream.connection, offered)
            raise ToolError(
                "tool_not_found",
                f"The server does not offer this tool to {label}, though it does to another account.",
                hint="Nothing was sent. Use another account of it, or see to it that this one may use the tool.",
                details={"connection": label},
            )
        told = offered[name] or {}
        effect = side_effect(told)
        if spec is not None and (
            effect != spec.side_effect or (spec.idempotent and told.get("idempotentHint") is not True)
        ):
            raise ToolError(
                "blocked",
                f"The server tells {label} another side effect of this tool ({effect}) than was let in "
                f"({spec.side_effect}).",
                hint="Nothing was sent. Add the server once more under another name, with this account alone.",
                details={"connection": label, "side_effect": effect},
            )

    async def _note(self, installed: Installed, account: Connection, offered: Mapping[str, Any]) -> None:
        without = sorted(one.name for one in installed.manifest.tools if one.binding["name"] not in offered)
        await self.house.offered(account, without)

    async def refreshed(self, installed: Installed) -> None:
        """Ask for the other accounts too. One that cannot be asked stays as it is, and is asked when it is used."""
        with anyio.move_on_after(OTHERS_S):
            for account in list(installed.connections.values()):
                if _describes(installed, account) or await self.means.oauth.diagnostics(account):
                    continue
                upstream = Upstream(installed.name, installed.config, account, describes=False)
                with contextlib.suppress(ToolError):
                    await self._note(installed, account, await self._servers.offered(upstream, anew=True))

    async def let_go(self, integration: str, scope: str | None = None, connection: str | None = None) -> None:
        await self._servers.drop(integration, scope, connection)

    async def aclose(self) -> None:
        await self._servers.aclose()


def _describes(installed: Installed, account: Connection) -> bool:
    """Whether the catalog is made from what this account is shown."""
    by = installed.config.get(BY)
    if by is None:
        return next(iter(installed.connections.values()), None) is account
    return bool(by == [account.scope, account.name])


opened = Upstreams
