"""Compiled modules, kept between starts. They are native code: whoever changes one runs code in every worker.

So an entry is sealed (see `sealed`), and its header names everything the code was made from and for: the guest, the
engine's release and the hash of its library, the target, every setting. The engine gets bytes and never sees a path;
what does not verify is compiled again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

import structlog
from wasmtime import _ffi

from bridge.wire.errors import ConfigError
from runtime.engine import interpreter, settings
from runtime.engine.sealed import Sealed, config_dir
from runtime.engine.settings import Mode

__all__ = ["ModuleCache", "compile_apart", "config_dir"]

_MAGIC: Final = b"EXCWASM1"
_FORM: Final = 2
"""Of an entry's bytes, see `compiled`."""
_COMPILE_S: Final = 600
_KEPT: Final = 16
_MOST_BYTES: Final = 4 << 30
_LARGE: Final = 8 * 1024 * 1024
"""A module larger than this takes so long to compile that somebody wonders."""

_log = structlog.get_logger("executor.engine")


class ModuleCache:
    """Compiled code by what it is compiled from. Where the folders cannot be trusted, everything is compiled anew."""

    def __init__(self, folder: Path | None = None, key_file: Path | None = None) -> None:
        self._sealed = Sealed(
            "compiled", ".cwasm", _MAGIC, entries=_KEPT, most_bytes=_MOST_BYTES, folder=folder, key_file=key_file
        )

    def compiled(self, wasm: bytes, mode: Mode = "fibers") -> bytes:
        """Native code of `wasm` for this machine and its touched pages, as `Image.load` takes them; from the cache when
        they are there and whole.

        Raises ConfigError when the module does not compile.
        """
        header = _header(wasm, mode)
        code = self._sealed.get(header)
        if code is None:
            code = compile_apart(wasm, mode)
            self._sealed.put(header, code)
        return code


def compile_apart(wasm: bytes, mode: Mode = "fibers") -> bytes:
    """Compile in a process of its own. Raises ConfigError when the module does not compile."""
    if len(wasm) > _LARGE:
        _log.info("compiling_image", bytes=len(wasm), step="compiling for this machine, once (it can take a minute)")
    command = interpreter.finding("runtime.engine.compiler", "sys.argv[2]", mode)
    try:
        done = subprocess.run(
            command, input=wasm, capture_output=True, env={}, cwd="/", timeout=_COMPILE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise ConfigError(f"the compiler of guest images did not run: {type(e).__name__}") from e
    if done.returncode != 0 or not done.stdout:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit {done.returncode}"]
        raise ConfigError(f"a guest image was not compiled: {reason[0][:300]}")
    return done.stdout


def _header(wasm: bytes, mode: Mode) -> bytes:
    facts = {
        "form": _FORM,
        "guest": hashlib.sha256(wasm).hexdigest(),
        "wasmtime": importlib.metadata.version("wasmtime"),
        "library": _library_hash(),
        "target": [sys.platform, platform.machine(), _processor()],
        "settings": settings.described(mode),
    }
    return json.dumps(facts, sort_keys=True).encode()


@cache
def _library_hash() -> str:
    """Of the engine's native library: the package's version does not tell which release is inside."""
    return hashlib.sha256(Path(_ffi.filename).read_bytes()).hexdigest()


@cache
def _processor() -> str:
    """The processor's features, which the compiler makes use of: a cache may travel with a disk."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(" ".join(sorted(features.split(":", 1)[-1].split())).encode()).hexdigest()
