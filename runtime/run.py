"""A run as a state machine, without I/O: events in, commands out.

    new ──► stepping ⇄ paused ──► ended
                 └──► stopping ──┘

`stepping`: the isolate computes. `paused`: it waits for answers or for a timer. `stopping`: it was told to go, and the
run ends with the code that was decided then, whatever the isolate still says. Nothing leaves `ended`. A run whose
worker is lost before it said anything is `new` again, once.

A call that needs a person is parked: it is not in flight any more, and the others go on. A paused run with nothing left
but parked calls waits, which `Wait` and `GoOn` say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, Literal

from bridge.wire import frames
from runtime.moves import (
    CallFinished,
    CallParked,
    CallReleased,
    CancelIsolate,
    CancelRequested,
    CaughtUp,
    Command,
    Condemned,
    DeadlinePassed,
    DropCalls,
    EndedArrived,
    Event,
    FindPlace,
    Finish,
    FlushDue,
    FlushSoon,
    GoOn,
    MakeCall,
    PendingArrived,
    Rebuild,
    Restored,
    Resume,
    StartIsolate,
    Wait,
    WakeAt,
    WakeDue,
    WorkerLost,
)

__all__ = [
    "CallFinished",
    "CallParked",
    "CallReleased",
    "CancelIsolate",
    "CancelRequested",
    "CaughtUp",
    "Command",
    "Condemned",
    "DeadlinePassed",
    "DropCalls",
    "EndedArrived",
    "Event",
    "FindPlace",
    "Finish",
    "FlushDue",
    "FlushSoon",
    "GoOn",
    "MakeCall",
    "PendingArrived",
    "Phase",
    "Rebuild",
    "Restored",
    "Resume",
    "RunMachine",
    "StartIsolate",
    "Wait",
    "WakeAt",
    "WakeDue",
    "WorkerLost",
    "failure",
]

Phase = Literal["new", "stepping", "paused", "moving", "stopping", "ended"]

MOVES: Final = 3
"""How often a run is taken to where it was after the loss of its worker."""

_HOST_CODES: Final = frozenset({"cancelled", "expired", "internal"})
"""Codes that only the host gives: an isolate that ends with one has invented it."""


def failure(code: str, message: str) -> frames.Failure:
    """A failure that the host decided: it has no place in the script."""
    return frames.Failure(code, None, message, None, None, None, None)


class RunMachine:
    """One run. `handle` takes an event and gives the commands that follow, in order.

    At most `in_flight` calls are made at once, the others wait their turn; above `calls` in total the run ends.
    """

    def __init__(self, *, calls: int, in_flight: int, wall_ms: int) -> None:
        self.phase: Phase = "new"
        self.calls_made = 0
        self.in_flight_peak = 0
        self._calls = calls
        self._limit = in_flight
        self._wall_ms = wall_ms
        self._seen: set[int] = set()
        self._waiting: deque[frames.Call] = deque()
        self._in_flight: set[int] = set()
        self._ready: list[frames.Answer] = []
        self._parked: dict[int, frames.Call] = {}
        self._again: set[int] = set()
        """Calls that were made before they were parked."""
        self._waits = False
        self._timer = False
        self._flushing = False
        self._verdict: frames.Failure | None = None
        self._moved = False
        self._moves = 0

    def start(self) -> list[Command]:
        assert self.phase == "new"
        self.phase = "stepping"
        return [StartIsolate()]

    def handle(self, event: Event) -> list[Command]:
        if self.phase == "ended":
            return []
        match event:
            case PendingArrived(calls, wake_us):
                return self._pending(calls, wake_us)
            case CallFinished(answer):
                return self._finished(answer)
            case CallParked(call):
                return self._park(call)
            case CallReleased(id):
                return self._release(id)
            case CaughtUp():
                return self._caught_up(event)
            case FlushDue():
                self._flushing = False
                return self._resume() if self.phase == "paused" and self._ready else []
            case WakeDue():
                return self._woken()
            case EndedArrived(result, reason):
                return self._ended(result, reason)
            case Restored(wake_us, stepping):
                return self._restored(wake_us, stepping)
            case WorkerLost():
                return self._lost(event)
            case DeadlinePassed():
                return self._stop(
                    failure("deadline_exceeded", f"the run took longer than its {self._wall_ms} ms of wall time")
                )
            case CancelRequested(reason):
                return self._stop(failure("cancelled", reason))
            case Condemned(verdict):
                return self._stop(verdict)

    def _pending(self, calls: Sequence[frames.Call], wake_us: int | None) -> list[Command]:
        if self.phase == "stopping":
            return []
        if self.phase != "stepping" or not self._fresh(calls):
            return self._stop(failure("internal", "the isolate broke the protocol"))
        self.phase = "paused"
        if len(self._seen) > self._calls:
            return self._stop(failure("calls_exhausted", f"the run made more than its {self._calls} tool calls"))
        self._waiting.extend(calls)
        commands = self._admit()
        if self._ready:
            return [*commands, *self._resume()]
        if not self._in_flight and wake_us is None and not self._parked:
            return self._stop(failure("never_settles", "the script waits for a promise that nothing will settle"))
        if wake_us is not None:
            self._timer = True
            commands.append(WakeAt(wake_us))
        elif self._parked:
            commands += self._idle()
        return commands

    def _fresh(self, calls: Sequence[frames.Call]) -> bool:
        """Note the calls' ids. False when one of them was there before: an answer could not be told from another."""
        before = len(self._seen)
        self._seen.update([call.id for call in calls])
        return len(self._seen) == before + len(calls)

    def _admit(self) -> list[Command]:
        commands: list[Command] = []
        while self._waiting and len(self._in_flight) < self._limit:
            call = self._waiting.popleft()
            self._in_flight.add(call.id)
            if call.id in self._again:
                self._again.discard(call.id)
            else:
                self.calls_made += 1
            commands.append(MakeCall(call))
        self.in_flight_peak = max(self.in_flight_peak, len(self._in_flight))
        return commands

    def _finished(self, answer: frames.Answer) -> list[Command]:
        if answer.id not in self._in_flight:
            return []
        self._in_flight.discard(answer.id)
        self._ready.append(answer)
        commands = self._admit() if self._waiting else []
        if self.phase == "paused":
            if not self._in_flight:
                commands += self._resume()
            elif not self._flushing:
                self._flushing = True
                commands.append(FlushSoon())
        return commands

    def _park(self, call: frames.Call) -> list[Command]:
        if call.id not in self._in_flight:
            return []
        self._in_flight.discard(call.id)
        self._parked[call.id] = call
        return [*self._admit(), *self._idle()]

    def _idle(self) -> list[Command]:
        """Wait for a person once nothing else can bring the run further."""
        if self.phase != "paused" or self._waits or self._in_flight or self._ready or self._timer or not self._parked:
            return []
        self._waits = True
        return [Wait()]

    def _release(self, id: int) -> list[Command]:
        call = self._parked.pop(id, None)
        if call is None:
            return []
        self._again.add(id)
        self._waiting.append(call)
        return [*self._go_on(), *self._admit()]

    def _go_on(self) -> list[Command]:
        if not self._waits:
            return []
        self._waits = False
        return [GoOn()]

    def _caught_up(self, event: CaughtUp) -> list[Command]:
        open_ids = {call.id for call in event.open}
        self._seen.update(event.seen)
        self.calls_made = len(self._seen - open_ids)
        if event.stepping:
            self._waiting.extend(event.open)
            return self._admit()
        self._seen -= open_ids
        return self._pending(event.open, event.wake_us)

    def _woken(self) -> list[Command]:
        if not self._timer:
            return []
        self._timer = False
        return self._resume() if self.phase == "paused" else []

    def _resume(self) -> list[Command]:
        self.phase = "stepping"
        answers, self._ready = self._ready, []
        return [Resume(answers), *self._no_timer()]

    def _ended(self, result: bytes | None, reason: frames.Failure | None) -> list[Command]:
        if self._verdict is not None:
            return self._over(None, self._verdict)
        if reason is not None and reason.code in _HOST_CODES:
            return self._over(None, failure("internal", "the isolate failed unexpectedly"))
        return self._over(result, reason)

    def _lost(self, event: WorkerLost) -> list[Command]:
        if event.untouched and self.phase == "stepping" and not self._moved:
            self._moved = True
            self.phase = "new"
            return [FindPlace()]
        if event.innocent and self.phase in ("stepping", "paused") and self._moves < MOVES and self._seen:
            self._moves += 1
            self.phase = "moving"
            return [*self._no_timer(), Rebuild()]
        return self._over(None, self._verdict or failure("worker_lost", event.reason))

    def _restored(self, wake_us: int | None, stepping: bool) -> list[Command]:
        if self.phase != "moving":
            return []
        self.phase = "stepping" if stepping else "paused"
        if stepping:
            return []
        if self._ready:
            return self._resume()
        if wake_us is None:
            return self._idle()
        self._timer = True
        return [WakeAt(wake_us)]

    def _no_timer(self) -> list[Command]:
        if not self._timer:
            return []
        self._timer = False
        return [WakeAt(None)]

    def _stop(self, verdict: frames.Failure) -> list[Command]:
        if self.phase == "stopping":
            return []
        if self.phase in ("new", "moving"):
            return self._over(None, verdict)
        self.phase = "stopping"
        self._verdict = verdict
        return [*self._drop(), CancelIsolate()]

    def _over(self, result: bytes | None, reason: frames.Failure | None) -> list[Command]:
        self.phase = "ended"
        return [*self._drop(), Finish(result, reason)]

    def _drop(self) -> list[Command]:
        commands: list[Command] = [*self._no_timer(), *self._go_on()]
        if self._in_flight or self._parked:
            self._in_flight.clear()
            self._parked.clear()
            commands.append(DropCalls())
        self._waiting.clear()
        self._ready.clear()
        return commands
