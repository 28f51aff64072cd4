"""A compiled guest, ready to be instantiated any number of times."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

import wasmtime

from runtime.engine import raw, waiting
from runtime.engine.compiled import Compiled
from runtime.engine.fiber import FiberInstance
from runtime.engine.instance import Instance, Trapped, Unusable
from runtime.engine.plain import PlainInstance
from runtime.engine.prefault import Prefault
from runtime.engine.settings import MIB, Mode

IO_BYTES: Final = waiting.IO_BYTES
"""Size of a guest's static input buffer; longer inputs go through `alloc`."""

_LOADING_FUEL: Final = 10_000_000
_LOADING_MEMORY: Final = 512 * MIB

_CALLS: Final[dict[str, tuple[list[str], list[str]]]] = {
    "io": ([], ["i32"]),
    "alloc": (["i32"], ["i32"]),
    "dealloc": (["i32"], []),
    "start": (["i32", "i32", "i64"], ["i64"]),
    "resume": (["i32", "i32", "i64"], ["i64"]),
    "tail": ([], ["i32"]),
    "strip": (["i32", "i32"], ["i64"]),
}
_OF_A_RUN: Final = ("io", "alloc", "dealloc", "start", "resume", "tail")
_OF_A_STRIPPER: Final = ("io", "alloc", "dealloc", "strip")


class Tail(NamedTuple):
    """The struct at a guest's tail address: what was logged and emitted in the step so far, as msgpack items."""

    logs_ptr: int
    logs_len: int
    logs_count: int
    emitted_ptr: int
    emitted_len: int
    emitted_count: int


TAIL: Final = struct.Struct("<6I")


class Image:
    """One guest module in one engine, with the addresses that hold for each of its instances.

    `io` is the input buffer, `tail` the struct of unfinished output (0 when the guest has none), `prefault` what
    a start touches.
    """

    def __init__(
        self, engine: wasmtime.Engine, module: wasmtime.Module, mode: Mode = "fibers", pages: Sequence[int] = ()
    ) -> None:
        """Raises Unusable when the module is no guest: it imports something, or lacks a call of the protocol."""
        self.engine, self.module, self.mode = engine, module, mode
        self.prefault = Prefault(pages)
        _check(module)
        linker = wasmtime.Linker(engine)
        self._waits = waiting.imported(module)
        if self._waits:
            waiting.define(linker, mode)
        self.pre = linker.instantiate_pre(module)
        self.engine_address = raw.address(engine)
        self.pre_address = raw.address(self.pre)
        strips = any(export.name == "strip" for export in module.exports)
        self._pristine: bytes | None = None
        self.io = self.tail = 0
        instance = self.instantiate(fuel=_LOADING_FUEL, memory_bytes=_LOADING_MEMORY)
        try:
            self.io = self._address(instance, "io", IO_BYTES)
            self.tail = 0 if strips else self._address(instance, "tail", TAIL.size)
        finally:
            instance.close()

    @classmethod
    def compile(cls, engine: wasmtime.Engine, wasm: bytes, mode: Mode = "fibers") -> Image:
        """An image straight from wasm, compiled in this process. Raises Unusable."""
        try:
            return cls(engine, wasmtime.Module(engine, wasm), mode)
        except wasmtime.WasmtimeError as e:
            raise Unusable(f"the module does not compile: {e}") from e

    @classmethod
    def load(cls, engine: wasmtime.Engine, compiled: bytes, mode: Mode = "fibers") -> Image:
        """An image from what `compiler` made. The code is native: the caller has verified it. Raises Unusable."""
        code, pages = Compiled.unpacked(compiled)
        try:
            return cls(engine, wasmtime.Module.deserialize(engine, code), mode, pages)
        except wasmtime.WasmtimeError as e:
            raise Unusable(f"the compiled module does not fit this engine: {e}") from e

    def instantiate(self, *, fuel: int, memory_bytes: int) -> Instance:
        """A new instance with that much fuel and at most that much linear memory. Raises Unusable."""
        if self.mode == "fibers":
            waits = self.io if self._waits else None
            return FiberInstance(
                self.engine_address, self.pre_address, fuel=fuel, memory_bytes=memory_bytes, waits=waits
            )
        return PlainInstance(self.engine, self.pre, fuel=fuel, memory_bytes=memory_bytes)

    def pristine(self) -> bytes:
        """The linear memory of a fresh instance; copied once, when it is first asked for."""
        if self._pristine is None:
            instance = self.instantiate(fuel=0, memory_bytes=_LOADING_MEMORY)
            try:
                base, size = instance.memory()
                self._pristine = ctypes.string_at(base, size)
            finally:
                instance.close()
        return self._pristine

    def _address(self, instance: Instance, export: str, room: int) -> int:
        try:
            instance.begin(export)
            answer = instance.poll(hold=True)
        except Trapped as e:
            raise Unusable(f"{export} trapped: {e.code}") from e
        _, size = instance.memory()
        if answer is None or not 0 < (address := answer & 0xFFFFFFFF) <= size - room:
            raise Unusable(f"{export} is not an address in the guest's memory")
        return address


def _check(module: wasmtime.Module) -> None:
    if module.imports and not waiting.imported(module):
        raise Unusable("the guest imports something; it may import nothing but env.wait")
    types = {export.name: export.type for export in module.exports}
    if not isinstance(types.get("memory"), wasmtime.MemoryType):
        raise Unusable("the guest has no memory")
    for name in _OF_A_STRIPPER if "strip" in types else _OF_A_RUN:
        kind = types.get(name)
        if not isinstance(kind, wasmtime.FuncType):
            raise Unusable(f"the guest has no call {name}")
        if ([str(p) for p in kind.params], [str(r) for r in kind.results]) != _CALLS[name]:
            raise Unusable(f"the guest's call {name} has another signature")
