"""pyeryx: CPython in wasmtime, in this process."""

import sys
import time
from pathlib import Path
from typing import Any

import eryx

sys.path.insert(0, str(Path(__file__).parent))

from asking import CALLS, MEMORY, WALL_S, main


class Eryx:
    def __init__(self, language: str) -> None:
        pass

    def _sandbox(self, **more: Any) -> eryx.Sandbox:
        limits = eryx.ResourceLimits(
            execution_timeout_ms=int(WALL_S * 1000), max_memory_bytes=MEMORY * 2, max_callback_invocations=CALLS
        )
        return eryx.Sandbox(resource_limits=limits, **more)

    def evaluate(self, source: str) -> Any:
        return self._sandbox().execute(source)

    def called(self, count: int) -> float:
        registry = eryx.CallbackRegistry()

        @registry.callback(description="Give the value back")
        def echo(value: int) -> int:
            return value

        sandbox = self._sandbox(callbacks=registry)
        start = time.perf_counter()
        sandbox.execute(f"for i in range({count}):\n    await echo(value=i)")
        return time.perf_counter() - start


main(Eryx)
