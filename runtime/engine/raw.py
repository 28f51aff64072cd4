"""The part of wasmtime's C API that the hot path needs, bound once, without the Python package's per-call work.

Two kinds of binding. `_keep` holds the GIL: right for calls of well under a microsecond, since giving the lock away and
taking it back costs more than they do. `_release` gives it up: only for polling a fiber on a thread, where guest code
runs for milliseconds. The struct layouts are those of the pinned release; `selftest` finds out whether they hold.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from ctypes import c_bool, c_char_p, c_int64, c_size_t, c_uint8, c_uint64, c_void_p
from typing import Any, Final

import wasmtime
from wasmtime import _bindings, _ffi

_dll: Final = _ffi.dll


def _bind(convention: Any, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    address = ctypes.cast(getattr(_dll, name), c_void_p).value
    bound: Callable[..., Any] = convention(result, *arguments)(address)
    return bound


def _keep(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return _bind(ctypes.PYFUNCTYPE, name, result, *arguments)


def _release(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return _bind(ctypes.CFUNCTYPE, name, result, *arguments)


_p = c_void_p
store_new: Final = _keep("wasmtime_store_new", _p, _p, _p, _p)
store_context: Final = _keep("wasmtime_store_context", _p, _p)
store_delete: Final = _keep("wasmtime_store_delete", None, _p)
store_limiter: Final = _keep("wasmtime_store_limiter", None, _p, c_int64, c_int64, c_int64, c_int64, c_int64)
set_fuel: Final = _keep("wasmtime_context_set_fuel", _p, _p, c_uint64)
get_fuel: Final = _keep("wasmtime_context_get_fuel", _p, _p, _p)
yield_interval: Final = _keep("wasmtime_context_fuel_async_yield_interval", _p, _p, c_uint64)
instantiate: Final = _keep("wasmtime_instance_pre_instantiate", _p, _p, _p, _p, _p)
instantiate_async: Final = _keep("wasmtime_instance_pre_instantiate_async", _p, _p, _p, _p, _p, _p)
export_get: Final = _keep("wasmtime_instance_export_get", c_bool, _p, _p, c_char_p, c_size_t, _p)
memory_data: Final = _keep("wasmtime_memory_data", _p, _p, _p)
memory_grow: Final = _keep("wasmtime_memory_grow", _p, _p, _p, c_uint64, _p)
memory_size: Final = _keep("wasmtime_memory_data_size", c_size_t, _p, _p)
call_async: Final = _keep("wasmtime_func_call_async", _p, _p, _p, _p, c_size_t, _p, c_size_t, _p, _p)
poll_holding: Final = _keep("wasmtime_call_future_poll", c_bool, _p)
poll_releasing: Final = _release("wasmtime_call_future_poll", c_bool, _p)
define_async: Final = _keep(
    "wasmtime_linker_define_async_func", _p, _p, c_char_p, c_size_t, c_char_p, c_size_t, _p, _p, _p, _p
)
caller_context: Final = _keep("wasmtime_caller_context", _p, _p)
store_data: Final = _keep("wasmtime_context_get_data", _p, _p)
future_delete: Final = _keep("wasmtime_call_future_delete", None, _p)
_trap_code: Final = _keep("wasmtime_trap_code", c_bool, _p, _p)
_trap_delete: Final = _keep("wasm_trap_delete", None, _p)
_error_message: Final = _keep("wasmtime_error_message", None, _p, _p)
_error_delete: Final = _keep("wasmtime_error_delete", None, _p)
_bytes_delete: Final = _keep("wasm_byte_vec_delete", None, _p)

INSTANCE: Final = 0
TRAP: Final = 16
ERROR: Final = 24
ARGUMENTS: Final = 32
RESULT: Final = 128
MEMORY: Final = 160
FUNCTION: Final = 192
SCRATCH: Final = 224
Block: Final = ctypes.c_char * 232
"""One allocation for all that the C API writes for an isolate, at the offsets above: an instance (16 bytes), a trap and
an error pointer, three arguments and one result (32 each), two exports (32 each: kind, then the item at 8), a word."""

ITEM: Final = 8
"""Where in an export its item lies, and in a value its number."""

WORD: Final = struct.Struct("<Q")
ENDS: Final = struct.Struct("<QQ")
"""The trap pointer and the error pointer beside it."""

CALLS: Final = (
    struct.Struct(""),
    struct.Struct("<B7xI20x"),
    struct.Struct("<B7xI20xB7xI20x"),
    struct.Struct("<B7xI20xB7xI20xB7xq16x"),
)
"""Arguments by their count: two i32, then an i64. A value is a kind byte and its number at 8, 32 bytes in all."""

I32: Final = 0
I64: Final = 1
KIND_FUNCTION: Final = 0
KIND_MEMORY: Final = 3

TRAPS: Final = {code.value: code.name.lower() for code in wasmtime.TrapCode}


def take_trap(pointer: int) -> str:
    """The trap's code as a lower-case name (`out_of_fuel`, `unreachable`, …); frees it."""
    code = c_uint8()
    named = _trap_code(pointer, ctypes.addressof(code))
    _trap_delete(pointer)
    return TRAPS.get(code.value, "unknown") if named else "unknown"


def take_error(pointer: int) -> str:
    """The error's message; frees it."""
    vec = _bindings.wasm_byte_vec_t()
    _error_message(pointer, ctypes.addressof(vec))
    message = ctypes.string_at(vec.data, vec.size).decode("utf-8", "replace")
    _bytes_delete(ctypes.addressof(vec))
    _error_delete(pointer)
    return message


def layouts_hold() -> bool:
    """Whether the structs of the bindings have the sizes that the offsets above assume."""
    b = _bindings
    sizes = {
        b.wasmtime_instance_t: 16,
        b.wasmtime_val_t: 32,
        b.wasmtime_extern_t: 32,
        b.wasmtime_func_t: 16,
        b.wasmtime_memory_t: 24,
    }
    return (
        all(ctypes.sizeof(kind) == size for kind, size in sizes.items())
        and b.wasmtime_val_t.of.offset == ITEM
        and b.wasmtime_extern_t.of.offset == ITEM
        and ctypes.sizeof(c_void_p) == 8
    )


def address(managed: Any) -> int:
    """The C pointer behind an object of the Python package."""
    value = ctypes.cast(managed.ptr(), c_void_p).value
    assert value is not None
    return value
