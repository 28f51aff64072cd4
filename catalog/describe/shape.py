"""What a tool takes and returns, as far as there is room to show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from catalog.describe.cut import Cutter, complete, references, renamed
from catalog.describe.ir import Builder, Direction, Node
from catalog.describe.naming import Names, names_of
from catalog.model import Tool

MAX_DEPTH: Final = 4


class Rooms(NamedTuple):
    """Characters for the arguments, for the result, and for the named types behind either."""

    given: int
    result: int
    types: int
    doc: int
    """Characters of one argument's documentation."""


ROOMS: Final[Mapping[int, Rooms]] = {
    1: Rooms(220, 150, 0, 48),
    2: Rooms(1400, 1000, 800, 90),
    3: Rooms(6000, 5000, 4000, 200),
    4: Rooms(24_000, 24_000, 24_000, 200),
}
_WORTH: Final = 60
"""Characters below which a named type is only named."""


@dataclass(frozen=True, slots=True)
class Shape:
    """None where nothing is declared. `named` are the types that are shown, `hidden` the names of those that are only
    referred to; `whole` says that nothing was left out."""

    given: Node | None
    result: Node | None
    named: Mapping[str, Node]
    hidden: tuple[str, ...] = ()
    whole: bool = True


class _Side:
    """One direction: its root, and the named types that are shown with it."""

    def __init__(self, tool: Tool, direction: Direction, cutter: Cutter) -> None:
        self.builder = Builder(tool.definitions, direction)
        self.cutter = cutter
        self.full: dict[str, Node] = {}
        self.named: dict[str, Node] = {}
        self.root: Node | None = None

    def show(self, full: Node, room: int, types: int, *, whole: bool, doc: int = 0) -> None:
        self.root = self.cutter.arguments(full, room, doc) if doc else self.cutter.cut(full, room, whole=whole)
        self._follow([self.root], room - self.cutter.size(self.root), whole=whole)
        if types:
            self._follow(list(self.named.values()), types, whole=False)

    def _follow(self, nodes: list[Node], room: int, *, whole: bool) -> None:
        for node in nodes:
            for name in references(node):
                if name in self.named or room < _WORTH:
                    continue
                full = self.full[name] = self.builder.define(name)
                shown = self.named[name] = self.cutter.cut(full, room, whole=whole)
                room -= self.cutter.size(shown)
                nodes.append(shown)


def shape_of(tool: Tool, depth: int = 1) -> Shape:
    """The shape of a tool; a greater `depth`, up to MAX_DEPTH, has more room."""
    rooms, cutter = ROOMS[depth], Cutter()
    given, got = _Side(tool, "in", cutter), _Side(tool, "out", cutter)
    if tool.input_schema is not None:
        given.show(given.builder.build(tool.input_schema), rooms.given, rooms.types, whole=True, doc=rooms.doc)
    if tool.output_schema is not None:
        got.show(got.builder.build(tool.output_schema), rooms.result, rooms.types, whole=False)
    twofold = {name for name in given.named if name in got.named and given.full[name] != got.full[name]}
    names = names_of(tool.definitions)
    inward, outward = _Naming(names, twofold), _Naming(names, set())
    arguments = None if given.root is None else inward.within(given.root)
    result = None if got.root is None else outward.within(got.root)
    named = {inward(name): inward.within(node) for name, node in given.named.items()}
    named |= {outward(name): outward.within(node) for name, node in got.named.items()}
    return _shape(arguments, result, named)


def type_of(tool: Tool, name: str, depth: int = 2) -> Shape | None:
    """The definition that is shown as `name`, and with it the types that it needs. None: there is no such type."""
    names = names_of(tool.definitions)
    meant, direction = names.meant(name), "out"
    if meant is None and name.endswith("Input"):
        meant, direction = names.meant(name.removesuffix("Input")), "in"
    if meant is None:
        return None
    side = _Side(tool, "in" if direction == "in" else "out", Cutter())
    rooms = ROOMS[depth]
    side.show(side.builder.define(meant), rooms.result, rooms.types, whole=direction == "in")
    assert side.root is not None
    naming = _Naming(names, {meant} if direction == "in" else set())
    rest = {naming(one): naming.within(node) for one, node in side.named.items()}
    return _shape(None, None, rest | {naming(meant): naming.within(side.root)}, first=naming(meant))


def _shape(given: Node | None, result: Node | None, named: dict[str, Node], first: str | None = None) -> Shape:
    if first is not None:
        named = {first: named[first]} | named
    shown = [node for node in (given, result, *named.values()) if node is not None]
    hidden = dict.fromkeys(name for node in shown for name in references(node) if name not in named)
    return Shape(given, result, named, tuple(hidden), not hidden and all(map(complete, shown)))


class _Naming:
    """The names that definitions are shown by, of which some mean something else in this direction."""

    def __init__(self, names: Names, twofold: set[str]) -> None:
        self._names = names
        self._twofold = twofold

    def __call__(self, name: str) -> str:
        return self._names.shown(name) + ("Input" if name in self._twofold else "")

    def within(self, node: Node) -> Node:
        return renamed(node, {name: self(name) for name in references(node)})
