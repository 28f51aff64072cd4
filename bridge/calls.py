"""One call as data: who makes it, what is recorded of it, what comes back."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol

from bridge.policy import Effect
from bridge.view import Narrowing
from catalog.model import SideEffect

Door = Literal["script", "http", "cli", "sdk", "mcp"]
Outcome = Literal["decided", "sending", "done", "failed", "unknown"]

ARGS_BYTES: Final = 1024 * 1024
VALUE_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who calls and within which bounds. `deadline` is on `anyio.current_time()`'s clock; sizes are msgpack bytes.

    `toolkit` and every one of `narrowings` leave something out of what there is to see and to call.
    """

    run_id: str | None = None
    principal: str = "sdk"
    door: Door = "sdk"
    toolkit: str | None = None
    narrowings: tuple[Narrowing, ...] = ()
    args_bytes: int = ARGS_BYTES
    value_bytes: int = VALUE_BYTES
    deadline: float | None = None


@dataclass(slots=True)
class CallRecord:
    """What the journal keeps of a call: never an argument, a value or a secret.

    `outcome` is `decided` until the call is about to leave, then `sending`, and at the end `done`, `failed`, or
    `unknown` where it was sent and no answer came. `code` is the ToolError's, `status` the last HTTP status.
    `idempotent`: it may be made again when nobody knows what became of it.
    `answered` is the interaction whose answer has left with it, where its server asked a person something.
    `started_at` is wall-clock time in seconds, `duration_ms` is measured on a monotonic clock; both are whole
    microseconds.
    """

    id: int
    path: str
    side_effect: SideEffect = "unknown"
    decision: Effect | None = None
    rule: str | None = None
    outcome: Outcome = "decided"
    code: str | None = None
    args_bytes: int = 0
    value_bytes: int = 0
    started_at: float = 0.0
    duration_ms: float = 0.0
    sent: bool = False
    status: int | None = None
    idempotent: bool = False
    answered: str | None = None


def wall_clock() -> float:
    """Seconds since the Unix epoch, in whole microseconds."""
    return time.time_ns() // 1000 / 1e6


def since_ms(began_ns: int) -> float:
    """Milliseconds since `began_ns` of `time.perf_counter_ns()`, in whole microseconds."""
    return (time.perf_counter_ns() - began_ns) // 1000 / 1000


class CallOutcome(NamedTuple):
    """A call that succeeded. `encoded` is the msgpack of `value`, or of `{value, http}` where meta was asked for."""

    value: Any
    http: dict[str, Any] | None
    record: CallRecord
    encoded: bytes


class CallJournal(Protocol):
    """Hears of a call as it goes. Each call of the proxy ends in exactly one `finished`, however it ends."""

    async def sending(self, record: CallRecord) -> None:
        """The call is about to have its effect. Unless `record.side_effect` is `read`, this must be durable when it
        returns; an exception here stops the call before anything left."""
        ...

    def finished(self, record: CallRecord) -> None:
        """The call has ended. This does not wait, so that no cancellation can come between."""
        ...
