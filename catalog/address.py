"""The address of a tool: `<integration>.<scope>.<connection>.<tool>`, where the tool part may hold further dots."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from bridge.wire.errors import InvalidRequest

SCOPES: Final = ("org", "user")
"""Outer to inner."""
RESERVED: Final = frozenset({"search", "describe", "call", "paginate", "then"})
"""Names that `tools.<name>` already means something else by, inside a script."""
MAX_PATH: Final = 512

_NAME: Final = re.compile(r"\A[a-z0-9][a-z0-9_-]{0,62}\Z")
_TOOL: Final = re.compile(r"\A[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\Z")
_PATH: Final = re.compile(
    r"\A([a-z0-9][a-z0-9_-]{0,62})\.([a-z0-9][a-z0-9_-]{0,62})\.([a-z0-9][a-z0-9_-]{0,62})"
    r"\.([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\Z"
)


class Address(NamedTuple):
    integration: str
    scope: str
    connection: str
    tool: str

    def __str__(self) -> str:
        return ".".join(self)


def parse(path: str) -> Address | None:
    """The address that `path` spells, or None: nothing is trimmed, folded or normalised."""
    match = _PATH.match(path) if len(path) <= MAX_PATH else None
    return Address(*match.groups()) if match else None


def is_name(text: str) -> bool:
    """Whether `text` can name an integration, scope or connection: ASCII `[a-z0-9_-]`, at most 63 characters."""
    return _NAME.match(text) is not None


def is_tool(text: str) -> bool:
    return len(text) <= MAX_PATH and _TOOL.match(text) is not None


def check_name(text: str, what: str) -> None:
    """Raises InvalidRequest when `text` cannot name the thing that `what` says."""
    if not is_name(text):
        raise InvalidRequest(
            f"{text[:80]!r} cannot be the name of {'an' if what[0] in 'aeiou' else 'a'} {what}.",
            hint="Lower-case letters, digits, - and _, at most 63 characters.",
        )


def check_scope(text: str) -> None:
    """Raises InvalidRequest when there is no such scope."""
    if text not in SCOPES:
        raise InvalidRequest(f"{text[:80]!r} is not a scope.", hint=f"Scopes: {', '.join(SCOPES)}.")
