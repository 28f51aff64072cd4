"""Request bodies: JSON, forms, text and bytes, by the media type that the operation declares."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import quote

from catalog.kinds.openapi import styles

Encoding = Literal["json", "form", "multipart", "text", "bytes"]

_TOKEN: Final = re.compile(r"\A[\w!#$&^.+-]+/[\w!#$&^.+-]+\Z")


@dataclass(frozen=True, slots=True)
class Body:
    """`media` is the Content-Type as declared. `parts`: for forms, per property `{style?, explode?, content_type?}`."""

    media: str
    encoding: Encoding
    required: bool
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {"media": self.media, "encoding": self.encoding, "required": self.required, "parts": dict(self.parts)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Body:
        return cls(data["media"], data["encoding"], data["required"], data["parts"])

    def encode(self, value: Any) -> tuple[str, bytes]:
        """The Content-Type and the bytes of `value`. Raises Unwritable."""
        if self.encoding == "json":
            return self.media, styles.compact(value).encode()
        if self.encoding == "bytes":
            return _as_bytes(value, self.media)
        if self.encoding == "text":
            return self.media, styles.primitive(value).encode()
        if not isinstance(value, dict):
            raise styles.Unwritable("a form is an object")
        return self._form(value) if self.encoding == "form" else self._multipart(value)

    def _form(self, value: dict[str, Any]) -> tuple[str, bytes]:
        pairs: list[str] = []
        for name, item in value.items():
            if item is None:
                continue
            part = self.parts.get(name, {})
            style, explode = part.get("style"), part.get("explode")
            if style is None and explode is None:
                pairs += _plain_pairs(name, item)
            else:
                style = style or "form"
                pairs += styles.in_query(name, item, style, style == "form" if explode is None else explode)
        return self.media, "&".join(pairs).encode()

    def _multipart(self, value: dict[str, Any]) -> tuple[str, bytes]:
        boundary = secrets.token_hex(24)
        out = bytearray()
        for name, item in value.items():
            for one in item if isinstance(item, list) and any(map(_is_file, item)) else [item]:
                if one is not None:
                    head, data = _part(name, one, self.parts.get(name, {}))
                    out += f"--{boundary}\r\n{head}\r\n\r\n".encode() + data + b"\r\n"
        out += f"--{boundary}--\r\n".encode()
        return f"{self.media.partition(';')[0]}; boundary={boundary}", bytes(out)


def _plain_pairs(name: str, item: Any) -> list[str]:
    """OpenAPI 3.1, 4.8.15: without an encoding, scalars as text, arrays repeated, objects as JSON."""
    if isinstance(item, list):
        return [f"{styles.encoded(name)}={styles.encoded(one)}" for one in item if one is not None]
    return [f"{styles.encoded(name)}={styles.encoded(item)}"]


def _is_file(value: Any) -> bool:
    return isinstance(value, bytes) or (
        isinstance(value, dict) and "content" in value and value.keys() <= {"content", "filename", "content_type"}
    )


def _as_bytes(value: Any, media: str) -> tuple[str, bytes]:
    if isinstance(value, dict) and _is_file(value):
        given = value.get("content_type")
        return given if isinstance(given, str) and _TOKEN.match(given) else media, _content(value["content"])
    return media, _content(value)


def _content(value: Any) -> bytes:
    return value if isinstance(value, bytes) else styles.primitive(value).encode()


def _part(name: str, value: Any, part: Mapping[str, Any]) -> tuple[str, bytes]:
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    declared = part.get("content_type")
    if _is_file(value):
        facts = value if isinstance(value, dict) else {"content": value}
        filename, media = facts.get("filename") or name, facts.get("content_type") or declared
        media = media if isinstance(media, str) and _TOKEN.match(media) else "application/octet-stream"
        head += f'; filename="{_quoted(str(filename))}"\r\nContent-Type: {media}'
        return head, _content(facts["content"])
    if isinstance(value, (dict, list)):
        return head + f"\r\nContent-Type: {declared or 'application/json'}", styles.compact(value).encode()
    if declared:
        head += f"\r\nContent-Type: {declared}"
        if "json" in declared:
            return head, styles.compact(value).encode()
    return head, styles.primitive(value).encode()


def _quoted(text: str) -> str:
    """HTML, multipart/form-data encoding: quotes and line breaks are percent-encoded, nothing else."""
    text = text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    return text.encode("utf-8", "replace").decode() if text.isprintable() else quote(text, safe=" %")
