"""What is said to a guest and what a guest says: its bytes are hostile, whatever our shim would send.

Every function is pure. A guest that breaks the protocol raises FrameError here; it is never understood half way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgpack

from bridge.wire import codec
from bridge.wire.errors import FrameError
from bridge.wire.frames import Answer, Call, Failure, Limits, Log

GUEST_CODES: Final = frozenset(
    {
        "script_error",
        "syntax_error",
        "never_settles",
        "stack_exhausted",
        "unserializable",
        "result_too_large",
        "memory_exhausted",
        "calls_exhausted",
    }
)
"""The codes that a guest may give. Fuel, time, cancelling and the worker's own end are never the guest's to tell."""

MAX_OUTPUT: Final = 128 * 1024 * 1024
"""Bytes of the largest output of one step, so that a frame can carry it."""

_NAME: Final = 256
_MESSAGE: Final = 16 * 1024
_STACK: Final = 64 * 1024
_PATH: Final = 1024
_LEVELS: Final = frozenset({"debug", "log", "info", "warn", "error"})
_MAX_EMITTED: Final = 10_000
_MAX_LOGS: Final = 100_000
_U32: Final = 2**32

DONE: Final = 0
PENDING: Final = 1
FAILED: Final = 2


class Output(NamedTuple):
    """One step's outcome: exactly one of a `result` (msgpack), a `failure`, or neither while the guest waits."""

    result: bytes | None
    failure: Failure | None
    calls: list[Call]
    logs: list[Log]
    emitted: list[bytes]
    wake_us: int | None


def start_input(source: str, value: bytes, seed: int, limits: Limits) -> bytes:
    """The input of `start`; `value` is the run's input in msgpack."""
    own = (limits.memory_bytes, limits.bridge_calls, limits.call_args_bytes, limits.result_bytes, limits.log_bytes)
    return _packed((source, value, seed, own))


def resume_input(answers: Sequence[Answer | list[Any]]) -> bytes:
    """The input of `resume`: `[id, ok, value]` for each call that is answered."""
    return _packed(answers)


def _packed(value: Any) -> bytes:
    data = msgpack.packb(value, use_bin_type=True)
    assert isinstance(data, bytes)
    return data


def read_output(data: bytes) -> Output:
    """What `start` or `resume` returned. Raises FrameError."""
    said = codec.decode(data, use_list=False)
    if type(said) is not tuple or len(said) != 6:
        raise FrameError("the guest's output is not of the protocol's shape")
    status, payload, calls, logs, emitted, wake = said
    if type(status) is not int or not type(calls) is type(logs) is type(emitted) is tuple:
        raise FrameError("the guest's output is not of the protocol's shape")
    result: bytes | None = None
    failure: Failure | None = None
    if status == DONE and type(payload) is bytes and payload:
        result = payload
    elif status == FAILED:
        failure = _failure(payload)
    elif status != PENDING or payload is not None:
        raise FrameError("the guest's output has no outcome")
    if wake is not None and (status != PENDING or type(wake) is not int or not 0 <= wake < 2**63):
        raise FrameError("the guest would be woken at no time there is")
    return Output(
        result,
        failure,
        [_call(call) for call in calls],
        _logs(logs) if logs else [],
        _emitted(emitted) if emitted else [],
        wake,
    )


def _call(value: Any) -> Call:
    if type(value) is tuple and len(value) == 4:
        number, path, arguments, meta = value
        if (
            type(number) is int
            and 0 <= number < _U32
            and type(path) is str
            and len(path) <= _PATH
            and type(arguments) is bytes
            and type(meta) is bool
        ):
            # For each call of a script: the constructor would take a Python call more.
            return tuple.__new__(Call, value)
    raise FrameError("the guest's call is not of the protocol's shape")


def _logs(values: tuple[Any, ...]) -> list[Log]:
    if len(values) > _MAX_LOGS:
        raise FrameError("the guest logged more lines than there may be")
    return [_log(value) for value in values]


def _log(value: Any) -> Log:
    if type(value) is tuple and len(value) == 2:
        level, text = value
        if type(level) is str and level in _LEVELS and type(text) is str:
            return Log(level, text)
    raise FrameError("the guest's log line is not of the protocol's shape")


def _emitted(values: tuple[Any, ...]) -> list[bytes]:
    if len(values) > _MAX_EMITTED or not all(type(value) is bytes for value in values):
        raise FrameError("the guest emitted what is no value")
    return list(values)


def _failure(value: Any) -> Failure:
    if type(value) is not tuple or len(value) != 7:
        raise FrameError("the guest's failure is not of the protocol's shape")
    code, name, message, line, column, stack, path = value
    if type(code) is not str or code not in GUEST_CODES:
        raise FrameError("the guest gave a code that is not its to give")
    return Failure(
        code,
        _text(name, _NAME),
        _text(message, _MESSAGE) or "",
        _position(line),
        _position(column),
        _text(stack, _STACK),
        _text(path, _PATH),
    )


def _text(value: Any, limit: int) -> str | None:
    if value is None:
        return None
    if type(value) is not str:
        raise FrameError("the guest's failure has a field that is no text")
    return value[:limit]


def _position(value: Any) -> int | None:
    if value is None or (type(value) is int and 0 <= value < _U32):
        return value
    raise FrameError("the guest's failure has a position that is no number")


def read_strip(data: bytes) -> list[Any]:
    """What `strip` returned, as plain lists for `Reading.stripped`. Raises FrameError."""
    answer = codec.decode(data)
    if type(answer) is not list:
        raise FrameError("the stripper's answer is not of the protocol's shape")
    return answer


def read_items(data: bytes, count: int) -> tuple[Any, ...]:
    """Up to `count` concatenated items, as far as they are whole: the step that wrote them may have ended anywhere."""
    unpacker = msgpack.Unpacker(
        raw=False,
        use_list=False,
        max_buffer_size=max(len(data), 1),
        max_map_len=0,
        max_ext_len=0,
        max_array_len=4,
    )
    unpacker.feed(data)
    items: list[Any] = []
    try:
        while len(items) < count:
            items.append(unpacker.unpack())
    except (ValueError, RecursionError, msgpack.exceptions.UnpackException):
        pass
    return tuple(items)


def saved_logs(data: bytes, count: int) -> list[Log]:
    """The whole log lines among half-written ones."""
    logs: list[Log] = []
    for item in read_items(data, min(count, _MAX_LOGS)):
        try:
            logs.append(_log(item))
        except FrameError:
            break
    return logs


def saved_values(data: bytes, count: int) -> list[bytes]:
    """The whole emitted values among half-written ones."""
    values: list[bytes] = []
    for item in read_items(data, min(count, _MAX_EMITTED)):
        if type(item) is not bytes:
            break
        values.append(item)
    return values
