"""One run's place in a worker, seen from the host: what may be said now, and what the worker may answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, Protocol

import structlog

from bridge.traces import traced
from bridge.wire import frames
from bridge.wire.errors import FrameError
from bridge.wire.frames import Answer, Cancel, Ended, Limits, Pending, Resume, Start, Usage
from runtime.grace import Grace, Watched

_log = structlog.get_logger("executor.dispatcher")

_NEVER_FROM_A_WORKER: Final = frozenset({"worker_lost", "expired"})
_LOG_MARGIN: Final = 8192
"""Bytes of log text by which a worker may be over the limit: markers, and the line that reached it."""


class Lost(NamedTuple):
    """The worker is gone, and with it the run; nothing more will come. `reason` is for people.

    `untouched`: the worker had said nothing about the run, and it was not the run that the worker seems to have died
    of. Nothing of it had an effect, so it can begin again elsewhere. `innocent`: it was not that run; it can be taken
    to where it was, elsewhere.
    """

    reason: str
    untouched: bool = False
    innocent: bool = False


Sink = Callable[[Pending | Ended | Lost], None]
"""Takes what a worker says about one run, called on the event loop as it arrives."""


class Line(Watched, Protocol):
    """What a slot needs of its worker."""

    def send(self, frame: Start | Resume | Cancel) -> None:
        """Send a frame; into the void when the worker is gone."""

    def keep(self, key: str, pages: bytes) -> None:
        """Have the worker keep pages for runs that begin from them."""

    def drop(self, key: str) -> None:
        """Have the worker keep those pages no longer."""

    def kill(self, reason: str, culprit: Slot | None = None) -> None:
        """End the worker and every run in it, because of `culprit` where that is known."""

    def free(self, slot: Slot) -> None:
        """The slot is free: its run is over and its holder has let go."""

    @property
    def gone(self) -> str | None:
        """Why the worker is gone; None while it is not."""


class Slot:
    """A place for one run. `start` once, `resume` each time the run is paused, `cancel` at any time, `release` at last.

    The sink gets each Pending, then exactly one Ended or Lost, unless the slot was released before.
    """

    def __init__(self, line: Line, number: int, sink: Sink, grace_s: float) -> None:
        self.number = number
        self._line = line
        self._sink: Sink | None = sink
        self._grace_s = grace_s
        self._state: Literal["idle", "stepping", "paused", "ended"] = "idle"
        self._cancelling = self._released = self._spoken = False
        self._grace: Grace | None = None
        self._limits: Limits
        self._calls = self._log_bytes = self._log_lines = self._emitted_bytes = 0
        self._last_id = -1

    @property
    def running(self) -> bool:
        """Whether the worker has something of this run."""
        return self._state in ("stepping", "paused")

    @property
    def stepping(self) -> bool:
        """Whether the run computes, or waits for its turn to."""
        return self._state == "stepping"

    def start(self, *, language: str, source: str, input: bytes, seed: int, now_us: int, limits: Limits) -> None:
        """Start the run: `input` is a msgpack value, `now_us` its virtual clock."""
        if self._state != "idle":
            raise RuntimeError("a slot starts one run once")
        self._limits = limits
        self._state = "stepping"
        frame = Start(
            frames.VERSION, frames.START, self.number, language, _unicode(source), input, seed, now_us, limits
        )
        if self._line.gone is not None:
            asyncio.get_running_loop().call_soon(self.lost, self._line.gone, False)
            return
        self._line.send(frame)

    def keep(self, key: str, pages: bytes) -> None:
        """Have the worker keep pages that a run is about to begin from."""
        self._line.keep(key, pages)

    def drop(self, key: str) -> None:
        """Have the worker keep pages no longer that the run began from."""
        self._line.drop(key)

    def resume(self, now_us: int, answers: list[Answer]) -> None:
        """Let a paused run go on. Ignored once the run is being cancelled or is over."""
        if self._cancelling or self._state == "ended":
            return
        if self._state != "paused":
            raise RuntimeError("only a paused run can be resumed")
        self._state = "stepping"
        self._line.send(Resume(frames.VERSION, frames.RESUME, self.number, now_us, answers))

    def cancel(self) -> None:
        """Stop the run wherever it is. Its end comes to the sink: Ended, or Lost when the worker had to be killed."""
        if self._cancelling or not self.running:
            return
        self._cancelling = True
        self._line.send(Cancel(frames.VERSION, frames.CANCEL, self.number))
        self._grace = Grace(self._line, self._grace_s, self._overran)

    def release(self) -> None:
        """Give the place back; a run that is still going is cancelled, unheard. Later calls do nothing."""
        if self._released:
            return
        self._released = True
        self._sink = None
        if self.running:
            self.cancel()
        else:
            self._state = "ended"
            self._line.free(self)

    def said(self, frame: Pending | Ended) -> None:
        """Take the worker's word. Raises FrameError when it may not say that now."""
        if self._state != "stepping" and not (self._cancelling and isinstance(frame, Ended) and self.running):
            raise FrameError("a worker spoke of a run that was not its turn")
        self._check(frame)
        self._spoken = True
        if isinstance(frame, Pending):
            self._state = "paused"
            if not self._cancelling:
                self._tell(frame)
        else:
            self._over(frame)

    def lost(self, reason: str, suspect: bool) -> None:
        """The worker is gone; `suspect` says whether it may have died of this run."""
        if self.running:
            innocent = not (suspect or self._cancelling)
            self._over(Lost(reason, untouched=innocent and not self._spoken, innocent=innocent))

    def _check(self, frame: Pending | Ended) -> None:
        limits = self._limits
        _check_usage(frame.usage, limits)
        self._check_output(frame, limits)
        if isinstance(frame, Pending):
            for call in frame.calls:
                if call.id <= self._last_id or len(call.args) > limits.call_args_bytes:
                    raise FrameError("a worker forwarded a call that is out of order or too large")
                self._last_id = call.id
            self._calls += len(frame.calls)
            if self._calls > limits.bridge_calls:
                raise FrameError("a worker forwarded more calls than the run may make")
        elif frame.result is not None:
            if len(frame.result) > limits.result_bytes:
                raise FrameError("a worker forwarded a result that is too large")
        elif frame.failure is not None:
            code = frame.failure.code
            if code in _NEVER_FROM_A_WORKER or (code == "cancelled" and not self._cancelling):
                raise FrameError("a worker gave a code that is not its to give")

    def _check_output(self, frame: Pending | Ended, limits: Limits) -> None:
        if not frame.logs and not frame.emitted:
            return
        self._log_bytes += sum(len(log.text) for log in frame.logs)
        self._log_lines += len(frame.logs)
        self._emitted_bytes += sum(map(len, frame.emitted))
        if max(self._log_bytes, self._log_lines) > limits.log_bytes + _LOG_MARGIN:
            raise FrameError("a worker forwarded more log text than the run may write")
        if self._emitted_bytes > limits.result_bytes:
            raise FrameError("a worker forwarded more emitted values than the run may have")

    def _over(self, ending: Ended | Lost) -> None:
        self._state = "ended"
        if self._grace is not None:
            self._grace.end()
            self._grace = None
        self._tell(ending)
        if self._released:
            self._line.free(self)

    def _overran(self) -> None:
        self._line.kill(f"the worker did not stop a run within {self._grace_s * 1000:.0f} ms", self)

    def _tell(self, frame: Pending | Ended | Lost) -> None:
        if self._sink is None:
            return
        try:
            self._sink(frame)
        except Exception as e:
            _log.error("sink_failed", run=self.number, exception=traced(e))


def _check_usage(usage: Usage, limits: Limits) -> None:
    if usage.fuel > limits.fuel or usage.memory_bytes > limits.memory_bytes:
        raise FrameError("a worker reported more than the run may use")


def _unicode(text: str) -> str:
    """`text` with each lone surrogate replaced, since no encoding can carry it."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
