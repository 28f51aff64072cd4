"""Swagger 2.0, operation by operation in the words of OpenAPI 3: what differs is rewritten, everything else stays where
it is, so that references and places still hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from catalog.kinds.openapi.reader import BadReference, Document

_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_NOT_SCHEMA: Final = frozenset(
    {"name", "in", "required", "description", "collectionFormat", "allowEmptyValue", "schema", "$ref"}
)
_STYLES: Final = {"ssv": "spaceDelimited", "tsv": "tabDelimited", "pipes": "pipeDelimited"}
"""Swagger 2.0, Parameter Object: `csv` is every place's own style, `multi` repeats the parameter."""
_SCHEMES: Final = ("https", "http")


def upgraded(root: dict[str, Any], document_url: str | None) -> dict[str, Any]:
    """The document with its servers and security schemes where OpenAPI 3 has them."""
    components = {"securitySchemes": root.get("securityDefinitions")}
    return root | {"servers": servers(root, root.get("schemes"), document_url), "components": components}


def servers(root: dict[str, Any], schemes: Any, document_url: str | None) -> list[dict[str, Any]]:
    """Swagger 2.0: what `host`, `basePath` and `schemes` leave out is where the document was found."""
    host, path = root.get("host"), root.get("basePath")
    path = path if isinstance(path, str) else "/"
    path = path if path.startswith("/") else "/" + path
    if not isinstance(host, str) or not host:
        return [{"url": path}] if document_url is not None else []
    offered = [str(one).lower() for one in schemes] if isinstance(schemes, list) else []
    usable = [scheme for scheme in _SCHEMES if scheme in offered]
    if not usable:
        usable = ["http" if document_url is not None and document_url.startswith("http:") else "https"]
    return [{"url": f"{usable[0]}://{host}{path}"}]


class Swagger:
    """Rewrites the operations of one document."""

    def __init__(self, document: Document, document_url: str | None) -> None:
        self._document = document
        self._url = document_url

    def operation(self, item: dict[str, Any], node: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The path item and the operation as OpenAPI 3 has them."""
        root = self._document.root
        body, form = None, {}
        kept: dict[tuple[Any, Any], Any] = {}
        for entry in self._parameters(item, node):
            place, name = (entry.get("in"), entry.get("name")) if isinstance(entry, dict) else (None, None)
            if place == "body":
                body = entry
            elif place == "formData" and isinstance(name, str):
                form[name] = entry
            else:
                kept[place, name if name is not None else id(entry)] = _parameter(entry)
        out = {key: value for key, value in node.items() if key != "requestBody"} | {"parameters": list(kept.values())}
        consumes = _media(node.get("consumes", root.get("consumes")))
        if form:
            out["requestBody"] = _form_body(form, consumes)
        elif body is not None:
            content = {media: {"schema": body.get("schema", {})} for media in consumes or ["application/json"]}
            out["requestBody"] = {
                "content": content,
                "required": body.get("required") is True,
                "x-name": body.get("name"),
                "description": body.get("description"),
            }
        produces = _media(node.get("produces", root.get("produces"))) or ["application/json"]
        responses = node.get("responses")
        if isinstance(responses, dict):
            out["responses"] = {key: self._response(one, produces) for key, one in responses.items()}
        if isinstance(node.get("schemes"), list):
            out["servers"] = servers(root, node["schemes"], self._url)
        return {key: value for key, value in item.items() if key not in ("parameters", "servers")}, out

    def _parameters(self, item: dict[str, Any], node: dict[str, Any]) -> Iterator[Any]:
        """Those of the path, then those of the operation, which replace them."""
        for source in (item.get("parameters"), node.get("parameters")):
            for entry in source if isinstance(source, list) else ():
                try:
                    yield self._document.follow(entry)
                except BadReference:
                    yield entry

    def _response(self, node: Any, produces: list[str]) -> Any:
        try:
            found = self._document.follow(node)
        except BadReference:
            return node
        if not isinstance(found, dict) or "schema" not in found:
            return found
        schema = found["schema"]
        if isinstance(schema, dict) and schema.get("type") == "file":
            produces = [media for media in produces if "json" not in media] or ["application/octet-stream"]
        return found | {"content": {media: {"schema": schema} for media in produces}}


def _media(declared: Any) -> list[str]:
    return [str(one) for one in declared if isinstance(one, str)] if isinstance(declared, list) else []


def _schema(entry: dict[str, Any]) -> dict[str, Any]:
    """The schema that stands among the fields of a parameter."""
    return {key: value for key, value in entry.items() if key not in _NOT_SCHEMA}


def _parameter(entry: Any) -> Any:
    if not isinstance(entry, dict) or "$ref" in entry:
        return entry
    kept = {key: entry[key] for key in ("name", "in", "required", "description") if key in entry}
    form = entry.get("collectionFormat")
    kept["schema"] = entry["schema"] if "schema" in entry and "type" not in entry else _schema(entry)
    kept["explode"] = form == "multi" and entry.get("in") == "query"
    if form in _STYLES:
        kept["style"] = _STYLES[form]
    return kept


def _form_body(form: dict[str, dict[str, Any]], consumes: list[str]) -> dict[str, Any]:
    properties, encoding, required = {}, {}, []
    for name, entry in form.items():
        schema = _schema(entry)
        if isinstance(entry.get("description"), str):
            schema["description"] = entry["description"]
        properties[name] = schema
        if entry.get("required") is True:
            required.append(name)
        if schema.get("type") == "array":
            how = entry.get("collectionFormat")
            encoding[name] = {"style": _STYLES.get(str(how), "form"), "explode": how == "multi"}
    schema = {"type": "object", "properties": properties, "required": required}
    files = any(entry.get("type") == "file" for entry in form.values())
    bare = [media.partition(";")[0].strip().lower() for media in consumes]
    offered = [media for media in (_FORM, _MULTIPART) if media in bare and not (files and media == _FORM)]
    chosen = offered or [_MULTIPART if files else _FORM]
    content = {media: {"schema": schema, "encoding": encoding} for media in chosen}
    return {"content": content, "required": bool(required)}
