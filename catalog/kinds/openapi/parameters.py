"""The parameters of an operation: those of its path and its own, where each goes and what its argument is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from catalog.kinds.decoding import is_json
from catalog.kinds.headers import OWNED
from catalog.kinds.openapi import response
from catalog.kinds.openapi.reader import BadReference, Document
from catalog.kinds.openapi.request import Parameter
from catalog.kinds.openapi.schemas import Schemas
from catalog.model import Schema

_PLACES: Final = ("path", "query", "header", "cookie")
_DEFAULT_STYLE: Final = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_DELIMITED: Final = frozenset({"spaceDelimited", "pipeDelimited", "tabDelimited"})
_STYLES: Final = {
    "path": {"simple", "label", "matrix"} | _DELIMITED,
    "query": {"form", "deepObject"} | _DELIMITED,
    "header": {"simple"} | _DELIMITED,
    "cookie": {"form", "cookie"},
}
_IGNORED_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""OpenAPI 3.1, 4.8.12.2.1: parameters of these names are ignored."""

Report = Callable[[str, str], None]


class Given(NamedTuple):
    """A parameter with its schema."""

    parameter: Parameter
    schema: Schema
    required: bool


class Parameters:
    """Reads the parameters of one document's operations."""

    def __init__(self, document: Document, schemas: Schemas, report: Report) -> None:
        self._document = document
        self._schemas = schemas
        self._report = report

    def read(
        self,
        path: str,
        sources: tuple[Any, Any],
        credentials: set[tuple[str, str]],
        taken: set[str],
        asked: Mapping[str, str],
    ) -> Iterator[Given]:
        """The parameters of the path item and of the operation, which replace those of the same name and place.

        What a credential fills is not asked for; `taken` are names of arguments that are not free, and gains those that
        are given out. `asked` are variables in the query of the path itself, by the names of their pairs: what a
        document calls path parameters, or not at all, goes into the query under those.
        """
        merged: dict[tuple[str, str], dict[str, Any]] = {}
        for name in asked.values():
            merged[name, "query"] = {"name": name, "in": "query", "schema": {"type": "string"}}
        for source in sources:
            for entry in source if isinstance(source, list) else ():
                one = self._node(entry)
                if one is not None:
                    if one["in"] == "path" and one["name"] in asked and f"{{{one['name']}}}" not in path:
                        one = one | {"in": "query", "name": asked[one["name"]]}
                    merged[_identity(one)] = one
        places = sorted(merged.items(), key=lambda each: _PLACES.index(each[1]["in"]))
        named = {at: _key(one, taken) for at, one in places if self._sent(one, credentials, path)}
        for at, one in merged.items():
            if at in named:
                yield self._given(one, named[at])

    def _node(self, entry: Any) -> dict[str, Any] | None:
        try:
            one = self._document.follow(entry)
        except BadReference as e:
            self._report("#", f"a parameter is left out: {e}")
            return None
        if not isinstance(one, dict) or not isinstance(one.get("name"), str) or one.get("in") not in _STYLES:
            self._report(
                "#", "a parameter is left out: it has no name, or no place that is path, query, header or cookie"
            )
            return None
        return one

    def _sent(self, one: dict[str, Any], credentials: set[tuple[str, str]], path: str) -> bool:
        place, name = one["in"], one["name"]
        if (place, name.lower()) in credentials or (place == "header" and name.lower() in _IGNORED_HEADERS):
            return False
        if place == "header" and name.lower() in OWNED:
            self._report("#", f"the header parameter {name} is left out: the client alone sets it")
            return False
        return place != "path" or f"{{{name}}}" in path

    def _given(self, one: dict[str, Any], key: str) -> Given:
        place, content = one["in"], one.get("content")
        style = one.get("style")
        if not isinstance(style, str) or style not in _STYLES[place]:
            style = _DEFAULT_STYLE[place]
        explode = one.get("explode")
        if not isinstance(explode, bool):
            explode = style in ("form", "deepObject", "cookie")
        as_json = False
        node = one.get("schema")
        if isinstance(content, dict) and content:
            media, entry = response.preferred(content)
            as_json = is_json(media)
            node = entry.get("schema") if isinstance(entry, dict) else None
        schema = self._schemas.shared(node, one.get("description"))
        reserved = one.get("allowReserved") is True and place == "query"
        parameter = Parameter(key, one["name"], place, style, explode, reserved, as_json)
        return Given(parameter, schema, place == "path" or one.get("required") is True)


def _identity(one: dict[str, Any]) -> tuple[str, str]:
    """A parameter is its name and its place; the names of headers are one in any case (RFC 9110, 5.1)."""
    return one["name"].lower() if one["in"] == "header" else one["name"], one["in"]


def _key(one: dict[str, Any], taken: set[str]) -> str:
    key = one["name"] if one["name"] not in taken else f"{one['name']}_{one['in']}"
    return free(key, taken)


def free(name: str, taken: set[str]) -> str:
    """`name`, or what is nearest to it and not taken; it is taken then."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
