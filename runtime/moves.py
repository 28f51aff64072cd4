"""What happens to a run, and what is to be done about it: the events and commands of `runtime.run`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
class Restored:
    """A fresh isolate is where the one that was lost had been, with a timer at `wake_us` or on its way."""

    wake_us: int | None
    stepping: bool


@dataclass(slots=True)
class EndedArrived:
    """The isolate is gone, with a result (msgpack) or a failure."""

    result: bytes | None
    failure: frames.Failure | None


@dataclass(slots=True)
class WorkerLost:
    """The worker is gone. `untouched`: nothing of the run had an effect, so that it may begin again, once. `innocent`:
    the worker did not die of it, so that it may be taken to where it was elsewhere."""

    reason: str
    untouched: bool = False
    innocent: bool = False


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
    | Restored
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
class Rebuild:
    """Take the run to where it was, in another worker; `Restored` says that it is there."""


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
    StartIsolate
    | FindPlace
    | Rebuild
    | Resume
    | MakeCall
    | FlushSoon
    | WakeAt
    | Wait
    | GoOn
    | DropCalls
    | CancelIsolate
    | Finish
)
