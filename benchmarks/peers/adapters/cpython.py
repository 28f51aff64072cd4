"""Plain `exec`: what a script costs without any wall around it."""

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from asking import main


class Plain:
    def __init__(self, language: str) -> None:
        pass

    def evaluate(self, source: str) -> Any:
        exec(compile(source, "script", "exec"), {})

    def called(self, count: int) -> float:
        start = time.perf_counter()
        exec(f"for i in range({count}): echo(i)", {"echo": lambda value: value})
        return time.perf_counter() - start


main(Plain)
