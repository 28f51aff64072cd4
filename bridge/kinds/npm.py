"""npm packages, which are called through whoever runs them."""

from __future__ import annotations

import time
from typing import Any

from bridge.calls import CallContext
from bridge.kinds.port import Asked, Kind, PackageHost
from bridge.outbound import Passage, ToolCaller
from bridge.wire.errors import ImportFailed, InvalidRequest, ToolError
from catalog import rows
from catalog.kinds.npm.integration import lock_of
from catalog.model import Connection
from catalog.registry import Installed


class Packaged(Kind):
    async def proposed(self, asked: Asked, *, package: str, version: str = "latest") -> tuple[Installed, Connection]:
        if asked.tells:
            raise InvalidRequest("A package has no account: it gets no credential.")
        lock, listing = await self._host().listed(package, version)
        config = {"lock": lock.to_json().decode(), "listing": listing}
        integration = rows.integration("npm", asked.name)
        made = Installed(integration, config, integration.resolve_tools(config), time.time())
        return made, await self.house.account(made, asked)

    def _host(self) -> PackageHost:
        if self.house.packages is None:
            raise ImportFailed("npm packages cannot be run here: nothing in this process runs them.")
        return self.house.packages()

    def caller(self, installed: Installed, account: Connection) -> ToolCaller:
        """Calls the exports of an installed package, each within what its own caller may do."""

        async def call(passage: Passage, export: str, args: dict[str, Any]) -> dict[str, Any]:
            if self.house.packages is None:
                raise ToolError("internal", "npm packages cannot be run here.")
            packages = self.house.packages()
            await passage.announce()
            context = passage.context or CallContext()
            return {"value": await packages.call(lock_of(installed.config), export, args, context)}

        return call


opened = Packaged
