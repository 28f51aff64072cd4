"""How the HTTP door is set up: whom it answers, and how much it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")

RUN_BODY_BYTES: Final = 9 * 1024 * 1024
"""A source or an input at its ceiling of 8 MiB, and room for the rest of the request."""
TOOL_BODY_BYTES: Final = 10 * 1024 * 1024
"""What the TPMJS protocol's other executors take."""
DOCUMENT_BODY_BYTES: Final = 40 * 1024 * 1024
"""The largest public API descriptions are 20 to 30 MB."""
DOCUMENT_NODES: Final = 8 * 1024 * 1024
"""And have some two million JSON values."""


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    """What a request must satisfy before it is routed.

    `hosts` are the names (lower case, no port; IPv6 in brackets) that the Host header may say, besides the address that
    the connection came in on. `origins` are further origins allowed beside the server's own. Body limits are bytes,
    `body_deadline` seconds; `body_limits` and `body_nodes` hold the paths whose limits differ (in bytes, and in JSON
    values), `bodies_bytes` bounds all bodies that are being read at once. `raw` is the path whose bodies are left to
    another parser. `tool_key` is a bearer key of its own for `/execute-tool`, which then takes one even where the rest
    does not.
    """

    require_key: bool = True
    hosts: frozenset[str] = frozenset(LOOPBACK_NAMES)
    origins: frozenset[str] = frozenset()
    body_bytes: int = RUN_BODY_BYTES
    body_limits: Mapping[str, int] = field(
        default_factory=lambda: {
            "/integrations": DOCUMENT_BODY_BYTES,
            "/execute-tool": TOOL_BODY_BYTES,
            "/api/execute-tool": TOOL_BODY_BYTES,
        }
    )
    body_nodes: Mapping[str, int] = field(default_factory=lambda: {"/integrations": DOCUMENT_NODES})
    bodies_bytes: int = 256 * 1024 * 1024
    raw: str = "/mcp"
    body_deadline: float = 10.0
    tool_key: str | None = field(default=None, repr=False)

    def limits_of(self, path: str) -> tuple[int, int | None]:
        """The bytes and JSON values that a body at `path` may have; None: the usual number of values."""
        if path.startswith("/integrations/") and path.endswith("/refresh"):
            # Its body may be a description too.
            path = "/integrations"
        return self.body_limits.get(path, self.body_bytes), self.body_nodes.get(path)

    def is_raw(self, path: str) -> bool:
        """Whether the body that is sent to `path` is for another parser."""
        return path == self.raw or path.startswith(f"{self.raw}/")

    @property
    def largest_body(self) -> int:
        return max(self.body_bytes, *self.body_limits.values())
