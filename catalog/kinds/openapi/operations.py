"""The operations of a document, each read by itself: a broken one is a diagnostic, the others still arrive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from catalog.kinds.decoding import is_json
from catalog.kinds.headers import OWNED
from catalog.kinds.openapi import response, security
from catalog.kinds.openapi.bodies import Body, Encoding
from catalog.kinds.openapi.names import Namer
from catalog.kinds.openapi.reader import BadReference, Document, pointer
from catalog.kinds.openapi.request import Operation, Parameter
from catalog.kinds.openapi.schemas import Schemas
from catalog.kinds.openapi.servers import Servers
from catalog.model import Diagnostic, Schema, SideEffect, ToolSpec

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

_EFFECTS: Final[dict[str, SideEffect]] = {"get": "read", "head": "read", "options": "read", "delete": "delete"}
_DEFAULT_STYLE: Final = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_STYLES: Final = {
    "path": {"simple", "label", "matrix"},
    "query": {"form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"},
    "header": {"simple", "pipeDelimited", "spaceDelimited", "tabDelimited"},
    "cookie": {"form"},
}
_TEMPLATE: Final = re.compile(r"\{([^{}]+)\}")
_PLAIN: Final = re.compile(r"\A[A-Za-z0-9._~!$&'()*+,;=:@%/-]*\Z")
_IGNORED_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""OpenAPI 3.1, 4.8.12.2.1: parameters of these names are ignored."""


class Broken(Exception):
    """Raised when an operation cannot be called as it is described."""


class Given(NamedTuple):
    """A parameter with its description and schema."""

    parameter: Parameter
    schema: Schema
    required: bool


class Importer:
    """Reads one document into tools and diagnostics."""

    def __init__(self, document: Document, servers: Servers) -> None:
        self._document = document
        self._servers = servers
        self._names = Namer()
        self._ids: dict[str, str] = {}
        self._where = "#"
        self.diagnostics: list[Diagnostic] = []
        self.schemas = Schemas(document, self._report)
        self.schemes = security.schemes(document)
        self.default_security = security.requirements(document.root.get("security"))

    def _report(self, where: str, message: str) -> None:
        self.diagnostics.append(Diagnostic(where if where != "#" else self._where, message))

    def tools(self) -> Iterator[ToolSpec]:
        """Every operation that can be called; what cannot is reported."""
        for path, method, item, node in self._operations():
            self._where = pointer("paths", path, method)
            try:
                yield self._tool(path, method, item, node)
                self.schemas.finish()
            except (Broken, BadReference) as e:
                self._report("#", f"{method.upper()} {path} left out: {e}")
            except RecursionError:
                self._report("#", f"{method.upper()} {path} left out: it is nested too deeply")

    def _operations(self) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
        for path, node in self._document.root["paths"].items():
            self._where = pointer("paths", str(path))
            if str(path).startswith("x-"):
                continue
            try:
                item = self._path_item(node)
            except BadReference as e:
                self._report("#", f"{path} left out: {e}")
                continue
            if not isinstance(item, dict) or not str(path).startswith("/"):
                self._report("#", f"{str(path)[:200]} left out: not a path with its operations")
                continue
            for method in METHODS:
                if isinstance(item.get(method), dict):
                    yield path, method, item, item[method]
                elif item.get(method) is not None:
                    self._report(pointer("paths", path, method), "left out: not an operation object")

    def _path_item(self, node: Any) -> Any:
        if isinstance(node, dict) and "$ref" in node:
            target = self._document.follow(node)
            own = {key: value for key, value in node.items() if key != "$ref"}
            return target | own if isinstance(target, dict) else target
        return node

    def _tool(self, path: str, method: str, item: dict[str, Any], node: dict[str, Any]) -> ToolSpec:
        template, query = self._template(path)
        base = self._servers.base(node.get("servers") or item.get("servers"), self._report)
        if query:
            base = base.at(base.path + "?" + "&".join(filter(None, (base.query, query))))
        body, body_schema = self._body(node.get("requestBody"), method)
        declared = security.requirements(node.get("security"))
        required_schemes = self.default_security if declared is None else declared
        given = list(self._parameters(template, item, node, required_schemes, body is not None))
        in_path = {one.parameter.name for one in given if one.parameter.place == "path"}
        if lacking := [name for name in _TEMPLATE.findall(template) if name not in in_path]:
            raise Broken(f"the path variable {lacking[0]} has no parameter")
        operation_id = node.get("operationId")
        declared_tags = node.get("tags")
        tags = [tag for tag in declared_tags if isinstance(tag, str)] if isinstance(declared_tags, list) else []
        operation = Operation(
            method=method.upper(),
            base=base,
            path=template,
            parameters=tuple(one.parameter for one in given),
            body=body,
            accept=response.accept(self._document, node.get("responses")),
            security=required_schemes,
            flat=self._flat(body, body_schema, given),
        )
        name = self._names.name(method, path, operation_id if isinstance(operation_id, str) else None, tags)
        if isinstance(operation_id, str):
            first = self._ids.setdefault(operation_id, f"{method.upper()} {path}")
            if first != f"{method.upper()} {path}":
                said = f"the operationId {operation_id[:80]!r} is that of {first[:200]} too"
                self._report("#", f"{said}; this operation is named {name}")
        return ToolSpec(
            name=name,
            title=_text(node.get("summary")) or _text(item.get("summary")),
            description=_text(node.get("description")) or _text(item.get("description")),
            input_schema=_input(given, body, body_schema),
            output_schema=self._output(method, node),
            side_effect=_EFFECTS.get(method, "write"),
            words=" ".join([method, *re.findall(r"[A-Za-z0-9]+", _TEMPLATE.sub(" ", path)), *tags]),
            binding=operation.as_dict(),
            deprecated=node.get("deprecated") is True,
        )

    def _template(self, path: str) -> tuple[str, str]:
        """The path that is sent and its fixed query. A fragment only tells twins apart and never leaves."""
        path, _, query = path.partition("#")[0].partition("?")
        if any(segment in (".", "..") for segment in path.split("/")):
            raise Broken("the path holds dot segments")
        if any(not _PLAIN.match(part) for part in _TEMPLATE.split(path)[::2]) or not _PLAIN.match(query):
            raise Broken("the path holds characters that a URL path cannot hold")
        return path, query

    def _output(self, method: str, node: dict[str, Any]) -> Schema | None:
        if method == "head":
            return response.NOTHING
        return response.output_schema(self._document, self.schemas, node.get("responses"))

    def _parameters(
        self,
        path: str,
        item: dict[str, Any],
        node: dict[str, Any],
        required_schemes: tuple[security.Requirement, ...] | None,
        has_body: bool,
    ) -> Iterator[Given]:
        merged: dict[tuple[str, str], dict[str, Any]] = {}
        for source in (item.get("parameters"), node.get("parameters")):
            for entry in source if isinstance(source, list) else ():
                one = self._parameter(entry)
                if one is not None:
                    merged[one["name"], one["in"]] = one
        credentials = self._credential_fields(required_schemes)
        keys = {"body"} if has_body else set()
        places = sorted(merged.values(), key=lambda one: ("path", "query", "header", "cookie").index(one["in"]))
        named = {(one["name"], one["in"]): self._key(one, keys) for one in places if self._sent(one, credentials, path)}
        for address, one in merged.items():
            if address in named:
                yield self._given(one, named[address])

    def _parameter(self, entry: Any) -> dict[str, Any] | None:
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

    def _credential_fields(self, required: tuple[security.Requirement, ...] | None) -> set[tuple[str, str]]:
        """The parameters that a credential fills, so that nobody is asked for them."""
        used = [self.schemes[name] for names in required or () for name in names if name in self.schemes]
        return {(scheme["carrier"], scheme["field"].lower()) for scheme in used}

    def _sent(self, one: dict[str, Any], credentials: set[tuple[str, str]], path: str) -> bool:
        place, name = one["in"], one["name"]
        if (place, name.lower()) in credentials or (place == "header" and name.lower() in _IGNORED_HEADERS):
            return False
        if place == "header" and name.lower() in OWNED:
            self._report("#", f"the header parameter {name} is left out: the client alone sets it")
            return False
        return place != "path" or f"{{{name}}}" in path

    def _key(self, one: dict[str, Any], keys: set[str]) -> str:
        key = one["name"] if one["name"] not in keys else f"{one['name']}_{one['in']}"
        while key in keys:
            key += "_"
        keys.add(key)
        return key

    def _given(self, one: dict[str, Any], key: str) -> Given:
        place, content = one["in"], one.get("content")
        style = one.get("style")
        if style not in _STYLES[place]:
            style = _DEFAULT_STYLE[place]
        explode = one.get("explode")
        if not isinstance(explode, bool):
            explode = style in ("form", "deepObject")
        as_json = False
        node = one.get("schema")
        if isinstance(content, dict) and content:
            media, entry = response.preferred(content)
            as_json = is_json(media)
            node = entry.get("schema") if isinstance(entry, dict) else None
        schema = self.schemas.convert(node)
        if isinstance(one.get("description"), str) and "description" not in schema:
            schema = schema | {"description": one["description"]}
        reserved = one.get("allowReserved") is True and place == "query"
        parameter = Parameter(key, one["name"], place, style, explode, reserved, as_json)
        return Given(parameter, schema, place == "path" or one.get("required") is True)

    def _body(self, node: Any, method: str) -> tuple[Body | None, Schema | None]:
        if node is None or method in ("get", "head", "trace"):
            # OpenAPI 3.0.3, Operation Object: where HTTP gives a body no meaning, requestBody is ignored.
            return None, None
        node = self._document.follow(node)
        content = node.get("content") if isinstance(node, dict) else None
        if not isinstance(content, dict) or not content:
            return None, None
        media, encoding, entry = _choose(content)
        schema = self.schemas.convert(entry.get("schema")) if entry.get("schema") is not None else {}
        parts = self._parts(entry) if encoding in ("form", "multipart") else {}
        return Body(media, encoding, node.get("required") is True, parts), schema

    def _parts(self, entry: dict[str, Any]) -> dict[str, dict[str, Any]]:
        declared = entry.get("encoding")
        parts: dict[str, dict[str, Any]] = {}
        for name, node in declared.items() if isinstance(declared, dict) else ():
            if isinstance(node, dict):
                facts = {key: node[key] for key in ("style", "explode") if isinstance(node.get(key), (str, bool))}
                media = node.get("contentType")
                if isinstance(media, str) and media.isascii() and media.isprintable():
                    facts["content_type"] = media.partition(",")[0].strip()
                parts[str(name)] = facts
        return parts

    def _flat(self, body: Body | None, schema: Schema | None, given: list[Given]) -> frozenset[str]:
        """The properties of an object body that no parameter is named like."""
        if body is None or body.encoding not in ("json", "form") or schema is None:
            return frozenset()
        node: Any = schema
        if "$ref" in schema:
            self.schemas.finish()
            node = self.schemas.definitions.get(schema["$ref"][8:], {})
        properties = node.get("properties", {})
        taken = {one.parameter.key for one in given} | {"body"}
        return frozenset(properties) if not taken & properties.keys() else frozenset(properties.keys() - taken)


def _choose(content: dict[str, Any]) -> tuple[str, Encoding, dict[str, Any]]:
    """The media type that is sent: JSON before forms before multipart before text before bytes."""
    order: tuple[Encoding, ...] = ("json", "form", "multipart", "text", "bytes")
    found = [(order.index(_encoding(str(media))), str(media), entry) for media, entry in content.items()]
    rank, media, entry = min(found, key=lambda one: one[0])
    encoding = order[rank]
    if not media.isascii() or not media.isprintable() or "/" not in media or len(media) > 200:
        raise Broken(f"{media[:80]!r} is not a media type")
    if "*" in media:
        media = "application/json" if encoding == "json" else "application/octet-stream"
    return media, encoding, entry if isinstance(entry, dict) else {}


def _encoding(media: str) -> Encoding:
    bare = media.partition(";")[0].strip().lower()
    if is_json(bare) or bare in ("*/*", "application/*"):
        return "json"
    if bare == "application/x-www-form-urlencoded":
        return "form"
    if bare.startswith("multipart/"):
        return "multipart"
    return "text" if bare.startswith("text/") or bare.endswith(("xml", "+xml", "ndjson", "yaml")) else "bytes"


def _input(given: list[Given], body: Body | None, body_schema: Schema | None) -> Schema:
    properties = {one.parameter.key: one.schema for one in given}
    required = [one.parameter.key for one in given if one.required]
    if body is not None:
        properties["body"] = body_schema or {}
        if body.required:
            required.append("body")
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | {"required": required} if required else schema


def _text(value: Any) -> str:
    return value[:4000] if isinstance(value, str) else ""
