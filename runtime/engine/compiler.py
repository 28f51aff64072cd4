"""A short-lived process that compiles one module: in comes wasm, out what `compiled` describes. It meets no secret."""

from __future__ import annotations

import sys

import wasmtime

from runtime.engine import settings, survey
from runtime.engine.compiled import Compiled
from runtime.engine.image import Image
from runtime.engine.instance import Unusable


def main(mode: settings.Mode) -> None:
    """Exits with 1, and the reason on stderr, when the module does not compile."""
    wasm = sys.stdin.buffer.read()
    try:
        engine = settings.engine(mode, compiles=True)
        module = wasmtime.Module(engine, wasm)
    except wasmtime.WasmtimeError as e:
        sys.exit(f"the module does not compile: {e}")
    sys.stdout.buffer.write(Compiled(bytes(module.serialize()), _touched(engine, module, mode)).packed())
    sys.stdout.buffer.flush()


def _touched(engine: wasmtime.Engine, module: wasmtime.Module, mode: settings.Mode) -> list[int]:
    try:
        return survey.touched(Image(engine, module, mode))
    except Unusable:
        return []
