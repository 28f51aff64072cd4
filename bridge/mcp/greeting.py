"""Which version of the protocol is spoken with a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bridge.mcp.errors import versions

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.exceptions import MCPError

OLDER: Final = "2025-11-25"


async def greet(client: ClientSession, era: str | None, vet: Callable[[MCPError], None]) -> None:
    """Agree on the version that was spoken before, `era`, else on the newest that both have.

    `vet` raises for an error that says nothing about versions. The newer era is asked for by `server/discover`; what
    does not know that is of the older one. Raises MCPError, RuntimeError and ValueError for a server that can neither.
    """
    from mcp.shared.exceptions import MCPError
    from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

    if era in HANDSHAKE_PROTOCOL_VERSIONS:
        try:
            await client.initialize()
            return
        except MCPError as e:
            vet(e)
            if not versions(e):
                raise
    if not await _discovered(client, vet):
        await client.initialize()


async def _discovered(client: ClientSession, vet: Callable[[MCPError], None]) -> bool:
    from mcp.shared.exceptions import MCPError
    from mcp.types import DiscoverResult
    from mcp.types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

    version = LATEST_MODERN_VERSION
    for attempt in range(2):
        try:
            found = DiscoverResult.model_validate(await client.send_discover(version))
        except MCPError as e:
            vet(e)
            mutual = [one for one in MODERN_PROTOCOL_VERSIONS if one in versions(e)]
            if not mutual or attempt:
                return False
            version = mutual[-1]
        except ValueError:
            return False
        else:
            if not any(one in found.supported_versions for one in MODERN_PROTOCOL_VERSIONS):
                return False
            client.adopt(found)
            return True
    return False
