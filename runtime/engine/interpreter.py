"""A fresh Python for one purpose: nothing inherited but what is named, and only three folders to import from."""

from __future__ import annotations

import compileall
import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from typing import Final

_BOOTSTRAP: Final = "import json,sys;sys.path+=json.loads(sys.argv[1]);from {module} import main;main({arguments})"


def command(module: str, arguments: str, *values: str) -> list[str]:
    """The command line of `module.main(arguments)`: isolated from environment, site and the current folder.

    `arguments` is a Python expression over `sys.argv[2:]`, where the values are.
    """
    code = _BOOTSTRAP.format(module=module, arguments=arguments)
    return [sys.executable, "-I", "-S", "-B", "-c", code, _folders(), *values]


@cache
def _folders() -> str:
    found = []
    for name in ("runtime", "bridge", "wasmtime", "msgpack"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"{name} is not installed as a package with files")
        folder = str(Path(spec.origin).resolve().parent.parent)
        if folder not in found:
            found.append(folder)
    return json.dumps(found)


def warm(*packages: str) -> None:
    """Write the bytecode of `packages` where it is missing: the fresh Pythons never write any, so as to leave no trace,
    and compiling their modules each time would take longer than everything else at their start (measured)."""
    if sys.dont_write_bytecode:
        return
    for name in packages:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            compileall.compile_dir(Path(spec.origin).parent, quiet=2, maxlevels=0)
