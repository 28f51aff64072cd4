"""Which values cross the bridge and how, beyond those that the shim packs by itself."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import inspect
import pathlib
import types
import uuid
from collections.abc import Mapping, Set
from typing import Any

from . import tools


class Unserializable(TypeError):
    """Raised for a value that cannot cross; `path` names the part, such as `$.rows[3].at`."""

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"{self.message} (at {self.path})" if self.path != "$" else self.message


def special(value: Any, key: Any = None) -> Any:
    """What crosses in the place of `value`, or (with `key`) the dict `value` with its keys as strings.

    Raises Unserializable for what cannot cross.
    """
    if key is not None or type(value) is dict:
        return _keyed(value)
    if isinstance(value, tools.ToolCall):
        return value.wait()
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath)):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, types.SimpleNamespace):
        return vars(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (collections.deque, collections.UserList, range, array.array, Set)) or _is_view(value):
        return list(value)
    if isinstance(value, collections.UserString):
        return str(value)
    if isinstance(value, BaseException):
        return {"name": type(value).__name__, "message": str(value)}
    raise Unserializable(_why_not(value))


def _is_view(value: Any) -> bool:
    return isinstance(value, (type({}.keys()), type({}.values()), type({}.items())))


def _keyed(value: dict[Any, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        name = _key(key)
        if name in out:
            raise Unserializable(f"two keys of the dict become the same string {name!r}")
        out[name] = item
    return out


def _key(key: Any) -> str:
    """A key as a string, as json.dumps would write it, and dates, decimals and enums in their own form."""
    if isinstance(key, str):
        return key
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, enum.Enum):
        return _key(key.value)
    if isinstance(key, int):
        return int.__repr__(key)
    if isinstance(key, float):
        return float.__repr__(key)
    if isinstance(key, (datetime.datetime, datetime.date, datetime.time)):
        return key.isoformat()
    if isinstance(key, (decimal.Decimal, uuid.UUID, pathlib.PurePath)):
        return str(key)
    raise Unserializable(f"a dict key of type {type(key).__name__}; keys become strings")


def _why_not(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, tools.ToolPath):
        return "a tool, which is not a value: call it"
    if inspect.isawaitable(value):
        return f"a {kind} that was never awaited"
    if isinstance(value, (fractions.Fraction, complex, datetime.timedelta)):
        return f"a value of type {kind}; a float or a str of it can cross"
    if inspect.isgenerator(value) or hasattr(value, "__next__"):
        return f"a value of type {kind}; a list of it can cross"
    if isinstance(value, type) or callable(value):
        return f"a {kind}, which is not a value"
    return f"a value of type {kind}; a dict or a dataclass can cross"
