"""A component taken apart into core modules that import one another by name, ready to be merged into one.

The component linked its parts through instances, aliases and lowered functions. Here each import is followed to what it
really is: an export of another module, or a function that the component would have got from its host. The latter keep
the module name `host`; what stands behind them is this project's own shim and stubs, never WASI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from guest import wasm
from guest.python import component
from guest.python.component import Component, Lowered
from guest.wasm import MalformedModule, Reader, Section

HOST: Final = "host"
PAGE: Final = 65536
_TYPE_SECTION: Final = 1
_ELEMENT: Final = 9
_VALUES: Final = {0x7F: "i32", 0x7E: "i64", 0x7D: "f32", 0x7C: "f64"}


class Signature(NamedTuple):
    """Parameter and result types of a function."""

    parameters: tuple[str, ...]
    results: tuple[str, ...]


class Import(NamedTuple):
    """One import; `kind` is an index into func, table, memory, global, tag, `description` its encoded type."""

    module: str
    name: str
    kind: int
    description: bytes


@dataclass(frozen=True)
class Parts:
    """The component as core modules. `python`, `c` and `base` name those that export CPython, libc, and memory."""

    modules: dict[str, bytes]
    needed: dict[str, Signature]
    python: str
    c: str
    base: str
    pages: int
    table: int


def flatten(data: bytes, *, room_pages: int, room_table: int, c_functions: Mapping[str, str]) -> Parts:
    """The core modules of the component `data`, each import renamed to where it comes from.

    Memory and table are declared larger by `room_pages` and `room_table`, which start at `pages` and `table`.
    `c_functions` maps names that CPython takes from libc to names that it takes from the host instead.
    """
    parsed = component.read(data)
    fixup, links = _indirection(parsed)
    modules: dict[str, bytes] = {}
    needed: dict[str, Signature] = {}
    for index, instance in enumerate(parsed.instances):
        if instance.module is None or index in fixup:
            continue
        resolver = _Resolver(parsed, index, links)
        modules[f"m{index}"] = renamed(parsed.modules[instance.module], resolver.resolve)
    python = _that_exports(modules, "PyDict_SetItem")
    c = _that_exports(modules, "fopen")
    base = _that_exports(modules, "__stack_high")
    modules[python] = renamed(
        modules[python], lambda m, n, k: (HOST, c_functions[n]) if m == c and k == 0 and n in c_functions else (m, n)
    )
    for body in modules.values():
        _collect(body, needed)
    modules[base], pages, table = _with_room(modules[base], room_pages, room_table)
    return Parts(modules, needed, python, c, base, pages, table)


def _that_exports(modules: Mapping[str, bytes], name: str) -> str:
    found = [key for key, body in modules.items() if name in export_names(body)]
    if len(found) != 1:
        raise MalformedModule(f"{len(found)} modules export {name}, not one")
    return found[0]


def _indirection(parsed: Component) -> tuple[set[int], dict[str, tuple[str, int]]]:
    """The two instances that only defer the component's host functions through a table, and what they defer to."""
    bag = [i for i, item in enumerate(parsed.instances) if item.module is None and "$imports" in item.items]
    if len(bag) != 1:
        raise MalformedModule("the component defers its imports in an unknown way")
    links = parsed.instances[bag[0]].items
    _, table = links["$imports"]
    shim = parsed.core["table"][table]
    filler = [i for i, item in enumerate(parsed.instances) if item.arguments.get("") == bag[0]]
    if isinstance(shim, Lowered) or len(filler) != 1:
        raise MalformedModule("the component defers its imports in an unknown way")
    return {shim.instance, filler[0]}, {name: item for name, item in links.items() if name != "$imports"}


class _Resolver:
    """Follows the imports of one instance to their source."""

    def __init__(self, parsed: Component, index: int, links: Mapping[str, tuple[str, int]]) -> None:
        self._parsed = parsed
        self._arguments = parsed.instances[index].arguments
        self._links = links
        self._shim = next(
            item.instance
            for item in [parsed.core["table"][i] for i in range(len(parsed.core["table"]))]
            if not isinstance(item, Lowered) and item.name == "$imports"
        )

    def resolve(self, module: str, name: str, kind: int) -> tuple[str, str]:
        return self._export(self._arguments[module], name)

    def _export(self, instance: int, name: str) -> tuple[str, str]:
        if instance == self._shim and name in self._links:
            return self._item(*self._links[name])
        if self._parsed.instances[instance].module is None:
            return self._item(*self._parsed.instances[instance].items[name])
        return f"m{instance}", name

    def _item(self, sort: str, index: int) -> tuple[str, str]:
        item = self._parsed.core[sort][index]
        if isinstance(item, Lowered):
            return HOST, item.name
        return self._export(item.instance, item.name)


def imports(body: bytes) -> list[Import]:
    """The imports of a core module."""
    found: list[Import] = []
    for section in wasm.sections(body):
        if section.id != wasm.IMPORT:
            continue
        reader = Reader(section.body)
        for _ in range(reader.unsigned()):
            module, name, kind = reader.name(), reader.name(), reader.byte()
            start = reader.at
            _skip_description(reader, kind)
            found.append(Import(module, name, kind, section.body[start : reader.at]))
    return found


def _skip_description(reader: Reader, kind: int) -> None:
    if kind == 0:
        reader.unsigned()
    elif kind in (1, 2):
        if kind == 1:
            reader.byte()
        has_maximum = reader.byte() & 1
        reader.unsigned()
        if has_maximum:
            reader.unsigned()
    elif kind == 3:
        reader.take(2)
    else:
        raise MalformedModule(f"an import of kind {kind}")


def export_names(body: bytes) -> set[str]:
    """The names that a core module exports."""
    return {e.name for s in wasm.sections(body) if s.id == wasm.EXPORT for e in wasm.exports(s.body)}


def renamed(body: bytes, rename: Callable[[str, str, int], tuple[str, str]]) -> bytes:
    """`body` with each import, given by module, name and kind, taken from the module and name that `rename` gives."""
    found = imports(body)
    section = bytearray(wasm.unsigned(len(found)))
    for item in found:
        module, name = rename(item.module, item.name, item.kind)
        section += _name(module) + _name(name) + bytes([item.kind]) + item.description
    return wasm.write([Section(s.id, bytes(section) if s.id == wasm.IMPORT else s.body) for s in wasm.sections(body)])


def _name(text: str) -> bytes:
    encoded = text.encode()
    return wasm.unsigned(len(encoded)) + encoded


def signatures(body: bytes) -> list[Signature]:
    """The function types of a core module."""
    found: list[Signature] = []
    for section in wasm.sections(body):
        if section.id != _TYPE_SECTION:
            continue
        reader = Reader(section.body)
        for _ in range(reader.unsigned()):
            if reader.byte() != 0x60:
                raise MalformedModule("a type that is not of a function")
            parameters = tuple(_VALUES[reader.byte()] for _ in range(reader.unsigned()))
            found.append(Signature(parameters, tuple(_VALUES[reader.byte()] for _ in range(reader.unsigned()))))
    return found


def _collect(body: bytes, needed: dict[str, Signature]) -> None:
    types = signatures(body)
    for item in imports(body):
        if item.module != HOST:
            continue
        if item.kind != 0:
            raise MalformedModule(f"the host would have to give {item.name}, which is no function")
        signature = types[Reader(item.description).unsigned()]
        if needed.setdefault(item.name, signature) != signature:
            raise MalformedModule(f"{item.name} is imported with two signatures")


def _with_room(body: bytes, room_pages: int, room_table: int) -> tuple[bytes, int, int]:
    """`body` with a larger memory and table, and where the added room begins in each."""
    pages = table = 0
    parts: list[Section] = []
    for section in wasm.sections(body):
        changed = section.body
        if section.id == wasm.MEMORY:
            pages = _minimum(Reader(section.body), "memory")
            changed = b"\x01\x00" + wasm.unsigned(pages + room_pages)
        elif section.id == wasm.TABLE:
            reader = Reader(section.body)
            table = _minimum(reader, "table")
            changed = b"\x01\x70\x00" + wasm.unsigned(table + room_table)
        parts.append(Section(section.id, changed))
    return wasm.write(parts), pages, table


def _minimum(reader: Reader, what: str) -> int:
    count = reader.unsigned()
    if what == "table" and reader.byte() != 0x70:
        raise MalformedModule("the table holds something other than functions")
    if count != 1 or reader.byte() != 0:
        raise MalformedModule(f"the component has not exactly one {what} without a maximum")
    return reader.unsigned()
