"""npm packages, which are called through whoever runs them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bridge.accounts import placements
from bridge.adding import Given
from bridge.calls import CallContext
from bridge.kinds.port import Asked, Found, Kind, PackageHost
from bridge.outbound import Passage, ToolCaller
from bridge.scrub import Scrubber
from bridge.secrets.ports import SecretMissing
from bridge.wire.errors import ConfigError, ImportFailed, InvalidRequest, ToolError
from catalog import rows
from catalog.kinds.npm.integration import lock_of, place
from catalog.model import Connection, Manifest, Placement
from catalog.registry import Installed


class Packaged(Kind):
    async def proposed(self, asked: Asked, *, package: str, version: str = "latest") -> tuple[Installed, Connection]:
        there = Manifest((), reach=(place(package),))
        if asked.tells:
            given: Sequence[Placement] = placements(there, asked.auth, asked.secret)
        else:
            kept = await self.house.kept(asked)
            given = kept.placements if kept is not None and there.reach[0] in (kept.reach or ()) else ()
        found = await self._read(asked.name, package, version, await self._variables(asked.scope, given))
        made = Installed(*found, time.time())
        return made, await self.house.account(made, asked, asked.probe)

    async def read_again(self, old: Installed, source: Given | None) -> Found:
        if source is not None:
            raise InvalidRequest(
                f"{old.name} is an npm package, which is read again from its registry.",
                hint="For another version or range, add it again with replace.",
            )
        lock = lock_of(old.config)
        account = next(iter(old.connections.values()), None)
        given = {} if account is None else await self._variables(account.scope, self._meant(old, account))
        return await self._read(old.name, lock.name, str(old.config.get("version", lock.version)), given)

    async def _read(self, name: str, package: str, version: str, env: dict[str, str]) -> Found:
        """What the package is by now. What it says of itself was said by somebody who knew the secrets."""
        lock, listing = await self._host().listed(package, version, env)
        config = {"lock": lock.to_json().decode(), "listing": Scrubber(env.values()).value(listing), "version": version}
        integration = rows.integration("npm", name)
        return Found(integration, config, integration.resolve_tools(config))

    def _meant(self, installed: Installed, account: Connection) -> Sequence[Placement]:
        """The variables of the account, where they were given for this package."""
        where = place(lock_of(installed.config).name)
        return account.placements if account.reach is None or where in account.reach else ()

    async def _variables(self, scope: str, given: Sequence[Placement]) -> dict[str, str]:
        """What there is of the variables already: those that are not there yet fail the calls, not the adding."""
        found = {}
        for one in given:
            try:
                secret = await self.means.providers.resolve(scope, one.secret) if one.secret else None
            except (SecretMissing, ConfigError):
                continue
            found[one.field] = one.value if secret is None else secret.reveal()
        return found

    def _host(self) -> PackageHost:
        if self.house.packages is None:
            raise ImportFailed("npm packages cannot be run here: nothing in this process runs them.")
        return self.house.packages()

    def caller(self, installed: Installed, account: Connection) -> ToolCaller:
        """Calls the exports of an installed package, each within what its own caller may do, with the variables of the
        account as its environment."""

        async def call(passage: Passage, export: str, args: dict[str, Any]) -> dict[str, Any]:
            if self.house.packages is None:
                raise ToolError("internal", "npm packages cannot be run here.")
            packages, lock = self.house.packages(), lock_of(installed.config)
            env = await passage.environment(place(lock.name))
            await passage.announce()
            context = passage.context or CallContext()
            return {"value": await packages.call(lock, export, args, context, env)}

        return call


opened = Packaged
