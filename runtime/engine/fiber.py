"""Instances whose calls run as fibers: on stacks of their own, in slices of fuel, from whichever thread polls."""

from __future__ import annotations

import ctypes
import itertools
from typing import Final

from runtime.engine import raw, waiting
from runtime.engine.instance import Trapped, Unusable

SLICE: Final = 10_000_000
"""Fuel of one slice: about a millisecond. Slices of this size cost a long step 4 % (measured); shorter ones more."""

_TABLE_ELEMENTS: Final = 100_000
_EXPORTS: Final = {
    name: name.encode() for name in ("memory", "io", "tail", "alloc", "dealloc", "start", "resume", "strip")
}


_keys: Final = itertools.count(1)


class FiberInstance:
    """One instance in a store of its own. `poll` runs a slice of the call that `begin` began.

    Not for two threads at once; which thread polls may change from slice to slice.
    """

    __slots__ = (
        "_at",
        "_block",
        "_context",
        "_found",
        "_future",
        "_memory",
        "_store",
        "io",
        "key",
        "message",
        "results",
        "slices",
        "waiting",
    )

    def __init__(self, engine: int, pre: int, *, fuel: int, memory_bytes: int, waits: int | None = None) -> None:
        """`engine` and `pre` are the C pointers of an engine and an InstancePre. Raises Unusable.

        `waits` is the input buffer of a guest that may wait in the middle of a step (0 where it is not known yet), None
        for one that has no such import.
        """
        self.slices = 0
        self.waiting: int | None = None
        """Address and length of what a guest said that now waits, packed like a result; see `engine.waiting`."""
        self.message: bytes | None = None
        self.results = 0
        self.io = waits or 0
        self.key = next(_keys) if waits is not None else 0
        self._found = ""
        self._future: int | None = None
        self._memory: tuple[int, int] | None = None
        """What `memory` told, until guest code runs again."""
        block = self._block = raw.Block()
        self._at = ctypes.addressof(block)
        store = self._store = raw.store_new(engine, self.key or None, None)
        if self.key:
            waiting.by_store[self.key] = self
        context = self._context = raw.store_context(store)
        raw.store_limiter(store, memory_bytes, _TABLE_ELEMENTS, 1, 1, 1)
        try:
            # The store has no fuel yet, so that a start function could not take a single step.
            self._must(self._instantiate(pre))
            if trap := raw.WORD.unpack_from(block, raw.TRAP)[0]:
                raise Unusable(f"instantiation trapped: {raw.take_trap(trap)}")
            self._must(raw.set_fuel(context, fuel))
            self._find("memory", raw.MEMORY, raw.KIND_MEMORY)
        except Unusable:
            self.close()
            raise

    def _instantiate(self, pre: int) -> int | None:
        at = self._at
        if not self.key:
            error: int | None = raw.instantiate(pre, self._context, at + raw.INSTANCE, at + raw.TRAP)
            return error
        # An engine that knows of a host function that may wait wants this to be done in a fiber too.
        raw.ENDS.pack_into(self._block, raw.TRAP, 0, 0)
        future = raw.instantiate_async(pre, self._context, at + raw.INSTANCE, at + raw.TRAP, at + raw.ERROR)
        while not raw.poll_holding(future):
            pass
        raw.future_delete(future)
        return raw.WORD.unpack_from(self._block, raw.ERROR)[0] or None

    @staticmethod
    def _must(error: int | None) -> None:
        if error:
            raise Unusable(raw.take_error(error))

    def _find(self, export: str, to: int, kind: int) -> None:
        name = _EXPORTS[export]
        found = raw.export_get(self._context, self._at + raw.INSTANCE, name, len(name), self._at + to)
        if not found or self._block[to] != bytes((kind,)):
            raise Unusable(f"the guest has no {export}")

    def begin(self, export: str, *arguments: int, results: int = 1) -> None:
        """Prepare a call; nothing runs before the first poll."""
        assert self._future is None
        block, at = self._block, self._at
        if export != self._found:
            self._find(export, raw.FUNCTION, raw.KIND_FUNCTION)
            self._found = export
        count = len(arguments)
        if count == 3:
            raw.CALLS[3].pack_into(
                block, raw.ARGUMENTS, raw.I32, arguments[0], raw.I32, arguments[1], raw.I64, arguments[2]
            )
        else:
            values = [part for argument in arguments for part in (raw.I32, argument)]
            raw.CALLS[count].pack_into(block, raw.ARGUMENTS, *values)
        raw.ENDS.pack_into(block, raw.TRAP, 0, 0)
        self.slices = 0
        # Said again for each call, it makes the first slice a whole one: the interval runs on from call to call.
        raw.yield_interval(self._context, SLICE)
        self._future = raw.call_async(
            self._context,
            at + raw.FUNCTION + raw.ITEM,
            at + raw.ARGUMENTS,
            count,
            at + raw.RESULT,
            results,
            at + raw.TRAP,
            at + raw.ERROR,
        )

    def poll(self, *, hold: bool) -> int | None:
        """Run one slice; the call's result as an unsigned 64-bit number once it has returned, else None.

        `hold` keeps the GIL. Raises Trapped when the call ended in a trap.
        """
        self._memory = None
        if not (raw.poll_holding if hold else raw.poll_releasing)(self._future):
            self.slices += self.waiting is None
            return None
        raw.future_delete(self._future)
        self._future = None
        trap, error = raw.ENDS.unpack_from(self._block, raw.TRAP)
        if trap:
            raise Trapped(raw.take_trap(trap))
        if error:
            raise Trapped("error", raw.take_error(error))
        result: int = raw.WORD.unpack_from(self._block, raw.RESULT + raw.ITEM)[0]
        return result

    def answer(self, message: bytes) -> None:
        """What a guest that waits gets at the next poll."""
        self.slices = 0
        self.message = message
        raw.yield_interval(self._context, SLICE)

    def hand_over(self, pointer: int) -> bool:
        """Write the message to the guest's memory; False when it does not fit there."""
        message = self.message
        # In the middle of a poll: the guest may let its memory grow before the next time.
        base, limit = self._look()
        if message is None or not 0 < pointer <= limit - len(message):
            return False
        ctypes.memmove(base + pointer, message, len(message))
        return True

    def within(self, seconds: float) -> None:
        """Nothing to do: whoever polls can stop after any slice."""

    def abandon(self) -> None:
        """Unwind a call that has not returned. The memory stays readable; nothing may be called any more."""
        if self._future is not None:
            raw.future_delete(self._future)
            self._future = None

    def memory(self) -> tuple[int, int]:
        """Address and size in bytes of the linear memory at this moment; either may change while guest code runs."""
        known = self._memory
        if known is None:
            known = self._memory = self._look()
        return known

    def _look(self) -> tuple[int, int]:
        item = self._at + raw.MEMORY + raw.ITEM
        return raw.memory_data(self._context, item) or 0, raw.memory_size(self._context, item)

    def grow(self, pages: int) -> None:
        """Let the linear memory grow by so many pages. Raises Unusable when its limit does not allow it."""
        self._memory = None
        item = self._at + raw.MEMORY + raw.ITEM
        self._must(raw.memory_grow(self._context, item, pages, self._at + raw.SCRATCH))

    def fuel(self) -> int:
        """Units of fuel left. Not exact after a trap: fuel used since the last check is lost there."""
        raw.get_fuel(self._context, self._at + raw.SCRATCH)
        left: int = raw.WORD.unpack_from(self._block, raw.SCRATCH)[0]
        return left

    def close(self) -> None:
        """Free everything, once; later calls do nothing."""
        self.abandon()
        if self.key:
            waiting.by_store.pop(self.key, None)
        store, self._store = self._store, None
        if store is not None:
            raw.store_delete(store)
