"""Just enough of the WebAssembly binary format to read a module strictly and write it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAGIC: Final = b"\0asm\x01\0\0\0"
CUSTOM: Final = 0
IMPORT: Final = 2
TABLE: Final = 4
MEMORY: Final = 5
GLOBAL: Final = 6
EXPORT: Final = 7
START: Final = 8
DATA_COUNT: Final = 12
CODE: Final = 10
DATA: Final = 11

I32: Final = 0x7F
I64: Final = 0x7E
_KNOWN_SECTIONS: Final = frozenset(range(13))
_KINDS: Final = ("function", "table", "memory", "global")


class MalformedModule(ValueError):
    """Raised for a module that is not valid, or that uses what this reader does not understand."""


class Reader:
    """Reads from `data`; every read past the end raises MalformedModule."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def done(self) -> bool:
        return self.at == len(self.data)

    def byte(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise MalformedModule("the module ends in the middle of a section")
        part = self.data[self.at : end]
        self.at = end
        return part

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 35:
                raise MalformedModule("a number is too long")

    def skip_leb(self) -> None:
        while self.byte() & 0x80:
            pass

    def name(self) -> str:
        return self.take(self.unsigned()).decode()


@dataclass(frozen=True)
class Section:
    id: int
    body: bytes


@dataclass(frozen=True)
class Export:
    name: str
    kind: str
    index: int


@dataclass(frozen=True)
class Global:
    """One global; `init` is its constant expression, with the end opcode."""

    type: int
    mutable: bool
    init: bytes


def sections(module: bytes) -> list[Section]:
    """The sections of `module` in their order, custom ones left out."""
    if module[:8] != MAGIC:
        raise MalformedModule("not a core WebAssembly module")
    reader = Reader(module[8:])
    found: list[Section] = []
    while not reader.done():
        kind = reader.byte()
        body = reader.take(reader.unsigned())
        if kind not in _KNOWN_SECTIONS:
            raise MalformedModule(f"section {kind} is not known")
        if kind != CUSTOM:
            found.append(Section(kind, body))
    return found


def write(parts: list[Section]) -> bytes:
    out = bytearray(MAGIC)
    for part in parts:
        out += bytes([part.id]) + unsigned(len(part.body)) + part.body
    return bytes(out)


def imported_functions(body: bytes) -> list[str]:
    """Each import as `module.name`. Raises MalformedModule for one that is not a function."""
    reader = Reader(body)
    found: list[str] = []
    for _ in range(reader.unsigned()):
        name = f"{reader.name()}.{reader.name()}"
        if reader.byte() != 0:
            raise MalformedModule(f"the import {name} is not a function")
        reader.unsigned()
        found.append(name)
    return found


def exports(body: bytes) -> list[Export]:
    reader = Reader(body)
    found: list[Export] = []
    for _ in range(reader.unsigned()):
        name = reader.name()
        kind = reader.byte()
        if kind >= len(_KINDS):
            raise MalformedModule(f"the export {name} is of an unknown kind")
        found.append(Export(name, _KINDS[kind], reader.unsigned()))
    return found


def write_exports(parts: list[Export]) -> bytes:
    out = bytearray(unsigned(len(parts)))
    for part in parts:
        name = part.name.encode()
        out += unsigned(len(name)) + name + bytes([_KINDS.index(part.kind)]) + unsigned(part.index)
    return bytes(out)


def globals_(body: bytes) -> list[Global]:
    reader = Reader(body)
    found: list[Global] = []
    for _ in range(reader.unsigned()):
        kind, mutable = reader.byte(), reader.byte()
        start = reader.at
        _skip_constant(reader)
        found.append(Global(kind, bool(mutable), reader.data[start : reader.at]))
    return found


def write_globals(parts: list[Global]) -> bytes:
    out = bytearray(unsigned(len(parts)))
    for part in parts:
        out += bytes([part.type, part.mutable]) + part.init
    return bytes(out)


def _skip_constant(reader: Reader) -> None:
    opcode = reader.byte()
    if opcode in (0x41, 0x42):
        reader.skip_leb()
    elif opcode == 0x43:
        reader.take(4)
    elif opcode == 0x44:
        reader.take(8)
    else:
        raise MalformedModule(f"a global starts with opcode {opcode:#x}, not a constant")
    if reader.byte() != 0x0B:
        raise MalformedModule("a global's constant has more than one instruction")


def unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> bytes:
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)
    return bytes(out)
