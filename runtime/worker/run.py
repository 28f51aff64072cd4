"""One run inside a worker: its isolates, one after the other, its limits, and what it has used of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import msgpack

from bridge.wire import frames
from bridge.wire.errors import FrameError
from bridge.wire.frames import Ended, Failure, Log, Pending, Start, Usage
from runtime.engine import protocol
from runtime.engine.image import Image
from runtime.engine.instance import Trapped, Unusable
from runtime.engine.protocol import Output
from runtime.engine.settings import MIB
from runtime.engine.shelf import Shelf
from runtime.isolate import Isolate
from runtime.worker.python import PythonReading
from runtime.worker.source import Attempt, Reading

STRIPPER_MEMORY: Final = 256 * MIB
"""Bytes of memory for stripping types, which is not the script's own work."""

_STRIPPER: Final = "typescript"
_CRASHED: Final = "The interpreter crashed: the script met a fault of CPython's, or changed code objects beyond use."
_INTERPRETER_ENDS: Final = {
    "unreachable": "The interpreter ended itself: it was told to exit or abort, "
    "or waited for a lock that nobody can release.",
    "memory_out_of_bounds": _CRASHED,
    "table_out_of_bounds": _CRASHED,
    "indirect_call_to_null": _CRASHED,
    "bad_signature": _CRASHED,
    "integer_overflow": _CRASHED,
    "integer_division_by_zero": _CRASHED,
}
"""Traps that a Python script can bring about by itself: code objects can be made of any bytes."""

NODE: Final = "node"
TAKE: Final = "take"
"""The source of a `node` run whose result is to be `[result, pages]`, the second the memory that it leaves; where that
is more than a result may be, its result alone."""
FROM: Final = "from "
"""What the source of a run begins with that starts from the pages of the key behind it."""

_LOG_MARGIN: Final = 4096
_NEARLY: Final = MIB


class Verbatim:
    """The reading of a text whose image takes it as it is; see `runtime.worker.source.Reading`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._failure: Failure | None = None

    def first(self) -> Attempt:
        return Attempt("javascript", self._text)

    def refused(self, failure: Failure) -> None:
        self._failure = failure

    def stripped(self, answer: Any) -> None:
        raise FrameError("only scripts are stripped of types")

    def failure(self) -> Failure:
        assert self._failure is not None
        return self._failure

    def located(self, failure: Failure) -> Failure:
        return failure


def _reading(start: Start) -> Reading | PythonReading | Verbatim:
    if start.language == "python":
        return PythonReading(start.source)
    if start.language in ("javascript", "typescript"):
        return Reading(start.source, start.language)
    return Verbatim(start.source)


class Run:
    """The steps of one run. `turn` runs one slice; it returns the frame to send once a step has ended.

    Not for two threads at once. After an Ended frame `dispose` frees what is left.
    """

    def __init__(self, start: Start, images: Mapping[str, Image], shelf: Shelf | None = None) -> None:
        self.number = start.run
        self.cancelled = False
        self.stepping = True
        """Whether a step has begun and its frame is not sent yet; kept, like the next two, by the worker."""
        self.turning = self.over = False
        self.slices = 0
        """Turns it has had; kept by `Turns`."""
        self._start, self._images = start, images
        begins = start.language == NODE and start.source.startswith(FROM)
        self._shelf = shelf
        self._kept = shelf.take(start.source.removeprefix(FROM)) if begins and shelf is not None else None
        """What the isolate's memory begins with, where that is not the image's."""
        self._begins = begins
        scripts = start.language in ("javascript", "typescript")
        self._image_name = "javascript" if scripts else start.language
        self._reading = _reading(start)
        self._attempt: Attempt | None = None
        self._isolate: Isolate | None = None
        self._dropped: Isolate | None = None
        self._spent = self._peak = self._cpu_ns = self._log_bytes = self._emitted_bytes = self._calls_made = 0
        self._last_id = -1
        self._answers_due = 0
        self._started = self._resumed = False
        self._busy = 0.0
        self._began = time.monotonic()

    def resume(self, now_us: int, answers: list[Any]) -> None:
        """Begin the next step with `answers`, each `[id, ok, value]`; `turn` runs it."""
        assert self._isolate is not None
        self._resumed = True
        self._began = time.monotonic()
        self._answers_due -= len(answers)
        self._isolate.begin("resume", protocol.resume_input(answers), now_us)

    def turn(self, *, hold: bool) -> Pending | Ended | None:
        """Run one slice. None when the step needs another turn. `hold` keeps the GIL meanwhile."""
        try:
            if not self._started:
                self._started = True
                self._try(self._reading.first())
            while self._isolate is not None:
                left = self._start.limits.wall_ms / 1000 - self._busy - (time.monotonic() - self._began)
                if left <= 0:
                    return self._stopped("deadline_exceeded", "The script ran into its wall-clock limit.")
                output = self._advance(self._isolate, hold, left)
                if output is None:
                    return None
                if (frame := self._stepped(output)) is not None:
                    return frame
            return self._failed(self._reading.failure())
        except Trapped as e:
            return self._trapped(e)
        except Unusable:
            return self._failed(
                _failure("memory_exhausted", "The memory limit is below what the language needs to start.")
            )
        except FrameError as e:
            return self._broken(str(e))

    def _advance(self, isolate: Isolate, hold: bool, left: float) -> bytes | None:
        began = time.thread_time_ns()
        try:
            return isolate.advance(hold=hold, within=left)
        finally:
            self._cpu_ns += time.thread_time_ns() - began

    def cancel(self, said: Pending | None = None) -> Ended:
        """End the run where it stands, between two turns. What an interrupted step had logged is kept, and so is what
        the frame held that is now not sent."""
        frame = self._stopped("cancelled", "The run was cancelled.")
        return frame if said is None else frame._replace(logs=said.logs, emitted=said.emitted)

    def fault(self) -> Ended:
        """End the run because of a fault in the worker itself."""
        return self._broken("the worker failed")

    def _try(self, attempt: Attempt | None) -> None:
        """Begin what `Reading` asks for next, in a fresh isolate; the fuel of the earlier ones stays spent."""
        self._drop()
        self.dispose()
        self._attempt = attempt
        if attempt is None:
            return
        limits = self._start.limits
        fuel = limits.fuel - self._spent
        if fuel <= 0:
            raise Trapped("out_of_fuel")
        if attempt.kind == "strip":
            self._isolate = Isolate(self._image(_STRIPPER), fuel=fuel, memory_bytes=STRIPPER_MEMORY)
            self._isolate.begin("strip", attempt.text.encode())
            return
        start = self._start
        self._isolate = Isolate(self._image(self._image_name), fuel=fuel, memory_bytes=limits.memory_bytes)
        if self._begins:
            if self._shelf is None or self._kept is None:
                raise FrameError("this worker has no pages of that key")
            self._isolate.lay(self._shelf, self._kept)
        self._isolate.begin("start", protocol.start_input(attempt.text, start.input, start.seed, limits), start.now_us)

    def _image(self, name: str) -> Image:
        try:
            return self._images[name]
        except KeyError:
            raise FrameError(f"this worker has no image for {name}") from None

    def _stepped(self, output: bytes) -> Pending | Ended | None:
        assert self._attempt is not None
        if self._attempt.kind == "strip":
            self._try(self._reading.stripped(protocol.read_strip(output)))
            return None
        said = protocol.read_output(output)
        if said.failure is not None and said.failure.code == "syntax_error":
            if self._resumed or said.calls or said.logs or said.emitted:
                raise FrameError("the guest ran a script that does not compile")
            self._try(self._reading.refused(said.failure))
            return None
        return self._outcome(said)

    def _outcome(self, said: Output) -> Pending | Ended:
        self._admit(said)
        if said.failure is not None:
            failure = self._reading.located(said.failure)
            if said.logs or said.emitted or self._isolate is None:
                return self._failed(failure, said.logs, said.emitted)
            # A guest that has no memory left fails in a few words, and leaves its output where a trap would.
            return self._ended(None, failure, *self._unfinished(self._isolate))
        if said.result is not None:
            return self._ended(self._with_pages(said.result), None, said.logs, said.emitted)
        if not self._answers_due and said.wake_us is None:
            text = "The script waits for a promise that nothing will settle."
            return self._failed(_failure("never_settles", text), said.logs, said.emitted)
        self._busy += time.monotonic() - self._began
        return Pending(
            frames.VERSION,
            frames.PENDING,
            self.number,
            said.calls,
            said.logs,
            said.emitted,
            said.wake_us,
            self._usage(),
        )

    def _with_pages(self, result: bytes) -> bytes:
        """The result, and the memory that the isolate was left with where that is asked."""
        if self._start.language != NODE or self._start.source != TAKE or self._isolate is None:
            return result
        packed = msgpack.packb([result, self._isolate.pages()], use_bin_type=True)
        assert isinstance(packed, bytes)
        return packed if len(packed) <= self._start.limits.result_bytes else result

    def _admit(self, said: Output) -> None:
        """Hold the guest to the limits that it was told. Raises FrameError: an honest guest keeps them by itself."""
        limits = self._start.limits
        for call in said.calls:
            if call.id <= self._last_id or len(call.args) > limits.call_args_bytes:
                raise FrameError("the guest made a call that is out of order or too large")
            self._last_id = call.id
        self._calls_made += len(said.calls)
        self._answers_due += len(said.calls)
        if said.logs or said.emitted:
            self._log_bytes += sum(_bytes(log.text) for log in said.logs)
            self._emitted_bytes += sum(map(len, said.emitted))
        if (
            self._calls_made > limits.bridge_calls
            or self._log_bytes > limits.log_bytes + _LOG_MARGIN
            or self._emitted_bytes > limits.result_bytes
            or (said.result is not None and len(said.result) > limits.result_bytes)
        ):
            raise FrameError("the guest went over a limit that it enforces itself")

    def _trapped(self, trap: Trapped) -> Ended:
        if trap.code == "out_of_fuel":
            return self._stopped("fuel_exhausted", f"The script used up its {self._start.limits.fuel} units of fuel.")
        if trap.code == "stack_overflow":
            return self._stopped("stack_exhausted", "The script recursed deeper than the stack allows.")
        if trap.code == "interrupt":
            return self._stopped("deadline_exceeded", "The script ran into its wall-clock limit.")
        if trap.code == "out_of_memory":
            return self._stopped("memory_exhausted", "The script ran out of memory.")
        isolate = self._isolate
        if isolate is not None and isolate.memory_bytes > self._start.limits.memory_bytes - _NEARLY:
            return self._stopped("memory_exhausted", "The script ran out of memory.", recycle=True)
        if self._start.language == "python" and isolate is not None:
            if trap.code == "memory_out_of_bounds" and isolate.stack_used_up():
                return self._stopped("stack_exhausted", "The script recursed deeper than the stack allows.")
            if trap.code in _INTERPRETER_ENDS:
                return self._stopped("script_error", _INTERPRETER_ENDS[trap.code])
        return self._stopped("internal", "The script's isolate failed.", recycle=True)

    def _broken(self, why: str) -> Ended:
        return self._stopped("internal", f"The script's isolate was closed: {why}.", recycle=True)

    def _stopped(self, code: str, message: str, *, recycle: bool = False) -> Ended:
        """End a step that did not return, with what it had logged and emitted so far."""
        logs: list[Log] = []
        emitted: list[bytes] = []
        if self._isolate is not None and self._isolate.stepping:
            logs, emitted = self._unfinished(self._isolate)
        return self._ended(None, _failure(code, message), logs, emitted, recycle=recycle)

    def _unfinished(self, isolate: Isolate) -> tuple[list[Log], list[bytes]]:
        logs, emitted = isolate.unfinished()
        self._log_bytes += sum(_bytes(log.text) for log in logs)
        self._emitted_bytes += sum(map(len, emitted))
        limits = self._start.limits
        over = self._log_bytes > limits.log_bytes + _LOG_MARGIN or self._emitted_bytes > limits.result_bytes
        return ([], []) if over else (logs, emitted)

    def _failed(self, failure: Failure, logs: list[Log] | None = None, emitted: list[bytes] | None = None) -> Ended:
        return self._ended(None, failure, logs or [], emitted or [])

    def _ended(
        self,
        result: bytes | None,
        failure: Failure | None,
        logs: list[Log],
        emitted: list[bytes],
        *,
        recycle: bool = False,
    ) -> Ended:
        self._drop()
        if self._dropped is None:
            self._leave()
        return Ended(frames.VERSION, frames.ENDED, self.number, result, failure, logs, emitted, self._usage(), recycle)

    def _drop(self) -> None:
        isolate, self._isolate = self._isolate, None
        if isolate is None:
            return
        self._spent += isolate.fuel_used
        if self._attempt is not None and self._attempt.kind != "strip":
            self._peak = max(self._peak, isolate.memory_bytes)
        self._dropped = isolate

    def dispose(self) -> None:
        """Free the isolate that was dropped last. Giving its memory back takes a fifth of a short run's time, so the
        worker does it when the frame is on its way."""
        isolate, self._dropped = self._dropped, None
        if isolate is not None:
            isolate.close()
            self._leave()

    def _leave(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None and self._shelf is not None:
            self._shelf.leave(kept)

    def _usage(self) -> Usage:
        isolate = self._isolate
        fuel, peak = self._spent, self._peak
        if isolate is not None:
            fuel += isolate.fuel_used
            peak = max(peak, isolate.memory_bytes)
        return Usage(fuel, peak, self._cpu_ns // 1000, self._log_bytes)


def _failure(code: str, message: str) -> Failure:
    return Failure(code, None, message, None, None, None, None)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
