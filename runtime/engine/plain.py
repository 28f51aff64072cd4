"""Instances on the public wasmtime API alone: the fallback for when the C API is not as `raw` knows it.

A call runs to its end in one poll, on the stack of the polling thread, which has to be `settings.THREAD_STACK` large.
Fuel still ends it exactly; its deadline is an epoch of the engine, which somebody has to move on every `TICK_S`.
Cancelling waits for the one or the other, or for the host to end the process.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, Final

import wasmtime

from runtime.engine.instance import Trapped, Unusable

TICK_S: Final = 0.02
"""Seconds between two epochs."""

_LONGEST: Final = 2**40


class PlainInstance:
    """One instance in a store of its own; see `runtime.engine.instance.Instance`."""

    __slots__ = ("_call", "_exports", "_memory", "_store", "_ticks", "slices", "waiting")

    def __init__(self, engine: wasmtime.Engine, pre: wasmtime.InstancePre, *, fuel: int, memory_bytes: int) -> None:
        self.slices = 0
        self.waiting: int | None = None
        self._ticks = _LONGEST
        self._call: tuple[Any, tuple[int, ...]] | None = None
        store = self._store = wasmtime.Store(engine)
        store.set_limits(memory_size=memory_bytes, table_elements=100_000, instances=1, tables=1, memories=1)
        store.set_epoch_deadline(_LONGEST)
        try:
            self._exports = pre.instantiate(store).exports(store)
        except (wasmtime.WasmtimeError, wasmtime.Trap) as e:
            store.close()
            raise Unusable(str(e)) from e
        store.set_fuel(fuel)
        memory = self._exports["memory"]
        assert isinstance(memory, wasmtime.Memory)
        self._memory = memory

    def begin(self, export: str, *arguments: int, results: int = 1) -> None:
        try:
            self._call = self._exports[export], arguments
        except KeyError:
            raise Unusable(f"the guest has no {export}") from None

    def answer(self, message: bytes) -> None:
        """Never called: here a guest that asks to wait is told that it cannot."""

    def within(self, seconds: float) -> None:
        self._ticks = max(1, min(_LONGEST, math.ceil(seconds / TICK_S) + 1))

    def poll(self, *, hold: bool) -> int | None:
        assert self._call is not None
        function, arguments = self._call
        self._call = None
        self._store.set_epoch_deadline(self._ticks)
        try:
            result = function(self._store, *(_signed(a, 32 if at < 2 else 64) for at, a in enumerate(arguments)))
        except wasmtime.Trap as e:
            raise Trapped(e.trap_code.name.lower() if e.trap_code else "unknown") from e
        except wasmtime.WasmtimeError as e:
            raise Trapped("error", str(e)) from e
        return 0 if result is None else result & 0xFFFF_FFFF_FFFF_FFFF

    def abandon(self) -> None:
        self._call = None

    def memory(self) -> tuple[int, int]:
        size = self._memory.data_len(self._store)
        return ctypes.addressof(self._memory.data_ptr(self._store).contents) if size else 0, size

    def grow(self, pages: int) -> None:
        try:
            self._memory.grow(self._store, pages)
        except wasmtime.WasmtimeError as e:
            raise Unusable(str(e)) from e

    def fuel(self) -> int:
        return self._store.get_fuel()

    def close(self) -> None:
        self._store.close()


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 and value > 0 else value
