"""GraphQL endpoints among the integrations of a home: added, and asked again for what they offer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import Any, Final

from bridge.accounts import Auth
from bridge.documents import Endpoint, Source, is_url
from bridge.integrations import UNLISTED, Integrations
from bridge.repeats import check_patterns
from bridge.wire.errors import InvalidRequest
from catalog import rows
from catalog.kinds.graphql.integration import endpoint
from catalog.model import AddReport, Connection, Integration, Manifest
from catalog.origin import reach_of
from catalog.registry import Installed

_NOTHING: Final = (None, None, None)


class Endpoints(Integrations):
    """The part of the toolbox that asks GraphQL endpoints what they are."""

    async def add_graphql(
        self,
        name: str,
        source: str | Path | bytes | Mapping[str, Any],
        *,
        url: str | None = None,
        scope: str = "org",
        connection: str = "main",
        auth: Auth = None,
        secret: str | None = None,
        probe: str | None = None,
        allow_private: Sequence[str] = (),
        any_query: bool = False,
        idempotent: Sequence[str] = (),
        replace: bool = False,
        host: bool = True,
    ) -> AddReport:
        """Add a GraphQL API: each of its root fields becomes a tool. `source` is its endpoint, which is asked for its
        schema by the account that is given here; or, with the endpoint in `url`, the schema itself: SDL or the JSON of
        an introspection, as a URL, a path, text or data. With `any_query` one more tool takes any document.

        The rest is as for `add_openapi`.
        """
        self._check_new(name, scope, connection, replace)
        asked: dict[str, Any] = {"endpoint": url or source, "allow_private": list(allow_private)}
        asked |= {"any_query": any_query, "idempotent": check_patterns(idempotent)}
        given = (auth, secret, probe) != _NOTHING
        if not isinstance(asked["endpoint"], str) or not is_url(asked["endpoint"]):
            raise InvalidRequest("url is missing: where the API answers, since its schema does not say.")
        before = Installed(rows.KINDS["graphql"](name), asked, Manifest(()), time.time())
        account = await self._account(before, (scope, connection), auth, secret, None)
        where: Source = source
        if url is None or source == url:
            known = account if given else await self._known(account, host)
            if await self.oauth.diagnostics(known):
                return await self._install_unlisted(before, account, known, replace=replace, host=host, asked=given)
            where = Endpoint(asked["endpoint"], known)
        elif isinstance(source, str) and not is_url(source) and ("{" in source or "\n" in source):
            where = bytes(source, "utf-8", "replace")
        integration, config, manifest = await self._read("graphql", name, asked, where)
        # The probe is one of the tools, which nobody knew before.
        self.connections.account(manifest, (name, scope, connection), None, None, probe)
        account = changed(account, probe=probe or "")
        made = Installed(integration, config, manifest, time.time())
        return await self._install(made, account, replace=replace, host=host, asked=given)

    async def _install_unlisted(
        self, before: Installed, account: Connection, known: Connection, *, replace: bool, host: bool, asked: bool
    ) -> AddReport:
        """Only who has signed in is told what there is: it is asked then."""
        url = endpoint(str(before.config["endpoint"]))
        there = Manifest((), reach=(reach_of(url, prefix=url.path, methods=("POST",)),))
        await self._documents.check_reach(there, before.config["allow_private"])
        source = {"endpoint": str(before.config["endpoint"]), "account": [known.scope, known.name]}
        config = {**before.config, "document_url": None, "source": source, UNLISTED: True}
        made = changed(before, config=config, manifest=there)
        return await self._install(made, account, replace=replace, host=host, asked=asked)

    async def _known(self, account: Connection, host: bool) -> Connection:
        """The account of that name that is there already, as far as its credential may go elsewhere."""
        earlier = self._registry.installed(account.integration)
        known = list(earlier.connections.values()) if earlier is not None else await self._kept(account.integration)
        one = next((one for one in known if (one.scope, one.name) == (account.scope, account.name)), account)
        if host or (one.oauth is None and self.connections.permits(one.references)):
            return changed(one, reach=None)
        return one if one.reach is not None else changed(one, reach=())

    async def _read_again(
        self, old: Installed, source: str | Path | bytes | Mapping[str, Any] | None
    ) -> tuple[Integration, dict[str, Any], Manifest]:
        kept, url = old.config.get("source") or {}, old.config.get("endpoint")
        if url is None or (source != url and not (source is None and "endpoint" in kept)):
            return await super()._read_again(old, source)
        label = tuple(kept.get("account", ("org", "main")))
        account = old.connections.get(label) or next(iter(old.connections.values()), Connection(old.name, *label))
        return await self._read(old.kind, old.name, old.config, Endpoint(url, account))
