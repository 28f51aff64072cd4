"""Request headers that a caller may set, and those that belong to the client."""

from __future__ import annotations

import re
from typing import Final

from bridge.wire.errors import ToolError

MAX_VALUE: Final = 16 * 1024
MAX_NAME: Final = 256

_CLIENTS = (
    "host content-length transfer-encoding connection keep-alive upgrade te trailer expect proxy-authorization"
    " proxy-authenticate proxy-connection accept-encoding http2-settings"
)
OWNED: Final = frozenset(_CLIENTS.split())
"""A request that sets one of these could be read differently by two servers on its way."""
COOKIES: Final = frozenset({"cookie", "cookie2", "set-cookie"})
"""In raw HTTP, cookies are a connection's to place."""

_TOKEN: Final = re.compile(r"\A[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE: Final = re.compile(r"\A[\x20-\x7e\t]*\Z")


def check(argument: str, name: str, value: str) -> None:
    """Raises ToolError(invalid_arguments) for a header that must not be sent; `argument` is what the caller gave."""
    if not _TOKEN.match(name) or len(name) > MAX_NAME:
        why = "not a header name"
    elif name.lower() in OWNED:
        why = f"the header {name} is set by the client alone"
    elif not _VALUE.match(value) or value != value.strip():
        why = "a header value is printable ASCII without line breaks or outer spaces"
    elif len(value) > MAX_VALUE:
        why = f"a header value is at most {MAX_VALUE // 1024} KiB"
    else:
        return
    raise ToolError("invalid_arguments", f"{argument[:80]}: {why}.", details={"argument": argument[:80]})
