"""JSON from a stranger: exactly one RFC 8259 value, with nothing that a second parser could read differently.

The standard library accepts NaN, turns 1e999 into infinity, keeps the last of two equal keys, lets lone surrogates
through and overflows the stack on depth; each of these is refused here, by name.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from itertools import accumulate
from typing import Any, Final

from bridge.wire.errors import InvalidRequest, PayloadTooLarge

MAX_DEPTH: Final = 100
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1

_UNUSUAL_NUMBER: Final = re.compile(rb"[0-9]{19}|[eE]\+?[0-9]{2}")
"""Only a body with such digits can hold a number that is out of range; the others take the faster road."""
_PIECE: Final = 64 * 1024
_OVER: Final = 18
"""Bytes of such digits that may lie behind the piece in which they begin."""
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STEPS: Final = bytes.maketrans(b"[{]}", bytes([1, 1, 255, 255]))
"""As signed bytes: one deeper, one less deep."""
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


MAX_NODES: Final = 1 << 20
"""Values in one body. A guest's own values have the same limit."""


class NotJson(InvalidRequest):
    """Raised when bytes are not one strict JSON value."""

    code = "invalid_json"


def loads(data: bytes | bytearray, *, max_nodes: int = MAX_NODES) -> Any:
    """The value of `data` (UTF-8). Raises NotJson, saying what is wrong and where, and PayloadTooLarge."""
    brackets = _check_size(data, max_nodes)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise NotJson(f"the body is not UTF-8: byte {e.start} is out of place") from None
    if not text.strip(" \t\r\n"):
        raise NotJson("the body is empty", hint="send a JSON object")
    decoder = _CAREFUL if _has_unusual_number(data) else _PLAIN
    try:
        value = decoder.decode(text)
    except NotJson:
        raise
    except json.JSONDecodeError as e:
        raise NotJson(f"the body is not JSON: {e.msg} at line {e.lineno} column {e.colno}") from None
    except RecursionError:
        raise NotJson(f"the body is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError:
        raise NotJson("the body holds a number that is out of range") from None
    if _depth(brackets) > MAX_DEPTH:
        raise NotJson(f"the body is nested deeper than {MAX_DEPTH} levels")
    if _SURROGATE.search(data):
        _check_surrogates(value)
    return value


def _has_unusual_number(data: bytes | bytearray) -> bool:
    """Looked for piece by piece, since other threads get no turn in the middle of a search."""
    return any(_UNUSUAL_NUMBER.search(data, at, at + _PIECE + _OVER) for at in range(0, len(data), _PIECE))


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise NotJson(f"the key {key[:100]!r} appears twice in one object")
            seen.add(key)
    return out


def _constant(name: str) -> Any:
    raise NotJson(f"{name} is not JSON")


def _integer(digits: str) -> int:
    if len(digits) > 20 or not INT_MIN <= (value := int(digits)) <= INT_MAX:
        raise NotJson("the body holds an integer of more than 64 bits", hint="send it as a string")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotJson(f"the number {digits[:30]} is out of range")
    return value


_PLAIN: Final = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_constant)
_CAREFUL: Final = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_constant=_constant, parse_int=_integer, parse_float=_float
)


def _check_size(data: bytes | bytearray, max_nodes: int) -> bytes | bytearray:
    """Refuse a body of too many values before any is made: parsing millions would hold up everybody else.

    Returns the brackets of `data` that stand outside of strings, or nothing when there are too few to be deep.
    """
    opening = data.count(b"[") + data.count(b"{")
    crowded = opening + data.count(b",") > max_nodes
    if not crowded and opening <= MAX_DEPTH:
        return b""
    # A function is asked for each string, which gives other threads their turn.
    outside = _STRING.sub(_nothing, data)
    if crowded and outside.count(b",") + outside.count(b"[") + outside.count(b"{") > max_nodes:
        raise PayloadTooLarge(f"the body holds more than {max_nodes} values", details={"limit": max_nodes})
    return outside.translate(None, _NO_BRACKETS)


def _nothing(match: re.Match[bytes]) -> bytes:
    return b""


def _depth(brackets: bytes | bytearray) -> int:
    """The deepest nesting of balanced brackets."""
    return max(accumulate(array("b", brackets.translate(_STEPS))), default=0)


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotJson("the body holds a lone surrogate", hint="escape characters above U+FFFF as a pair") from None
