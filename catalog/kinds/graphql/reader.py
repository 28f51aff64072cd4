"""Reading what describes a GraphQL API: introspection data or a schema text, with what is wrong in it left out.

A description comes from a stranger. What comes out of here is regular: every name is a name, every reference leads to a
type of the right kind, and there is not more of it than can be handled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from graphql import GraphQLError, GraphQLSchema, build_client_schema
from pydantic_core import from_json

from bridge.wire.errors import ImportFailed
from catalog.kinds.graphql import sdl
from catalog.model import Diagnostic

MAX_TYPES: Final = 20_000
MAX_MEMBERS: Final = 200_000
"""Fields, arguments, enum values and members of unions, of all types together."""
MAX_NAME: Final = 200
MAX_WRAPPERS: Final = sdl.MAX_WRAPPERS
MAX_TEXT: Final = 4000
MAX_DIAGNOSTICS: Final = 1000
DEFAULTED: Final = "0"
"""Stands for any default value: only whether there is one decides what a document may leave out."""

_NAME: Final = re.compile(r"\A[A-Za-z_][A-Za-z0-9_]*\Z")
_OUTPUT: Final = frozenset({"SCALAR", "OBJECT", "INTERFACE", "UNION", "ENUM"})
_INPUT: Final = frozenset({"SCALAR", "ENUM", "INPUT_OBJECT"})
_LOCATIONS: Final = ("QUERY", "MUTATION", "FIELD", "FRAGMENT_DEFINITION", "FRAGMENT_SPREAD", "INLINE_FRAGMENT")
_IF: Final = {
    "name": "if",
    "type": {"kind": "NON_NULL", "ofType": {"kind": "SCALAR", "name": "Boolean"}},
    "defaultValue": None,
}
_CONDITIONS: Final = tuple(
    {"name": name, "locations": ["FIELD", "FRAGMENT_SPREAD", "INLINE_FRAGMENT"], "args": [_IF], "isRepeatable": False}
    for name in ("skip", "include")
)
"""October 2021, 3.13: what every schema has, whether or not it says so."""
_BUILT_IN: Final = ("String", "Int", "Float", "Boolean", "ID")


class Description(NamedTuple):
    """`data` is a regular introspection; `diagnostics` tell what was left out of it."""

    data: dict[str, Any]
    diagnostics: list[Diagnostic]

    def schema(self) -> GraphQLSchema:
        return built(self.data)


def built(data: dict[str, Any]) -> GraphQLSchema:
    """The schema of regular introspection data. Raises ImportFailed."""
    try:
        return build_client_schema(data, assume_valid=True)  # type: ignore[arg-type]
    except (GraphQLError, TypeError, ValueError, KeyError, AttributeError) as e:
        raise ImportFailed(f"The schema cannot be used: {str(e)[:300]}") from None
    except RecursionError:
        raise ImportFailed("The schema is nested too deeply to be used.") from None


def read(document: bytes | str | Mapping[str, Any]) -> Description:
    """Raises ImportFailed for what is no description of a GraphQL API."""
    data = _data(document)
    root = data.get("data") if isinstance(data.get("data"), dict) else data
    schema = root.get("__schema") if isinstance(root, dict) else None
    if not isinstance(schema, dict):
        raise ImportFailed(
            "The document is no GraphQL schema: it has no key __schema." + _errors(data),
            hint="Give the schema as SDL, or the JSON answer to an introspection query.",
        )
    return _Cleaner(schema).description()


def _data(document: bytes | str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(document, Mapping):
        return dict(document)
    if isinstance(document, bytes):
        try:
            document = document.decode(json.detect_encoding(document))
        except UnicodeDecodeError as e:
            raise ImportFailed(f"The schema is not UTF-8 text: byte {e.start} is not part of a character.") from None
    text = document.removeprefix("\ufeff")
    start = text.lstrip()[:1]
    if not start:
        raise ImportFailed("The schema is empty.")
    if start == "<":
        raise ImportFailed("The document is HTML or XML, not a GraphQL schema.")
    if start != "{":
        return sdl.introspected(text)
    try:
        found = from_json(text)
    except (ValueError, RecursionError) as e:
        raise ImportFailed(f"The introspection is not JSON: {str(e)[:200]}.") from None
    return found if isinstance(found, dict) else {}


def _errors(data: Mapping[str, Any]) -> str:
    errors = data.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else None
    said = first.get("message") if isinstance(first, dict) else None
    return f" It says: {said[:300]}" if isinstance(said, str) else ""


class _Cleaner:
    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._members = 0
        self._kinds: dict[str, str] = {}
        self._types: dict[str, dict[str, Any]] = {}
        self.diagnostics: list[Diagnostic] = []

    def description(self) -> Description:
        listed = self._schema.get("types")
        if not isinstance(listed, list):
            raise ImportFailed("The introspection has no list of types (#/__schema/types).")
        if len(listed) > MAX_TYPES:
            raise ImportFailed(f"The schema has {len(listed)} types; at most {MAX_TYPES} are read.")
        given = [facts for facts in listed if self._known(facts)]
        for name in _BUILT_IN:
            self._kinds.setdefault(name, "SCALAR")
        for facts in given:
            self._types[facts["name"]] = self._type(facts)
        for name in _BUILT_IN:
            self._types.setdefault(name, {"kind": "SCALAR", "name": name})
        roots = {f"{word}Type": self._root(word) for word in ("query", "mutation", "subscription")}
        said = self._text(self._schema.get("description"))
        data = {"description": said} | roots | {"types": list(self._types.values())}
        data["directives"] = [*_CONDITIONS, *self._directives(self._schema.get("directives"))]
        return Description({"__schema": data}, self.diagnostics[:MAX_DIAGNOSTICS])

    def _report(self, where: str, message: str) -> None:
        if len(self.diagnostics) < MAX_DIAGNOSTICS:
            self.diagnostics.append(Diagnostic(where, message))

    def _known(self, facts: Any) -> bool:
        """Whether the type is one that is kept; its name is known from here on."""
        name = facts.get("name") if isinstance(facts, dict) else None
        kind = str(facts.get("kind")) if isinstance(facts, dict) else ""
        if isinstance(name, str) and name.startswith("__"):
            return False
        if not isinstance(name, str) or not self._is_name(name) or kind not in _OUTPUT | _INPUT:
            self._report(f"#{str(name)[:80]}", "left out: it is no named type")
        elif name in self._kinds:
            self._report(f"#{name}", "left out: a type of that name is there already")
        else:
            self._kinds[name] = kind
            return True
        return False

    def _is_name(self, name: Any) -> bool:
        return isinstance(name, str) and len(name) <= MAX_NAME and _NAME.match(name) is not None

    def _root(self, word: str) -> dict[str, str] | None:
        node = self._schema.get(f"{word}Type")
        name = node.get("name") if isinstance(node, dict) else None
        if name is None:
            return None
        if self._kinds.get(str(name)) != "OBJECT":
            self._report(f"#{str(name)[:80]}", f"left out: the type of {word} operations is not an object type")
            return None
        return {"name": str(name)}

    def _type(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        name, kind = facts["name"], facts["kind"]
        out: dict[str, Any] = {"kind": kind, "name": name, "description": self._text(facts.get("description"))}
        if kind in ("OBJECT", "INTERFACE"):
            out["fields"] = list(self._fields(name, facts.get("fields")))
            out["interfaces"] = list(self._names(name, facts.get("interfaces"), "INTERFACE"))
        if kind in ("INTERFACE", "UNION"):
            out["possibleTypes"] = list(self._names(name, facts.get("possibleTypes"), "OBJECT"))
        elif kind == "ENUM":
            out["enumValues"] = list(self._values(name, facts.get("enumValues")))
        elif kind == "INPUT_OBJECT":
            out["inputFields"] = [one for one, usable in self._inputs(name, facts.get("inputFields")) if usable]
            out["isOneOf"] = facts.get("isOneOf") is True
        return out

    def _directives(self, listed: Any) -> Iterator[dict[str, Any]]:
        """The directives that a document may carry; those of schemas alone are nobody's to write."""
        for name, facts in self._each("@", listed):
            given = facts.get("locations")
            locations = [one for one in given if one in _LOCATIONS] if isinstance(given, list) else []
            args = list(self._inputs(f"@{name}", facts.get("args")))
            if name not in ("skip", "include") and locations and all(usable for _, usable in args):
                many = facts.get("isRepeatable") is True
                yield {"name": name, "locations": locations, "args": [one for one, _ in args], "isRepeatable": many}

    def _each(self, where: str, listed: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The members of a list that have a name of their own, each once."""
        seen = set()
        for facts in listed if isinstance(listed, list) else ():
            self._members += 1
            if self._members > MAX_MEMBERS:
                raise ImportFailed(f"The schema has more than {MAX_MEMBERS} fields, arguments and values.")
            name = facts.get("name") if isinstance(facts, dict) else None
            if not isinstance(name, str) or not self._is_name(name) or name.startswith("__"):
                self._report(f"#{where}.{str(name)[:80]}", "left out: that is no name")
            elif name not in seen:
                seen.add(name)
                yield name, facts

    def _names(self, where: str, listed: Any, kind: str) -> Iterator[dict[str, str]]:
        for name, _ in self._each(where, listed):
            if self._kinds.get(name) == kind:
                yield {"kind": kind, "name": name}

    def _values(self, where: str, listed: Any) -> Iterator[dict[str, Any]]:
        for name, _ in self._each(where, listed):
            if name not in ("true", "false", "null"):
                yield {"name": name}

    def _fields(self, where: str, listed: Any) -> Iterator[dict[str, Any]]:
        for name, facts in self._each(where, listed):
            place = f"{where}.{name}"
            reference = self._reference(facts.get("type"), _OUTPUT)
            if reference is None:
                self._report(f"#{place}", "left out: its type is not one that it can have")
                continue
            given = list(self._inputs(place, facts.get("args")))
            if lacking := [one["name"] for one, usable in given if not usable and _required(one)]:
                self._report(f"#{place}", f"left out: it needs {lacking[0]}, which cannot be given")
                continue
            deprecated = facts.get("isDeprecated") is True or isinstance(facts.get("deprecationReason"), str)
            yield {
                "name": name,
                "description": self._text(facts.get("description")),
                "args": [one for one, usable in given if usable],
                "type": reference,
                "deprecationReason": "deprecated" if deprecated else None,
            }

    def _inputs(self, where: str, listed: Any) -> Iterator[tuple[dict[str, Any], bool]]:
        """Arguments or input fields, and whether each can be given."""
        for name, facts in self._each(where, listed):
            reference = self._reference(facts.get("type"), _INPUT)
            default = facts.get("defaultValue")
            described = self._text(facts.get("description"))
            if isinstance(default, str) and 0 < len(default) <= 60 and default.isprintable():
                described = f"{described.rstrip()} Default: {default}".lstrip()
            one = {"name": name, "description": described, "defaultValue": None if default is None else DEFAULTED}
            if reference is not None:
                yield one | {"type": reference}, True
            else:
                self._report(f"#{where}.{name}", "left out: its type is not one that it can have")
                wrapped = facts.get("type")
                outer = wrapped.get("kind") if isinstance(wrapped, dict) else None
                yield one | {"type": {"kind": outer}}, False

    def _reference(self, node: Any, kinds: frozenset[str]) -> dict[str, Any] | None:
        """A type reference that leads to a type of one of the kinds; None for any other."""
        wrappers: list[str] = []
        while isinstance(node, dict) and node.get("kind") in ("LIST", "NON_NULL"):
            if len(wrappers) == MAX_WRAPPERS or (wrappers and wrappers[-1] == node["kind"] == "NON_NULL"):
                return None
            wrappers.append(node["kind"])
            node = node.get("ofType")
        name = node.get("name") if isinstance(node, dict) else None
        kind = self._kinds.get(name) if isinstance(name, str) else None
        if kind is None or kind not in kinds:
            return None
        reference: dict[str, Any] = {"kind": kind, "name": name}
        for wrapper in reversed(wrappers):
            reference = {"kind": wrapper, "ofType": reference}
        return reference

    def _text(self, value: Any) -> str:
        return value[:MAX_TEXT] if isinstance(value, str) else ""


def _required(one: Mapping[str, Any]) -> bool:
    return one["type"].get("kind") == "NON_NULL" and one["defaultValue"] is None


def bare(data: Mapping[str, Any]) -> dict[str, Any]:
    """The introspection without its texts: what checking a document needs."""
    schema = data["__schema"]
    return {"__schema": {key: _bare(value) for key, value in schema.items() if key != "description"}}


def _bare(part: Any) -> Any:
    if isinstance(part, list):
        return [_bare(one) for one in part]
    if isinstance(part, dict):
        return {key: _bare(value) for key, value in part.items() if key != "description" and value is not None}
    return part
