"""One core module out of many: binaryen's wasm-merge and wasm-opt, run by Node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from guest import toolchain, wasm
from guest.wasm import Section

_FEATURES: Final = tuple(
    f"--enable-{name}"
    for name in (
        "bulk-memory",
        "bulk-memory-opt",
        "call-indirect-overlong",
        "extended-const",
        "gc",  # for constants that name other globals, which the passes below fold away
        "multivalue",
        "mutable-globals",
        "nontrapping-float-to-int",
        "reference-types",
        "sign-ext",
    )
)
_PASSES: Final = (
    "--remove-unused-module-elements",
    "--propagate-globals-globally",
    "--simplify-globals",
    "--remove-unused-module-elements",
)
"""Dead code goes and the linker's constants are folded; the code itself stays as its compiler wrote it."""

EXPORTS: Final = frozenset(
    {"memory", "__stack_pointer", "io", "alloc", "dealloc", "start", "resume", "tail", "load", "problem", "survey"}
)


class Binaryen:
    """binaryen's programs in `folder` (the npm package), run by `node`."""

    def __init__(self, node: Sequence[str | Path], folder: Path) -> None:
        self._node = [*node, "--max-old-space-size=6000", "--stack-size=60000"]
        self._bin = folder / "bin"

    def merge(self, modules: Mapping[str, Path], to: Path) -> None:
        """Write to `to` the modules as one, each import satisfied by the export of the module it names."""
        named = [part for name, path in modules.items() for part in (str(path), name)]
        self._run("wasm-merge", [*named, *_FEATURES, "--rename-export-conflicts", "-o", str(to)])

    def optimise(self, module: Path, to: Path, extra: Sequence[str] = ()) -> None:
        """Write to `to` what of `module` can be reached from its exports and its table."""
        self._run("wasm-opt", [str(module), *_FEATURES, *(extra or _PASSES), "-o", str(to)])

    def _run(self, program: str, arguments: list[str]) -> None:
        toolchain.run([*self._node, self._bin / program, *arguments])


def plain(module: bytes) -> bytes:
    """`module` with each global's initial value as one constant, where binaryen leaves sums of two, and no data count.

    A module that used its data segments at run time would no longer be valid without their count; this one does not.
    """
    parts = [p for p in wasm.sections(module) if p.id != wasm.DATA_COUNT]
    return wasm.write([Section(p.id, _folded(p.body)) if p.id == wasm.GLOBAL else p for p in parts])


def _folded(body: bytes) -> bytes:
    reader = wasm.Reader(body)
    out = bytearray(wasm.unsigned(count := reader.unsigned()))
    for _ in range(count):
        kind, mutable = reader.byte(), reader.byte()
        if kind != wasm.I32:
            raise wasm.MalformedModule("a global that is not a 32-bit integer")
        value = _sum(reader)
        out += (
            bytes([kind, mutable]) + b"\x41" + wasm.signed(value - (1 << 32) if value >= 1 << 31 else value) + b"\x0b"
        )
    return bytes(out)


def _sum(reader: wasm.Reader) -> int:
    """The value of a constant expression of i32.const and i32.add."""
    stack: list[int] = []
    while (opcode := reader.byte()) != 0x0B:
        if opcode == 0x41:
            stack.append(_signed(reader) & 0xFFFFFFFF)
        elif opcode == 0x6A and len(stack) > 1:
            stack.append((stack.pop() + stack.pop()) & 0xFFFFFFFF)
        else:
            raise wasm.MalformedModule(f"a global's value has the opcode {opcode:#x}")
    if len(stack) != 1:
        raise wasm.MalformedModule("a global's value is not one number")
    return stack[0]


def _signed(reader: wasm.Reader) -> int:
    value = shift = 0
    while True:
        byte = reader.byte()
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value - (1 << shift) if byte & 0x40 else value


def keep_exports(module: bytes, names: frozenset[str] = EXPORTS) -> bytes:
    """`module` with no other exports than `names`."""
    return wasm.write(
        [
            Section(p.id, wasm.write_exports([e for e in wasm.exports(p.body) if e.name in names]))
            if p.id == wasm.EXPORT
            else p
            for p in wasm.sections(module)
        ]
    )
