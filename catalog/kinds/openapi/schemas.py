"""Schemas of a document as JSON Schema 2020-12 that stands on its own definitions.

Every `$ref` becomes `#/$defs/<name>`; the definitions are converted once, when something first needs them, and shared
by all tools of the document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from catalog.kinds.openapi import keywords
from catalog.kinds.openapi.reader import BadReference, Document
from catalog.model import Schema

MAX_DEPTH: Final = 64

_PLAIN = (
    "type enum const required minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern"
    " minItems maxItems uniqueItems minProperties maxProperties minContains maxContains format title description"
    " default readOnly writeOnly deprecated contentMediaType contentEncoding dependentRequired"
)
_NESTING = "items additionalProperties not contains propertyNames if then else unevaluatedProperties unevaluatedItems"
_COPIED: Final = frozenset(_PLAIN.split())
_ONE: Final = frozenset(_NESTING.split())
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_COMPONENT: Final = re.compile(r"\A#/(?:components/schemas|definitions)/([A-Za-z0-9._-]+)\Z")
_SUFFIX: Final = re.compile(r"\.(?:json|ya?ml)\Z", re.IGNORECASE)
_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")

Report = Callable[[str, str], None]


class Schemas:
    """Converts schemas of one document; `report(pointer, message)` hears of what had to be left out."""

    def __init__(self, document: Document, report: Report) -> None:
        self._document = document
        self._report = report
        self._names: dict[str, str | None] = {}
        self._waiting: list[tuple[str, str, Any]] = []
        self._at = "#"
        self._made: dict[str, Schema] = {}
        self.definitions: dict[str, Schema] = {}

    def finish(self) -> None:
        """Convert the definitions that were named since the last time. One at a time: their chains can be long."""
        while self._waiting:
            name, ref, node = self._waiting.pop()
            self._at = ref if ref.startswith("#") else "#"
            self.definitions[name] = self.convert(node)
        self._at = "#"

    def shared(self, node: Any, description: Any) -> Schema:
        """`convert(node)` with the description where it has none of its own. The same content is the same object:
        parameters repeat by the thousand."""
        made = self.convert(node)
        if isinstance(description, str) and "description" not in made:
            made = made | {"description": description}
        return self._made.setdefault(json.dumps(made, default=repr), made)

    def convert(self, node: Any, depth: int = 0) -> Schema:
        """The schema `node`. What cannot be read becomes `{}`, anything at all."""
        if not isinstance(node, dict) or depth > MAX_DEPTH:
            return {"not": {}} if node is False else {}
        if "$ref" in node:
            return self._reference(node, depth)
        out: Schema = {}
        for key, value in node.items():
            if (wanted := keywords.wanted(key, value)) is not None:
                self._report(self._at, f"the schema keyword {key} is left out: it is not {wanted}")
            elif key in _COPIED:
                out[key] = value
            elif key in _ONE:
                out[key] = value if isinstance(value, bool) else self.convert(value, depth + 1)
            elif key in _LISTS:
                out[key] = [self._branch(part, depth) for part in value]
            elif key in _MAPS:
                out[key] = {str(name): self._branch(part, depth) for name, part in value.items()}
        return _repaired(out, node)

    def _branch(self, part: Any, depth: int) -> Any:
        return part if isinstance(part, bool) else self.convert(part, depth + 1)

    def _reference(self, node: dict[str, Any], depth: int) -> Schema:
        name = self._name(node["$ref"])
        target: Schema = {"$ref": f"#/$defs/{name}"} if name is not None else {}
        notes = {key: node[key] for key in ("description", "readOnly", "writeOnly") if key in node}
        rest = {key: value for key, value in node.items() if key != "$ref" and key not in notes}
        extra = self.convert(rest, depth + 1) if rest else {}
        if _may_be_null(node):
            return {"anyOf": [target, {"type": "null"}]} | notes
        return {"allOf": [target, extra]} | notes if extra else target | notes

    def _name(self, ref: Any) -> str | None:
        """The definition that `ref` names, to be converted later; None (and a report) when there is none."""
        if not isinstance(ref, str):
            self._report("#", "a $ref is not text")
            return None
        if ref in self._names:
            return self._names[ref]
        try:
            target = self._document.at(ref)
        except BadReference as e:
            self._report(ref if ref.startswith("#") else "#", str(e))
            self._names[ref] = None
            return None
        match = _COMPONENT.match(ref)
        last = _SUFFIX.sub("", ref.rpartition("/")[2]).rpartition("~1")[2]
        name = match[1] if match else _NOT_NAME.sub("_", last) or "schema"
        while name in self.definitions:
            name += "_"
        self._names[ref] = name
        self.definitions[name] = {}
        self._waiting.append((name, ref, target))
        return name


def _repaired(out: Schema, node: dict[str, Any]) -> Schema:
    """OpenAPI 3.0's own keywords, and the mistakes that documents make, as JSON Schema says them."""
    kind = out.get("type")
    if kind == "file":
        out["type"], out["format"] = "string", "binary"
    for bound, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        # OpenAPI 3.0 (JSON Schema draft 4): a boolean that makes its neighbour exclusive.
        if isinstance(out.get(strict), bool) and out.pop(strict) and bound in out:
            out[strict] = out.pop(bound)
    return _nullable(out) if _may_be_null(node) else out


def _may_be_null(node: dict[str, Any]) -> bool:
    """`x-nullable` is how Swagger 2.0 documents say it."""
    return node.get("nullable") is True or node.get("x-nullable") is True


def _nullable(schema: Schema) -> Schema:
    """OpenAPI 3.0.3, Schema Object: `nullable` adds null to the allowed types."""
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    kind = schema.get("type")
    if isinstance(kind, str):
        return schema | {"type": [kind, "null"]} if kind != "null" else schema
    if any(key in schema for key in ("allOf", "anyOf", "oneOf")):
        return {"anyOf": [schema, {"type": "null"}]}
    return schema
