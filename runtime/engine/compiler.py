"""A short-lived process that compiles one module: wasm on stdin, native code on stdout. It meets no secret."""

from __future__ import annotations

import sys

import wasmtime

from runtime.engine import settings


def main(mode: settings.Mode) -> None:
    """Exits with 1, and the reason on stderr, when the module does not compile."""
    wasm = sys.stdin.buffer.read()
    try:
        module = wasmtime.Module(settings.engine(mode, compiles=True), wasm)
    except wasmtime.WasmtimeError as e:
        sys.exit(f"the module does not compile: {e}")
    sys.stdout.buffer.write(module.serialize())
    sys.stdout.buffer.flush()
