"""Print the modules that a Python script can import, as the image tells: `python -m benchmarks.python_modules`."""

from __future__ import annotations

import textwrap

from benchmarks.probes.python import image
from bridge.wire import codec
from bridge.wire.frames import Limits
from runtime.engine import protocol
from runtime.isolate import Isolate

_ASK = """
import sys, importlib
found = []
for name in sorted(sys.stdlib_module_names):
    if name.startswith("_") and name != "__future__":
        continue
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    found.append(name)
found
"""


def modules() -> list[str]:
    """The top-level modules of the standard library that can be imported in a script, sorted."""
    limits = Limits(10**10, 128 << 20, 30_000, 0, 1, 1 << 20, 1 << 16)
    with Isolate(image(), fuel=limits.fuel, memory_bytes=limits.memory_bytes) as isolate:
        said = protocol.read_output(isolate.run("start", protocol.start_input(_ASK, b"\xc0", 1, limits)))
    assert said.result is not None, said.failure
    found: list[str] = codec.decode(said.result)
    return found


if __name__ == "__main__":
    print(textwrap.fill(" ".join(modules()), 118))
