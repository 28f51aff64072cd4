"""What a run says while it runs: log lines, emitted values, calls, and the order in which they came.

The order is kept as a timeline of small integers beside the things themselves, so that the events of a run can be told
again, with the same numbers, from its record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from bridge.wire import frames
from bridge.wire.errors import FrameError, Unserializable
from runtime import values
from runtime.budgets import STORED_RESULT_BYTES
from runtime.results import RunEvent

STATUS: Final = 0
LOG: Final = 1
EMIT: Final = 2
CALL_STARTED: Final = 3
CALL_ENDED: Final = 4
RESULT: Final = 5

Mark = tuple[int, Any]
"""A kind and what it points at: a status name, or an index into logs, emitted values or calls."""

MARKER: Final = ("warn", "… log truncated")
"""Level and text of the line that ends a log that was cut; `truncated` is true in it."""
MAX_EMITTED: Final = 10_000
LINE_COST: Final = 12
"""Bytes that a log line costs besides its text, in the guests too, so that empty lines end."""


class Output:
    """The output of one run, bounded: `log_bytes` of log text, `inline_bytes` of emitted values within the answer."""

    def __init__(self, log_bytes: int, inline_bytes: int) -> None:
        self.logs: list[dict[str, Any]] = []
        self.emitted: list[Any] = []
        self.large: dict[int, bytes] = {}
        """Emitted values (msgpack, by index) that are too large for the answer."""
        self.calls: list[dict[str, Any]] = []
        self.timeline: list[Mark] = []
        self.log_bytes = 0
        self.emitted_bytes = 0
        self.closed = False
        self.moved = False
        """Whether the run goes on elsewhere: nothing more is said here."""
        self._log_limit = log_bytes
        self._room = inline_bytes
        self._count_nodes = inline_bytes > values.TRUSTED_BYTES
        self._nodes = 0
        self._truncated = False
        self._listeners: set[asyncio.Event] = set()

    def status(self, status: str) -> None:
        self._mark(STATUS, status)

    def log(self, lines: Iterable[frames.Log]) -> None:
        """Keep log lines up to the limit; the first that does not fit is cut, and a marker says so.

        A guest cuts its log itself, with the same marker; the limit here is for a guest that does not.
        """
        for level, text in lines:
            if self._truncated:
                return
            size = (len(text) if text.isascii() else len(text.encode())) + LINE_COST
            room = self._log_limit - self.log_bytes
            if size > room:
                kept = text.encode()[: max(0, room - LINE_COST)].decode(errors="ignore")
                if kept and (level, text) != MARKER:
                    self._say(level, kept)
                self.log_bytes = self._log_limit
                self._truncated = True
                self._say(*MARKER)
                return
            self.log_bytes += size
            self._say(level, text)

    def emit(self, emitted: Iterable[bytes]) -> None:
        """Keep emitted values. Raises Unserializable, FrameError (not a value), OutputTooLarge."""
        for data in emitted:
            index = len(self.emitted)
            self.emitted_bytes += len(data)
            if self.emitted_bytes > STORED_RESULT_BYTES or index >= MAX_EMITTED:
                raise OutputTooLarge(self.emitted_bytes)
            if len(data) > self._room:
                self.large[index] = data
                self.emitted.append({"$ref": {"emitted": index, "bytes": len(data)}})
            else:
                self._room -= len(data)
                self._charge(data)
                self.emitted.append(values.vetted(data))
            self._mark(EMIT, index)

    def _charge(self, data: bytes) -> None:
        """Count the parts of all emitted values together, where their bytes alone do not bound them."""
        if self._count_nodes:
            try:
                self._nodes += values.count_nodes(data, values.MAX_NODES - self._nodes)
            except values.TooManyNodes:
                raise OutputTooLarge(self.emitted_bytes) from None

    def call_started(self, facts: dict[str, Any]) -> int:
        """Note a call that is about to be made; the index to end it by."""
        self.calls.append(facts)
        index = len(self.calls) - 1
        self._mark(CALL_STARTED, index)
        return index

    def call_ended(self, index: int, facts: dict[str, Any]) -> None:
        self.calls[index] = facts
        self._mark(CALL_ENDED, index)

    def become(self, other: Output) -> None:
        """Say from here on what `other` has said; whoever listens goes on listening."""
        listeners = self._listeners
        self.__dict__.update(other.__dict__)
        self._listeners = listeners

    def close(self, status: str) -> None:
        """The last two events: how the run ended, and its answer. Nothing when they were there before."""
        if self.closed:
            return
        self.status(status)
        self._mark(RESULT, None)
        self.closed = True
        self._tell()

    def move(self) -> None:
        """Tell whoever listens that nothing more is said here, though the run has not ended."""
        self.moved = True
        self._tell()

    def listen(self) -> asyncio.Event:
        """An event that is set whenever something happens, until `forget`."""
        listener = asyncio.Event()
        self._listeners.add(listener)
        return listener

    def forget(self, listener: asyncio.Event) -> None:
        self._listeners.discard(listener)

    def _say(self, level: str, text: str) -> None:
        line: dict[str, Any] = {"level": level, "text": text}
        if (level, text) == MARKER:
            line["truncated"] = True
        self.logs.append(line)
        self._mark(LOG, len(self.logs) - 1)

    def _mark(self, kind: int, what: Any) -> None:
        self.timeline.append((kind, what))
        if self._listeners:
            self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener.set()


class OutputTooLarge(Unserializable):
    """Raised when emitted values together are more than can be stored."""

    def __init__(self, size: int) -> None:
        super().__init__("the emitted values together are too large to keep")
        self.size = size


NotAValue = (FrameError, Unserializable)
"""What `Output.emit` raises for bytes that are no value: only a rogue guest sends them."""


def event(
    seq: int,
    mark: Mark,
    logs: Sequence[dict[str, Any]],
    emitted: Sequence[Any],
    calls: Sequence[dict[str, Any]],
    answer: dict[str, Any] | None,
) -> RunEvent:
    """The event that a mark of the timeline stands for; `seq` is its place, counted from 1."""
    kind, what = mark
    if kind == STATUS:
        return RunEvent(seq, "status", {"status": what})
    if kind == LOG:
        return RunEvent(seq, "log", logs[what])
    if kind == EMIT:
        return RunEvent(seq, "emit", {"value": values.to_json(emitted[what])})
    if kind == CALL_STARTED:
        return RunEvent(seq, "call", {"id": calls[what]["id"], "path": calls[what]["path"], "state": "started"})
    if kind == CALL_ENDED:
        return RunEvent(seq, "call", calls[what] | {"state": calls[what]["outcome"]})
    return RunEvent(seq, "result", answer or {})
