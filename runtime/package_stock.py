"""Memories of loaded packages that are good for one call each: of those that drew random numbers while they loaded.

Each was loaded apart from the others, so that no two calls begin with the same numbers.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Final

from runtime.package_run import Pages

_BYTES: Final = 256 << 20
_EACH: Final = 2
"""Memories of one package that are held at most."""


class Stock:
    """What is not taken in time makes room for what is newer."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Pages] = OrderedDict()
        self._bytes = 0

    def add(self, key: str, pages: bytes) -> None:
        """Hold one more memory of a package, under a name that no other has."""
        if self.count(key) >= _EACH:
            return
        one = Pages(f"{key}:{secrets.token_hex(8)}", pages, once=True)
        self._held[one.key] = one
        self._bytes += len(pages)
        while self._bytes > _BYTES:
            self._bytes -= len(self._held.popitem(last=False)[1].data)

    def take(self, key: str) -> Pages | None:
        """One that nobody has had, and that nobody will have again."""
        name = next((name for name in self._held if name.startswith(f"{key}:")), None)
        if name is None:
            return None
        one = self._held.pop(name)
        self._bytes -= len(one.data)
        return one

    def count(self, key: str) -> int:
        return sum(name.startswith(f"{key}:") for name in self._held)
