"""amla-sandbox: QuickJS and a shell in wasmtime, in this process."""

import sys
import time
from pathlib import Path
from typing import Any

from amla_sandbox import create_sandbox_tool

sys.path.insert(0, str(Path(__file__).parent))

from asking import CALLS, main


def echo(value: int) -> int:
    """Give the value back."""
    return value


class Amla:
    def __init__(self, language: str) -> None:
        pass

    def evaluate(self, source: str) -> Any:
        return create_sandbox_tool().run(f"console.log({source})" if source == "1+1" else source, "javascript")

    def called(self, count: int) -> float:
        tool = create_sandbox_tool(tools=[echo], max_calls=CALLS)
        start = time.perf_counter()
        said = tool.run(f"for (let i = 0; i < {count}; i++) await echo({{value: i}}); console.log('end')", "javascript")
        if "end" not in said:
            raise RuntimeError(said.strip()[:120])
        return time.perf_counter() - start


main(Amla)
