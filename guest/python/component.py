"""What a component binary says about its core modules: which there are, and what each of their imports really is.

Only the shape that componentize-py writes is understood; everything else raises MalformedModule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from guest.wasm import MalformedModule, Reader

MAGIC: Final = b"\0asm\x0d\0\x01\0"
_SORTS: Final = ("func", "table", "memory", "global", "tag")
_CORE, _FUNC, _TYPE, _INSTANCE = 0, 1, 3, 5


class Named(NamedTuple):
    """An export of a core instance, by name."""

    instance: int
    name: str


class Lowered(NamedTuple):
    """A function of the component's own imports, such as `wasi:clocks/wall-clock@0.2.0#now`, or a canonical builtin."""

    name: str


class Instance(NamedTuple):
    """A core instance: of `module` with named instances as arguments, or (module None) a bag of `items`."""

    module: int | None
    arguments: dict[str, int]
    items: dict[str, tuple[str, int]]


@dataclass
class Component:
    """The core level of a component, as index spaces."""

    modules: list[bytes] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    core: dict[str, list[Named | Lowered]] = field(default_factory=lambda: {sort: [] for sort in _SORTS})
    functions: list[tuple[int | None, str]] = field(default_factory=list)
    """Component-level functions: (component instance or None, name)."""
    outer: list[str] = field(default_factory=list)
    """Names of the component-level instances."""


def read(data: bytes) -> Component:
    """The core level of the component `data`. Raises MalformedModule."""
    if data[:8] != MAGIC:
        raise MalformedModule("not a component")
    reader = Reader(data[8:])
    found = Component()
    while not reader.done():
        kind = reader.byte()
        body = reader.take(reader.unsigned())
        if kind == 1:
            found.modules.append(body)
        elif kind in _SECTIONS:
            _each(body, found, _SECTIONS[kind])
        elif kind not in (0, 4, 7):  # custom sections, nested components and types have no part in the core level
            raise MalformedModule(f"the component has a section {kind}")
    return found


def _each(body: bytes, found: Component, read_one: Callable[[Reader, Component], None]) -> None:
    reader = Reader(body)
    for _ in range(reader.unsigned()):
        read_one(reader, found)
    if not reader.done():
        raise MalformedModule("a section of the component is longer than its parts")


def _core_instance(reader: Reader, found: Component) -> None:
    if reader.byte() == 0:
        module = reader.unsigned()
        arguments: dict[str, int] = {}
        for _ in range(reader.unsigned()):
            name = reader.name()
            if reader.byte() != 0x12:
                raise MalformedModule("a core module gets something other than an instance")
            arguments[name] = reader.unsigned()
        found.instances.append(Instance(module, arguments, {}))
        return
    items: dict[str, tuple[str, int]] = {}
    for _ in range(reader.unsigned()):
        name = reader.name()
        items[name] = (_SORTS[reader.byte()], reader.unsigned())
    found.instances.append(Instance(None, {}, items))


def _instance(reader: Reader, found: Component) -> None:
    if reader.byte() == 0:
        reader.unsigned()
        for _ in range(reader.unsigned()):
            reader.name()
            reader.byte()
            reader.unsigned()
    else:
        for _ in range(reader.unsigned()):
            _extern_name(reader)
            _sort(reader)
            reader.unsigned()
    found.outer.append("")


def _alias(reader: Reader, found: Component) -> None:
    sort, core = _sort(reader)
    target = reader.byte()
    if target == 2:
        reader.unsigned()
        reader.unsigned()
        name, instance = "", -1
    else:
        instance = reader.unsigned()
        name = reader.name()
    if sort == _CORE:
        if target != 1 or core is None:
            raise MalformedModule("a core alias that is not of an instance's export")
        found.core[core].append(Named(instance, name))
    else:
        _outer_item(found, sort, instance, name)


def _outer_item(found: Component, sort: int, instance: int | None, name: str) -> None:
    if sort == _FUNC:
        found.functions.append((instance, name))
    elif sort == _INSTANCE:
        found.outer.append(name)
    elif sort != _TYPE:
        raise MalformedModule(f"a component item of sort {sort}")


def _sort(reader: Reader) -> tuple[int, str | None]:
    sort = reader.byte()
    return sort, _SORTS[reader.byte()] if sort == _CORE else None


def _canonical(reader: Reader, found: Component) -> None:
    kind = reader.byte()
    if kind in (0, 1):
        if reader.byte() != 0:
            raise MalformedModule("a canonical function of an unknown form")
        function = reader.unsigned()
        _options(reader)
        if kind == 0:
            reader.unsigned()
            found.functions.append((None, ""))
        else:
            instance, name = found.functions[function]
            found.core["func"].append(Lowered(name if instance is None else f"{found.outer[instance]}#{name}"))
    elif kind in (2, 3, 4):
        builtin = ("resource.new", "resource.drop", "resource.rep")[kind - 2]
        found.core["func"].append(Lowered(f"{builtin}#{reader.unsigned()}"))
    else:
        raise MalformedModule(f"a canonical function of kind {kind:#x}")


def _options(reader: Reader) -> None:
    for _ in range(reader.unsigned()):
        if reader.byte() in (3, 4, 5, 7):
            reader.unsigned()


def _import(reader: Reader, found: Component) -> None:
    name = _extern_name(reader)
    sort = reader.byte()
    if sort == _TYPE:
        reader.byte()
    reader.unsigned()
    _outer_item(found, sort, None, name)


def _export(reader: Reader, found: Component) -> None:
    name = _extern_name(reader)
    sort, _ = _sort(reader)
    reader.unsigned()
    if reader.byte() != 0:
        raise MalformedModule("an export with a type of its own")
    _outer_item(found, sort, None, name)


def _extern_name(reader: Reader) -> str:
    reader.byte()
    return reader.name()


_SECTIONS: Final[dict[int, Callable[[Reader, Component], None]]] = {
    2: _core_instance,
    5: _instance,
    6: _alias,
    8: _canonical,
    10: _import,
    11: _export,
}
