"""msgpack with every limit set: the only place where bytes of a guest or a worker become objects.

No ext hook, so an ext type is refused; map keys must be distinct UTF-8 strings; lengths are checked against the
bytes that are there before anything is allocated; numbers are kept exact.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgpack

from bridge.wire.errors import FrameError, Unserializable

MAX_DEPTH: Final = 128
"""Deepest nesting of a value. The guest's encoder stops at 100; msgpack itself stops at 512."""

VALUE_DEPTH: Final = 100
"""Deepest nesting of a tool's answer: what comes in can also go out again."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1


def _distinct(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    """A map of distinct string keys. Source of the rule: catalogue MSG-11, MSG-12."""
    out = dict(pairs)
    if len(out) != len(pairs):
        raise FrameError("a map repeats a key")
    for key in out:
        if type(key) is not str:
            raise FrameError("a map key is not a string")
    return out


def decode(data: bytes, *, use_list: bool = True) -> Any:
    """The one value that `data` holds.

    Raises FrameError for anything that is not exactly one well-formed value within the limits.
    """
    size = len(data)
    try:
        return msgpack.unpackb(
            data,
            raw=False,
            use_list=use_list,
            strict_map_key=True,
            object_pairs_hook=_distinct,
            ext_hook=_refuse_ext,
            timestamp=0,
            max_str_len=size,
            max_bin_len=size,
            max_array_len=size,
            max_map_len=size // 2 + 1,
            max_ext_len=0,
        )
    except FrameError:
        raise
    except (ValueError, RecursionError, TypeError, OverflowError, MemoryError, msgpack.exceptions.UnpackException) as e:
        raise FrameError("the bytes are not one well-formed msgpack value") from e


def _refuse_ext(code: int, data: bytes) -> Any:
    raise FrameError("ext types do not cross the bridge")


def encode(value: Any, *, parsed: bool = False) -> bytes:
    """`value` (JSON types, bytes, and ints of up to 64 bits) as msgpack.

    `parsed` says that the value came out of a JSON or msgpack parser, so that its keys are known to be strings and the
    walk over it can be saved. Raises Unserializable with the path of the first part that cannot cross.
    """
    if not parsed and type(value) in (dict, list, tuple):
        check(value)
    try:
        data = msgpack.packb(value, use_bin_type=True, strict_types=True)
    except (TypeError, ValueError, OverflowError, RecursionError, UnicodeEncodeError):
        check(value)
        raise Unserializable("the value cannot cross the bridge") from None
    assert isinstance(data, bytes)
    return data


_SHALLOW: Final = bytes(one for one in range(256) if not (0x80 <= one < 0xA0 or 0xDC <= one < 0xE0))


def too_deep(value: Any, data: bytes | None = None, *, parsed: bool = False) -> bool:
    """Whether `value` is nested deeper than VALUE_DEPTH. `data`, its msgpack, answers for most values at once: it holds
    fewer bytes that can begin an array or a map. `parsed` as in `encode`."""
    if data is not None and len(data.translate(None, _SHALLOW)) <= VALUE_DEPTH:
        return False
    if parsed or data is not None:
        return _tree_too_deep(value)
    level: list[Any] = [value]
    for _ in range(VALUE_DEPTH):
        # A part that stands in many places is looked at once: what it unfolds to has no bound.
        within: dict[int, Any] = {}
        for part in level:
            kind = type(part)
            if kind is dict:
                within |= {id(item): item for item in part.values() if type(item) in _CONTAINERS}
            elif kind is list or kind is tuple:
                within |= {id(item): item for item in part if type(item) in _CONTAINERS}
        if not within:
            return False
        level = list(within.values())
    return True


_CONTAINERS: Final = frozenset({dict, list, tuple})


def _tree_too_deep(value: Any) -> bool:
    """The same, for a value that has no more parts than are worth going through."""
    level: list[Any] = [value] if type(value) in _CONTAINERS else []
    for _ in range(VALUE_DEPTH):
        if not level:
            return False
        level = [
            item
            for part in level
            for item in (part.values() if type(part) is dict else part)
            if type(item) in _CONTAINERS
        ]
    return bool(level)


def check(value: Any, *, json: bool = False) -> None:
    """Walk `value` and raise Unserializable at the first part that cannot cross; with `json`, that JSON cannot hold."""
    stack: list[tuple[Any, str, int]] = [(value, "$", 0)]
    while stack:
        part, path, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise Unserializable(f"nested deeper than {MAX_DEPTH} levels", path=path)
        kind = type(part)
        if part is None or kind is bool:
            continue
        if kind is str:
            if not part.isascii():
                try:
                    part.encode()
                except UnicodeEncodeError:
                    raise Unserializable("a string holds a lone surrogate", path=path) from None
        elif kind is int:
            if not INT_MIN <= part <= INT_MAX:
                raise Unserializable("an integer of more than 64 bits", path=path)
        elif kind is float:
            if json and not math.isfinite(part):
                raise Unserializable(f"{part} is not a JSON number", path=path)
        elif kind is bytes:
            continue
        elif kind is list or kind is tuple:
            for index, item in enumerate(part):
                if depth == MAX_DEPTH or not _plain(item, json):
                    stack.append((item, f"{path}[{index}]", depth + 1))
        elif kind is dict:
            for key, item in part.items():
                if type(key) is not str:
                    raise Unserializable(f"a map key of type {type(key).__name__}", path=path)
                if depth == MAX_DEPTH or not _plain(item, json):
                    stack.append((item, f"{path}.{key}", depth + 1))
        else:
            raise Unserializable(f"a value of type {kind.__name__}", path=path)


def _plain(part: Any, json: bool) -> bool:
    """Whether `part` can cross for certain: most parts, which therefore need no path of their own."""
    kind = type(part)
    if kind is int:
        return bool(INT_MIN <= part <= INT_MAX)
    if kind is str:
        return bool(part.isascii())
    if kind is float:
        return not json or math.isfinite(part)
    return kind is bool or part is None or kind is bytes
