"""The memory of an isolate at rest, as what differs from a fresh one: taken from one isolate, laid into others.

    magic, u32 size in pages of 64 KiB, then runs: u32 offset and u32 length in units of 4 KiB, and their bytes

What is laid down was once written by a guest. It can be any bytes, since a guest may write any into its memory; only
where they go is checked.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Final

from runtime.engine.instance import Instance, Unusable

_MAGIC: Final = b"EXPAGES1"
_SIZE: Final = struct.Struct("<I")
_RUN: Final = struct.Struct("<II")
_WASM_PAGE: Final = 65536
_PAGE: Final = 4096
_MOST: Final = 8192
"""Wasm pages of the largest memory: 512 MiB."""


def taken(instance: Instance, pristine: bytes) -> bytes:
    """What in the instance's memory differs from `pristine`, the memory of a fresh one."""
    base, size = instance.memory()
    memory = memoryview((ctypes.c_char * size).from_address(base)).cast("B")
    before = memoryview(pristine)
    parts = [_MAGIC, _SIZE.pack(size // _WASM_PAGE)]
    start: int | None = None
    for at in range(0, size + _PAGE, _PAGE):
        changed = at < size and memory[at : at + _PAGE] != (before[at : at + _PAGE] if at < len(pristine) else _ZEROS)
        if changed and start is None:
            start = at
        elif not changed and start is not None:
            parts += [_RUN.pack(start // _PAGE, (at - start) // _PAGE), memory[start:at].tobytes()]
            start = None
    return b"".join(parts)


_ZEROS: Final = memoryview(bytes(_PAGE))


def laid(instance: Instance, pages: bytes) -> None:
    """Make the memory of a fresh instance what it was when `pages` were taken.

    Raises Unusable when they are malformed, or larger than the instance's memory may be.
    """
    _, size = instance.memory()
    wanted = checked(pages)
    if wanted < size:
        raise Unusable("the pages are of a smaller memory")
    if wanted > size:
        instance.grow((wanted - size) // _WASM_PAGE)
    base, _ = instance.memory()
    copied(pages, base)


def copied(pages: bytes, base: int) -> None:
    """Write what `pages`, which were checked, hold of a memory to the one at the address `base`."""
    source = ctypes.cast(ctypes.c_char_p(pages), ctypes.c_void_p).value
    assert source is not None
    for at, start, length in _runs(pages):
        ctypes.memmove(base + at, source + start, length)


def checked(pages: bytes) -> int:
    """The size in bytes of the memory that `pages` are of. Raises Unusable when they are malformed."""
    if not pages.startswith(_MAGIC) or len(pages) < len(_MAGIC) + _SIZE.size:
        raise Unusable("these are no pages")
    (count,) = _SIZE.unpack_from(pages, len(_MAGIC))
    size: int = count * _WASM_PAGE
    if not 0 < count <= _MOST or any(at + length > size for at, _, length in _runs(pages)):
        raise Unusable("the pages go beyond the memory that they are of")
    return size


def _runs(pages: bytes) -> Iterator[tuple[int, int, int]]:
    """Where each run goes, where in `pages` its bytes begin, and how many they are. Raises Unusable."""
    at = len(_MAGIC) + _SIZE.size
    while at < len(pages):
        if at + _RUN.size > len(pages):
            raise Unusable("the pages are cut off")
        place, count = _RUN.unpack_from(pages, at)
        at += _RUN.size
        if at + count * _PAGE > len(pages):
            raise Unusable("the pages are cut off")
        yield place * _PAGE, at, count * _PAGE
        at += count * _PAGE
