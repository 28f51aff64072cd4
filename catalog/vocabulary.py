"""The stems that a set of tools holds, and how many of the tools hold each."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Final

from catalog.words import one_slip

SHORTEST_KIN: Final = 5
LONGER: Final = 3
"""Letters that a stem of the same beginning may have more."""


class Vocabulary:
    def __init__(self) -> None:
        self.size = 0
        self._held: Counter[str] = Counter()
        self._sorted: list[str] | None = None

    def add(self, stems: Iterable[str]) -> None:
        self.size += 1
        self._held.update(stems)
        self._sorted = None

    def remove(self, stems: Iterable[str]) -> None:
        self.size -= 1
        for stem in stems:
            if self._held[stem] > 1:
                self._held[stem] -= 1
            else:
                del self._held[stem]
        self._sorted = None

    def count(self, stem: str) -> int:
        return self._held.get(stem, 0)

    def known(self, stem: str) -> bool:
        return stem in self._held

    def rarity(self, stem: str) -> float:
        """How much it tells that a tool holds `stem`: from 0.7 for one that every tool holds."""
        return math.log(1 + (self.size + 1) / (self.count(stem) + 1))

    def near(self, stem: str) -> str | None:
        """The commonest stem that is one slip of the keyboard away, or None."""
        low, high = len(stem) - 1, len(stem) + 1
        slips = [term for term in self._from(stem[0]) if low <= len(term) <= high and one_slip(stem, term)]
        return max(slips, key=lambda term: (self.count(term), term), default=None)

    def kin(self, stem: str) -> list[str]:
        """Stems that begin with `stem` and are a little longer: `reminder` for `remind`."""
        if len(stem) < SHORTEST_KIN or not stem.isascii():
            return []
        longest = len(stem) + LONGER
        return [term for term in self._from(stem) if len(stem) < len(term) <= longest]

    def _from(self, beginning: str) -> list[str]:
        terms = self._sorted
        if terms is None:
            terms = self._sorted = sorted(self._held)
        return terms[bisect_left(terms, beginning) : bisect_left(terms, beginning + "\U0010ffff")]
