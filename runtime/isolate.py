"""One guest instance and its protocol of bytes: in goes an input, out comes an output, a slice at a time.

Usable by itself, without a worker process:

    image = Image.compile(settings.engine(), wasm)
    with Isolate(image, fuel=10**9, memory_bytes=64 * MIB) as isolate:
        output = read_output(isolate.run("start", start_input("1 + 1", b"\\xc0", 1, limits), now_us=0))
"""

from __future__ import annotations

import ctypes
import struct
from types import TracebackType
from typing import Final, Literal, Self

from bridge.wire.errors import FrameError
from bridge.wire.frames import Log
from runtime.engine import pages as pages_module
from runtime.engine import protocol
from runtime.engine.fiber import SLICE
from runtime.engine.image import IO_BYTES, TAIL, Image, Tail
from runtime.engine.instance import Instance, Trapped
from runtime.engine.shelf import Kept, Shelf

_U32: Final = 0xFFFF_FFFF
_CLOCK: Final = struct.Struct("<q")
_STACK_END: Final = 1024
"""Bytes at the very end of a stack, which nothing has written to but a recursion without end."""
_MAX_TAIL: Final = 64 * 1024 * 1024

Step = Literal["start", "resume", "strip"]


class Isolate:
    """A guest that steps. Closed once; after a trap it is only read, never entered.

    `fuel_used` and `memory_bytes` are exact between steps. After a hardware trap the engine loses what was used since
    its last check, so there `fuel_used` is what the slices before it prove.
    """

    __slots__ = (
        "_before",
        "_data",
        "_ended",
        "_fresh",
        "_fuel",
        "_image",
        "_instance",
        "_now",
        "_output",
        "_pointer",
        "_stage",
        "_step",
        "fuel_used",
        "memory_bytes",
    )

    def __init__(self, image: Image, *, fuel: int, memory_bytes: int) -> None:
        """Raises Unusable when the image's first memory is over the limit."""
        self._image = image
        self._instance: Instance = image.instantiate(fuel=fuel, memory_bytes=memory_bytes)
        self._fuel = fuel
        self.fuel_used = 0
        self.memory_bytes = self._instance.memory()[1]
        self._ended = False
        self._fresh = True
        self._stage = ""
        self._data = b""
        self._pointer = 0
        self._output = b""

    @property
    def stepping(self) -> bool:
        """Whether a step has begun and not come to its end, be it by a trap."""
        return self._stage != ""

    def begin(self, step: Step, data: bytes, now_us: int = 0) -> None:
        """Prepare a step; nothing runs before `advance`."""
        if self._ended or self._stage:
            raise RuntimeError("an isolate is entered once at a time, and never after it ended")
        self._before = self.fuel_used
        if self._instance.waiting is not None:
            self._stage = "step"
            self._instance.answer(_CLOCK.pack(now_us) + data)
            return
        self._step, self._data, self._now = step, data, now_us
        if self._fresh:
            self._fresh = False
            if step == "start":
                self._image.prefault.apply(self._instance.memory()[0])
        if len(data) > IO_BYTES:
            self._stage = "alloc"
            self._instance.begin("alloc", len(data))
        else:
            self._call(self._image.io)

    def _call(self, pointer: int) -> None:
        data = self._data
        size = len(data)
        base, limit = self._instance.memory()
        if not 0 < pointer <= limit - size:
            raise FrameError("the guest's input buffer is not in its memory")
        ctypes.memmove(base + pointer, data, size)
        self._data = b""
        self._pointer = pointer
        self._stage = "step"
        if self._step == "strip":
            self._instance.begin("strip", pointer, size)
        else:
            self._instance.begin(self._step, pointer, size, self._now)

    def advance(self, *, hold: bool = True, within: float | None = None) -> bytes | None:
        """Run one slice; the step's output once it has ended, else None. `hold` keeps the GIL.

        Raises Trapped when the guest trapped, FrameError when it pointed outside its memory; the isolate has ended
        then. `within` is the time left, in seconds.
        """
        instance = self._instance
        try:
            while True:
                if within is not None:
                    instance.within(within)
                result = instance.poll(hold=hold)
                if result is None:
                    if instance.waiting is not None:
                        self._settle()
                        return self._read(instance.waiting)
                    self.fuel_used = self._spent()
                    return None
                output = self._returned(result)
                if output is not None:
                    return output
        except Trapped as e:
            self._trapped(e.code)
            raise
        except FrameError:
            self._ended = True
            raise

    def _returned(self, result: int) -> bytes | None:
        """A call has returned: the output when it was the step's last, else None with the next one begun.

        An input that went through `alloc` takes three: alloc, the step, dealloc.
        """
        if self._stage == "step":
            output = self._read(result)
            if self._pointer == self._image.io:
                self._settle()
                return output
            self._output = output
            self._before = self._fuel - self._instance.fuel()
            self._stage = "dealloc"
            self._instance.begin("dealloc", self._pointer, results=0)
            return None
        if self._stage == "alloc":
            if not result & _U32:
                raise Trapped("out_of_memory", "the guest has no room for its input")
            self._before = self._fuel - self._instance.fuel()
            self._call(result & _U32)
            return None
        self._settle()
        output, self._output = self._output, b""
        return output

    def _settle(self) -> None:
        self.fuel_used = self._fuel - self._instance.fuel()
        self._stage = ""

    def _spent(self) -> int:
        return min(self._before + self._instance.slices * SLICE, self._fuel)

    def _trapped(self, code: str) -> None:
        self._ended = True
        self.fuel_used = self._fuel if code == "out_of_fuel" else self._spent()
        self.memory_bytes = self._instance.memory()[1]

    def _read(self, result: int) -> bytes:
        pointer, size = result >> 32 & _U32, result & _U32
        base, limit = self._instance.memory()
        self.memory_bytes = limit
        if size > protocol.MAX_OUTPUT or pointer + size > limit:
            raise FrameError("the guest's output is not in its memory")
        return ctypes.string_at(base + pointer, size)

    def run(self, step: Step, data: bytes, now_us: int = 0) -> bytes:
        """A whole step at once, holding the GIL; raises like `advance`."""
        self.begin(step, data, now_us)
        while (output := self.advance()) is None:
            pass
        return output

    def unfinished(self) -> tuple[list[Log], list[bytes]]:
        """What an interrupted step had logged and emitted. Ends the isolate; reads its memory, runs nothing."""
        self._ended = True
        self._instance.abandon()
        if not self._image.tail:
            return [], []
        base, limit = self._instance.memory()
        self.memory_bytes = limit
        if self._image.tail > limit - TAIL.size:
            return [], []
        tail = Tail(*TAIL.unpack(ctypes.string_at(base + self._image.tail, TAIL.size)))

        def piece(pointer: int, size: int) -> bytes:
            if size > _MAX_TAIL or pointer + size > limit:
                return b""
            return ctypes.string_at(base + pointer, size)

        return (
            protocol.saved_logs(piece(tail.logs_ptr, tail.logs_len), tail.logs_count),
            protocol.saved_values(piece(tail.emitted_ptr, tail.emitted_len), tail.emitted_count),
        )

    def lay(self, shelf: Shelf, kept: Kept) -> None:
        """Begin where another isolate of this image was at rest, before the first step. Raises Unusable."""
        shelf.lay(kept, self._instance)
        self._fresh = False
        self.memory_bytes = self._instance.memory()[1]

    def memory(self) -> tuple[int, int]:
        """Address and size in bytes of the memory, between two steps."""
        return self._instance.memory()

    def pages(self) -> bytes:
        """The memory as it is between two steps, for `lay`."""
        return pages_module.taken(self._instance, self._image.pristine())

    def stack_used_up(self) -> bool:
        """Whether a guest whose stack lies at the bottom of its memory, as Python's does, has used all of it."""
        base, limit = self._instance.memory()
        size = min(_STACK_END, limit)
        return ctypes.string_at(base, size) != bytes(size)

    def close(self) -> None:
        """Drop the guest and free its memory, once; later calls do nothing."""
        self._ended = True
        self._instance.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
