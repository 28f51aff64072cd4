"""A fresh Python for one purpose: nothing inherited but what is named, and nothing to import but what it needs.

Our own code is *sent* to a worker, as bytecode, instead of being found by it: a worker can then import no other module
of ours, and does not compile its own anew where the installation has no bytecode beside its sources, which would take
longer than everything else at its start (measured: 0.2 of 0.35 s).
"""

from __future__ import annotations

import importlib.util
import json
import marshal
import pkgutil
import struct
import sys
from functools import cache
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Final

_FOUND: Final = "import json,sys;sys.path+=json.loads(sys.argv[1]);from {module} import main;main({arguments})"

_SENT: Final = """
import json, marshal, os, sys
from importlib.machinery import ModuleSpec
def read(size):
    data = b""
    while len(data) < size:
        more = os.read(int(sys.argv[-1]), size - len(data))
        if not more:
            os._exit(0)
        data += more
    return data
modules = marshal.loads(read(int.from_bytes(read(4), "big")))
class Sent:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=modules[name][0]) if name in modules else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(modules[module.__name__][1], module.__dict__)
sys.meta_path.insert(0, Sent())
sys.path += json.loads(sys.argv[1])
from {module} import main
main({arguments})
"""

_OURS: Final = ("bridge", "bridge.wire", "runtime", "runtime.engine", "runtime.isolate", "runtime.worker")
"""What a worker is made of: these modules, and those in the packages among them that have no others inside."""

_LENGTH: Final = struct.Struct(">I")


def finding(module: str, arguments: str, *values: str) -> list[str]:
    """The command line of `module.main(arguments)` for a process that finds our code where it is installed.

    It is isolated from environment, site and current folder. `arguments` is a Python expression over `sys.argv[2:]`,
    where the values are.
    """
    return _command(_FOUND.format(module=module, arguments=arguments), ("runtime", "bridge", *_THEIRS), values)


def sent(module: str, arguments: str, *values: str) -> list[str]:
    """The same for a process that reads `code()` first, from the descriptor that is its last argument."""
    return _command(_SENT.format(module=module, arguments=arguments), _THEIRS, values)


_THEIRS: Final = ("wasmtime", "msgpack")


def _command(bootstrap: str, packages: tuple[str, ...], values: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-I", "-S", "-B", "-c", bootstrap, json.dumps(_folders(packages)), *values]


@cache
def _folders(packages: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(str(Path(_spec(name).origin or "").resolve().parent.parent) for name in packages))


@cache
def code() -> bytes:
    """The bytecode of everything that a worker is made of, with its length in front."""
    modules: dict[str, tuple[bool, object]] = {}
    for name in _OURS:
        spec = _spec(name)
        modules[name] = spec.submodule_search_locations is not None, _bytecode(spec)
        if name.count(".") == 1:
            for inner in pkgutil.iter_modules(spec.submodule_search_locations or []):
                each = _spec(f"{name}.{inner.name}")
                modules[each.name] = inner.ispkg, _bytecode(each)
    data = marshal.dumps(modules)
    return _LENGTH.pack(len(data)) + data


def _spec(name: str) -> ModuleSpec:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed as a package with files")
    return spec


def _bytecode(spec: ModuleSpec) -> object:
    assert isinstance(spec.loader, InspectLoader)
    return spec.loader.get_code(spec.name)
