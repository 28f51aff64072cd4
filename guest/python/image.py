"""The Python image: CPython as componentize-py ships it, taken apart, merged with the shim into one core module, and
pre-initialised with the guest's own Python code loaded and warm.

The parts that take long are kept by the hash of what they are made from: the interpreter with its standard library, and
the merged module. A change to the guest's Python code costs only the snapshot.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgpack

from guest import npm, toolchain, wasm, zones
from guest.context import BuildContext
from guest.python import flatten, immortal, merge, shim, stdlib, stubs
from guest.toolchain import BuildFailed
from guest.wasm import MalformedModule

HERE: Final = Path(__file__).parent
WAIT: Final = "env.wait"
"""The one import: a call in plain synchronous code waits there."""

STACK_BYTES: Final = 0x40000
"""Where the interpreter's stack in memory starts, counting down to zero.

CPython looks at this stack alone when it decides that recursion is too deep, yet the engine's own stack (16 MiB) also
fills. Measured over 30 shapes of recursion: with CPython's 1 MiB, 10 of them trap, nested JSON among them; with
256 KiB, 6 (a million nested tuples hashed or lists freed, iterators wrapped 300 000 times), and the others raise
RecursionError.
A `__lt__` that calls itself still gets 588 levels deep, a `sorted` in its own key function 117, plain functions 1000.
"""

_BUILDING: Final = frozenset({"load", "problem", "survey"})
"""Exports that only the build calls."""

_SCRIPT: Final = "import componentize_py, sys; sys.exit(componentize_py.script())"
_ALLOCATORS: Final = {name: f"world {name}" for name in ("malloc", "calloc", "realloc")}
_PROGRAMS: Final = (
    "package/package.json",
    "package/bin/package.json",
    "package/bin/wasm-merge",
    "package/bin/wasm-opt",
)
_LIBC: Final = ("malloc", "calloc", "realloc", "free", "memcpy", "memcmp", "memset", "strlen")


def build_python(context: BuildContext) -> bytes:
    """The image. Raises BuildFailed, saying what is missing, on a machine where it cannot be made."""
    lock = toolchain.lock()
    for package in ("componentize-py", "binaryen"):
        context.inputs[package] = lock[package]["version"]
    component = _kept(context, "component", _component_inputs(), lambda: _component(context))
    flat = _kept(context, "merged", [*_merge_inputs(), component], lambda: _merged(context, component))
    context.progress("loading the guest's own code and taking the snapshot")
    image = context.preinitialise(
        flat,
        [("load", msgpack.packb(sources() | {"zones": zones.compiled(context)}))],
        drop=("problem", "survey"),
        imports=(WAIT,),
        survey=("survey", immortal.immortalise),
    )
    image = _with_stack(image, STACK_BYTES)
    check(image)
    return image


def sources() -> dict[str, object]:
    """The guest's Python code by name, and what it must know of the image."""
    files = sorted((HERE / "app").glob("*.py"))
    return {path.stem: path.read_text() for path in files if path.stem != "__init__"} | {"hidden": stdlib.HIDDEN}


def _kept(context: BuildContext, what: str, inputs: list[bytes], make: object) -> bytes:
    assert callable(make)
    digest = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in inputs)).hexdigest()
    kept = context.cache / "python" / f"{what}-{digest[:32]}.wasm"
    if kept.exists():
        return kept.read_bytes()
    made = make()
    assert isinstance(made, bytes)
    kept.parent.mkdir(parents=True, exist_ok=True)
    toolchain.write_atomically(kept, made)
    return made


def _files(*names: str) -> list[bytes]:
    return [(HERE / name).read_bytes() for name in names]


def _component_inputs() -> list[bytes]:
    version = toolchain.lock()["componentize-py"]["version"].encode()
    return [version, repr(stdlib.PRELOADED).encode(), *_files("seed/app.py", "seed/world.wit")]


def _merge_inputs() -> list[bytes]:
    lock = toolchain.lock()
    versions = repr((lock["binaryen"], lock["ziglang"])).encode()
    own = _files("component.py", "flatten.py", "merge.py", "shim.py", "stubs.py")
    return [versions, *own, *(path.read_bytes() for path in sorted((HERE / "shim").iterdir()))]


def _component(context: BuildContext) -> bytes:
    """The interpreter after it has imported the standard library, as componentize-py snapshots it."""
    context.progress(f"starting CPython and importing {len(stdlib.PRELOADED)} modules (about 20 seconds)")
    home = _componentize(context)
    with tempfile.TemporaryDirectory(dir=context.cache) as folder:
        stage = Path(folder)
        (stage / "wit").mkdir()
        shutil.copy(HERE / "seed" / "world.wit", stage / "wit")
        (stage / "app").mkdir()
        text = (HERE / "seed" / "app.py").read_text()
        line = "PRELOADED: tuple[str, ...] = ()"
        if line not in text:
            raise BuildFailed("seed/app.py has no line for the modules to import")
        (stage / "app" / "app.py").write_text(text.replace(line, f"PRELOADED = {stdlib.PRELOADED!r}"))
        options = ("-q", "-d", stage / "wit", "-w", "isolate", "componentize", "-p", stage / "app", "app")
        # the interpreter takes its hash seed from the environment it is started in: with none, none is random
        env = {"PYTHONPATH": str(home), "PYTHONHASHSEED": "0", "HOME": folder, "PATH": "/usr/bin:/bin"}
        toolchain.run(
            [sys.executable, "-c", _SCRIPT, *options, "-o", stage / "component.wasm"],
            env=env,
        )
        return (stage / "component.wasm").read_bytes()


def _componentize(context: BuildContext) -> Path:
    """A private copy of componentize-py. Raises BuildFailed where there is none for this machine."""
    entry = toolchain.lock()["componentize-py"]
    home = context.cache / "tools" / f"componentize-py-{entry['version']}"
    if not home.exists():
        context.progress(f"getting componentize-py {entry['version']}")
        home.parent.mkdir(parents=True, exist_ok=True)
        try:
            with toolchain.staged(home) as stage, tempfile.TemporaryDirectory() as wheels:
                only = ("--quiet", "--only-binary", ":all:", "--no-deps")
                toolchain.pip("download", *only, "--dest", wheels, f"componentize-py=={entry['version']}")
                wheel = next(Path(wheels).glob("*.whl"))
                if hashlib.sha256(wheel.read_bytes()).hexdigest() not in entry["wheel_sha256"]:
                    raise BuildFailed("the wheel of componentize-py is not one of those in images.lock")
                toolchain.pip("install", "--quiet", "--no-deps", "--no-compile", "--target", stage, wheel)
        except BuildFailed as e:
            raise BuildFailed(
                f"the Python image cannot be built on {sysconfig.get_platform()}; JavaScript is not affected. {e}"
            ) from e
    return home


def _merged(context: BuildContext, component: bytes) -> bytes:
    """CPython, libc, the shim and the stubs as one core module."""
    parts = flatten.flatten(component, room_pages=shim.ROOM_PAGES, room_table=shim.ROOM_TABLE, c_functions=_ALLOCATORS)
    with tempfile.TemporaryDirectory(dir=context.cache) as folder:
        stage = Path(folder)
        context.progress("compiling the shim")
        own = shim.compile_shim(context.compiler, stage, pages=parts.pages, table=parts.table)
        modules = _modules(parts, own)
        paths: dict[str, Path] = {}
        for name, body in modules.items():
            paths[name] = stage / f"{name}.wasm"
            paths[name].write_bytes(body)
        context.progress(f"merging {len(modules)} modules (about half a minute)")
        binaryen = merge.Binaryen(npm.node(context.cache), _binaryen(context, stage))
        binaryen.merge(paths, stage / "merged.wasm")
        kept = merge.keep_exports((stage / "merged.wasm").read_bytes())
        (stage / "kept.wasm").write_bytes(kept)
        context.progress("removing what nothing reaches (about 15 seconds)")
        binaryen.optimise(stage / "kept.wasm", stage / "flat.wasm")
        return merge.plain((stage / "flat.wasm").read_bytes())


def _binaryen(context: BuildContext, stage: Path) -> Path:
    """binaryen's package, unpacked: its programs are JavaScript with the compiler inside."""
    context.progress(f"getting binaryen {toolchain.lock()['binaryen']['version']}")
    for name, body in npm.package("binaryen", context.cache, under=_PROGRAMS).items():
        target = stage / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
    return stage / "package"


def _modules(parts: flatten.Parts, own: bytes) -> dict[str, bytes]:
    """Everything to merge by name, each import naming another of them."""
    found = {
        name: key for key in (parts.base, parts.python, parts.c) for name in flatten.export_names(parts.modules[key])
    }
    found |= dict.fromkeys(_LIBC, parts.c)
    given = flatten.export_names(own)

    def source(module: str, name: str, kind: int) -> tuple[str, str]:
        if module != flatten.HOST:
            return module, name
        return ("shim" if name in given else "stubs"), name

    modules = {"shim": shim.attach(own, found)}
    modules |= {key: flatten.renamed(body, source) for key, body in parts.modules.items()}
    denied = {name: signature for name, signature in parts.needed.items() if name not in given}
    return modules | {"stubs": stubs.module(denied, parts.base)}


def _with_stack(image: bytes, top: int) -> bytes:
    """`image` with its stack pointer starting at `top`, below where the snapshot had it."""
    parts = wasm.sections(image)
    values = [item for part in parts if part.id == wasm.GLOBAL for item in wasm.globals_(part.body)]
    changed = [
        wasm.Global(item.type, True, b"\x41" + wasm.signed(top) + b"\x0b") if item.mutable else item for item in values
    ]
    section = wasm.Section(wasm.GLOBAL, wasm.write_globals(changed))
    return wasm.write([section if part.id == wasm.GLOBAL else part for part in parts])


def check(image: bytes) -> None:
    """Assert what the engine and the dump rely on. Raises MalformedModule.

    One import, one memory, one table that no instruction changes, one mutable global, no start function.
    """
    bodies: Mapping[int, bytes] = {part.id: part.body for part in wasm.sections(image)}
    imports = wasm.imported_functions(bodies.get(wasm.IMPORT, b"\0"))
    mutable = [item for item in wasm.globals_(bodies[wasm.GLOBAL]) if item.mutable]
    exports = {item.name for item in wasm.exports(bodies[wasm.EXPORT])}
    wanted = merge.EXPORTS - _BUILDING
    facts = {
        "imports only env.wait": imports == [WAIT],
        "has one memory": bodies[wasm.MEMORY][:1] == b"\x01",
        "has one table": bodies[wasm.TABLE][:1] == b"\x01",
        "has one mutable global": len(mutable) == 1,
        "has no start function": wasm.START not in bodies,
        "exports the protocol and nothing else": exports == wanted,
    }
    wrong = [fact for fact, holds in facts.items() if not holds]
    if wrong:
        raise MalformedModule(f"it is not so that the Python image {wrong[0]}")
