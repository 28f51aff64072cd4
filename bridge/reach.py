"""Whether what an integration says it reaches could ever be reached."""

from __future__ import annotations

from bridge.client import Client
from bridge.egress import Gate, Grant
from bridge.wire.errors import ImportFailed, ToolError
from catalog.model import Manifest
from catalog.origin import Reach, parse_url


async def check_reach(manifest: Manifest, grant: Grant, gate: Gate, client: Client) -> None:
    """Refuse a base URL that could never be called. Raises ImportFailed."""
    for reach in (one for one in manifest.reach if one not in manifest.offered):
        if reach.host.startswith("*."):
            continue
        try:
            method = reach.methods[0] if reach.methods else "GET"
            url = parse_url(str(Reach(reach.scheme, reach.host, reach.port, reach.prefix)))
            gate.check(method, url, grant)
            await client.vet(url, grant)
        except ToolError as e:
            raise ImportFailed(f"The base URL {reach} cannot be used: {e.message}", hint=e.hint) from None
