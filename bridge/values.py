"""Values on their way back from a tool, mended where the wire has no exact form for what JSON allows."""

from __future__ import annotations

from typing import Any

from bridge.wire import codec
from bridge.wire.errors import Unserializable


def encoded(value: Any) -> bytes:
    """`value` as msgpack. Lone surrogates become U+FFFD, tuples lists, integers beyond 64 bits the nearest number.

    Raises Unserializable for what has no form at all.
    """
    try:
        return codec.encode(value, parsed=True)
    except Unserializable:
        return codec.encode(_mended(value))


def _mended(value: Any, depth: int = 0) -> Any:
    if depth > codec.MAX_DEPTH:
        return value
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and not codec.INT_MIN <= value <= codec.INT_MAX:
        try:
            return float(value)
        except OverflowError:
            return str(value) if value.bit_length() < 10_000 else value
    if isinstance(value, (list, tuple)):
        return [_mended(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {
            _mended(key, depth + 1) if isinstance(key, str) else key: _mended(item, depth + 1)
            for key, item in value.items()
        }
    return value
