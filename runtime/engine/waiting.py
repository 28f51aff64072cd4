"""A guest that waits in the middle of a step: the one host function there is, for calls in plain synchronous code.

The guest calls `env.wait` with the array that its step would have returned; the fiber then stays where it is, and
`FiberInstance.poll` gives control back with `waiting` set. Once an answer is there, the next poll writes it into the
guest's input buffer and goes on. The callbacks below run inside of a poll, in the polling thread; none of them raises.
"""

from __future__ import annotations

import ctypes
import struct
from ctypes import c_bool, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Final

import wasmtime

from runtime.engine import raw

if TYPE_CHECKING:
    from runtime.engine.fiber import FiberInstance

MODULE: Final = "env"
NAME: Final = "wait"
IO_BYTES: Final = 64 * 1024
_KIND: Final = (["i32", "i32"], ["i32"])
_PAIR: Final = struct.Struct("<B7xI20xB7xI20x")
_ANSWER: Final = struct.Struct("<B7xi")
_CANNOT: Final = -1

_Callback = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p)
_Ready = ctypes.CFUNCTYPE(c_bool, c_void_p)

by_store: Final[dict[int, FiberInstance]] = {}
"""The instances that may wait, by the number that is their store's data."""


class _Continuation(ctypes.Structure):
    _fields_ = (("callback", _Ready), ("env", c_void_p), ("finalizer", c_void_p))


def imported(module: wasmtime.Module) -> bool:
    """Whether the guest has the one import that a guest may have."""
    found = module.imports
    if len(found) != 1 or (found[0].module, found[0].name) != (MODULE, NAME):
        return False
    kind = found[0].type
    return (
        isinstance(kind, wasmtime.FuncType) and ([str(p) for p in kind.params], [str(r) for r in kind.results]) == _KIND
    )


def define(linker: wasmtime.Linker, mode: str) -> None:
    """Give guests `env.wait`: one that waits where calls are fibers, one that says it cannot where they are not."""
    kind = wasmtime.FuncType([wasmtime.ValType.i32(), wasmtime.ValType.i32()], [wasmtime.ValType.i32()])
    if mode != "fibers":
        linker.define_func(MODULE, NAME, kind, lambda pointer, size: _CANNOT)
        return
    module, name = MODULE.encode(), NAME.encode()
    error = raw.define_async(
        raw.address(linker), module, len(module), name, len(name), raw.address(kind), _wait_address, None, None
    )
    if error:
        raise RuntimeError(raw.take_error(error))


def _wait(env: Any, caller: int, args: int, count: int, results: int, result_count: int, trap: int, to: int) -> None:
    instance = by_store.get(raw.store_data(raw.caller_context(caller)) or 0)
    pointer, size = _PAIR.unpack_from((ctypes.c_char * _PAIR.size).from_address(args))[1::2]
    continuation = _Continuation.from_address(to)
    continuation.finalizer = None
    if instance is None or (size == 0 and not instance.hand_over(pointer)):
        _give(results, _CANNOT)
        continuation.callback = _at_once
    elif size == 0:
        _give(results, len(instance.message or b""))
        instance.message = None
        continuation.callback = _at_once
    else:
        instance.waiting = pointer << 32 | size
        instance.results = results
        continuation.callback = _when_answered
        continuation.env = instance.key


def _answered(key: int | None) -> bool:
    instance = by_store.get(key or 0)
    if instance is None or instance.message is None:
        return False
    message = instance.message
    if len(message) > IO_BYTES:
        _give(instance.results, len(message))  # the guest makes room, and asks again
    elif instance.hand_over(instance.io):
        _give(instance.results, len(message))
        instance.message = None
    else:
        _give(instance.results, _CANNOT)
    instance.waiting = None
    return True


def _give(results: int, value: int) -> None:
    _ANSWER.pack_into((ctypes.c_char * _ANSWER.size).from_address(results), 0, raw.I32, value)


# Made once, before a worker locks itself down: a callback is executable memory.
_wait_callback: Final = _Callback(_wait)
_wait_address: Final = ctypes.cast(_wait_callback, c_void_p).value
_when_answered: Final = _Ready(_answered)
_at_once: Final = _Ready(lambda key: True)
