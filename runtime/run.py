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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bridge.wire import frames

# Events


@dataclass(slots=True)
class PendingArrived:
    """The isolate paused with these new calls; `wake_us` is when its next timer is due on the virtual clock."""

    calls: Sequence[frames.Call]
    wake_us: int | None


@dataclass(slots=True)
class CallFinished:
    answer: frames.Answer


@dataclass(slots=True)
class CallParked:
    """A call waits for a person."""

    call: frames.Call


@dataclass(slots=True)
class CallReleased:
    """A call need not wait for a person any more: it is made again."""

    id: int


@dataclass(slots=True)
class CaughtUp:
    """A fresh isolate has been taken through a run's history. `open` are the calls without an answer, `seen` the ids of
    all; `stepping` when the isolate is on its way already, else it is paused, with a timer at `wake_us`."""

    open: Sequence[frames.Call]
    seen: Iterable[int]
    wake_us: int | None
    stepping: bool


@dataclass(slots=True)
class EndedArrived:
    """The isolate is gone, with a result (msgpack) or a failure."""

    result: bytes | None
    failure: frames.Failure | None


@dataclass(slots=True)
class WorkerLost:
    """The worker is gone. `untouched`: nothing of the run had an effect, so that it may begin again, once."""

    reason: str
    untouched: bool = False


@dataclass(slots=True)
class DeadlinePassed:
    """The wall time is used up."""


@dataclass(slots=True)
class CancelRequested:
    reason: str


@dataclass(slots=True)
class Condemned:
    """The host refuses what the isolate said: the run ends with this failure."""

    failure: frames.Failure


@dataclass(slots=True)
class WakeDue:
    """The timer that the isolate waits for is due."""


@dataclass(slots=True)
class FlushDue:
    """Whatever was ready together is here now."""


Event = (
    PendingArrived
    | CallFinished
    | CallParked
    | CallReleased
    | CaughtUp
    | EndedArrived
    | WorkerLost
    | DeadlinePassed
    | CancelRequested
    | Condemned
    | WakeDue
    | FlushDue
)

# Commands


@dataclass(slots=True)
class StartIsolate:
    pass


@dataclass(slots=True)
class FindPlace:
    """Look for a place in another worker, then `start` again."""


@dataclass(slots=True)
class Resume:
    """Step the isolate with these answers; none when a timer is due."""

    answers: list[frames.Answer]


@dataclass(slots=True)
class MakeCall:
    call: frames.Call


@dataclass(slots=True)
class FlushSoon:
    """Send FlushDue once what is ready at this moment has been reported."""


@dataclass(slots=True)
class WakeAt:
    """Send WakeDue at this virtual time; it replaces an earlier WakeAt. None: no timer is waited for any more."""

    wake_us: int | None


@dataclass(slots=True)
class Wait:
    """From here on only a person can bring the run further."""


@dataclass(slots=True)
class GoOn:
    """The run does not wait for a person any more."""


@dataclass(slots=True)
class DropCalls:
    """Abandon every call in flight; their answers are not wanted any more."""


@dataclass(slots=True)
class CancelIsolate:
    pass


@dataclass(slots=True)
class Finish:
    """The run has ended, once and for all: with a result or a failure."""

    result: bytes | None
    failure: frames.Failure | None


Command = (
    StartIsolate | FindPlace | Resume | MakeCall | FlushSoon | WakeAt | Wait | GoOn | DropCalls | CancelIsolate | Finish
)

Phase = Literal["new", "stepping", "paused", "stopping", "ended"]

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
            case WorkerLost(reason, untouched):
                return self._lost(reason, untouched)
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
        commands: list[Command] = list(self._admit())
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
        self._seen.update(call.id for call in calls)
        return len(self._seen) == before + len(calls)

    def _admit(self) -> Iterator[Command]:
        while self._waiting and len(self._in_flight) < self._limit:
            call = self._waiting.popleft()
            self._in_flight.add(call.id)
            if call.id in self._again:
                self._again.discard(call.id)
            else:
                self.calls_made += 1
            yield MakeCall(call)
        self.in_flight_peak = max(self.in_flight_peak, len(self._in_flight))

    def _finished(self, answer: frames.Answer) -> list[Command]:
        if answer.id not in self._in_flight:
            return []
        self._in_flight.discard(answer.id)
        self._ready.append(answer)
        commands: list[Command] = list(self._admit()) if self._waiting else []
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
            return list(self._admit())
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
        commands: list[Command] = [Resume(answers)]
        if self._timer:
            self._timer = False
            commands.append(WakeAt(None))
        return commands

    def _ended(self, result: bytes | None, reason: frames.Failure | None) -> list[Command]:
        if self._verdict is not None:
            return self._over(None, self._verdict)
        if reason is not None and reason.code in _HOST_CODES:
            return self._over(None, failure("internal", "the isolate failed unexpectedly"))
        return self._over(result, reason)

    def _lost(self, reason: str, untouched: bool) -> list[Command]:
        if untouched and self.phase == "stepping" and not self._moved:
            self._moved = True
            self.phase = "new"
            return [FindPlace()]
        return self._over(None, self._verdict or failure("worker_lost", reason))

    def _stop(self, verdict: frames.Failure) -> list[Command]:
        if self.phase == "stopping":
            return []
        if self.phase == "new":
            return self._over(None, verdict)
        self.phase = "stopping"
        self._verdict = verdict
        return [*self._drop(), CancelIsolate()]

    def _over(self, result: bytes | None, reason: frames.Failure | None) -> list[Command]:
        self.phase = "ended"
        return [*self._drop(), Finish(result, reason)]

    def _drop(self) -> list[Command]:
        commands: list[Command] = []
        if self._timer:
            self._timer = False
            commands.append(WakeAt(None))
        commands += self._go_on()
        if self._in_flight or self._parked:
            self._in_flight.clear()
            self._parked.clear()
            commands.append(DropCalls())
        self._waiting.clear()
        self._ready.clear()
        return commands
