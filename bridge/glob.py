"""Patterns over names and paths of tools.

Grammar: letters, digits, `_`, `-` and `.` stand for themselves, `*` for any run of characters, dots included. Nothing
else is accepted: no class, no brace, no `?`, no second spelling of anything. Matching is exact, with case.
"""

from __future__ import annotations

import re
from typing import Final

from bridge.wire.errors import InvalidRequest

MAX_PATTERN: Final = 256
_PATTERN: Final = re.compile(r"\A[A-Za-z0-9_.*-]+\Z")


class Glob:
    """A pattern over tool names, matched in one pass over the name.

    Raises InvalidRequest for a pattern that the grammar does not have, so that a mistake never matches more or less
    than it says.
    """

    __slots__ = ("_first", "_last", "_middle", "exact", "literals", "pattern", "stars")

    def __init__(self, pattern: str) -> None:
        if not _PATTERN.match(pattern) or len(pattern) > MAX_PATTERN or "**" in pattern:
            raise InvalidRequest(
                f"{pattern[:80]!r} is not a tool pattern.",
                hint="Letters, digits, _ - and . stand for themselves; a single * stands for any run of characters.",
            )
        self.pattern = pattern
        parts = pattern.split("*")
        self.stars = len(parts) - 1
        self.exact = self.stars == 0
        self.literals = len(pattern) - self.stars
        self._first, self._middle, self._last = parts[0], parts[1:-1], parts[-1]

    @property
    def specificity(self) -> tuple[bool, int]:
        """Larger is more specific: a name without a star first, then by the number of literal characters."""
        return self.exact, self.literals

    def matches(self, name: str) -> bool:
        if self.exact:
            return name == self.pattern
        end = len(name) - len(self._last)
        at = len(self._first)
        if at > end or not name.startswith(self._first) or not name.endswith(self._last):
            return False
        for part in self._middle:
            found = name.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True
