"""What stands in for every function of WASI that the shim does not give: an answer that says no, or a trap.

No stub reaches anything. Those that ordinary Python code can get to answer with an error that CPython turns into an
OSError; the others cannot be reached without a descriptor, which nothing here hands out, and trap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import wasmtime

from guest.python.flatten import Signature

_EMPTY: Final = ("#get-environment", "#get-arguments", "#get-directories", "poll@0.2.9#poll")
_NOTHING: Final = ("#get-terminal-stdin", "#get-terminal-stdout", "#get-terminal-stderr", "pollable.block")
_NO_HANDLE: Final = (
    "#get-stdin",
    "#get-stdout",
    "#get-stderr",
    "#instance-network",
    "subscribe",
    "-duration",
    "-instant",
)
_ACCESS_DENIED: Final = 1
_CLOSED: Final = 1
_ERROR_AT_4: Final = {
    "create-tcp-socket": _ACCESS_DENIED,
    "create-udp-socket": _ACCESS_DENIED,
    "resolve-addresses": _ACCESS_DENIED,
    "output-stream.write": _CLOSED,
    "output-stream.blocking-write-and-flush": _CLOSED,
    "output-stream.blocking-flush": _CLOSED,
    "input-stream.read": _CLOSED,
}
_ERROR_AT_8: Final = {"output-stream.check-write": _CLOSED}


def module(needed: Mapping[str, Signature], memory_module: str) -> bytes:
    """A core module that exports a stub for each of `needed`, in the memory that `memory_module` exports."""
    functions = "\n".join(_function(name, signature) for name, signature in sorted(needed.items()))
    return bytes(wasmtime.wat2wasm(f'(module (import "{memory_module}" "memory" (memory 0))\n{functions})'))


def _function(name: str, signature: Signature) -> str:
    parameters = "".join(f" (param {kind})" for kind in signature.parameters)
    results = "".join(f" (result {kind})" for kind in signature.results)
    return f'(func (export "{name}"){parameters}{results} {_body(name, signature)})'


def _body(name: str, signature: Signature) -> str:
    last = f"(local.get {len(signature.parameters) - 1})"
    if name.startswith("resource.drop"):
        return ""
    if name.endswith(_EMPTY):
        return f"(i64.store align=4 {last} (i64.const 0))"
    if name.endswith(_NO_HANDLE) and signature.results == ("i32",):
        return "(i32.const 0)"
    if name.endswith(_NOTHING):
        return "" if name.endswith("block") else f"(i32.store8 {last} (i32.const 0))"
    for at, errors in ((4, _ERROR_AT_4), (8, _ERROR_AT_8)):
        for suffix, code in errors.items():
            if name.endswith(suffix) and not signature.results:
                return f"(i32.store8 {last} (i32.const 1)) (i32.store8 offset={at} {last} (i32.const {code}))"
    return "unreachable"
