"""Request bodies: the media types that an operation takes, and a value written as one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from catalog.kinds.decoding import is_json
from catalog.kinds.openapi import forms, styles

Encoding = Literal["json", "form", "multipart", "text", "bytes"]

ORDER: Final[tuple[Encoding, ...]] = ("json", "form", "multipart", "text", "bytes")
"""Which of several is preferred where the value does not tell."""
_LINES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-seq")


def encoding_of(media: str) -> Encoding:
    bare = media.partition(";")[0].strip().lower()
    if is_json(bare) or bare in ("*/*", "application/*"):
        return "json"
    if bare == "application/x-www-form-urlencoded":
        return "form"
    if bare.startswith("multipart/"):
        return "multipart"
    textual = bare.startswith("text/") or bare in _LINES or bare.endswith(("xml", "yaml", "graphql", "sql"))
    return "text" if textual else "bytes"


@dataclass(frozen=True, slots=True)
class Media:
    """One media type of a body. `name` is what the Content-Type says; `kinds` the JSON types that its schema admits,
    None where it does not say."""

    name: str
    encoding: Encoding
    kinds: tuple[str, ...] | None = None
    parts: forms.Parts = field(default_factory=dict)

    @property
    def bare(self) -> str:
        return self.name.partition(";")[0].strip().lower()

    def suits(self, value: Any) -> bool:
        """Whether `value` is of a shape that this media type is made for."""
        if forms.is_file(value):
            return self.encoding == "bytes" or "*" in self.name
        if forms.holds_file(value, self.parts) and self.encoding != "multipart":
            return False
        if self.encoding in ("form", "multipart"):
            return isinstance(value, dict)
        if self.encoding == "bytes":
            return isinstance(value, str)
        if self.encoding == "text":
            return not isinstance(value, (dict, list)) or (isinstance(value, list) and self.bare in _LINES)
        # RFC 6902: a JSON Patch is an array of operations.
        return self._admits(value) and (not self.bare.endswith("json-patch+json") or isinstance(value, list))

    def _admits(self, value: Any) -> bool:
        if self.kinds is None:
            return True
        kind = _kind(value)
        return kind in self.kinds or (kind == "integer" and "number" in self.kinds)

    def write(self, value: Any) -> tuple[str, bytes]:
        """The Content-Type and the bytes of `value`. Raises Unwritable."""
        if self.encoding == "bytes" or ("*" in self.name and forms.is_file(value)):
            return self._raw(value)
        if self.encoding == "json":
            return "application/json" if "*" in self.name else self.name, styles.compact(value).encode()
        if self.encoding == "text":
            return self.name, self._text(value)
        if not isinstance(value, dict):
            raise styles.Unwritable("a form is an object")
        if self.encoding == "form":
            return self.name, forms.urlencoded(value, self.parts)
        return forms.multipart(value, self.name, self.parts)

    def _raw(self, value: Any) -> tuple[str, bytes]:
        media = "application/octet-stream" if "*" in self.name else self.name
        if isinstance(value, dict) and forms.is_file(value, "file"):
            given = value.get("content_type")
            media = given if isinstance(given, str) and forms.TOKEN.match(given) else media
            return media, forms.content(value["content"])
        return media, _encoded(value) if isinstance(value, str) else forms.content(value)

    def _text(self, value: Any) -> bytes:
        if isinstance(value, bytes):
            return value
        if isinstance(value, dict) and forms.is_file(value):
            return forms.content(value["content"])
        if isinstance(value, list) and self.bare in _LINES:
            return _encoded("".join(styles.compact(one) + "\n" for one in value))
        if isinstance(value, (dict, list)) and self.bare != "text/plain":
            raise styles.Unwritable(f"a body of type {self.bare} is given as text")
        return _encoded(styles.primitive(value))


@dataclass(frozen=True, slots=True)
class Body:
    """`choices` are in order of preference; `key` is the argument that names one, empty where there is one only.

    `alias` is what a Swagger 2.0 document calls the body.
    """

    choices: tuple[Media, ...]
    required: bool
    key: str = ""
    alias: str = ""

    def as_dict(self) -> dict[str, Any]:
        rows = [[one.name, one.encoding, one.kinds and list(one.kinds), dict(one.parts)] for one in self.choices]
        return {"choices": rows, "required": self.required, "key": self.key, "alias": self.alias}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Body:
        choices = tuple(
            Media(name, encoding, tuple(kinds) if kinds is not None else None, parts)
            for name, encoding, kinds, parts in data["choices"]
        )
        return cls(choices, data["required"], data["key"], data["alias"])

    @property
    def encoding(self) -> Encoding:
        return self.choices[0].encoding

    def sends(self, args: Mapping[str, Any]) -> bool:
        """Whether the arguments have a body. A null is one where the schema asks for it by name."""
        value = args.get("body")
        return value is not None or ("body" in args and any("null" in (one.kinds or ()) for one in self.choices))

    def encode(self, value: Any, asked: Any = None) -> tuple[str, bytes]:
        """The Content-Type and the bytes of `value`, as the media type `asked` for or as one that suits it.

        Raises Unwritable.
        """
        choice = next((one for one in self.choices if one.name == asked), None)
        choice = choice or next((one for one in self.choices if one.suits(value)), self.choices[0])
        return choice.write(value)


def _kind(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return "integer"
    kinds = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object", type(None): "null"}
    return kinds.get(type(value), "string")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise styles.Unwritable("the text holds a lone surrogate") from None
