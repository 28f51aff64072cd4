"""A run taken through its history again: the isolate gets what it got then, and must ask what it asked then."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bridge.wire import frames
from runtime.driver import Script
from runtime.history import History, Known, Step
from runtime.slot import Lost, Slot

Frame = frames.Pending | frames.Ended | Lost
Load = Callable[[bytes], Awaitable[bytes]]
"""Gives the bytes of a blob by its SHA-256."""


class Diverged(Exception):
    """Raised when a run does not do again what it did: `step` counts pauses from 1, `what` names what differs."""

    def __init__(self, step: int, what: str, recorded: Any, replayed: Any) -> None:
        super().__init__(f"step {step}: {what} differs")
        self.step = step
        self.what = what
        self.recorded = recorded
        self.replayed = replayed

    def as_dict(self) -> dict[str, Any]:
        return {"step": self.step, "what": self.what, "recorded": self.recorded, "replayed": self.replayed}


class Audience(Protocol):
    """Follows a rehearsal."""

    def heard(self, frame: frames.Pending) -> None:
        """The isolate has paused as it did before."""

    def told(self, answers: Sequence[frames.Answer]) -> None:
        """It goes on with these answers."""


class Heard:
    """The sink of a slot whose frames are awaited one by one, until they go `onward`."""

    def __init__(self) -> None:
        self._onward: Callable[[Frame], None] | None = None
        self._frames: asyncio.Queue[Frame] = asyncio.Queue()

    def __call__(self, frame: Frame) -> None:
        if self._onward is not None:
            self._onward(frame)
        else:
            self._frames.put_nowait(frame)

    def onward(self, take: Callable[[Frame], None], first: Frame | None = None) -> None:
        """Give `take` the frame `first`, those that nobody has awaited, and every later one."""
        self._onward = take
        if first is not None:
            take(first)
        while not self._frames.empty():
            take(self._frames.get_nowait())

    async def next(self) -> Frame:
        return await self._frames.get()


@dataclass(slots=True)
class Reached:
    """Where the history ends: the last frame, the calls that have no answer by then, how many steps were taken."""

    frame: Frame | None = None
    open: dict[int, frames.Call] = field(default_factory=dict)
    steps: int = 0


async def rehearse(
    slot: Slot, heard: Heard, script: Script, history: History, load: Load, audience: Audience, *, exact: bool
) -> Reached:
    """Start `script` and take it through `history`; `exact` compares the fuel and the timers too.

    A history whose last step went on ends with the frame after it, which `audience` has not heard; the others with
    their last pause. Raises Diverged; a worker that is lost on the way is the frame that was reached.
    """
    reached = Reached()
    slot.start(
        language=script.language,
        source=script.source,
        input=script.input,
        seed=script.seed,
        now_us=history.now_us,
        limits=script.budgets.limits(),
    )
    for step in history.steps:
        frame = reached.frame = await heard.next()
        if isinstance(frame, Lost):
            return reached
        reached.steps += 1
        _compare(reached.steps, step, frame, exact)
        assert isinstance(frame, frames.Pending)
        audience.heard(frame)
        reached.open.update((call.id, call) for call in frame.calls)
        if step.went is None:
            return reached
        answers = [await _answer(known, load) for known in step.went.answers]
        for answer in answers:
            reached.open.pop(answer.id, None)
        audience.told(answers)
        slot.resume(step.went.now_us, answers)
    reached.frame = await heard.next()
    return reached


async def _answer(known: Known, load: Load) -> frames.Answer:
    value = known.value
    return frames.Answer(known.id, known.ok, value if isinstance(value, bytes) else await load(value[0]))


def _compare(number: int, step: Step, frame: frames.Pending | frames.Ended, exact: bool) -> None:
    if isinstance(frame, frames.Ended):
        code = frame.failure.code if frame.failure is not None else "completed"
        raise Diverged(number, "outcome", "paused", code)
    recorded = [_shown(each.id, each.path, each.meta, each.args_sha256) for each in step.asked]
    replayed = [_shown(each.id, each.path, each.meta, hashlib.sha256(each.args).digest()) for each in frame.calls]
    if recorded != replayed:
        raise Diverged(number, "calls", recorded, replayed)
    if exact and step.fuel != frame.usage.fuel:
        raise Diverged(number, "fuel", step.fuel, frame.usage.fuel)
    if exact and step.wake_us != frame.wake_us:
        raise Diverged(number, "timer", step.wake_us, frame.wake_us)


def _shown(id: int, path: str, meta: bool, args_sha256: bytes) -> dict[str, Any]:
    return {"id": id, "path": path, "meta": bool(meta), "args_sha256": args_sha256.hex()}
