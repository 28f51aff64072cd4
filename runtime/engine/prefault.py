"""Pages that every script touches as it starts, made present with one system call instead of a page fault each.

A fresh isolate's memory is a copy-on-write mapping of its image: the first touch of each page is a fault, which costs
as much as a thousand instructions of the guest. What a start touches is the same for every script, so that it is found
once, when the image is compiled (see `survey`). Where the kernel cannot do it, pages come by faults as before.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from typing import Final

PAGE: Final = 4096

_PROCESS_MADVISE: Final = 440
PIDFD_SELF: Final = -10000
"""The calling process itself, in the place of a pidfd (Linux 6.14)."""
_POPULATE_WRITE: Final = 23
_MOST: Final = 1024
"""Ranges of one call: the kernel's IOV_MAX."""

_LANE: Final = 64


def _system_call() -> ctypes._FuncPointer | None:
    if not sys.platform.startswith("linux"):
        return None
    # Kept from giving the GIL away: the call takes a few microseconds.
    call = ctypes.PyDLL(None).syscall
    call.restype = ctypes.c_long
    call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_long, ctypes.c_long, ctypes.c_long)
    return call


_call: Final = _system_call()


class Prefault:
    """The pages of one image, by number. `apply` makes them present and writable in a fresh memory of it."""

    __slots__ = ("_bases", "_count", "_ranges", "pages")

    def __init__(self, pages: Sequence[int]) -> None:
        self.pages = pages
        ranges = list(_ranges(sorted(pages)))[:_MOST]
        self._count = len(ranges) if _call is not None else 0
        # The list of ranges as one number, and where in it the memory's address is to be added: a multiplication and
        # an addition for each isolate instead of two numbers to be packed for each range.
        self._ranges = self._bases = 0
        for index, (start, length) in enumerate(ranges):
            self._ranges |= (start | length << _LANE) << 2 * _LANE * index
            self._bases |= 1 << 2 * _LANE * index

    def apply(self, base: int) -> bool:
        """Do it for the memory at `base`, a multiple of the page size. False, and never tried again, where the kernel
        refuses."""
        if not self._count:
            return False
        vector = (self._ranges + base * self._bases).to_bytes(16 * self._count, "little")
        assert _call is not None
        if _call(_PROCESS_MADVISE, PIDFD_SELF, vector, self._count, _POPULATE_WRITE, 0) < 0:
            self._count = 0
            return False
        return True


def _ranges(pages: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Start and length in bytes of each run of neighbours in sorted `pages`."""
    start = 0
    for index in range(1, len(pages) + 1):
        if index == len(pages) or pages[index] != pages[index - 1] + 1:
            yield pages[start] * PAGE, (index - start) * PAGE
            start = index
