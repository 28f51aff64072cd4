"""Who asks the MCP door for something, and what they may."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """`toolkit` is the one of the endpoint, `tied` the one of the key. `decides` says whether the caller's user may
    approve calls, `direct` whether tools are listed one by one, and `gone` is set when nobody can read an answer any
    more."""

    principal: str = "mcp"
    toolkit: str | None = None
    tied: str | None = None
    decides: bool = True
    direct: bool = False
    gone: asyncio.Event | None = None
