"""A server that knows one operation of a document: it takes a request apart by the styles of its parameters, validates
what it finds, and answers the values that it read, or 422 and why it could not.

It reads by the table of OpenAPI 3.1.1, 4.12.9, backwards, and shares nothing with what writes requests.
"""

from __future__ import annotations

import asyncio
import email.parser
import email.policy
import json
from typing import Any
from urllib.parse import unquote, unquote_plus

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry

from tests.unit.upstream import Seen, response

_SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|"}


class Unreadable(Exception):
    """Raised when a request is not one that the document describes."""


class Validating:
    """`template` is the path of the operation, `node` the operation as the document has it."""

    def __init__(self, template: str, node: dict[str, Any]) -> None:
        self._template = template
        self._node = node

    async def __call__(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(response(self.read(seen)))
        except (Unreadable, ValidationError, ValueError, KeyError, IndexError) as e:
            writer.write(response({"error": f"{type(e).__name__}: {e}"[:500]}, status=422))

    def read(self, seen: Seen) -> dict[str, Any]:
        found = {one["name"]: self._parameter(one, seen) for one in self._node.get("parameters", ())}
        for one in self._node.get("parameters", ()):
            _validate(found[one["name"]], one["schema"])
        if "requestBody" in self._node:
            media = (seen.header("content-type") or "").partition(";")[0]
            content = self._node["requestBody"]["content"][media]
            found["body"] = _body(media, seen, content)
            _validate(found["body"], content["schema"])
        return found

    def _parameter(self, one: dict[str, Any], seen: Seen) -> Any:
        name, schema, place = one["name"], one["schema"], one["in"]
        path, _, query = seen.target.partition("?")
        style, explode = one["style"], one["explode"]
        if place == "path":
            before, after = self._template.split(f"{{{name}}}")
            if not path.startswith(before) or not path.endswith(after):
                raise Unreadable(f"{path} is not {self._template}")
            return _in_path(path[len(before) : len(path) - len(after)], name, style, explode, schema)
        if place == "header":
            return _listed(seen.header(name.lower()) or "", ",", explode, schema)
        pairs = [pair.partition("=")[::2] for pair in query.split("&") if pair]
        if place == "cookie":
            pairs = [pair.partition("=")[::2] for pair in (seen.header("cookie") or "").split("; ")]
        return _from_pairs(pairs, name, style, explode, schema)


def _in_path(text: str, name: str, style: str, explode: bool, schema: dict[str, Any]) -> Any:
    if style == "label":
        if not text.startswith("."):
            raise Unreadable(f"no label in {text}")
        return _listed(text[1:], "." if explode else ",", explode, schema)
    if style == "matrix":
        if not text.startswith(";"):
            raise Unreadable(f"no matrix in {text}")
        return _from_pairs([one.partition("=")[::2] for one in text[1:].split(";")], name, "form", explode, schema)
    return _listed(text, ",", explode, schema)


def _from_pairs(pairs: list[Any], name: str, style: str, explode: bool, schema: dict[str, Any]) -> Any:
    kind = schema["type"]
    decoded = [(unquote(key), value) for key, value in pairs]
    if style == "deepObject":
        inner = {key[len(name) + 1 : -1]: value for key, value in decoded if key.startswith(name + "[")}
        return {key: _scalar(value, schema["properties"].get(key, {})) for key, value in inner.items()}
    if kind == "object" and explode:
        return {key: _scalar(value, schema["properties"].get(key, {})) for key, value in decoded}
    own = [value for key, value in decoded if key == name]
    if kind == "array" and explode:
        return [_scalar(value, schema["items"]) for value in own]
    if len(own) != 1:
        raise Unreadable(f"{name} is there {len(own)} times")
    separator = _SEPARATORS.get(style)
    if separator is None:
        return _listed(own[0], ",", False, schema)
    # These two delimiters are percent-encoded, so that a server decodes before it splits.
    return _listed(unquote(own[0]), separator, False, schema)


def _listed(text: str, separator: str, explode: bool, schema: dict[str, Any]) -> Any:
    if schema["type"] == "array":
        return [_scalar(one, schema["items"]) for one in text.split(separator)]
    if schema["type"] != "object":
        return _scalar(text, schema)
    parts = text.split(separator)
    pairs = [one.split("=") for one in parts] if explode else zip(parts[::2], parts[1::2], strict=True)
    return {unquote(key): _scalar(value, schema["properties"].get(unquote(key), {})) for key, value in pairs}


def _scalar(text: str, schema: dict[str, Any]) -> Any:
    text = unquote(text)
    return text if schema.get("type", "string") == "string" else json.loads(text)


def _body(media: str, seen: Seen, content: dict[str, Any]) -> Any:
    schema = content["schema"]
    if media == "application/json":
        return json.loads(seen.body)
    if media == "application/x-www-form-urlencoded":
        pairs = [pair.partition("=")[::2] for pair in seen.body.decode("ascii").split("&")]
        return _form([(unquote_plus(key), unquote_plus(value)) for key, value in pairs], schema, content)
    if media == "multipart/form-data":
        head = b"content-type: " + (seen.header("content-type") or "").encode() + b"\r\n\r\n"
        message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + seen.body)
        parts = [
            (str(part.get_param("name", header="content-disposition")), part.get_payload(decode=True).decode())
            for part in message.iter_parts()  # type: ignore[attr-defined]
        ]
        return _form(parts, schema, {})
    return _scalar(seen.body.decode(), schema) if media.startswith("text/") else seen.body.decode("latin-1")


def _form(pairs: list[tuple[str, str]], schema: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, one in schema["properties"].items():
        how = content.get("encoding", {}).get(name, {})
        own = [value for key, value in pairs if key == name]
        if how.get("style") == "deepObject":
            inner = {key[len(name) + 1 : -1]: value for key, value in pairs if key.startswith(name + "[")}
            found[name] = {key: _typed(value, one["properties"][key]) for key, value in inner.items()}
        elif one["type"] == "array":
            own = own[0].split(",") if how.get("explode") is False else own
            found[name] = [_typed(value, one["items"]) for value in own]
        elif own:
            found[name] = _typed(own[0], one)
    return found


def _typed(text: str, schema: dict[str, Any]) -> Any:
    return text if schema["type"] == "string" else json.loads(text)


def _validate(value: Any, schema: dict[str, Any]) -> None:
    Draft202012Validator(schema, registry=Registry()).validate(value)
