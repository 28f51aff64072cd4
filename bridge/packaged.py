"""npm packages among the integrations of a home: added, and called through whoever runs them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from bridge.calls import CallContext
from bridge.outbound import Passage, ToolCaller
from bridge.upstreams import Upstreams
from bridge.wire.errors import ImportFailed, ToolError
from catalog import rows
from catalog.kinds.npm.integration import lock_of
from catalog.kinds.npm.tree import Lock
from catalog.model import AddReport
from catalog.registry import Installed


class PackageHost(Protocol):
    """Installs and runs packages."""

    async def listed(self, package: str, version: str) -> tuple[Lock, list[Any]]:
        """What a package is resolved to, and what it says of its tools. Raises ImportFailed."""
        ...

    async def call(self, lock: Lock, export: str, args: Mapping[str, Any], context: CallContext) -> Any:
        """Run one export of it. Raises ToolError."""
        ...


class Packaged(Upstreams):
    """The part of the toolbox that has npm packages. `packages` runs them, once there is one."""

    packages: PackageHost | None = None

    async def add_npm(
        self,
        name: str,
        package: str,
        version: str = "latest",
        *,
        scope: str = "org",
        connection: str = "main",
        replace: bool = False,
        host: bool = True,
    ) -> AddReport:
        """Add the tools that an npm package exports. `version` is a version, a range or a dist-tag, which is resolved
        now: the tools stay those of that version until the package is added again with `replace`.

        Raises ImportFailed (it cannot be installed or loaded, or has no tool), InvalidRequest and Conflict; nothing is
        added then.
        """
        self._check_new(name, scope, connection, replace)
        lock, listing = await self._host().listed(package, version)
        config = {"lock": lock.to_json().decode(), "listing": listing}
        integration = rows.KINDS["npm"](name)
        manifest = integration.resolve_tools(config)
        account = self.connections.account(manifest, (name, scope, connection), None, None, None)
        made = Installed(integration, config, manifest, time.time())
        return await self._install(made, account, replace=replace, host=host, asked=False)

    def _host(self) -> PackageHost:
        if self.packages is None:
            raise ImportFailed("npm packages cannot be run here: nothing in this process runs them.")
        return self.packages

    def package_caller(self, installed: Installed) -> ToolCaller:
        """Calls the exports of an installed package, each within what its own caller may do."""

        async def call(passage: Passage, export: str, args: dict[str, Any]) -> dict[str, Any]:
            if self.packages is None:
                raise ToolError("internal", "npm packages cannot be run here.")
            await passage.announce()
            context = passage.context or CallContext()
            return {"value": await self.packages.call(lock_of(installed.config), export, args, context)}

        return call
