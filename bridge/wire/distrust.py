"""How the host reads a worker's frame: decoded once within limits, then validated. Any doubt is a FrameError."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from bridge.wire import codec, frames
from bridge.wire.errors import FrameError, RunErrorCode

_U32 = Annotated[int, Field(ge=0, lt=2**32)]
_U64 = Annotated[int, Field(ge=0, lt=2**64)]
_Short = Annotated[str, Field(max_length=64)]
_Path = Annotated[str, Field(max_length=1024)]
_Text = Annotated[str, Field(max_length=1024 * 1024)]
_Message = Annotated[str, Field(max_length=16 * 1024)]
_Version = Literal[1]

_Call = tuple[_U32, _Path, bytes, bool]
_Calls = Annotated[tuple[_Call, ...], Field(max_length=10_000)]
_Logs = Annotated[tuple[tuple[_Short, _Text], ...], Field(max_length=100_000)]
_Emitted = Annotated[tuple[bytes, ...], Field(max_length=10_000)]
_Usage = tuple[_U64, _U64, _U64, _U64]
_Failure = tuple[RunErrorCode, _Message | None, _Message, _U32 | None, _U32 | None, _Text | None, _Message | None]


def _validator(shape: Any) -> SchemaValidator:
    validator = TypeAdapter(shape).validator
    assert isinstance(validator, SchemaValidator)
    return validator


_READERS: Final[dict[int, tuple[type[Any], SchemaValidator]]] = {
    frames.READY: (
        frames.Ready,
        _validator(tuple[_Version, Literal[17], _U32, _U32, tuple[_Short, ...]]),
    ),
    frames.PENDING: (
        frames.Pending,
        _validator(tuple[_Version, Literal[18], _U32, _Calls, _Logs, _Emitted, _U64 | None, _Usage]),
    ),
    frames.ENDED: (
        frames.Ended,
        _validator(tuple[_Version, Literal[19], _U32, bytes | None, _Failure | None, _Logs, _Emitted, _Usage, bool]),
    ),
}


def read(body: bytes) -> frames.Ready | frames.Pending | frames.Ended:
    """The worker's frame, every field checked.

    Raises FrameError when the bytes are not exactly one frame that a worker may send.
    """
    frame = codec.decode(body, use_list=False)
    if type(frame) is not tuple or len(frame) < 3 or type(frame[1]) is not int or frame[1] not in _READERS:
        raise FrameError("not a frame that a worker sends")
    kind, validator = _READERS[frame[1]]
    try:
        fields = validator.validate_python(frame, strict=True)
    except ValidationError as e:
        raise FrameError("a worker's frame has a field of the wrong shape") from e
    return _named(kind, fields)


_tuple: Final = tuple.__new__


def _named(kind: type[Any], fields: tuple[Any, ...]) -> frames.Ready | frames.Pending | frames.Ended:
    if kind is frames.Pending:
        version, type_, run, calls, logs, emitted, wake, usage = fields
        # Each call of a script comes by here: a named tuple's own constructor would take a Python call more for each.
        return _tuple(
            frames.Pending,
            (
                version,
                type_,
                run,
                [_tuple(frames.Call, call) for call in calls],
                [_tuple(frames.Log, log) for log in logs] if logs else [],
                list(emitted),
                wake,
                _tuple(frames.Usage, usage),
            ),
        )
    if kind is frames.Ended:
        version, type_, run, result, failure, logs, emitted, usage, recycle = fields
        if (result is None) == (failure is None):
            raise FrameError("a run ends with a result or a failure, not both")
        return frames.Ended(
            version,
            type_,
            run,
            result,
            frames.Failure(*failure) if failure is not None else None,
            [frames.Log(*log) for log in logs],
            list(emitted),
            frames.Usage(*usage),
            recycle,
        )
    version, type_, run, pid, layers = fields
    return frames.Ready(version, type_, run, pid, list(layers))
