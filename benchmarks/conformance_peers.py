"""Run another Python implementation's test files inside the isolate, each as a script, and print what fails.

    python -m benchmarks.conformance_peers FOLDER [--prints]

A file passes when it comes to its end: such tests assert. With `--prints` it must also print what this machine's Python
prints for it, or what the `.exp` file beside it holds. A file named testutils.py is what others import by that name.
Nothing of FOLDER is run by the host but with `--prints`, in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import msgpack

from benchmarks.guest import MIB
from benchmarks.probes.python import image
from bridge.wire.frames import Limits
from runtime.engine import protocol
from runtime.engine.instance import Trapped
from runtime.isolate import Isolate

_LIMITS: Final = Limits(2 * 10**10, 256 * MIB, 30_000, 100, MIB, MIB, MIB)
_NOW: Final = 1_760_000_000_000_000
_HELPER: Final = (
    "import sys, types; m = sys.modules['testutils'] = types.ModuleType('testutils'); "
    "types.FunctionType(compile(input, 'testutils', 'exec'), vars(m))(); "
)


def outcome(source: str, helper: str) -> tuple[str, str]:
    """How a script ended (`completed`, or the code and message) and what it printed."""
    printed: list[str] = []
    with Isolate(image(), fuel=_LIMITS.fuel, memory_bytes=_LIMITS.memory_bytes) as isolate:
        step, data, now = "start", protocol.start_input(source, msgpack.packb(helper), 1, _LIMITS), _NOW
        while True:
            try:
                said = protocol.read_output(isolate.run(step, data, now))  # type: ignore[arg-type]
            except Trapped as e:
                return e.code, "\n".join(printed)
            printed += [log.text for log in said.logs if log.level == "log"]
            if said.failure is not None:
                failure = said.failure
                ended = f"{failure.code} {failure.name}: {failure.message[:150]} (line {failure.line})"
                return ended, "\n".join(printed)
            if said.result is not None:
                return "completed", "\n".join(printed)
            step, data, now = "resume", protocol.resume_input([]), said.wake_us or now + 1000


def expected(path: Path) -> str:
    """What the file is to print."""
    beside = path.with_name(f"{path.name}.exp")
    if beside.exists():
        return beside.read_text()
    command = [sys.executable, "-I", "-W", "ignore", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prints", action="store_true")
    options = parser.parse_args()
    helper_file = options.folder / "testutils.py"
    helper = helper_file.read_text() if helper_file.exists() else ""
    counts: Counter[str] = Counter()
    for path in sorted(options.folder.glob("*.py")):
        if path == helper_file:
            continue
        source = path.read_text(errors="replace")
        ended, printed = outcome(_HELPER * ("testutils" in source) + source, helper)
        if ended == "completed" and options.prints and printed.split() != expected(path).split():
            ended = "other output"
        counts["passed" if ended == "completed" else "failed"] += 1
        if ended != "completed":
            print(f"{path.name}: {ended}", flush=True)
    total = counts.total()
    print(f"{counts['passed']} of {total} passed, {100 * counts['passed'] / max(total, 1):.1f} %")


if __name__ == "__main__":
    main()
