"""Pages that are kept for isolates to begin from, mapped copy-on-write where the system can do that.

A process that is locked down opens no file, so the one file there is, of nothing but memory, is made before: sparse,
cut into places of the largest memory each. What is kept is written into a place through a mapping of it, and an isolate
begins with a private mapping over its own memory: it then pays for the pages that it touches, not for all of them.

A place is emptied only when no isolate is mapped from it any more.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from collections.abc import Callable
from typing import Final

from runtime.engine import pages
from runtime.engine.instance import Instance, Unusable

PLACES: Final = 64
_PLACE: Final = 512 << 20
_MADV_REMOVE: Final = 9
_MAP_FIXED: Final = 0x10
_FAILED: Final = ctypes.c_void_p(-1).value
_WRITABLE: Final = mmap.PROT_READ | mmap.PROT_WRITE

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Kept:
    """Pages in one place of the file, or, where there is none, as bytes. `users` are isolates begun and not closed."""

    __slots__ = ("data", "dropped", "place", "size", "users")

    def __init__(self, data: bytes, size: int) -> None:
        self.data = data
        self.size = size
        self.place: int | None = None
        self.users = 0
        self.dropped = False


class Shelf:
    """What is kept, by key. For several threads at once."""

    def __init__(self, pristine: Callable[[], bytes]) -> None:
        """`pristine` gives the memory of a fresh isolate of the image that the pages are of."""
        self._pristine = pristine
        self._kept: dict[str, Kept] = {}
        self._lock = threading.Lock()
        self._file = _file()
        self._free = list(range(PLACES)) if self._file is not None else []

    def put(self, key: str, data: bytes) -> None:
        """Keep pages. Raises Unusable when they are malformed."""
        kept = Kept(data, pages.checked(data))
        with self._lock:
            if self._free:
                kept.place = self._free.pop()
                if self._fill(kept):
                    kept.data = b""
                else:
                    self._free, kept.place = [], None
            self._kept[key] = kept

    def drop(self, key: str) -> None:
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is not None:
                kept.dropped = True
                self._tidy(kept)

    def take(self, key: str) -> Kept | None:
        """What is kept under a key, for one isolate: give it back with `leave`."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                kept.users += 1
            return kept

    def leave(self, kept: Kept) -> None:
        """The isolate that was begun from it is closed."""
        with self._lock:
            kept.users -= 1
            self._tidy(kept)

    def lay(self, kept: Kept, instance: Instance) -> None:
        """Begin a fresh instance with the pages. Raises Unusable, also when they are more than its memory may be."""
        if kept.place is None or self._file is None:
            pages.laid(instance, kept.data)
            return
        _, size = instance.memory()
        if kept.size < size:
            raise Unusable("the pages are of a smaller memory")
        if kept.size > size:
            instance.grow((kept.size - size) // 65536)
        base, _ = instance.memory()
        flags = mmap.MAP_PRIVATE | _MAP_FIXED
        if _libc.mmap(base, kept.size, _WRITABLE, flags, self._file, kept.place * _PLACE) != base:
            raise Unusable("the pages cannot be mapped")

    def _fill(self, kept: Kept) -> bool:
        address = self._open(kept)
        if address is None:
            return False
        try:
            pristine = self._pristine()
            ctypes.memmove(address, pristine, min(len(pristine), kept.size))
            pages.copied(kept.data, address)
        finally:
            _libc.munmap(address, kept.size)
        return True

    def _tidy(self, kept: Kept) -> None:
        if not kept.dropped or kept.users or kept.place is None:
            return
        address = self._open(kept)
        if address is not None:
            emptied = _libc.madvise(address, kept.size, _MADV_REMOVE) == 0
            _libc.munmap(address, kept.size)
            if emptied:
                self._free.append(kept.place)
        kept.place = None

    def _open(self, kept: Kept) -> int | None:
        assert self._file is not None
        assert kept.place is not None
        address: int | None = _libc.mmap(None, kept.size, _WRITABLE, mmap.MAP_SHARED, self._file, kept.place * _PLACE)
        return None if address in (None, _FAILED) else address


def _file() -> int | None:
    """A sparse file of memory; None where the system has none of that kind."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        file = os.memfd_create("pages", os.MFD_CLOEXEC)
    except OSError:
        return None
    try:
        os.ftruncate(file, PLACES * _PLACE)
    except OSError:
        os.close(file)
        return None
    return file
