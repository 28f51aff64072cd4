"""Native QuickJS of the same sources, compiler and optimisation as the guest image: the fair comparison."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from guest import toolchain
from guest.images import cache_dir

_SOURCES = ("quickjs.c", "libregexp.c", "libunicode.c", "dtoa.c")
_FLAGS = ("-O3", "-DNDEBUG", "-D_GNU_SOURCE", "-w", "-fno-strict-aliasing", "-fwrapv")


def program() -> Path:
    """The compiled comparison program, from the cache once it was built (about half a minute)."""
    cache = cache_dir()
    harness = Path(__file__).with_name("loop.c").read_bytes()
    archive = toolchain.source_archive("quickjs-ng", cache)
    key = hashlib.sha256(harness + archive + repr(_FLAGS).encode()).hexdigest()[:16]
    kept = cache / "native" / f"quickjs-{key}"
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        for name, body in toolchain.members(archive, toolchain.lock()["quickjs-ng"]["folder"]):
            (Path(folder) / name).write_bytes(body)
        (Path(folder) / "loop.c").write_bytes(harness)
        compiler = toolchain.Compiler(cache)
        command = [compiler.zig, "cc", *_FLAGS, "loop.c", *_SOURCES, "-lm", "-o", "out"]
        toolchain.run(command, cwd=Path(folder), env=compiler.env)
        os.replace(Path(folder) / "out", kept)
    return kept


def microseconds(script: Path, times: int = 1) -> list[float]:
    """How long the native engine takes for `script`, each time in a fresh runtime of one process."""
    done = subprocess.run([program(), *[str(script)] * times], check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]
