"""What compiling a guest gives: native code, and the pages of its memory to make present ahead of a start.

u32 count, count × u32 page, code
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from runtime.engine.instance import Unusable

_COUNT: Final = struct.Struct("<I")


class Compiled(NamedTuple):
    """`code` is native: whoever loads it has verified where it comes from. `pages` are those of `prefault`."""

    code: bytes
    pages: Sequence[int] = ()

    def packed(self) -> bytes:
        return _COUNT.pack(len(self.pages)) + struct.pack(f"<{len(self.pages)}I", *self.pages) + self.code

    @classmethod
    def unpacked(cls, data: bytes) -> Compiled:
        """Raises Unusable when `data` is not what `packed` gives."""
        try:
            (count,) = _COUNT.unpack_from(data)
            pages = struct.unpack_from(f"<{count}I", data, _COUNT.size)
        except struct.error:
            raise Unusable("the compiled module is cut off") from None
        return cls(data[_COUNT.size + 4 * count :], pages)
