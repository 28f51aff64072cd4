"""The objects of the image made immortal, so that using one does not write to the page it lies in.

CPython counts references in the first word of every object; an isolate that only looks at a module would write to
hundreds of pages, each copied on its first write. An object whose count says that it is immortal is never counted, and
never freed, which nothing in an image is meant to be.
"""

from __future__ import annotations

import struct
from typing import Final

from guest.wasm import MalformedModule

_IMMORTAL: Final = 5 << 28
"""_Py_IMMORTAL_INITIAL_REFCNT of CPython 3.14 on 32 bits; one is immortal from 1 << 30 on."""
_MOST: Final = 1 << 28
_PAIR: Final = struct.Struct("<II")
_LEAST_OBJECTS: Final = 50_000


def immortalise(image: bytearray, survey: bytes) -> None:
    """Make the objects of `survey` immortal in `image`: pairs of addresses, of an object and of its type.

    Raises MalformedModule when what lies there is no object of that type with a count: the layout is not as known here.
    """
    changed = 0
    for at, kind in _PAIR.iter_unpack(survey):
        count, found = _PAIR.unpack_from(image, at)
        if found != kind or not count:
            raise MalformedModule(f"there is no object at {at:#x}, where the image was said to have one")
        if count < _MOST:
            struct.pack_into("<I", image, at, _IMMORTAL)
            changed += 1
    if changed < _LEAST_OBJECTS:
        raise MalformedModule(f"the image has only {changed} objects that could be made immortal")
