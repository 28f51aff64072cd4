"""Which pages of its memory a guest touches in its first step, found by trying: see `prefault`.

A page that is present spares a fault, so a page was touched if one more fault happens when all pages but that one are
made present first. Pages that a step only reads share the image's own as long as they are not copied; the kernel makes
sixteen of them present at one fault. A copy of each costs memory, so that those are copied that are alone or two among
their sixteen.
"""

from __future__ import annotations

import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from bridge.wire.errors import FrameError
from bridge.wire.frames import Limits
from runtime.engine import protocol
from runtime.engine.image import Image
from runtime.engine.instance import Trapped, Unusable
from runtime.engine.prefault import PAGE, Prefault
from runtime.engine.settings import MIB
from runtime.isolate import Isolate

if sys.platform != "win32":
    import resource

_AROUND: Final = 16
"""Pages of a file that the kernel makes present at one read fault, and a multiple of which they begin at."""
_FEW: Final = 2
_FUEL: Final = 1_000_000_000
_MEMORY: Final = 512 * MIB
_LIMITS: Final = Limits(_FUEL, _MEMORY, 60_000, 10, MIB, MIB, MIB)
_FIRST: Final = protocol.start_input("1+1", b"\xc0", 1, _LIMITS)

_PAGEMAP: Final = Path("/proc/self/pagemap")
_ENTRY: Final = struct.Struct("<Q")
_PRESENT: Final = 1 << 63
_OF_A_FILE: Final = 1 << 61


def touched(image: Image) -> list[int]:
    """The pages, by number, that are worth making present ahead; none where this system does not tell, or the image
    is of no guest that starts."""
    if not sys.platform.startswith("linux") or not image.tail:
        return []
    try:
        return _Survey(image).pages()
    except (OSError, Unusable, Trapped, FrameError):
        return []


class _Survey:
    def __init__(self, image: Image) -> None:
        self._image = image
        self._written, self._read = self._present()
        self._around = sorted(self._written | self._read)
        self._least = min(self._faults(self._around) for _ in range(3))

    def pages(self) -> list[int]:
        if self._faults([]) <= self._least:
            return []
        read = [page for page in self._needed(self._around) if page not in self._written]
        crowd = Counter(page // _AROUND for page in read)
        return sorted(self._written | {page for page in read if crowd[page // _AROUND] <= _FEW})

    def _present(self) -> tuple[set[int], set[int]]:
        """The pages that a first step has written to, and those beside that are present after it."""
        with self._isolate() as isolate:
            _step(isolate)
            base, size = isolate.memory()
            with _PAGEMAP.open("rb", buffering=0) as file:
                file.seek(base // PAGE * _ENTRY.size)
                entries = [entry for (entry,) in _ENTRY.iter_unpack(file.read(size // PAGE * _ENTRY.size))]
        present = {page for page, entry in enumerate(entries) if entry & _PRESENT}
        written = {page for page in present if not entries[page] & _OF_A_FILE}
        return written, present - written

    def _needed(self, pages: list[int]) -> list[int]:
        """Those of neighbouring `pages` that a first step touches."""
        left_out = set(pages)
        if self._faults([page for page in self._around if page not in left_out]) <= self._least:
            return []
        if len(pages) == 1:
            return pages
        half = len(pages) // 2
        return self._needed(pages[:half]) + self._needed(pages[half:])

    def _faults(self, pages: list[int]) -> int:
        """Page faults of a first step when `pages` are made present before it."""
        ahead = Prefault(pages)
        with self._isolate() as isolate:
            ahead.apply(isolate.memory()[0])
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            _step(isolate)
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    def _isolate(self) -> Isolate:
        return Isolate(self._image, fuel=_FUEL, memory_bytes=_MEMORY)


def _step(isolate: Isolate) -> None:
    isolate.begin("start", _FIRST)
    while isolate.advance(within=60) is None:
        pass
