"""Values on their way back from a tool, mended where the wire has no exact form for what JSON allows."""

from __future__ import annotations

import re
from typing import Any, Final

from bridge.wire import codec
from bridge.wire.errors import Unserializable

MAX_BITS: Final = 10_000
"""Of an integer whose digits are written out; Python itself refuses somewhat longer ones."""

_INFINITE: Final = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""How NaN and the infinities begin in msgpack. Other bytes may look the same."""


class TooDeep(Unserializable):
    """Raised when a value is nested deeper than a guest takes."""


class NotFinite(Unserializable):
    """Raised for NaN and the infinities, which JSON does not have."""


def encoded(value: Any) -> bytes:
    """`value` as msgpack. Lone surrogates become U+FFFD, tuples lists, integers beyond 64 bits their decimal digits.

    Raises Unserializable for what has no form at all, TooDeep for what is nested too deeply, NotFinite.
    """
    try:
        data = codec.encode(value, parsed=True)
    except Unserializable:
        if codec.too_deep(value):
            raise _too_deep() from None
        value = _mended(value)
        data = codec.encode(value)
    else:
        if codec.too_deep(value, data):
            raise _too_deep()
    if _INFINITE.search(data):
        _check_finite(value)
    return data


def _check_finite(value: Any) -> None:
    try:
        codec.check(value, json=True)
    except Unserializable as e:
        raise NotFinite(e.message, path=e.path) from None


def _too_deep() -> TooDeep:
    return TooDeep(f"nested deeper than {codec.VALUE_DEPTH} levels")


def _mended(value: Any, depth: int = 0) -> Any:
    if depth > codec.MAX_DEPTH:
        return value
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and not codec.INT_MIN <= value <= codec.INT_MAX:
        # A number would lose digits, and such integers are identifiers more often than amounts.
        return str(value) if value.bit_length() < MAX_BITS else value
    if isinstance(value, (list, tuple)):
        return [_mended(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {
            _mended(key, depth + 1) if isinstance(key, str) else key: _mended(item, depth + 1)
            for key, item in value.items()
        }
    return value
