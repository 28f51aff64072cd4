"""The shell around the run machine: it has the slot, the clock, the timers and the calls, and decides nothing."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import structlog

from bridge.traces import traced
from bridge.wire import frames
from runtime import run
from runtime.budgets import Budgets
from runtime.clock import Clock
from runtime.output import NotAValue, Output, OutputTooLarge
from runtime.slot import Lost, Slot

TIMER_MIN_S: Final = 0.001
"""A timer waits at least this long, as in a browser: a script that sets one after another does not spin the host."""

_NOTHING: Final = frames.Usage(0, 0, 0, 0)

_log = structlog.get_logger("executor.run")


@dataclass(frozen=True, slots=True)
class Script:
    """What an isolate is given."""

    language: str
    source: str
    input: bytes
    seed: int
    budgets: Budgets


class Ending(NamedTuple):
    """How a run ended: a result (msgpack, unread) or a failure."""

    result: bytes | None
    failure: frames.Failure | None


class Making(Protocol):
    """Who makes the calls of a run."""

    def make(self, call: frames.Call) -> None:
        """Start a call; its answer comes to `Driver.answered`."""

    def bound(self, deadline: float) -> None:
        """Let calls that are made from now on end by `deadline`."""

    def drop(self) -> None:
        """Stop waiting for every call."""


class Keeping(Protocol):
    """Who keeps what reaches an isolate, and what it asks for."""

    def started(self, language: str, seed: int, now_us: int, image: str) -> None: ...

    def paused(self, fuel: int, calls: Sequence[frames.Call], wake_us: int | None) -> None: ...

    def resumed(self, now_us: int, answers: Sequence[frames.Answer]) -> None: ...


class Driver:
    """Drives one run from the start of its isolate to its ending. `frame` is the sink of its slot."""

    def __init__(self, script: Script, output: Output, journal: Keeping) -> None:
        self.usage = _NOTHING
        self.clock = Clock()
        self.image = ""
        """What its guest is made of; set before it starts."""
        self.ending: Ending | None = None
        self._script = script
        self._output = output
        self._journal = journal
        self._machine = run.RunMachine(
            calls=script.budgets.bridge_calls,
            in_flight=script.budgets.bridge_calls_in_flight,
            wall_ms=script.budgets.wall_ms,
        )
        self.started_us: int | None = None
        """Virtual time of the first step; None while the isolate has not been started."""
        self._slot: Slot
        self._calls: Making
        self._woken = asyncio.Event()
        """Set at the end, or when the run needs another place."""
        self._events: deque[run.Event] = deque()
        self._feeding = False
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._wake_us = 0
        self._left_s = script.budgets.wall_ms / 1000
        """Wall time that is left, as of the last time that it was stopped."""
        self.waits: Callable[[bool], None] = lambda waits: None
        """Told when the run begins to wait for a person (True), and when it goes on (False)."""
        self.suspended = False
        """Whether the run has left its isolate and goes on elsewhere, from its journal."""

    @property
    def calls_made(self) -> int:
        return self._machine.calls_made

    @property
    def in_flight_peak(self) -> int:
        return self._machine.in_flight_peak

    def start(self, slot: Slot, calls: Making) -> None:
        """Start the isolate and the wall clock of the run, which goes on when the run starts again elsewhere."""
        self._slot = slot
        self._calls = calls
        if self._machine.phase == "ended":
            return
        if self._deadline is None:
            self._start_clock()
        for command in self._machine.start():
            self._execute(command)

    def take_over(self, slot: Slot, calls: Making, caught_up: run.CaughtUp, now_us: int, left_s: float) -> None:
        """Go on with an isolate that was taken through the run's history, which ended at the virtual time `now_us`."""
        self._slot = slot
        self._calls = calls
        if self._machine.phase == "ended":
            return
        self.clock.now_us(now_us)
        self._left_s = left_s
        self._start_clock()
        self._machine.start()
        self.feed(caught_up)

    @property
    def moving(self) -> bool:
        """Whether the run is to be taken to where it was, in another worker."""
        return self._machine.phase == "moving"

    def restored(self, slot: Slot, restored: run.Restored) -> None:
        """Go on in another worker's isolate, which is where the lost one had been."""
        self._slot = slot
        self.feed(restored)

    def suspend(self) -> None:
        """Leave the isolate without an end: the run goes on from its journal, in another isolate."""
        self.suspended = True
        self._machine.phase = "ended"
        self._finish(None, None)

    @property
    def deadline(self) -> float:
        """When the wall time is used up, on the loop's clock, if it goes on from now."""
        return self._loop.time() + self._left_s if self._deadline is None else self._deadline.when()

    def _start_clock(self) -> None:
        self._deadline = self._loop.call_later(self._left_s, self.feed, run.DeadlinePassed())

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._left_s = max(0.0, self._deadline.when() - self._loop.time())
            self._deadline.cancel()
            self._deadline = None

    async def ended(self) -> Ending | None:
        """Wait for the end. None when the worker is gone and the run can be started in another."""
        await self._woken.wait()
        self._woken.clear()
        return self.ending

    def was_in_flight(self, peak: int) -> None:
        """So many calls were in flight at once before this host took the run up."""
        self._machine.in_flight_peak = max(self._machine.in_flight_peak, peak)

    def parked(self, call: frames.Call) -> None:
        """Take note that a call waits for a person."""
        self.feed(run.CallParked(call))

    def released(self, call_id: int) -> None:
        """Make a call again that need not wait any more."""
        self.feed(run.CallReleased(call_id))

    def answered(self, answer: frames.Answer) -> None:
        """Take the answer to a call."""
        self.feed(run.CallFinished(answer))

    def cancel(self, reason: str) -> None:
        """Cancel the run; `ended` says when it is over. A run that has ended stays as it is."""
        self.feed(run.CancelRequested(reason))

    def frame(self, frame: frames.Pending | frames.Ended | Lost) -> None:
        """Take what the worker said about this run."""
        if isinstance(frame, frames.Pending):
            self.usage = frame.usage
            refusal = self._take_output(frame.logs, frame.emitted)
            self._journal.paused(frame.usage.fuel, frame.calls, frame.wake_us)
            self.feed(run.Condemned(refusal) if refusal else run.PendingArrived(frame.calls, frame.wake_us))
        elif isinstance(frame, frames.Ended):
            self.usage = frame.usage
            if frame.failure is not None and frame.failure.code == "internal":
                # Its words are for the operator: they come from the machinery, not from the script.
                _log.error("an isolate failed unexpectedly", reason=frame.failure.message)
            refusal = self._take_output(frame.logs, frame.emitted)
            self.feed(run.EndedArrived(None, refusal) if refusal else run.EndedArrived(frame.result, frame.failure))
        else:
            self.feed(run.WorkerLost(frame.reason, frame.untouched, frame.innocent))

    def feed(self, event: run.Event) -> None:
        """Give the machine an event and do what it says. Events that this causes are taken in turn, not nested."""
        self._events.append(event)
        if self._feeding:
            return
        self._feeding = True
        try:
            while self._events:
                for command in self._machine.handle(self._events.popleft()):
                    self._execute(command)
        except Exception as e:
            _log.error("the machinery of a run failed", exception=traced(e))
            self._give_up(type(e).__name__)
        finally:
            self._feeding = False

    def _take_output(self, logs: list[frames.Log], emitted: list[bytes]) -> frames.Failure | None:
        if not logs and not emitted:
            return None
        self._output.log(logs)
        try:
            self._output.emit(emitted)
        except OutputTooLarge as e:
            return run.failure("result_too_large", e.message)
        except NotAValue as e:
            return run.failure("unserializable", f"an emitted value is not one: {e}")
        return None

    def _execute(self, command: run.Command) -> None:
        match command:
            case run.MakeCall(call):
                self._calls.make(call)
            case run.Resume(answers):
                now_us = self.clock.now_us(self._wake_us if not answers else 0)
                # Kept once it is on its way: the worker computes meanwhile, and nothing of it is read before.
                self._slot.resume(now_us, answers)
                self._journal.resumed(now_us, answers)
            case run.StartIsolate():
                self._start_isolate()
            case run.FindPlace() | run.Rebuild():
                self._woken.set()
            case run.FlushSoon():
                self._loop.call_soon(self.feed, run.FlushDue())
            case run.WakeAt(wake_us):
                self._wake(wake_us)
            case run.Wait():
                self._stop_clock()
                self.waits(True)
            case run.GoOn():
                self._start_clock()
                self._calls.bound(self.deadline)
                self.waits(False)
            case run.DropCalls():
                self._calls.drop()
            case run.CancelIsolate():
                self._slot.cancel()
            case run.Finish(result, failure):
                self._finish(result, failure)

    def _start_isolate(self) -> None:
        script = self._script
        self.started_us = now_us = self.clock.now_us()
        self._journal.started(script.language, script.seed, now_us, self.image)
        self._slot.start(
            language=script.language,
            source=script.source,
            input=script.input,
            seed=script.seed,
            now_us=now_us,
            limits=script.budgets.limits(),
        )

    def _wake(self, wake_us: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wake_us is None:
            return
        delay = (wake_us - self.clock.real_us()) / 1e6
        # A timer that is due after the deadline never fires: the deadline does.
        if delay < self._script.budgets.wall_ms / 1000:
            self._wake_us = wake_us
            self._timer = self._loop.call_later(max(TIMER_MIN_S, delay), self.feed, run.WakeDue())

    def _finish(self, result: bytes | None, failure: frames.Failure | None) -> None:
        if self.ending is not None:
            return
        self.ending = Ending(result, failure)
        for timer in (self._timer, self._deadline):
            if timer is not None:
                timer.cancel()
        self._woken.set()

    def _give_up(self, what: str) -> None:
        self._events.clear()
        self._machine.phase = "ended"
        self._calls.drop()
        self._slot.cancel()
        self._finish(None, run.failure("internal", f"the machinery of the run failed ({what})"))
