"""Request bodies as a document declares them: the media types, the parts of forms, and one schema for the argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from catalog.kinds.openapi.bodies import ORDER, Body, Media, encoding_of
from catalog.kinds.openapi.reader import BadReference, Document
from catalog.kinds.openapi.schemas import Schemas
from catalog.model import Schema

MAX_MEDIA: Final = 16
MAX_MERGED: Final = 64

Report = Callable[[str, str], None]


class Content(NamedTuple):
    """A body with the schema of its argument, and the properties that it has by name."""

    body: Body
    schema: Schema
    properties: frozenset[str]


class Contents:
    """Reads the Request Body Objects of one document."""

    def __init__(self, document: Document, schemas: Schemas, report: Report) -> None:
        self._document = document
        self._schemas = schemas
        self._report = report

    def read(self, node: Any) -> Content | None:
        """Raises BadReference. What has no media type that can be sent is None."""
        node = self._document.follow(node)
        declared = node.get("content") if isinstance(node, dict) else None
        if not isinstance(declared, dict) or not declared:
            return None
        found: list[tuple[Media, Schema, frozenset[str]]] = []
        for name, entry in list(declared.items())[:MAX_MEDIA]:
            one = self._media(str(name), entry if isinstance(entry, dict) else {})
            if one is not None:
                found.append(one)
        found.sort(key=lambda one: ORDER.index(one[0].encoding))
        if not found:
            return None
        schemas: list[Schema] = []
        for _, schema, _ in found:
            if schema not in schemas:
                schemas.append(schema)
        schema = schemas[0] if len(schemas) == 1 or {} in schemas else {"anyOf": schemas}
        if {} in schemas:
            schema = {}
        if isinstance(node.get("description"), str) and not schema.keys() & {"description", "$ref"}:
            schema = schema | {"description": node["description"]}
        alias = node.get("x-name")
        body = Body(
            tuple(media for media, _, _ in found),
            node.get("required") is True,
            alias=alias if isinstance(alias, str) else "",
        )
        return Content(body, schema, found[0][2])

    def _media(self, name: str, entry: dict[str, Any]) -> tuple[Media, Schema, frozenset[str]] | None:
        if not name.isascii() or not name.isprintable() or "/" not in name or len(name) > 200:
            taken = "json" in name.lower()
            what = "taken for application/json" if taken else "left out"
            self._report("#", f"a body is {what}: {name[:80]!r} is not a media type")
            if not taken:
                return None
            name = "application/json"
        encoding = encoding_of(name)
        node = entry.get("schema")
        if encoding == "bytes":
            return Media(name, encoding), {"type": "string", "format": "binary"}, frozenset()
        properties = self._properties(node)
        schema = self._schemas.convert(node) if node is not None else {}
        kinds = self._kinds(node)
        if encoding == "text" and name.partition(";")[0].strip().lower() != "text/plain" and _nested(kinds):
            schema = {"type": "string", "description": f"{name} as text"} if "json" not in name else {}
        parts = self._parts(entry, properties) if encoding in ("form", "multipart") else {}
        return Media(name, encoding, kinds, parts), schema, frozenset(properties)

    def _kinds(self, node: Any) -> tuple[str, ...] | None:
        """The JSON types that a schema says it admits."""
        node = self._followed(node)
        if not isinstance(node, dict):
            return None
        declared = node.get("type")
        kinds = [declared] if isinstance(declared, str) else declared
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
            if "properties" not in node and "allOf" not in node:
                return None
            kinds = ["object"]
        if node.get("nullable") is True or node.get("x-nullable") is True:
            kinds = [*kinds, "null"]
        return tuple(kinds)

    def _followed(self, node: Any) -> Any:
        try:
            return self._document.follow(node)
        except BadReference:
            return None

    def _properties(self, node: Any) -> dict[str, Any]:
        """The properties of an object schema, those of its allOf and of its alternatives included."""
        found: dict[str, Any] = {}
        waiting, seen = [node], 0
        while waiting and seen < MAX_MERGED:
            seen += 1
            one = self._followed(waiting.pop(0))
            if not isinstance(one, dict):
                continue
            if isinstance(one.get("properties"), dict):
                found = one["properties"] | found
            for key in ("allOf", "anyOf", "oneOf"):
                if isinstance(one.get(key), list):
                    waiting.extend(one[key])
        return {str(name): value for name, value in found.items()}

    def _parts(self, entry: dict[str, Any], properties: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        declared = entry.get("encoding")
        encodings = declared if isinstance(declared, dict) else {}
        parts: dict[str, dict[str, Any]] = {}
        for name in {**properties, **encodings}:
            facts = self._facts(encodings.get(name))
            if kind := self._part_kind(properties.get(name)):
                facts["kind"] = kind
            if facts:
                parts[str(name)] = facts
        return parts

    def _facts(self, node: Any) -> dict[str, Any]:
        if not isinstance(node, dict):
            return {}
        facts: dict[str, Any] = {key: node[key] for key in ("style",) if isinstance(node.get(key), str)}
        facts |= {key: node[key] for key in ("explode",) if isinstance(node.get(key), bool)}
        if node.get("allowReserved") is True:
            facts["reserved"] = True
        media = node.get("contentType")
        if isinstance(media, str) and media.isascii() and media.isprintable():
            facts["content_type"] = media.partition(",")[0].strip()
        headers = node.get("headers")
        if isinstance(headers, dict):
            facts["headers"] = {str(name): self._fixed(one) for name, one in headers.items() if _own(str(name))}
        return facts

    def _fixed(self, node: Any) -> Any:
        """The one value that a header of a part can have, or its default; None where the caller has to say."""
        header = self._followed(node)
        schema = self._followed(header.get("schema")) if isinstance(header, dict) else None
        if not isinstance(schema, dict):
            return None
        allowed = schema.get("enum")
        if isinstance(allowed, list) and len(allowed) == 1:
            return allowed[0]
        return schema.get("const", schema.get("default"))

    def _part_kind(self, node: Any) -> str:
        schema = self._followed(node)
        if not isinstance(schema, dict):
            return ""
        if schema.get("type") == "array":
            return self._part_kind(schema.get("items")) if "items" in schema else ""
        if schema.get("format") == "binary" or schema.get("type") == "file":
            return "file"
        if "contentMediaType" in schema and "contentEncoding" not in schema:
            return "file"
        return "object" if "properties" in schema or "allOf" in schema else ""


def _own(name: str) -> bool:
    """OpenAPI 3.1, 4.8.15.1: a Content-Type among an encoding's headers is ignored; a disposition names the part."""
    return name.lower() not in ("content-type", "content-disposition")


def _nested(kinds: tuple[str, ...] | None) -> bool:
    return kinds is None or bool({"object", "array"} & set(kinds))
