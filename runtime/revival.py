"""Runs taken up again: those that waited for a person, and those that were running when their host died."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgpack
import structlog

from bridge.wire import frames
from bridge.wire.errors import FrameError, Overloaded, ToolError
from runtime import journal, output, run
from runtime.call import Known
from runtime.calls import Calls
from runtime.history import History, history_of
from runtime.live import Live
from runtime.output import NotAValue, Output, OutputTooLarge
from runtime.places import Places
from runtime.rehearsal import Diverged, Heard, Reached, rehearse
from runtime.slot import Lost, Slot
from runtime.store.interactions import InteractionRow
from runtime.store.runs import RunRow, RunStore

TRIES: Final = 3
"""In how many workers a history is tried."""
CRASHES: Final = 5
"""How often a run is taken up after the death of its host without getting any further."""
LEAST_S: Final = 1.0
"""Wall time that a run has left at least when it is taken up after the death of its host, which may happen a few times.
One that waited for a person has what it had: otherwise each approval would lengthen it."""
_RETRY_S: Final = 0.25
_TIMES_LONGER: Final = 3

_log = structlog.get_logger("executor.run")


class CannotGoOn(Exception):
    """Raised for a run that cannot be taken up; `failure` is how it ends."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.failure = run.failure(code, message)


@dataclass(slots=True)
class Past:
    """What is kept of a run that is to be taken up."""

    row: RunRow
    history: History
    interactions: dict[int, InteractionRow]
    calls: dict[int, dict[str, Any]]
    """The facts of its calls with an effect, by id."""
    questions: dict[int, InteractionRow] = field(default_factory=dict)
    """The newest question that the server of a call asked in the middle of it, by call."""
    crashed: bool = False
    """Whether its host died while it ran."""


@dataclass(slots=True)
class _Retold:
    """Makes the output of a run anew from its rehearsal."""

    out: Output
    facts: dict[int, dict[str, Any]]
    usage: frames.Usage | None = None
    places: dict[int, int] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    def heard(self, frame: frames.Pending) -> None:
        out = self.out
        self.usage = frame.usage
        out.log(frame.logs)
        with suppress(OutputTooLarge, *NotAValue):
            out.emit(frame.emitted)
        for call in frame.calls:
            self.sizes[call.id] = len(call.args)
            self.places[call.id] = out.call_started({"id": call.id, "path": call.path, "outcome": "sending"})

    def told(self, answers: Sequence[frames.Answer]) -> None:
        out = self.out
        for answer in answers:
            index = self.places.pop(answer.id)
            out.call_ended(index, self.facts.get(answer.id) or self._facts(out.calls[index], answer))

    def _facts(self, started: dict[str, Any], answer: frames.Answer) -> dict[str, Any]:
        known = started | {
            "outcome": "done" if answer.ok else "failed",
            "args_bytes": self.sizes[answer.id],
            "value_bytes": len(answer.value) if answer.ok else 0,
        }
        if not answer.ok:
            with suppress(ValueError, TypeError, KeyError):
                error = msgpack.unpackb(answer.value, raw=False)
                known |= {"code": error["code"], "error": {"code": error["code"], "message": error["message"]}}
        return known


class Revival:
    """Takes runs up. At most `at_once` are on their way at a time, so that they do not crowd out what is new."""

    def __init__(self, store: RunStore, places: Places, at_once: int) -> None:
        self._store = store
        self._places = places
        self._turns = asyncio.Semaphore(at_once)

    async def past(self, row: RunRow, *, crashed: bool) -> Past:
        """What is kept of a run. Raises CannotGoOn."""
        if not row.journal_whole:
            raise CannotGoOn(
                "worker_lost", "the host stopped, and the run's journal is not whole: it cannot be taken up"
            )
        if crashed:
            if row.taken_up >= CRASHES:
                raise CannotGoOn("worker_lost", f"the host stopped {CRASHES + 1} times where the run now is")
            await self._store.take_up(row.n)
        try:
            history = history_of(journal.read(await self._store.journal(row.n)))
        except FrameError as e:
            raise CannotGoOn("internal", f"the run cannot be taken up: {e.message}") from None
        ended = history.ending is not None and history.steps and history.steps[-1].went is None
        if ended and history.ending is not None and history.ending[1] is not None:
            raise CannotGoOn(history.ending[1], "the run was being ended when its host stopped")
        for id, known in history.early.items():
            if not isinstance(known.value, bytes):
                history.early[id] = known._replace(value=await self._blob(row.n, known.value[0]))
        asked = await self._store.interactions.of_run(row.n)
        interactions = {one.call: one for one in asked}
        questions = {one.call: one for one in asked if one.kind == "input"}
        calls = {facts["id"]: facts for facts in await self._store.calls(row.n)}
        if not history.steps and (interactions or calls):
            # Begun anew it would make the calls again that it is known to have made.
            raise CannotGoOn("internal", "the run cannot be taken up: its journal is lost")
        return Past(row, history, interactions, calls, questions, crashed)

    async def catch_up(self, live: Live, past: Past, calls: Calls) -> Slot:
        """A slot whose isolate is where the run was; `live` goes on in it when this returns. Raises CannotGoOn."""
        async with self._turns:
            await self._places.prepare(live.request.language)
            live.driver.image = self._places.image(live.request.language)
            for _ in range(TRIES):
                heard = Heard()
                slot = await self._acquire(live, heard)
                try:
                    reached, retold = await self._rehearse(live, past, slot, heard)
                    if not isinstance(reached.frame, Lost):
                        self._take_over(live, past, calls, slot, heard, reached, retold)
                        return slot
                except BaseException:
                    slot.release()
                    raise
                slot.release()
            raise CannotGoOn("worker_lost", f"{TRIES} workers were lost while the run was taken up")

    async def move(self, live: Live) -> Slot:
        """A slot in another worker whose isolate is where that of `live` was lost; it goes on when this returns.

        Raises CannotGoOn, Overloaded.
        """
        if not live.journal.whole:
            raise CannotGoOn("worker_lost", "the run's journal is not whole, so that it cannot go on in another")
        try:
            history = history_of(journal.read(await self._store.journal(live.n)))
        except FrameError as e:
            raise CannotGoOn("internal", e.message) from None
        past = Past(live.row(), history, {}, {})
        stepping = history.steps[-1].went is not None
        for _ in range(TRIES):
            heard = Heard()
            slot = await self._places.acquire(heard, isolation=live.request.isolation)
            try:
                reached, _ = await self._rehearse(live, past, slot, heard)
                if not isinstance(reached.frame, Lost):
                    live.driver.restored(slot, run.Restored(history.steps[-1].wake_us, stepping))
                    heard.onward(live.driver.frame, reached.frame if stepping else None)
                    return slot
                if stepping and not reached.frame.innocent:
                    # What it was computing when its worker was lost has cost another one.
                    raise CannotGoOn("worker_lost", reached.frame.reason)
            except BaseException:
                slot.release()
                raise
            slot.release()
        raise CannotGoOn("worker_lost", f"{TRIES} more workers were lost while the run was taken on")

    async def _blob(self, n: int, sha256: bytes) -> bytes:
        found = await self._store.blob(n, sha256)
        if found is None:
            raise CannotGoOn("internal", "the run cannot be taken up: a value of its journal is gone")
        return found[0]

    async def _acquire(self, live: Live, heard: Heard) -> Slot:
        while True:
            try:
                return await self._places.acquire(heard, isolation=live.request.isolation)
            except Overloaded:
                await asyncio.sleep(_RETRY_S)

    async def _rehearse(self, live: Live, past: Past, slot: Slot, heard: Heard) -> tuple[Reached, _Retold]:
        budgets = live.request.budgets
        longer = budgets._replace(wall_ms=budgets.wall_ms * _TIMES_LONGER)
        script = replace(live.script, budgets=longer)
        same_image = past.history.image == live.driver.image
        retold = _Retold(Output(budgets.log_bytes, budgets.result_bytes), past.calls)

        async def load(sha256: bytes) -> bytes:
            return await self._blob(past.row.n, sha256)

        try:
            async with asyncio.timeout(longer.wall_ms / 1000):
                return await rehearse(slot, heard, script, past.history, load, retold, exact=same_image), retold
        except Diverged as e:
            _log.error("a run went another way", run_id=live.id, same_image=same_image, **e.as_dict())
            image = "" if same_image else "; the guest image is another one now"
            raise CannotGoOn(
                "internal", f"the run cannot be taken up: step {e.step} differs from its journal in {e.what}{image}"
            ) from None
        except TimeoutError:
            raise CannotGoOn("deadline_exceeded", "the run took too long to be taken up again") from None

    def _take_over(
        self, live: Live, past: Past, calls: Calls, slot: Slot, heard: Heard, reached: Reached, retold: _Retold
    ) -> None:
        history, driver = past.history, live.driver
        _restore_order(retold.out, past.row)
        live.output.become(retold.out)
        driver.usage = retold.usage or driver.usage
        held = calls.held()
        known = {id: told for id in reached.open if id not in held and (told := _known(id, past)) is not None}
        calls.restore(retold.places, known, past.interactions, past.questions)
        last = history.steps[-1]
        stepping = last.went is not None
        times = [step.went.now_us for step in history.steps if step.went is not None]
        now_us = times[-1] if times else history.now_us
        live.started()
        spent = live.wall_s or (now_us - history.now_us) / 1e6
        least_s = LEAST_S if past.crashed else 0.0
        left_s = max(least_s, live.request.budgets.wall_ms / 1000 - spent)
        driver.started_us = history.now_us
        seen = [asked.id for step in history.steps for asked in step.asked]
        wake_us = None if stepping else last.wake_us
        caught_up = run.CaughtUp(list(reached.open.values()), seen, wake_us, stepping)
        driver.take_over(slot, calls, caught_up, now_us, left_s)
        calls.bound(driver.deadline)
        heard.onward(driver.frame, reached.frame if stepping else None)


def _restore_order(out: Output, row: RunRow) -> None:
    """Keep the order of events that was told before, where it tells of the same things."""
    calls: list[dict[str, Any]] = msgpack.unpackb(row.calls, raw=False)
    timeline = [(kind, what) for kind, what in msgpack.unpackb(row.timeline, raw=False)]
    if _things(timeline) == _things(out.timeline) and len(calls) == len(out.calls):
        out.calls[:] = calls
        out.timeline[:] = timeline
    else:
        out.timeline[:0] = [(output.STATUS, "queued"), (output.STATUS, "running")]


def _things(timeline: list[output.Mark]) -> list[int]:
    """How many log lines, emitted values and started calls a timeline has."""
    kinds = [kind for kind, _ in timeline]
    return [kinds.count(kind) for kind in (output.LOG, output.EMIT, output.CALL_STARTED)]


def _known(id: int, past: Past) -> Known | None:
    """What is known of an open call without making it again; None: it is made."""
    facts = past.calls.get(id)
    answer = past.history.early.get(id)
    if answer is not None:
        return Known(frames.Answer(*answer), facts)
    if facts is None or facts.get("idempotent"):
        return None
    asked = past.questions.get(id)
    if asked is not None and asked.resume is not None and asked.state != "void" and facts.get("answered") != asked.id:
        # Its server waits for what a person answers, and says itself how to go on from there.
        return None
    done = facts["outcome"] in ("done", "failed")
    what = "was made, and its answer was lost" if done else "had been sent, and nobody knows what became of it"
    error = ToolError(
        "outcome_unknown",
        f"The host stopped while this call was under way: it {what}.",
        path=facts["path"],
        hint="Check whether it took effect before you repeat it.",
    )
    return Known(error, facts | {"outcome": "done" if done else "unknown", "code": "outcome_unknown"})
