"""quickjs-rs: QuickJS in wasmtime, in this process."""

import sys
import time
from pathlib import Path
from typing import Any

import quickjs_rs

sys.path.insert(0, str(Path(__file__).parent))

from asking import MEMORY, WALL_S, main


class InWasmtime:
    def __init__(self, language: str) -> None:
        pass

    def evaluate(self, source: str) -> Any:
        with quickjs_rs.Runtime(memory_limit=MEMORY) as runtime, runtime.new_context(timeout=WALL_S) as context:
            return context.eval(source)

    def called(self, count: int) -> float:
        with quickjs_rs.Runtime(memory_limit=MEMORY) as runtime, runtime.new_context(timeout=WALL_S) as context:
            context.register("echo", lambda value: value)
            start = time.perf_counter()
            context.eval(f"for (let i = 0; i < {count}; i++) echo(i); 1")
            return time.perf_counter() - start


main(InWasmtime)
