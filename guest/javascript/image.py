"""The JavaScript image: the engine under our shim, with the boot code already run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from guest import toolchain, wasm
from guest.context import BuildContext
from guest.javascript.patches import patch

HERE: Final = Path(__file__).parent
SHIM: Final = HERE / "shim"
BOOT: Final = HERE / "boot"
STACK_BYTES: Final = 1 << 20
MAX_MEMORY: Final = 512 << 20
_ENGINE_SOURCES: Final = ("dtoa.c", "libregexp.c", "libunicode.c")
_INCLUDED: Final = frozenset({"quickjs.c"})
EXPORTS: Final = frozenset({"memory", "__stack_pointer", "io", "alloc", "dealloc", "start", "resume", "tail"})


def build_javascript(ctx: BuildContext) -> bytes:
    """The pre-initialised image."""
    image = ctx.preinitialise(link(ctx), [("boot", boot_source())], drop=["problem"])
    check(image, EXPORTS)
    return image


def boot_source() -> bytes:
    """The boot code: the files of boot/ in the order of their names, as one function of the natives."""
    parts = [path.read_text() for path in sorted(BOOT.glob("*.js"))]
    return ("(function (natives) {\n" + "\n".join(parts) + "\n})").encode()


def link(ctx: BuildContext, extra: Sequence[Path] = (), data: Mapping[str, bytes] | None = None) -> bytes:
    """The linked module, not yet pre-initialised.

    `extra` are more C sources; they may include the shim's headers, and embed the files of `data` by name.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        _lay_sources(ctx, tree, extra)
        for name, body in (data or {}).items():
            (tree / name).write_bytes(body)
        shim = [path.name for path in (*sorted(SHIM.glob("*.c")), *extra)]
        compiler = ctx.compiler
        ctx.progress("compiling the engine and the shim")
        objects = compiler.compile(tree, [*_ENGINE_SOURCES, *shim], "-w")
        ctx.progress("linking")
        return compiler.link(objects, stack_bytes=STACK_BYTES, max_memory=MAX_MEMORY)


def _lay_sources(ctx: BuildContext, tree: Path, extra: Sequence[Path]) -> None:
    folder = toolchain.lock()["quickjs-ng"]["folder"]
    for name, body in toolchain.members(ctx.source("quickjs-ng"), folder):
        if name.endswith(".h") or name in _ENGINE_SOURCES or name in _INCLUDED:
            (tree / name).write_text(patch(name, body.decode()))
    for path in (*SHIM.glob("*.[ch]"), *extra):
        (tree / path.name).write_bytes(path.read_bytes())


def check(image: bytes, expected: Iterable[str]) -> None:
    """Raises MalformedModule when the image imports anything or exports something else than `expected`."""
    parts = {part.id: part.body for part in wasm.sections(image)}
    if wasm.IMPORT in parts:
        raise wasm.MalformedModule("the image has imports")
    names = {export.name for export in wasm.exports(parts[wasm.EXPORT])}
    if names != set(expected):
        raise wasm.MalformedModule(f"the image's exports are {sorted(names)}")
