"""What a server lists, as tools. One that cannot be used is left out and reported; it costs nobody else anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from catalog.kinds.mcp import names, texts
from catalog.kinds.openapi.reader import Document
from catalog.kinds.openapi.schemas import Schemas
from catalog.model import Diagnostic, Schema, SideEffect, ToolSpec

MAX_SCHEMA: Final = 256 * 1024
"""Characters of one schema as JSON."""
MAX_UPSTREAM_NAME: Final = 1024
MAX_DIAGNOSTICS: Final = 200
WRAPPED: Final = "x-fastmcp-wrap-result"


class Tools:
    """The tools of one listing, in its order. `at` is where the server is, as a URL."""

    def __init__(self, listed: Sequence[Mapping[str, Any]], at: str) -> None:
        self.definitions: dict[str, Schema] = {}
        self.diagnostics: list[Diagnostic] = []
        self._at = at
        usable = self._usable(listed)
        spelled = names.assigned(list(usable))
        self.specs = tuple(
            spec for name, tool in usable.items() if (spec := self._spec(spelled[name], name, tool)) is not None
        )

    def report(self, where: str, message: str) -> None:
        if len(self.diagnostics) < MAX_DIAGNOSTICS:
            self.diagnostics.append(Diagnostic(where, message))

    def _usable(self, listed: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """The tools by the server's own names; of two that share one the first."""
        found: dict[str, Mapping[str, Any]] = {}
        for index, tool in enumerate(listed):
            name = tool.get("name")
            where = f"#/tools/{index}"
            if not isinstance(name, str) or not name:
                self.report(where, "it has no name")
            elif len(name) > MAX_UPSTREAM_NAME:
                self.report(where, f"its name is longer than {MAX_UPSTREAM_NAME} characters")
            elif name in found:
                self.report(where, f"there is a tool of that name already: {texts.cleaned(name, 80)}")
            else:
                found[name] = tool
        return found

    def _spec(self, spelled: str, name: str, tool: Mapping[str, Any]) -> ToolSpec | None:
        annotations = tool.get("annotations")
        annotations = annotations if isinstance(annotations, Mapping) else {}
        raw = {key: tool.get(key) for key in ("title", "description", "inputSchema", "outputSchema")}
        told = json.dumps(raw | {"annotations": annotations}, sort_keys=True, default=repr)
        for key in ("inputSchema", "outputSchema"):
            if len(json.dumps(raw[key], default=repr)) > MAX_SCHEMA:
                self.report(f"#/tools/{spelled}", f"its {key} is larger than {MAX_SCHEMA // 1024} KiB")
                return None
        for key in ("title", "description"):
            text = raw[key]
            if isinstance(text, str) and texts.hides(text[:MAX_SCHEMA]):
                self.report(f"#/tools/{spelled}/{key}", "characters that cannot be seen are left out of it")
        title = texts.cleaned(tool.get("title") or annotations.get("title"), texts.MAX_TITLE)
        return ToolSpec(
            name=spelled,
            title=title,
            description=texts.cleaned(raw["description"], texts.MAX_DESCRIPTION),
            input_schema=self._schema(spelled, "inputSchema", raw["inputSchema"]),
            output_schema=self._schema(spelled, "outputSchema", unwrapped(raw["outputSchema"])),
            side_effect=side_effect(annotations),
            words=texts.cleaned(name, names.MAX_NAME) if name != spelled else "",
            binding={
                "name": name,
                "at": self._at,
                "told": hashlib.sha256(told.encode()).hexdigest()[:32],
                "wraps": wraps(raw["outputSchema"]),
            },
            source=f"tools/call {texts.cleaned(name, names.MAX_NAME)}",
            idempotent=annotations.get("idempotentHint") is True,
        )

    def _schema(self, spelled: str, key: str, raw: Any) -> Schema | None:
        """The schema on the catalog's own definitions; None where there is none."""
        if not isinstance(raw, Mapping):
            return None
        root = texts.noted(dict(raw))
        reader = Schemas(Document(root), lambda at, message: self.report(f"#/tools/{spelled}/{key} {at}", message))
        schema = reader.convert(root)
        reader.finish()
        own = {name: f"{spelled}.{name}" for name in reader.definitions}
        if key == "outputSchema":
            own = {name: f"{text}.out" if text in self.definitions else text for name, text in own.items()}
        for name, definition in reader.definitions.items():
            renamed = _renamed(definition, own)
            # One that is nothing but itself says nothing.
            self.definitions[own[name]] = {} if renamed.get("$ref") == f"#/$defs/{own[name]}" else renamed
        return _as_object(_renamed(schema, own)) if key == "inputSchema" else _renamed(schema, own)


def _as_object(schema: Schema) -> Schema:
    """Arguments are an object even where a server does not say so."""
    return schema if schema.get("type") == "object" else schema | {"type": "object"}


def _renamed(schema: Any, own: Mapping[str, str]) -> Any:
    if isinstance(schema, list):
        return [_renamed(part, own) for part in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: _renamed(value, own) for key, value in schema.items()}
    if isinstance(ref := schema.get("$ref"), str):
        out["$ref"] = "#/$defs/" + own.get(ref.removeprefix("#/$defs/"), ref.removeprefix("#/$defs/"))
    return out


def wraps(schema: Any) -> bool:
    """Whether a server says that it puts a value that is no object into one, as its `result`."""
    return isinstance(schema, Mapping) and schema.get(WRAPPED) is True and "result" in (schema.get("properties") or {})


def unwrapped(schema: Any) -> Any:
    if not wraps(schema):
        return schema
    return {key: schema[key] for key in ("$defs", "definitions") if key in schema} | schema["properties"]["result"]


def side_effect(annotations: Mapping[str, Any]) -> SideEffect:
    """What the server's own word makes of a tool. Without one it is unknown, and a call needs approval."""
    if annotations.get("readOnlyHint") is True:
        # One that says both contradicts itself, so the worse of the two is taken.
        return "read" if annotations.get("destructiveHint") is not True else "delete"
    if annotations.get("destructiveHint") is True:
        return "delete"
    if annotations.get("destructiveHint") is False or annotations.get("readOnlyHint") is False:
        return "write"
    return "unknown"


def destination(spec: ToolSpec) -> str:
    """The server's own name of the tool and where the server is."""
    return f"{quote(spec.binding['name'], safe='/:')} {spec.binding['at']}"
