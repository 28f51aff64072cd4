"""Values at the JSON doors: what crossed the bridge as msgpack, said in JSON, and back.

JSON has no bytes: they travel as `{"$bytes": "<base64>"}` in both directions. Everything else is itself.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final

from bridge.wire import codec
from bridge.wire.errors import FrameError, InvalidRequest, Unserializable

BYTES_KEY: Final = "$bytes"
MAX_NODES: Final = 1 << 20
"""Parts of the largest value that is decoded; the guest's own encoder has the same limit."""
TRUSTED_BYTES: Final = 1 << 20
"""Below this size a value is decoded without counting first: even one byte per node stays within `MAX_NODES`."""

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


class TooManyNodes(FrameError):
    """Raised when a value has more than `MAX_NODES` parts."""


def decode(data: bytes) -> Any:
    """The value of `data`, bounded in nodes before anything is allocated. Raises FrameError, TooManyNodes."""
    if len(data) > TRUSTED_BYTES:
        count_nodes(data, MAX_NODES)
    return codec.decode(data)


def vetted(data: bytes) -> Any:
    """The value of `data` when JSON can hold it.

    A guest never sends NaN or an infinity; a rogue one may. Raises Unserializable with the path, FrameError.
    """
    value = decode(data)
    if type(value) in (dict, list):
        try:
            json.dumps(value, allow_nan=False, default=_no_bytes, check_circular=False)
        except (ValueError, TypeError, RecursionError):
            codec.check(value, json=True)
            raise Unserializable("the value cannot be written as JSON") from None
    elif type(value) is float:
        codec.check(value, json=True)
    return value


def _no_bytes(part: Any) -> str:
    return ""


def said_in_json(part: Any) -> Any:
    """A part that JSON has no form for, as `json.dumps` asks for it. Raises Unserializable for any but bytes."""
    if type(part) is bytes:
        return {BYTES_KEY: base64.b64encode(part).decode("ascii")}
    raise Unserializable(f"a value of type {type(part).__name__}")


def to_json(value: Any) -> Any:
    """`value` with bytes as `{"$bytes": "<base64>"}`. Parts without bytes are shared with `value`, not copied."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        changed = {
            key: said
            for key, part in value.items()
            if type(part) not in _SCALARS and (said := to_json(part)) is not part
        }
        return {**value, **changed} if changed else value
    if kind is list or kind is tuple:
        moved = {
            at: said
            for at, part in enumerate(value)
            if type(part) not in _SCALARS and (said := to_json(part)) is not part
        }
        return [moved.get(at, part) for at, part in enumerate(value)] if moved else value
    if kind is bytes:
        return said_in_json(value)
    raise Unserializable(f"a value of type {kind.__name__}")


def from_json(value: Any) -> Any:
    """`value` with each `{"$bytes": "<base64>"}` as bytes.

    Raises InvalidRequest, naming the path, at one that is not base64 or at a value nested too deep to cross.
    """
    return _read(value, ())


def _read(value: Any, at: tuple[str, ...]) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if len(at) > codec.MAX_DEPTH:
        raise InvalidRequest(f"the value is nested deeper than {codec.MAX_DEPTH} levels")
    if kind is dict:
        if len(value) == 1 and type(value.get(BYTES_KEY)) is str:
            try:
                return base64.b64decode(value[BYTES_KEY], validate=True)
            except (binascii.Error, ValueError):
                raise InvalidRequest(f"{'.'.join(('$', *at, BYTES_KEY))} is not base64") from None
        changed = {
            key: read
            for key, part in value.items()
            if type(part) not in _SCALARS and (read := _read(part, (*at, key))) is not part
        }
        return {**value, **changed} if changed else value
    if kind is list:
        moved = {
            index: read
            for index, part in enumerate(value)
            if type(part) not in _SCALARS and (read := _read(part, (*at, str(index)))) is not part
        }
        return [moved.get(index, part) for index, part in enumerate(value)] if moved else value
    return value


def document(value: Any) -> bytes:
    """The JSON document of `value`, compact, UTF-8. Raises Unserializable for what JSON cannot hold."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=said_in_json)
        return text.encode()
    except (ValueError, RecursionError):
        codec.check(value, json=True)
        raise Unserializable("the value cannot be written as JSON") from None


def count_nodes(data: bytes, limit: int) -> int:
    """How many values `data` holds, containers and map keys included, found without building one.

    Raises TooManyNodes above `limit` and FrameError when a length points past the end. Sizes from the msgpack
    specification, "Formats".
    """
    at = 0
    nodes = 0
    due = 1
    size = len(data)
    while due:
        due -= 1
        nodes += 1
        if nodes + due > limit:
            raise TooManyNodes(f"a value of more than {limit} parts")
        if at >= size:
            raise FrameError("a value ends too early")
        tag = data[at]
        at += 1
        if tag < 0x80 or tag >= 0xE0 or 0xC0 <= tag <= 0xC3:
            continue
        if tag >= 0xA0 and tag < 0xC0:
            at += tag & 0x1F
        elif tag < 0x90:
            due += 2 * (tag & 0x0F)
        elif tag < 0xA0:
            due += tag & 0x0F
        elif tag in _FIXED:
            at += _FIXED[tag]
        elif tag in _SIZED:
            width, kind = _SIZED[tag]
            length = int.from_bytes(data[at : at + width], "big")
            at += width
            if kind == 0:
                at += length
            else:
                due += length * kind
        else:
            raise FrameError("ext types do not cross the bridge")
    if at > size:
        raise FrameError("a value ends too early")
    return nodes


_FIXED: Final[dict[int, int]] = {
    0xCA: 4,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
}
"""Bytes after the tag of each number."""
_SIZED: Final[dict[int, tuple[int, int]]] = {
    0xC4: (1, 0),
    0xC5: (2, 0),
    0xC6: (4, 0),
    0xD9: (1, 0),
    0xDA: (2, 0),
    0xDB: (4, 0),
    0xDC: (2, 1),
    0xDD: (4, 1),
    0xDE: (2, 2),
    0xDF: (4, 2),
}
"""Width of the length, and how many values each counted element is (0: raw bytes)."""
