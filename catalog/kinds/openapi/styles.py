"""How parameters are written: every style of OpenAPI 3.1 (4.8.12.3), percent-encoded as RFC 3986 and 6570 say."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote

RESERVED: Final = ":/?@!$'()*,;[]"
"""RFC 3986 reserved characters that may stand in a query value; `#`, `&`, `=` and `+` would change its structure."""

_DELIMITERS: Final = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
"""What stands between the items of a list, `,` where the style says nothing else."""


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
    """As ECMAScript writes numbers (Number::toString): 5 for 5.0, 1e+21, 1e-7."""
    if not math.isfinite(value):
        raise Unwritable(f"{value} is not a number that can be sent")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    exact = Decimal(repr(abs(value))).normalize().as_tuple()
    digits, point = "".join(map(str, exact.digits)), len(exact.digits) + int(exact.exponent)
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'-' if point < 1 else '+'}{abs(point - 1)}"


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
        text = _joined(value, "." if style == "label" and explode else quote(delimiter(style), safe=","))
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
    return [f"{key}={_joined(value, quote(delimiter(style), safe=','), safe)}"]


def delimiter(style: str) -> str:
    """What stands between the items of a list that is one value."""
    return _DELIMITERS.get(style, ",")


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
    between = delimiter(style)
    if isinstance(value, dict):
        return between.join(
            f"{key}={primitive(item)}" if explode else f"{key}{between}{primitive(item)}" for key, item in _pairs(value)
        )
    if isinstance(value, list):
        return between.join(primitive(item) for item in _items(value))
    return primitive(value)


def in_cookie(name: str, value: Any, explode: bool, raw: bool = False) -> list[str]:
    """The `name=value` pairs of one cookie parameter. `raw`: nothing is percent-encoded (OpenAPI 3.2, style cookie).

    Raises Unwritable for a raw value that would not be one cookie.
    """
    if raw:
        return [_raw_cookie(pair) for pair in _raw_pairs(name, value, explode)]
    key = encoded(name)
    if isinstance(value, dict) and explode:
        return [f"{encoded(inner)}={encoded(item)}" for inner, item in _pairs(value)]
    if isinstance(value, list) and explode:
        return [f"{key}={encoded(item)}" for item in _items(value)]
    if isinstance(value, (dict, list)):
        return [f"{key}={_joined(value, ',')}"] if value else []
    return [f"{key}={encoded(value)}"]


def _raw_pairs(name: str, value: Any, explode: bool) -> list[str]:
    if isinstance(value, dict) and explode:
        return [f"{inner}={primitive(item)}" for inner, item in _pairs(value)]
    if isinstance(value, list) and explode:
        return [f"{name}={primitive(item)}" for item in _items(value)]
    return [f"{name}={in_header(value, False)}"]


def _raw_cookie(pair: str) -> str:
    if not pair.isascii() or not pair.isprintable() or set(pair) & set(' ",;\\'):
        raise Unwritable("a cookie holds no spaces, quotes, commas, semicolons, backslashes or characters beyond ASCII")
    return pair
