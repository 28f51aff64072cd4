"""The kinds of integrations: how each is added, read again and called.

A kind's room is opened, and what it stands on imported, when the first integration of that kind needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from bridge.wire.errors import InvalidRequest

if TYPE_CHECKING:
    from bridge.kinds.port import House, Kind

ROOMS: Final = {
    "openapi": "bridge.kinds.openapi",
    "graphql": "bridge.kinds.graphql",
    "http": "bridge.kinds.http",
    "mcp": "bridge.kinds.mcp",
    "npm": "bridge.kinds.npm",
}
"""The module of each kind; its `opened` gives the Kind."""


class Kinds:
    """The kinds that have been needed. Close it when done."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._opened: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Kind:
        """Raises InvalidRequest for a kind that there is not."""
        known = self._opened.get(name)
        if known is None:
            if name not in ROOMS:
                raise InvalidRequest(f"There is no kind {name[:80]!r}.", hint=f"The kinds are {', '.join(ROOMS)}.")
            known = self._opened[name] = import_module(ROOMS[name]).opened(self._house)
        return known

    async def let_go(self, integration: str, scope: str | None = None, connection: str | None = None) -> None:
        """End what is kept open for an integration, or for one of its accounts."""
        for kind in list(self._opened.values()):
            await kind.let_go(integration, scope, connection)

    async def aclose(self) -> None:
        """Safe to call again."""
        for kind in list(self._opened.values()):
            await kind.aclose()
