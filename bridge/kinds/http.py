"""Raw HTTP to the places that are allowed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bridge.kinds.port import Asked, Kind
from catalog import rows
from catalog.model import Connection
from catalog.registry import Installed


class Places(Kind):
    async def proposed(
        self, asked: Asked, *, allow: Sequence[str], allow_private: Sequence[str] = (), fetch: bool = False
    ) -> tuple[Installed, Connection]:
        config = {"allow": list(allow), "allow_private": list(allow_private), "fetch": fetch}
        integration = rows.integration("http", asked.name)
        manifest = integration.resolve_tools(config)
        await self.means.documents.check_reach(manifest, allow_private)
        made = Installed(integration, config, manifest, time.time())
        return made, await self.house.account(made, asked, asked.probe)


opened = Places
