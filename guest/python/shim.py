"""The C shim as a core module that shares memory, table and stack pointer with the interpreter it is merged with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from guest import toolchain, wasm
from guest.python import flatten
from guest.wasm import MalformedModule, Section

SOURCES: Final = Path(__file__).parent / "shim"
ROOM_PAGES: Final = 4
"""Pages for the shim's own data and input buffer; libc never sees them, for it takes what it needs by growing."""
ROOM_TABLE: Final = 64
_CPU: Final = "generic+bulk_memory+sign_ext+nontrapping_fptoint"


def compile_shim(compiler: toolchain.Compiler, folder: Path, *, pages: int, table: int) -> bytes:
    """The shim, its data at page `pages` and its functions at `table`. Raises BuildFailed."""
    objects = []
    for source in sorted(SOURCES.glob("*.c")):
        to = folder / f"{source.stem}.o"
        flags = ["-target", "wasm32-freestanding", f"-mcpu={_CPU}", "-O2", "-Wall", "-Wextra", "-Werror"]
        toolchain.run([compiler.zig, "cc", *flags, "-c", source, "-o", to], cwd=folder, env=compiler.env)
        objects.append(to)
    linked = folder / "shim.linked.wasm"
    place = ["--import-memory", "--import-table", f"--global-base={pages * flatten.PAGE}", f"--table-base={table}"]
    flags = ["--no-entry", "--strip-all", "--allow-undefined", "--no-stack-first", "-z", "stack-size=16"]
    toolchain.run([compiler.zig, "wasm-ld", *flags, *place, *objects, "-o", linked], cwd=folder, env=compiler.env)
    return _share_stack(linked.read_bytes(), limit=(pages + ROOM_PAGES) * flatten.PAGE)


def _share_stack(module: bytes, *, limit: int) -> bytes:
    """`module` with its one mutable global, the linker's stack pointer, imported instead of defined.

    Imported globals come first in the index space, so a lone first global keeps its index.
    """
    parts = wasm.sections(module)
    mutable = [item for part in parts if part.id == wasm.GLOBAL for item in wasm.globals_(part.body)]
    if len(mutable) != 1 or not mutable[0].mutable or mutable[0].type != wasm.I32:
        raise MalformedModule("the shim has other globals than its stack pointer")
    out: list[Section] = []
    for part in parts:
        body = part.body
        # The start function only clears the shim's zero data, in pages that nobody has used before.
        if part.id in (wasm.GLOBAL, wasm.START):
            continue
        if part.id == wasm.IMPORT:
            reader = wasm.Reader(body)
            count = reader.unsigned()
            stack = b"\x03env\x0f__stack_pointer\x03\x7f\x01"
            body = wasm.unsigned(count + 1) + body[reader.at :] + stack
        out.append(Section(part.id, body))
    shared = wasm.write(out)
    if _data_end(parts) > limit:
        raise MalformedModule("the shim's data is larger than the room it was given")
    return shared


def _data_end(parts: list[Section]) -> int:
    end = 0
    for part in parts:
        if part.id != wasm.DATA:
            continue
        reader = wasm.Reader(part.body)
        for _ in range(reader.unsigned()):
            if reader.byte() != 0 or reader.byte() != 0x41:
                raise MalformedModule("the shim has a data segment without a fixed place")
            at = reader.unsigned()
            reader.byte()
            end = max(end, at + len(reader.take(reader.unsigned())))
    return end


def attach(shim: bytes, sources: Mapping[str, str]) -> bytes:
    """`shim` with each of its imports taken from the module that `sources` names for it; `env.wait` stays."""

    def source(module: str, name: str, kind: int) -> tuple[str, str]:
        if kind == 0 and name == "wait":
            return module, name
        if name not in sources:
            raise MalformedModule(f"nothing that is merged has the shim's import {name}")
        return sources[name], name

    return flatten.renamed(shim, source)
