"""Texts in percent-encoding, read through: what stands in them is found whichever of its bytes are escaped, in digits
of either case, and also where what was escaped was escaped once more, as in a URL within a URL."""

from __future__ import annotations

import binascii
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

LEVELS: Final = 2
WINDOW: Final = 64 * 1024
"""Bytes that are looked at together: what is made of them is let go of before the next."""

_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_BYTES: Final = {
    bytes((a, b)): bytes.fromhex(chr(a) + chr(b)) for a in b"0123456789abcdefABCDEF" for b in b"0123456789abcdefABCDEF"
}
_QUOTED: Final = bytes.maketrans(b"%=\r\n", b"=\x0b\x0e\x0f")
_UNQUOTED: Final = bytes.maketrans(b"=\r\n", b"\x0b\x0e\x0f")
"""Quoted-printable is percent-encoding with another sign, and is decoded in C. What it gives a meaning to beside
(`=` and the ends of lines) is taken for other bytes, in what is looked for as well: this only says where to look."""


class Escaped:
    """Finds the `needles`. Time and memory are bounded by the length of the text, whatever is in it."""

    def __init__(self, needles: Iterable[bytes]) -> None:
        self._needles = tuple(needles)
        self._rough = tuple(needle.translate(_UNQUOTED) for needle in self._needles)
        self._reach = 3**LEVELS * max(map(len, self._needles), default=0)
        self._window = max(WINDOW, 4 * self._reach)

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where they stand in `data`, some of them more than once."""
        if b"%" not in data:
            return
        for at in range(0, len(data), self._window):
            piece = data[at : at + self._window + self._reach]
            if b"%" in piece and self._may_be_in(piece):
                for start, end in self._spans(piece):
                    yield at + start, at + end

    def _may_be_in(self, piece: bytes) -> bool:
        for _ in range(LEVELS):
            # Twice the sign would be one that stands for itself.
            alone = piece.replace(b"%%", b"\0%").replace(b"%%", b"\0%")
            piece = binascii.a2b_qp(alone.translate(_QUOTED)).translate(_UNQUOTED)
            if any(needle in piece for needle in self._rough):
                return True
            if b"%" not in piece:
                return False
        return False

    def _spans(self, piece: bytes) -> Iterator[tuple[int, int]]:
        levels: list[list[int]] = []
        while len(levels) < LEVELS and b"%" in piece:
            parts = _ESCAPE.split(piece)
            # Where each escape's byte is once all of them are bytes.
            levels.append(list(accumulate(map(len, parts[:-1:2]), lambda at, more: at + more + 1)))
            parts[1::2] = map(_BYTES.__getitem__, parts[1::2])
            piece = b"".join(parts)
            for needle in self._needles:
                at = piece.find(needle)
                while at >= 0:
                    yield _before(at, levels), _before(at + len(needle), levels)
                    at = piece.find(needle, at + len(needle))


def _before(at: int, levels: list[list[int]]) -> int:
    """Where in the escaped text is what is at `at` after all levels."""
    for places in reversed(levels):
        at += 2 * bisect_left(places, at)
    return at
