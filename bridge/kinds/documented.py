"""What the kinds that are made from documents have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import anyio.to_thread

from bridge.adding import Given
from bridge.documents import Source, recorded
from bridge.kinds.port import Found, Kind
from catalog import rows
from catalog.registry import Installed


class Documented(Kind):
    kind: ClassVar[str]

    async def read(self, name: str, config: Mapping[str, Any], source: Source) -> Found:
        """What the document at `source` makes of the integration. Raises ImportFailed."""
        documents, private = self.means.documents, config["allow_private"]
        document, remembered = await documents.open(source, private)
        known = {**config, **remembered}
        integration = rows.integration(self.kind, name)
        # Reading a large document takes seconds, and the event loop has better things to do.
        manifest = await anyio.to_thread.run_sync(
            integration.resolve_tools, known | {"document": document, "fetch": documents.others(private)}
        )
        await documents.check_reach(manifest, private)
        return Found(integration, known, manifest)

    async def read_again(self, old: Installed, source: Given | None) -> Found:
        again = recorded(old.config.get("source"), old.name) if source is None else source
        return await self.read(old.name, old.config, again)
