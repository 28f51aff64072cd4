"""Drives one run through a dispatcher, answering its calls at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge.wire.frames import Answer, Call, Ended, Limits, Log, Pending
from runtime.dispatcher import Dispatcher, Lost, Slot

NIL = b"\xc0"
LIMITS = Limits(
    fuel=2 * 10**10,
    memory_bytes=64 << 20,
    wall_ms=30_000,
    bridge_calls=256,
    call_args_bytes=1 << 20,
    result_bytes=64 << 20,
    log_bytes=1 << 16,
)


@dataclass
class Outcome:
    """How a run ended, and what it had said by then."""

    ending: Ended | Lost
    calls: list[Call] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    emitted: list[bytes] = field(default_factory=list)

    @property
    def ended(self) -> Ended:
        assert isinstance(self.ending, Ended), self.ending
        return self.ending

    @property
    def result(self) -> bytes:
        assert self.ended.result is not None, self.ended.failure
        return self.ended.result

    @property
    def code(self) -> str | None:
        return self.ended.failure.code if self.ended.failure is not None else None


class Inbox:
    """What a worker says about one run, in order."""

    def __init__(self) -> None:
        self._frames: asyncio.Queue[Pending | Ended | Lost] = asyncio.Queue()

    def __call__(self, frame: Pending | Ended | Lost) -> None:
        self._frames.put_nowait(frame)

    async def next(self) -> Pending | Ended | Lost:
        async with asyncio.timeout(30):
            return await self._frames.get()

    async def paused(self) -> Pending:
        frame = await self.next()
        assert isinstance(frame, Pending), frame
        return frame

    @property
    def empty(self) -> bool:
        return self._frames.empty()


def begin(
    slot: Slot, source: str, *, language: str = "javascript", limits: Limits = LIMITS, value: bytes = NIL
) -> None:
    slot.start(language=language, source=source, input=value, seed=1, now_us=0, limits=limits)


async def run(
    dispatcher: Dispatcher,
    source: str,
    *,
    language: str = "javascript",
    limits: Limits = LIMITS,
    answer: Callable[[Call], bytes] = lambda call: call.args,
    isolation: str | None = None,
    value: bytes = NIL,
) -> Outcome:
    """The whole run; each call gets `answer(call)`, a timer is due at once."""
    inbox = Inbox()
    slot = await dispatcher.acquire(inbox, isolation=isolation)
    try:
        begin(slot, source, language=language, limits=limits, value=value)
        outcome = Outcome(Lost("not yet"))
        while isinstance(frame := await inbox.next(), Pending):
            outcome.calls += frame.calls
            outcome.logs += frame.logs
            outcome.emitted += frame.emitted
            slot.resume(frame.wake_us or 0, [Answer(call.id, True, answer(call)) for call in frame.calls])
        outcome.ending = frame
        if isinstance(frame, Ended):
            outcome.logs += frame.logs
            outcome.emitted += frame.emitted
        return outcome
    finally:
        slot.release()
