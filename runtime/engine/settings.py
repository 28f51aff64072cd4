"""The one configuration of the wasm engine, in the compiler, in the host and in every worker.

Everything optional is off: most engine advisories of the year live in features that a self-built core module never
needs, and a feature that is off cannot be reached by a corrupted interpreter either.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import wasmtime
from wasmtime import _bindings

Mode = Literal["fibers", "calls"]
"""How guest calls run. `fibers`: in fuel slices on stacks of their own, through the C API. `calls`: as plain calls of
the public Python API on threads with large stacks, stopped by an epoch; the fallback when the C API is not as known."""

MIB: Final = 1024 * 1024

WASM_STACK: Final = 16 * MIB
"""Bytes of stack that guest code may use. JavaScript's own limit is 1/21 of it, so that deep recursion is an error that
a script can catch before it is a trap that it cannot (measured: 768 KiB in 16 MiB, 32 shapes of recursion, no trap)."""

FIBER_STACK: Final = WASM_STACK + MIB
THREAD_STACK: Final = 2 * WASM_STACK

OFF: Final = (
    "debug_info",
    "gc_support",
    "parallel_compilation",
    "shared_memory",
    "wasm_component_model",
    "wasm_custom_page_sizes",
    "wasm_exceptions",
    "wasm_function_references",
    "wasm_gc",
    "wasm_memory64",
    "wasm_multi_memory",
    "wasm_relaxed_simd",
    "wasm_simd",
    "wasm_stack_switching",
    "wasm_tail_call",
    "wasm_threads",
    "wasm_wide_arithmetic",
)
ON: Final = ("consume_fuel", "memory_init_cow")
# The compiler's NaN canonicalisation stays off: JavaScript's engine gives every NaN one form when it boxes it, and the
# compiler doing so again after each float operation costs a third of a plain loop's speed (docs/decisions/0002).


def engine(mode: Mode = "fibers", *, compiles: bool = False) -> wasmtime.Engine:
    """A new engine with the project's configuration; with `compiles`, one that uses every core to compile."""
    config = wasmtime.Config()
    config.strategy = "cranelift"
    config.cranelift_opt_level = "speed"
    for name in OFF:
        setattr(config, name, False)
    for name in ON:
        setattr(config, name, True)
    config.cranelift_nan_canonicalization = False
    config.parallel_compilation = compiles
    config.epoch_interruption = mode == "calls"
    # In this order: a wasm stack larger than the present fiber stack aborts the whole process at engine creation.
    _bindings.wasmtime_config_async_stack_size_set(config.ptr(), FIBER_STACK)
    config.max_wasm_stack = WASM_STACK
    return wasmtime.Engine(config)


def described(mode: Mode = "fibers") -> dict[str, Any]:
    """Every setting by name, for the MAC of a compiled module: the engine itself does not tell all of them apart."""
    return {
        "strategy": "cranelift",
        "cranelift_opt_level": "speed",
        "epoch_interruption": mode == "calls",
        "async_stack_size": FIBER_STACK,
        "max_wasm_stack": WASM_STACK,
        "off": list(OFF),
        "on": list(ON),
    }


REFUSED: Final[dict[str, bytes]] = {
    "gc": bytes.fromhex("0061736d010000000109025f017f006000017f030201010a0601040041000b"),
    "function references": bytes.fromhex("0061736d010000000109026000006001640000030201010a040102000b"),
    "threads": bytes.fromhex("0061736d01000000050401030101"),
    "atomics": bytes.fromhex("0061736d010000000105016000017f0302010005030100010a0a0108004100fe1002000b"),
    "simd": bytes.fromhex("0061736d010000000105016000017b030201000a16011400fd0c" + "00" * 16 + "0b"),
    "relaxed simd": bytes.fromhex("0061736d0100000001070160027b7b017b030201000a0b01090020002001fd80020b"),
    "memory64": bytes.fromhex("0061736d010000000503010401"),
    "multi memory": bytes.fromhex("0061736d0100000005050200010001"),
    "exceptions": bytes.fromhex("0061736d010000000104016000000d03010000"),
    "tail calls": bytes.fromhex("0061736d01000000010401600000030201000a0601040012000b"),
    "custom page sizes": bytes.fromhex("0061736d01000000050401080100"),
    "stack switching": bytes.fromhex("0061736d010000000106026000005d00"),
    "wide arithmetic": bytes.fromhex("0061736d0100000001080160027e7e027e7e030201000a0a01080020002001fc160b"),
}
"""For each feature the smallest module that uses it."""


def features_left_on(built: wasmtime.Engine) -> list[str]:
    """The optional features that the engine accepts all the same; empty when it is as configured."""
    left = []
    for name, module in REFUSED.items():
        try:
            wasmtime.Module.validate(built, module)
        except wasmtime.WasmtimeError:
            continue
        left.append(name)
    return left
