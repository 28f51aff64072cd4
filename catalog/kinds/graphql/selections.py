"""What a call asks for when its caller does not say: a selection that is valid, useful, and bounded in what it costs.

It holds leaves, and a little of what they belong to: no field that needs an argument, no object that takes one (lists
that page do), no deprecated field, no type within itself, two lists within each other at most, and so many fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    is_leaf_type,
)

from catalog.kinds.graphql.schemas import TYPES_SHOWN, Schemas, nullable, required_arguments
from catalog.model import Schema

LEAVES: Final = (25, 6, 3)
"""Leaves of an object that are selected, by how deep it stands."""
NESTED: Final = (6, 2, 0)
"""Objects within an object that are selected, by how deep it stands."""
MAX_FIELDS: Final = 60
"""Fields of a whole selection, but for `__typename` where nothing else is left."""
MAX_FRAGMENTS: Final = 10
"""Types of a union or an interface whose own fields are selected."""
MAX_LISTS: Final = 2
MAX_CONSIDERED: Final = 200
"""Leaves of a type, and objects within it, among which is chosen."""

_TELLING = (
    "id databaseId key code number iid name nameWithOwner fullName displayName title slug identifier login username"
    " email path fullPath url webUrl permalink state status type kind description summary body content message field"
    " createdAt updatedAt date price amount currency total totalCount value"
)
_FIRST: Final = {name: place for place, name in enumerate(_TELLING.split())}
_PAGE: Final = ("hasNextPage", "endCursor", "hasPreviousPage", "startCursor")

Composite = GraphQLObjectType | GraphQLInterfaceType | GraphQLUnionType


@dataclass(slots=True)
class Chosen:
    """The selection of one composite type. `fields` are by their names; `fragments` by the name of their type."""

    kind: Composite
    fields: dict[str, tuple[GraphQLField, Chosen | None]] = field(default_factory=dict)
    fragments: dict[str, Chosen] = field(default_factory=dict)

    def text(self) -> str:
        parts = [] if self.fields and isinstance(self.kind, GraphQLObjectType) else ["__typename"]
        parts += [name if inner is None else f"{name} {inner.text()}" for name, (_, inner) in self.fields.items()]
        parts += [f"... on {name} {inner.text()}" for name, inner in self.fragments.items()]
        return "{ " + " ".join(parts) + " }"


class Leaf(NamedTuple):
    """A field that has no selection of its own; `place` is where it stands in its type."""

    place: int
    name: str
    shape: str
    field: GraphQLField


class Looked(NamedTuple):
    """`leaves` the most telling first, `nested` as the type has them."""

    leaves: list[Leaf]
    nested: list[tuple[str, GraphQLField]]


class Selector:
    """Makes the default selections of one schema, and the schemas of what they return."""

    def __init__(self, schema: GraphQLSchema, schemas: Schemas) -> None:
        self._schema = schema
        self._schemas = schemas
        self._room = 0
        self._known: dict[str, Looked] = {}
        self._made: dict[tuple[str, int], Chosen] = {}

    def default(self, root: GraphQLField) -> tuple[str, Schema]:
        """The selection on what the root field returns ("" for a leaf), and the schema of the value."""
        named = get_named_type(root.type)
        if not isinstance(named, (GraphQLObjectType, GraphQLInterfaceType, GraphQLUnionType)):
            return "", self._schemas.given(root.type)
        key = named.name, _lists(root.type)
        if key not in self._made:
            self._room = MAX_FIELDS
            self._made[key] = self._choose(named, 0, (), key[1])
        chosen = self._made[key]
        return chosen.text(), self._returned(root.type, chosen)

    def _choose(self, kind: Composite, level: int, above: tuple[str, ...], lists: int) -> Chosen:
        chosen = Chosen(kind)
        within = (*above, kind.name)
        if isinstance(kind, GraphQLUnionType):
            self._fragments(chosen, list(kind.types), level)
            return chosen
        pages = self._pages(kind)
        if pages is not None:
            self._connection(chosen, pages, level, within, lists)
            return chosen
        self._leaves(chosen, LEAVES[level])
        nested = NESTED[level]
        for name, one in self._looked_at(kind).nested if nested else ():
            if nested == 0 or self._room <= 0:
                break
            named: Any = get_named_type(one.type)
            deeper = lists + _lists(one.type)
            if named.name not in within and deeper <= MAX_LISTS:
                inner = self._choose(named, level + 1, within, deeper)
                if inner.fields or inner.fragments:
                    chosen.fields[name] = (one, inner)
                    nested -= 1
        if isinstance(kind, GraphQLInterfaceType) and level == 0:
            self._fragments(chosen, list(self._schema.get_possible_types(kind)), level)
        return chosen

    def _leaves(self, chosen: Chosen, most: int, passed: dict[str, str] | None = None) -> None:
        """Select leaves: the most telling ones where there are too many, in the order of the type. `passed` are names
        that mean another type in the same answer, which would contradict."""
        assert not isinstance(chosen.kind, GraphQLUnionType)
        shapes = {} if passed is None else passed
        most = max(0, min(most, self._room))
        fitting = (one for one in self._looked_at(chosen.kind).leaves if shapes.get(one.name, one.shape) == one.shape)
        for leaf in sorted(islice(fitting, most)):
            chosen.fields[leaf.name] = (leaf.field, None)
            shapes[leaf.name] = leaf.shape
            self._room -= 1

    def _looked_at(self, kind: GraphQLObjectType | GraphQLInterfaceType) -> Looked:
        """What of a type may be selected: a type of thousands of fields is looked through once."""
        known = self._known.get(kind.name)
        if known is None:
            leaves: list[Leaf] = []
            nested: list[tuple[str, GraphQLField]] = []
            for place, (name, one) in enumerate(kind.fields.items()):
                if is_leaf_type(get_named_type(one.type)):
                    if _plain(one):
                        leaves.append(Leaf(place, name, str(one.type), one))
                elif not one.args and one.deprecation_reason is None and len(nested) < MAX_CONSIDERED:
                    nested.append((name, one))
            leaves.sort(key=lambda leaf: _FIRST.get(leaf.name, len(_FIRST)))
            known = self._known[kind.name] = Looked(leaves[:MAX_CONSIDERED], nested)
        return known

    def _fragments(self, chosen: Chosen, types: list[GraphQLObjectType], level: int) -> None:
        """A union's or an interface's own types, where there are few: leaves that do not contradict each other."""
        if isinstance(chosen.kind, GraphQLInterfaceType) and len(types) > MAX_FRAGMENTS:
            return
        shapes = dict.fromkeys(chosen.fields, "")
        for one in types[:MAX_FRAGMENTS]:
            inner = Chosen(one)
            self._leaves(inner, LEAVES[min(level + 1, len(LEAVES) - 1)], shapes)
            if inner.fields:
                chosen.fragments[one.name] = inner

    def _pages(self, kind: GraphQLObjectType | GraphQLInterfaceType) -> str | None:
        """The field that holds the items, where the type is a page of a list."""
        for name in ("nodes", "edges"):
            one = kind.fields.get(name)
            if one is not None and _plain(one) and _lists(one.type) == 1 and not is_leaf_type(get_named_type(one.type)):
                return name
        return None

    def _connection(self, chosen: Chosen, items: str, level: int, above: tuple[str, ...], lists: int) -> None:
        """A page of a list: its items as deep as the page itself stands, and what the next page is asked for with."""
        assert not isinstance(chosen.kind, GraphQLUnionType)
        fields = chosen.kind.fields
        one, holder = fields[items], chosen
        kind = get_named_type(one.type)
        if items == "edges" and isinstance(kind, (GraphQLObjectType, GraphQLInterfaceType)) and "node" in kind.fields:
            node = kind.fields["node"]
            if _plain(node) and not is_leaf_type(get_named_type(node.type)):
                holder = Chosen(kind)
                chosen.fields[items] = (one, holder)
                items, one, kind = "node", node, get_named_type(node.type)
        if kind.name not in above and lists < MAX_LISTS:
            holder.fields[items] = (one, self._choose(kind, level, above, lists + 1))
        total = fields.get("totalCount")
        if total is not None and _plain(total) and is_leaf_type(get_named_type(total.type)):
            chosen.fields["totalCount"] = (total, None)
            self._room -= 1
        info = fields.get("pageInfo")
        kind = get_named_type(info.type) if info is not None and _plain(info) else None
        if isinstance(kind, GraphQLObjectType) and info is not None:
            page = Chosen(kind)
            for name in _PAGE:
                one = kind.fields.get(name)
                if one is not None and _plain(one) and is_leaf_type(get_named_type(one.type)):
                    page.fields[name] = (one, None)
            if page.fields:
                chosen.fields["pageInfo"] = (info, page)

    def _returned(self, kind: Any, chosen: Chosen) -> Schema:
        if isinstance(kind, GraphQLNonNull):
            return self._whole(kind.of_type, chosen)
        return nullable(self._whole(kind, chosen))

    def _whole(self, kind: Any, chosen: Chosen) -> Schema:
        if isinstance(kind, GraphQLList):
            return {"type": "array", "items": self._returned(kind.of_type, chosen)}
        return self._object(chosen)

    def _object(self, chosen: Chosen) -> Schema:
        """The object that a selection returns: what only some types have is not required."""
        properties: dict[str, Schema] = {}
        if not isinstance(chosen.kind, GraphQLObjectType) or not chosen.fields:
            properties["__typename"] = self._typename(chosen.kind)
        for name, (one, inner) in chosen.fields.items():
            properties[name] = self._schemas.given(one.type) if inner is None else self._returned(one.type, inner)
        required = list(properties)
        for inner in chosen.fragments.values():
            for name, (one, _) in inner.fields.items():
                properties.setdefault(name, self._schemas.given(one.type))
        return {"type": "object", "properties": properties, "required": required}

    def _typename(self, kind: Composite) -> Schema:
        if isinstance(kind, GraphQLObjectType):
            return self._schemas.typename([kind.name])
        return self._schemas.typename(
            [one.name for one in islice(self._schema.get_possible_types(kind), TYPES_SHOWN + 1)]
        )


def _plain(one: GraphQLField) -> bool:
    """Whether a field can be selected as it is."""
    return one.deprecation_reason is None and not required_arguments(one)


def _lists(kind: Any) -> int:
    """How many lists are around the named type."""
    count = 0
    while isinstance(kind, (GraphQLList, GraphQLNonNull)):
        count += isinstance(kind, GraphQLList)
        kind = kind.of_type
    return count
