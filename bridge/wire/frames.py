"""Frames between host and worker: msgpack arrays of fixed length, `[version, type, run, …]`, length-prefixed.

A frame is a NamedTuple, so that building and reading one costs a tuple. `run` is the number of a run on this link,
never its public id. Values (arguments, results, inputs) stay msgpack *bytes* inside a frame: the worker passes them on
unread, the host decodes each exactly once.

This module is all the worker needs; what the host does to distrust a worker's frames is in `bridge.wire.distrust`.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

import msgpack

from bridge.wire.errors import FrameError

VERSION: Final = 1
MAX_FRAME: Final = 160 * 1024 * 1024
"""Bytes of the largest frame: a guest's largest result (64 MiB) or a boot frame with compiled images, with room."""

LENGTH: Final = struct.Struct(">I")

# host → worker
BOOT: Final = 1
START: Final = 2
RESUME: Final = 3
CANCEL: Final = 4
KEEP: Final = 5
# worker → host
READY: Final = 17
PENDING: Final = 18
ENDED: Final = 19


class Limits(NamedTuple):
    """The budgets that the worker and the guest enforce; the host enforces the same ones again where it can."""

    fuel: int
    memory_bytes: int
    wall_ms: int
    bridge_calls: int
    call_args_bytes: int
    result_bytes: int
    log_bytes: int


class Boot(NamedTuple):
    """First frame on a link. `modules` maps an image name to compiled, already verified code."""

    version: int
    type: int
    run: int
    modules: dict[str, bytes]
    threads: int
    require: str


class Start(NamedTuple):
    """Start a run: `language` is `javascript`, `typescript`, `python` or `node`; `input` is a msgpack value.

    In `node` the source says what becomes of the isolate's memory: see `runtime.worker.run`.
    """

    version: int
    type: int
    run: int
    language: str
    source: str
    input: bytes
    seed: int
    now_us: int
    limits: Limits


class Answer(NamedTuple):
    """The answer to one call: a msgpack value, or (when not `ok`) a msgpack map with a ToolError's fields."""

    id: int
    ok: bool
    value: bytes


class Resume(NamedTuple):
    """Go on: `answers` may be empty when a timer is due."""

    version: int
    type: int
    run: int
    now_us: int
    answers: list[Answer]


class Cancel(NamedTuple):
    """Drop the run's isolate; the worker answers with Ended(outcome="cancelled")."""

    version: int
    type: int
    run: int


class Keep(NamedTuple):
    """Keep `pages` under `key` for runs that begin from them (see `runtime.engine.pages`); empty ones are forgotten."""

    version: int
    type: int
    run: int
    key: str
    pages: bytes


class Call(NamedTuple):
    """A call that leaves the guest. `meta` asks for the HTTP status and headers beside the value."""

    id: int
    path: str
    args: bytes
    meta: bool


class Log(NamedTuple):
    level: str
    text: str


class Usage(NamedTuple):
    """What the isolate has used so far: fuel units, bytes of linear memory at its peak, CPU microseconds."""

    fuel: int
    memory_bytes: int
    cpu_us: int
    log_bytes: int


class Ready(NamedTuple):
    """The worker has locked itself down. `layers` names each wall that stands, such as `seccomp`."""

    version: int
    type: int
    run: int
    pid: int
    layers: list[str]


class Pending(NamedTuple):
    """The isolate is paused: it waits for `calls` (only the new ones), or until `wake_us` on the virtual clock."""

    version: int
    type: int
    run: int
    calls: list[Call]
    logs: list[Log]
    emitted: list[bytes]
    wake_us: int | None
    usage: Usage


class Failure(NamedTuple):
    """Why a run ended without a result; `code` is a RunErrorCode. Positions are those of the text that was sent."""

    code: str
    name: str | None
    message: str
    line: int | None
    column: int | None
    stack: str | None
    path: str | None


class Ended(NamedTuple):
    """The last frame of a run: a result (msgpack bytes) or a failure, never both."""

    version: int
    type: int
    run: int
    result: bytes | None
    failure: Failure | None
    logs: list[Log]
    emitted: list[bytes]
    usage: Usage
    recycle: bool


def pack(frame: Any) -> bytes:
    """The frame with its length in front, ready to send."""
    body = msgpack.packb(frame, use_bin_type=True)
    assert isinstance(body, bytes)
    if len(body) > MAX_FRAME:
        raise FrameError("a frame is too large to send")
    return LENGTH.pack(len(body)) + body


class Splitter:
    """Cuts a byte stream into frame bodies. Feed it what arrived; it yields each complete body once.

    Raises FrameError at a length of zero or over `limit`: the stream cannot be trusted after that.
    """

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        buffer = self._buffer
        if not buffer and len(data) > 4 and LENGTH.unpack_from(data)[0] == len(data) - 4 <= self._limit:
            return [data[4:]]
        buffer += data
        bodies: list[bytes] = []
        at = 0
        while len(buffer) - at >= 4:
            (size,) = LENGTH.unpack_from(buffer, at)
            if not 0 < size <= self._limit:
                raise FrameError("a frame's length is out of bounds")
            if len(buffer) - at - 4 < size:
                break
            bodies.append(bytes(buffer[at + 4 : at + 4 + size]))
            at += 4 + size
        if at:
            del buffer[:at]
        return bodies


def unpack(body: bytes) -> list[Any]:
    """The frame as a plain list, for a reader that trusts its peer (the worker reading the host).

    Raises FrameError when it is not an array of this version.
    """
    try:
        frame = msgpack.unpackb(body, raw=False, strict_map_key=True, max_ext_len=0)
    except (ValueError, msgpack.exceptions.UnpackException) as e:
        raise FrameError("not a frame") from e
    if not isinstance(frame, list) or len(frame) < 3 or frame[0] != VERSION:
        raise FrameError("not a frame of this version")
    return frame
