"""Where the catalog is kept: plain rows behind a small port, and the same port in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class IntegrationRow(NamedTuple):
    """`config` is JSON text; `manifest` is compressed JSON, opaque to the store; `review` is the JSON
    of a `catalog.review.Review`."""

    name: str
    kind: str
    config: str
    manifest: bytes
    created_at: float
    review: str = "{}"


class ConnectionRow(NamedTuple):
    """One account of an integration; `config` is JSON text and holds secret references, never secrets."""

    integration: str
    scope: str
    name: str
    config: str
    created_at: float


class CatalogStore(Protocol):
    """Each method is one transaction, durable when it returns."""

    async def integrations(self) -> list[IntegrationRow]: ...

    async def connections(self) -> list[ConnectionRow]: ...

    async def put_integration(self, row: IntegrationRow, connections: Sequence[ConnectionRow]) -> None:
        """Insert or replace the integration of that name and insert or replace `connections`, together."""
        ...

    async def delete_integration(self, name: str, *, connections: bool) -> None:
        """Delete the integration, and its connections if so asked. Deleting what is not there is no error."""
        ...

    async def put_connection(self, row: ConnectionRow) -> None: ...

    async def delete_connection(self, integration: str, scope: str, name: str) -> None: ...


class MemoryCatalog:
    """A CatalogStore that forgets everything when the process ends."""

    def __init__(self) -> None:
        self._integrations: dict[str, IntegrationRow] = {}
        self._connections: dict[tuple[str, str, str], ConnectionRow] = {}

    async def integrations(self) -> list[IntegrationRow]:
        return list(self._integrations.values())

    async def connections(self) -> list[ConnectionRow]:
        return list(self._connections.values())

    async def put_integration(self, row: IntegrationRow, connections: Sequence[ConnectionRow]) -> None:
        self._integrations[row.name] = row
        for connection in connections:
            await self.put_connection(connection)

    async def delete_integration(self, name: str, *, connections: bool) -> None:
        self._integrations.pop(name, None)
        if connections:
            self._connections = {key: row for key, row in self._connections.items() if key[0] != name}

    async def put_connection(self, row: ConnectionRow) -> None:
        self._connections[row.integration, row.scope, row.name] = row

    async def delete_connection(self, integration: str, scope: str, name: str) -> None:
        self._connections.pop((integration, scope, name), None)
