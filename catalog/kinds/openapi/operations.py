"""The operations of a document, each read by itself: a broken one is a diagnostic, the others still arrive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, cast
from urllib.parse import quote

from catalog import address
from catalog.kinds.openapi import response, security
from catalog.kinds.openapi.contents import Content, Contents
from catalog.kinds.openapi.names import Namer
from catalog.kinds.openapi.parameters import Given, Parameters, free
from catalog.kinds.openapi.reader import BadReference, Document, pointer
from catalog.kinds.openapi.request import Operation
from catalog.kinds.openapi.schemas import Schemas
from catalog.kinds.openapi.servers import Choice, Servers
from catalog.kinds.openapi.swagger import Swagger
from catalog.model import Diagnostic, Schema, SideEffect, ToolSpec

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")

NAME: Final = "x-executor-name"
SIDE_EFFECT: Final = "x-executor-side-effect"
HIDDEN: Final = "x-executor-hidden"
IDEMPOTENT: Final = "x-executor-idempotent"
"""What a document can say about a tool: its name, its side effect, that it is none, that it may be called twice."""

_EFFECTS: Final[dict[str, SideEffect]] = {
    "get": "read",
    "head": "read",
    "options": "read",
    "query": "read",
    "delete": "delete",
}
_TEMPLATE: Final = re.compile(r"\{([^{}]+)\}")
_UNSENDABLE: Final = re.compile(r"[\x00-\x1f\x7f\\{}?#\ud800-\udfff]")
_SAFE: Final = "!$&'()*+,;=:@%/"
_PLAIN: Final = re.compile(r"\A[A-Za-z0-9._~!$&'()*+,;=:@%/-]*\Z")


class Broken(Exception):
    """Raised when an operation cannot be called as it is described."""


class Importer:
    """Reads one document into tools and diagnostics. `document_url` is where a Swagger 2.0 document was found."""

    def __init__(self, document: Document, servers: Servers, *, document_url: str | None = None) -> None:
        root = document.root
        self._document = document
        self._servers = servers
        self._version = str(root.get("openapi", root.get("swagger", "")))
        self._swagger = Swagger(document, document_url) if "openapi" not in root else None
        self._names = Namer()
        self._ids: dict[str, str] = {}
        self._where = "#"
        self.diagnostics: list[Diagnostic] = []
        self.schemas = Schemas(document, self._report)
        self._parameters = Parameters(document, self.schemas, self._report)
        self._contents = Contents(document, self.schemas, self._report)
        self.schemes = security.schemes(document)
        self.default_security = security.requirements(root.get("security"))

    def _report(self, where: str, message: str) -> None:
        self.diagnostics.append(Diagnostic(where if where != "#" else self._where, message))

    def tools(self) -> Iterator[ToolSpec]:
        """Every operation that can be called; what cannot is reported."""
        operations = list(self._operations())
        for _, _, _, node in operations:
            if isinstance(name := node.get(NAME), str) and address.is_tool(name):
                self._names.reserve(name)
        for path, method, item, node in operations:
            self._where = pointer("paths", path, method)
            try:
                if self._swagger is not None:
                    item, node = self._swagger.operation(item, node)
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
                    if item[method].get(HIDDEN) is not True and item.get(HIDDEN) is not True:
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
        template, query, asked = self._template(path)
        base, choice = self._servers.base(node.get("servers") or item.get("servers"), self._report)
        if query:
            base = base.at(base.path + "?" + "&".join(filter(None, (base.query, query))))
        content = self._body(node.get("requestBody"), method)
        declared = security.requirements(node.get("security"))
        required_schemes = self.default_security if declared is None else declared
        taken = {"body"} if content is not None else set()
        sources = (item.get("parameters"), node.get("parameters"))
        fields = self._credential_fields(required_schemes)
        given = list(self._parameters.read(template, sources, fields, taken, asked))
        in_path = {one.parameter.name for one in given if one.parameter.place == "path"}
        if lacking := [name for name in _TEMPLATE.findall(template) if name not in in_path]:
            raise Broken(f"the path variable {lacking[0]} has no parameter")
        if content is not None and len(content.body.choices) > 1:
            content = content._replace(body=replace(content.body, key=free("content_type", taken)))
        if choice is not None:
            choice = replace(choice, key=free("server", taken), variables_key=free("server_variables", taken))
        declared_tags = node.get("tags")
        tags = [tag for tag in declared_tags if isinstance(tag, str)] if isinstance(declared_tags, list) else []
        operation = Operation(
            method=method.upper(),
            base=base,
            path=template,
            parameters=tuple(one.parameter for one in given),
            body=content.body if content is not None else None,
            accept=response.accept(self._document, node.get("responses")),
            security=required_schemes,
            flat=_flat(content, taken),
            choice=choice,
            query=query,
        )
        return ToolSpec(
            name=self._name(path, method, node, tags),
            title=_text(node.get("summary")) or _text(item.get("summary")),
            description=_text(node.get("description")) or _text(item.get("description")),
            input_schema=_input(given, content, choice),
            output_schema=self._output(method, node),
            side_effect=self._side_effect(method, node),
            words=" ".join([method, *re.findall(r"[A-Za-z0-9]+", _TEMPLATE.sub(" ", path)), *tags]),
            binding=operation.as_dict(),
            source=f"{method.upper()} {path}",
            deprecated=node.get("deprecated") is True,
            idempotent=node.get(IDEMPOTENT) is True,
        )

    def _name(self, path: str, method: str, node: dict[str, Any], tags: list[str]) -> str:
        operation_id = node.get("operationId")
        wanted = node.get(NAME)
        if isinstance(wanted, str) and self._names.take(wanted):
            return wanted
        if wanted is not None:
            why = "another operation has it" if isinstance(wanted, str) and address.is_tool(wanted) else "it is no name"
            self._report("#", f"{NAME} {str(wanted)[:80]!r} is passed over: {why}")
        name = self._names.name(method, path, operation_id if isinstance(operation_id, str) else None, tags)
        if isinstance(operation_id, str):
            first = self._ids.setdefault(operation_id, f"{method.upper()} {path}")
            if first != f"{method.upper()} {path}":
                said = f"the operationId {operation_id[:80]!r} is that of {first[:200]} too"
                self._report("#", f"{said}; this operation is named {name}")
        return name

    def _side_effect(self, method: str, node: dict[str, Any]) -> SideEffect:
        wanted = node.get(SIDE_EFFECT)
        if wanted in ("read", "write", "delete", "unknown"):
            return cast(SideEffect, wanted)
        if wanted is not None:
            known = "read, write, delete or unknown"
            self._report("#", f"{SIDE_EFFECT} {str(wanted)[:80]!r} is passed over: it is {known}")
        return _EFFECTS.get(method, "write")

    def _template(self, path: str) -> tuple[str, str, dict[str, str]]:
        """The path that is sent, its fixed query, and the names that the variables of its query go by. A fragment only
        tells twins apart and never leaves."""
        path, _, query = path.partition("#")[0].partition("?")
        if any(segment in (".", "..") for segment in path.split("/")):
            raise Broken("the path holds dot segments")
        pieces = _TEMPLATE.split(path)
        if any(_UNSENDABLE.search(piece) for piece in pieces[::2]):
            raise Broken("the path holds characters that a URL path cannot hold")
        pieces[::2] = [quote(piece, safe=_SAFE) for piece in pieces[::2]]
        path = "".join(f"{{{piece}}}" if index % 2 else piece for index, piece in enumerate(pieces))
        pairs = [pair.partition("=") for pair in query.split("&")]
        asked = {match[1]: name for name, _, value in pairs if (match := _TEMPLATE.fullmatch(value))}
        fixed = "&".join("".join(pair) for pair in pairs if not _TEMPLATE.fullmatch(pair[2]))
        if not _PLAIN.match(fixed):
            raise Broken("the path's query holds characters that a URL cannot hold")
        return path, fixed, asked

    def _output(self, method: str, node: dict[str, Any]) -> Schema | None:
        if method == "head":
            return response.NOTHING
        return response.output_schema(self._document, self.schemas, node.get("responses"))

    def _credential_fields(self, required: tuple[security.Requirement, ...] | None) -> set[tuple[str, str]]:
        """The parameters that a credential fills, so that nobody is asked for them."""
        used = [self.schemes[name] for names in required or () for name in names if name in self.schemes]
        return {(scheme["carrier"], scheme["field"].lower()) for scheme in used}

    def _body(self, node: Any, method: str) -> Content | None:
        """OpenAPI 3.0.3, Operation Object: where HTTP gives a body no meaning, requestBody is ignored; from 3.1 on it
        may be given."""
        if node is None or method == "trace" or (method in ("get", "head") and self._version.startswith("3.0")):
            return None
        return self._contents.read(node)


def _flat(content: Content | None, taken: set[str]) -> frozenset[str]:
    """The properties of a body that no other argument is named like."""
    return frozenset(content.properties - taken) if content is not None else frozenset()


def _input(given: list[Given], content: Content | None, choice: Choice | None) -> Schema:
    properties = {one.parameter.key: one.schema for one in given}
    required = [one.parameter.key for one in given if one.required]
    if content is not None:
        properties["body"] = content.schema
        if content.body.required:
            required.append("body")
        if content.body.key:
            names = [one.name for one in content.body.choices]
            properties[content.body.key] = {"enum": names, "description": "What the body is sent as."}
    if choice is not None:
        properties |= choice.arguments()
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | {"required": required} if required else schema


def _text(value: Any) -> str:
    return value[:4000] if isinstance(value, str) else ""
