"""Cutting types to the room that there is: what is left out is named or counted, never silently gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from catalog.describe.ir import Array, Both, Field, Literals, Node, Object, Ref, Row, Scalar, Union, first_line

NAMES_SHOWN: Final = 4
"""Names of the fields that an object was cut by; the others are counted."""
ARGUMENTS_SHOWN: Final = 16
"""The same in what a caller gives, where a name alone may be all that is needed."""
LITERALS_SHOWN: Final = 8
_LEAST: Final = 24
"""Characters below which nothing is worth cutting to."""


class Cutter:
    """Measures nodes in characters of TypeScript, roughly, and cuts those that are too long."""

    def __init__(self) -> None:
        self._sizes: dict[int, tuple[Node, int]] = {}

    def size(self, node: Node) -> int:
        # Kept with its node, so that no other object can come to have its id.
        known = self._sizes.get(id(node))
        if known is None:
            known = self._sizes[id(node)] = (node, self._size(node))
        return known[1]

    def _size(self, node: Node) -> int:
        match node:
            case Scalar():
                return 7
            case Ref(name):
                return len(name)
            case Literals(values):
                return sum(len(str(value)) + 5 for value in values[:LITERALS_SHOWN])
            case Array(item):
                return self.size(item) + 3
            case Row(items):
                return sum(self.size(item) + 2 for item in items)
            case Union(options):
                return sum(self.size(option) + 3 for option in options)
            case Both(parts):
                return sum(self.size(part) + 3 for part in parts)
            case Object(fields, extra, left):
                inner = sum(len(one.name) + self.size(one.type) + 4 for one in fields)
                noted = sum(len(name) + 2 for name in left) + 10 if left else 0
                return inner + (self.size(extra) + 17 if extra is not None else 4) + noted

    def cut(self, node: Node, room: int, *, whole: bool = False) -> Node:
        """The node within `room` characters, as nearly as its kind allows; `whole` keeps every required field."""
        if self.size(node) <= room:
            return node
        match node:
            case Array(item):
                return Array(self.cut(item, room))
            case Row(items):
                return Row(tuple(self.cut(item, room // len(items)) for item in items))
            case Both(parts):
                return Both(tuple(self.cut(part, room // len(parts), whole=whole) for part in parts))
            case Union(options):
                return self._union(options, room)
            case Object():
                return self._object(node, room, whole)
            case _:
                return node

    def _union(self, options: tuple[Node, ...], room: int) -> Node:
        kept: dict[int, Node] = {}
        for place in sorted(range(len(options)), key=lambda place: self.size(options[place])):
            if kept and room < _LEAST:
                break
            kept[place] = self.cut(options[place], max(room, _LEAST))
            room -= self.size(kept[place]) + 3
        return Union(tuple(kept[place] for place in sorted(kept)), len(options) - len(kept))

    def arguments(self, node: Node, room: int, doc: int) -> Node:
        """The arguments within `room` characters, their documentation included, each of at most `doc`."""
        if not isinstance(node, Object):
            return self.cut(node, room, whole=True)
        told = tuple(replace(one, doc=first_line(one.doc, doc)) for one in node.fields)
        fields = told if self._documented(told) <= room else tuple(replace(one, doc="") for one in told)
        return self._object(replace(node, fields=fields), room, True)

    def _documented(self, fields: tuple[Field, ...]) -> int:
        return sum(len(one.name) + self.size(one.type) + 4 + (len(one.doc) + 4 if one.doc else 0) for one in fields)

    def _object(self, node: Object, room: int, whole: bool) -> Node:
        fields = node.fields
        kept: dict[int, Field] = {}
        room -= 10 if node.extra is None else 34
        for place in sorted(range(len(fields)), key=lambda place: _rank(fields[place], place)):
            one = fields[place]
            must = whole and one.required
            spare = room - len(one.name) - 4
            large = spare if must else spare // 2
            shorter = self.cut(one.type, max(large, _LEAST), whole=must)
            if self.size(shorter) <= spare or must:
                kept[place] = replace(one, type=shorter)
                room = spare - self.size(shorter) - (len(one.doc) + 4 if one.doc else 0)
        left = [one.name for place, one in enumerate(fields) if place not in kept]
        shown = ARGUMENTS_SHOWN if whole else NAMES_SHOWN
        noted = (*left[:shown], *([f"+{len(left) - shown}"] if len(left) > shown else []))
        extra = self.cut(node.extra, 24) if node.extra is not None else None
        return Object(tuple(kept[place] for place in sorted(kept)), extra, (*node.left, *noted))


def _rank(one: Field, place: int) -> tuple[bool, bool, int]:
    """Links and marks of the protocol come after what a thing is about."""
    about = not one.name.lower().endswith(("url", "uri", "node_id", "_links", "@odata.type"))
    return not about, not one.required, place


def references(node: Node) -> dict[str, None]:
    """The names that the node refers to, in order."""
    match node:
        case Ref(name):
            return {name: None}
        case Array(item):
            return references(item)
        case Row(parts) | Union(parts) | Both(parts):
            return {name: None for part in parts for name in references(part)}
        case Object(fields, extra):
            found = {name: None for one in fields for name in references(one.type)}
            return found | (references(extra) if extra is not None else {})
        case _:
            return {}


def renamed(node: Node, names: dict[str, str]) -> Node:
    """The node with its references under other names."""
    match node:
        case Ref(name):
            return Ref(names[name])
        case Array(item):
            return Array(renamed(item, names))
        case Row(items):
            return Row(tuple(renamed(item, names) for item in items))
        case Union(options, left):
            return Union(tuple(renamed(option, names) for option in options), left)
        case Both(parts):
            return Both(tuple(renamed(part, names) for part in parts))
        case Object(fields, extra, left):
            shown = tuple(Field(one.name, renamed(one.type, names), one.required, one.doc) for one in fields)
            return Object(shown, renamed(extra, names) if extra is not None else None, left)
        case _:
            return node


def complete(node: Node) -> bool:
    """Whether nothing was cut from the node."""
    match node:
        case Array(item):
            return complete(item)
        case Union(options, left):
            return not left and all(map(complete, options))
        case Row(parts) | Both(parts):
            return all(map(complete, parts))
        case Object(fields, extra, left):
            return not left and all(complete(one.type) for one in fields) and (extra is None or complete(extra))
        case _:
            return True
