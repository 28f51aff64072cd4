"""Bodies made of named parts: urlencoded forms and multipart, by the Encoding Objects of the operation."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from catalog.kinds.openapi import styles

Parts = Mapping[str, Mapping[str, Any]]
"""Per property: `{style?, explode?, reserved?, content_type?, headers?, kind?}`. `kind` is `file` or `object` where the
schema says that it is one; `headers` maps the names of a part's headers to their fixed values, or None."""

TOKEN: Final = re.compile(r"\A[\w!#$&^.+-]+/[\w!#$&^.+-]+(?:;[ \t]*[\x20-\x7e]+)?\Z", re.ASCII)
_FIELD: Final = re.compile(r"\A[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}\Z")
_FACTS: Final = frozenset({"content", "filename", "content_type", "headers"})


def is_file(value: Any, kind: str = "") -> bool:
    """Whether `value` is given as a file: bytes, or `{content, filename?, content_type?, headers?}`.

    An object that the schema describes is taken for a file only when its content is bytes.
    """
    if isinstance(value, bytes):
        return True
    if not isinstance(value, dict) or "content" not in value or not value.keys() <= _FACTS:
        return False
    if isinstance(value["content"], bytes):
        return True
    return kind == "file" or (kind != "object" and not value.keys().isdisjoint({"filename", "content_type"}))


def holds_file(value: Any, parts: Parts) -> bool:
    """Whether one of the properties of `value` is a file, or a list with one."""
    if not isinstance(value, dict):
        return False
    for name, item in value.items():
        kind = str(parts.get(name, {}).get("kind", ""))
        if any(is_file(one, kind) for one in (item if isinstance(item, list) else [item])):
            return True
    return False


def content(value: Any) -> bytes:
    return value if isinstance(value, bytes) else styles.primitive(value).encode()


def urlencoded(value: dict[str, Any], parts: Parts) -> bytes:
    pairs: list[str] = []
    for name, item in value.items():
        if item is None:
            continue
        part = parts.get(name, {})
        style, explode = part.get("style"), part.get("explode")
        if style is None and explode is None and "reserved" not in part:
            pairs += _plain(name, item, "json" in part.get("content_type", ""))
        else:
            style = style or "form"
            explode = style == "form" if explode is None else explode
            pairs += styles.in_query(name, item, style, explode, bool(part.get("reserved")))
    return "&".join(pairs).encode()


def _plain(name: str, item: Any, as_json: bool) -> list[str]:
    """OpenAPI 3.1, 4.8.15: without an encoding, scalars as text, arrays repeated, objects as JSON."""
    items = [one for one in item if one is not None] if isinstance(item, list) else [item]
    return [f"{styles.encoded(name)}={styles.encoded(styles.compact(one) if as_json else one)}" for one in items]


def multipart(value: dict[str, Any], media: str, parts: Parts) -> tuple[str, bytes]:
    """The Content-Type with its boundary, and the body. Each item of a list is a part of its own (OpenAPI 3.1.1,
    4.8.15.1.1), unless its style joins them."""
    boundary = secrets.token_hex(24)
    out = bytearray()
    for name, item in value.items():
        part = parts.get(name, {})
        for one in _items(item, part):
            head, data = _part(name, one, part)
            out += f"--{boundary}\r\n{head}\r\n\r\n".encode() + data + b"\r\n"
    out += f"--{boundary}--\r\n".encode()
    return f"{media.partition(';')[0].strip()}; boundary={boundary}", bytes(out)


def _items(item: Any, part: Mapping[str, Any]) -> list[Any]:
    if not isinstance(item, list):
        return [] if item is None else [item]
    items = [one for one in item if one is not None]
    style = part.get("style")
    joined = part.get("explode") is False or (style not in (None, "form", "deepObject") and not part.get("explode"))
    if joined and items and not any(is_file(one) for one in items):
        return [styles.in_header(items, False, style or "form")]
    return items


def _part(name: str, value: Any, part: Mapping[str, Any]) -> tuple[str, bytes]:
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    declared = part.get("content_type")
    declared = declared if isinstance(declared, str) and TOKEN.match(declared) and "*" not in declared else None
    if is_file(value, str(part.get("kind", ""))):
        facts = value if isinstance(value, dict) else {"content": value}
        filename, media = facts.get("filename") or name, facts.get("content_type") or declared
        media = media if isinstance(media, str) and TOKEN.match(media) else "application/octet-stream"
        head += f'; filename="{_quoted(str(filename))}"\r\nContent-Type: {media}'
        return head + _headers(part, facts.get("headers")), content(facts["content"])
    if isinstance(value, (dict, list)):
        declared = declared or "application/json"
        data = styles.compact(value)
    else:
        data = styles.compact(value) if declared is not None and "json" in declared else styles.primitive(value)
    if declared is not None:
        head += f"\r\nContent-Type: {declared}"
    try:
        return head + _headers(part, None), data.encode()
    except UnicodeEncodeError:
        raise styles.Unwritable("the text holds a lone surrogate") from None


def _headers(part: Mapping[str, Any], given: Any) -> str:
    """The lines of a part's own headers: those that the document fixes, and those that a file was given with."""
    fixed = part.get("headers", {})
    wanted = {name: value for name, value in fixed.items() if value is not None}
    if isinstance(given, dict):
        known = {name.lower(): name for name in fixed}
        for name, value in given.items():
            if str(name).lower() not in known:
                raise styles.Unwritable(f"its part has no header {str(name)[:80]!r} of its own")
            wanted[known[str(name).lower()]] = value
    lines = ""
    for name, value in wanted.items():
        text = styles.in_header(value, False)
        if not _FIELD.match(name) or not text.isascii() or not text.isprintable():
            raise styles.Unwritable("a header of a part is printable ASCII without line breaks")
        lines += f"\r\n{name}: {text}"
    return lines


def _quoted(text: str) -> str:
    """HTML, multipart/form-data encoding: quotes and line breaks are percent-encoded, nothing else."""
    text = text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    return text.encode("utf-8", "replace").decode() if text.isprintable() else quote(text, safe=" %", errors="replace")
