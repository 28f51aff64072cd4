"""GraphQL endpoints, which are asked for what they offer by the account that uses them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from bridge.adding import Given
from bridge.documents import Endpoint, Source, is_url
from bridge.kinds.documented import Documented
from bridge.kinds.port import UNLISTED, Asked, Found
from bridge.repeats import check_patterns
from bridge.wire.errors import InvalidRequest
from catalog import rows
from catalog.kinds.graphql.integration import endpoint
from catalog.model import Connection, Manifest
from catalog.origin import reach_of
from catalog.registry import Installed


class Endpoints(Documented):
    kind: ClassVar[str] = "graphql"

    async def proposed(
        self,
        asked: Asked,
        *,
        source: Given,
        url: str | None = None,
        allow_private: Sequence[str] = (),
        any_query: bool = False,
        idempotent: Sequence[str] = (),
    ) -> tuple[Installed, Connection]:
        config: dict[str, Any] = {"endpoint": url or source, "allow_private": list(allow_private)}
        config |= {"any_query": any_query, "idempotent": check_patterns(idempotent)}
        if not isinstance(config["endpoint"], str) or not is_url(config["endpoint"]):
            raise InvalidRequest("url is missing: where the API answers, since its schema does not say.")
        before = Installed(rows.integration(self.kind, asked.name), config, Manifest(()), time.time())
        account = await self.house.account(before, asked)
        where: Source = source
        if url is None or source == url:
            known = account if asked.tells else await self._known(account, asked)
            if await self.means.oauth.diagnostics(known):
                return await self._unlisted(before, known), account
            where = Endpoint(config["endpoint"], known)
        elif isinstance(source, str) and not is_url(source) and ("{" in source or "\n" in source):
            where = bytes(source, "utf-8", "replace")
        found = await self.read(asked.name, config, where)
        # The probe is one of the tools, which nobody knew before.
        self.means.connections.account(found.manifest, (asked.name, *asked.place), None, None, asked.probe)
        return Installed(*found, time.time()), replace(account, probe=asked.probe or "")

    async def _unlisted(self, before: Installed, known: Connection) -> Installed:
        """Only who has signed in is told what there is: it is asked then."""
        url = endpoint(str(before.config["endpoint"]))
        there = Manifest((), reach=(reach_of(url, prefix=url.path, methods=("POST",)),))
        await self.means.documents.check_reach(there, before.config["allow_private"])
        source = {"endpoint": str(before.config["endpoint"]), "account": [known.scope, known.name]}
        config = {**before.config, "document_url": None, "source": source, UNLISTED: True}
        return replace(before, config=config, manifest=there)

    async def _known(self, account: Connection, asked: Asked) -> Connection:
        """The account of that name that is there already, as far as its credential may go elsewhere."""
        one = await self.house.kept(asked) or account
        if self.house.may_go_on(one, asked.host):
            return replace(one, reach=None)
        return one if one.reach is not None else replace(one, reach=())

    async def read_again(self, old: Installed, source: Given | None) -> Found:
        kept, url = old.config.get("source") or {}, old.config.get("endpoint")
        if url is None or (source != url and not (source is None and "endpoint" in kept)):
            return await super().read_again(old, source)
        label = tuple(kept.get("account", ("org", "main")))
        account = old.connections.get(label) or next(iter(old.connections.values()), Connection(old.name, *label))
        return await self.read(old.name, old.config, Endpoint(url, account))


opened = Endpoints
