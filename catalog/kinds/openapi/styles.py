"""How parameters are written: every style of OpenAPI 3.1 (4.8.12.3), percent-encoded as RFC 3986 and 6570 say."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

RESERVED: Final = ":/?@!$'()*,;[]"
"""RFC 3986 reserved characters that may stand in a query value; `#`, `&`, `=` and `+` would change its structure."""

_DELIMITERS: Final = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}


class Unwritable(ValueError):
    """Raised when a value has no form in the place where it should go; the message says why."""


def primitive(value: Any) -> str:
    """A scalar as text: `true`, `0`, `5` for 5.0; anything nested as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    return compact(value)


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise Unwritable(f"{value} is not a number that can be sent")
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return json.dumps(value)


def compact(value: Any) -> str:
    """JSON without spaces; bytes as base64. Raises Unwritable for what JSON cannot hold."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_bytes)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise Unwritable("the value cannot be written as JSON") from None
    return text


def _bytes(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    raise TypeError


def encoded(value: Any, safe: str = "") -> str:
    """A scalar, percent-encoded as one unit."""
    text = primitive(value)
    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError:
        raise Unwritable("the text holds a lone surrogate") from None


def _items(value: Any) -> list[Any]:
    return [item for item in value if item is not None]


def _pairs(value: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(str(key), item) for key, item in value.items() if item is not None]


def _joined(value: Any, between: str, safe: str = "") -> str:
    if isinstance(value, dict):
        return between.join(f"{encoded(key)}{between}{encoded(item, safe)}" for key, item in _pairs(value))
    return between.join(encoded(item, safe) for item in _items(value))


def in_path(name: str, value: Any, style: str, explode: bool) -> str:
    """The text that takes the place of `{name}` in a path template."""
    if style == "matrix":
        return _matrix(encoded(name), value, explode)
    if isinstance(value, dict) and explode:
        between = "." if style == "label" else ","
        text = between.join(f"{encoded(key)}={encoded(item)}" for key, item in _pairs(value))
    elif isinstance(value, (dict, list)):
        text = _joined(value, "." if style == "label" and explode else ",")
    else:
        text = encoded(value)
    return "." + text if style == "label" else text


def _matrix(name: str, value: Any, explode: bool) -> str:
    if isinstance(value, dict):
        if explode:
            return "".join(f";{encoded(key)}={encoded(item)}" for key, item in _pairs(value))
        return f";{name}={_joined(value, ',')}"
    if isinstance(value, list):
        if explode:
            return "".join(f";{name}={encoded(item)}" for item in _items(value))
        return f";{name}={_joined(value, ',')}"
    text = encoded(value)
    return f";{name}={text}" if text else f";{name}"


def in_query(name: str, value: Any, style: str, explode: bool, reserved: bool = False) -> list[str]:
    """The `name=value` pairs of one query parameter, encoded; none for an empty list or object."""
    safe = RESERVED if reserved else ""
    key = encoded(name)
    if not isinstance(value, (dict, list)):
        return [f"{key}={encoded(value, safe)}"]
    if style == "deepObject":
        return [f"{quote(path, safe='')}={encoded(item, safe)}" for path, item in deep(name, value)]
    if not (_pairs(value) if isinstance(value, dict) else _items(value)):
        return []
    if explode and isinstance(value, dict):
        return [pair for inner, item in _pairs(value) for pair in _exploded(inner, item, safe)]
    if explode:
        return [f"{key}={encoded(item, safe)}" for item in _items(value)]
    return [f"{key}={_joined(value, _DELIMITERS.get(style, ','), safe)}"]


def _exploded(name: str, value: Any, safe: str) -> list[str]:
    values = _items(value) if isinstance(value, list) else [value]
    return [f"{encoded(name)}={encoded(item, safe)}" for item in values]


def deep(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """`(name[a][0][b], scalar)` for each leaf: bracket nesting, as most servers read deepObject."""
    if isinstance(value, dict):
        for key, item in _pairs(value):
            yield from deep(f"{name}[{key}]", item)
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for index, item in enumerate(value):
            yield from deep(f"{name}[{index}]", item)
    elif isinstance(value, list):
        for item in _items(value):
            yield f"{name}[]", item
    else:
        yield name, value


def in_header(value: Any, explode: bool, style: str = "simple") -> str:
    """A header's value, as it is: the caller of this checks that it is fit for a header."""
    between = {"pipeDelimited": "|", "spaceDelimited": " ", "tabDelimited": "\t"}.get(style, ",")
    if isinstance(value, dict):
        return between.join(
            f"{key}={primitive(item)}" if explode else f"{key}{between}{primitive(item)}" for key, item in _pairs(value)
        )
    if isinstance(value, list):
        return between.join(primitive(item) for item in _items(value))
    return primitive(value)


def in_cookie(name: str, value: Any, explode: bool) -> list[str]:
    """The `name=value` pairs of one cookie parameter."""
    key = encoded(name)
    if isinstance(value, dict) and explode:
        return [f"{encoded(inner)}={encoded(item)}" for inner, item in _pairs(value)]
    if isinstance(value, list) and explode:
        return [f"{key}={encoded(item)}" for item in _items(value)]
    if isinstance(value, (dict, list)):
        return [f"{key}={_joined(value, ',')}"]
    return [f"{key}={encoded(value)}"]
