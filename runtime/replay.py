"""Replays of runs that have ended: done again from their journals, without a call outside, and compared."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from bridge.wire import frames
from bridge.wire.errors import Conflict, FrameError, InvalidRequest, Overloaded, Unserializable
from runtime import journal, values
from runtime.budgets import Budgets
from runtime.driver import Script
from runtime.history import History, history_of
from runtime.live import record_of
from runtime.output import NotAValue, Output, OutputTooLarge
from runtime.places import Places
from runtime.rehearsal import Diverged, Heard, Reached, rehearse
from runtime.results import TERMINAL, ReplayReport
from runtime.slot import Lost
from runtime.store.runs import RunRow, RunStore

TIMES_LONGER: Final = 3
"""A replay may compute so many times as long as the run was allowed to: the machine may be busier now."""
_BY_HOST: Final = frozenset({"cancelled", "expired", "deadline_exceeded", "worker_lost", "internal"})
"""Codes of runs that were ended from outside: what the isolate did then is in no journal."""
_BY_SIZE: Final = frozenset({"result_too_large", "unserializable"})
"""Codes that the host may give to a result of the isolate."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    """How a run ended: the fuel, the code (None: a result), and whether its isolate did that by itself."""

    fuel: int
    code: str | None
    by_itself: bool


class _Listener:
    """Keeps what a replay says."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.fuel = 0

    def heard(self, frame: frames.Pending | frames.Ended) -> None:
        self.fuel = frame.usage.fuel
        self.output.log(frame.logs)
        with suppress(OutputTooLarge, *NotAValue):
            self.output.emit(frame.emitted)

    def told(self, answers: Sequence[frames.Answer]) -> None:
        """Answers are no output."""


class Replays:
    def __init__(self, store: RunStore, places: Places) -> None:
        self._store = store
        self._places = places

    async def replay(self, row: RunRow) -> ReplayReport:
        """Do a run again. Raises Conflict for one that cannot be replayed, Overloaded when there is no place."""
        if row.status not in TERMINAL:
            raise Conflict(f"the run is {row.status}: only a run that has ended can be replayed")
        if not row.journal_whole:
            raise Conflict("the journal of the run grew past its limit and is not whole: it cannot be replayed")
        try:
            history = history_of(journal.read(await self._store.journal(row.n)))
        except FrameError as e:
            raise Conflict(f"{e.message}: the run cannot be replayed") from None
        recorded = _recorded(row, history)
        try:
            await self._places.prepare(row.language)
        except InvalidRequest as e:
            raise Conflict(f"the run cannot be replayed: {e.message}", hint=e.hint) from None
        present = self._places.image(row.language)
        before = history.image or row.image or ""
        report = ReplayReport(
            run_id=row.id,
            same=True,
            complete=recorded.by_itself,
            steps=0,
            calls=0,
            fuel={"recorded": recorded.fuel, "replayed": 0},
            image={"recorded": before, "present": present},
        )
        if not row.clock_us or (not recorded.by_itself and not history.steps):
            return report
        try:
            await self._again(row, history, recorded, report)
        except Diverged as e:
            report.same = False
            report.divergence = e.as_dict()
        return report

    async def _again(self, row: RunRow, history: History, recorded: _Recorded, report: ReplayReport) -> None:
        if not history.steps:
            history.seed, history.now_us = row.seed, int(row.clock_us or 0)
        if not recorded.by_itself and history.steps[-1].went is not None:
            history.steps[-1].went = None
        budgets = Budgets(**json.loads(row.budgets))
        longer = budgets._replace(wall_ms=budgets.wall_ms * TIMES_LONGER)
        script = Script(row.language, row.source, row.input, history.seed, longer)
        output, same_image = Output(budgets.log_bytes, budgets.result_bytes), report.same_image
        heard = Heard()
        slot = await self._places.acquire(heard, isolation=row.isolation)
        listener = _Listener(output)

        async def load(sha256: bytes) -> bytes:
            found = await self._store.blob(row.n, sha256)
            if found is None:
                raise Conflict("a value of the journal is gone: the run cannot be replayed")
            return found[0]

        try:
            async with asyncio.timeout(longer.wall_ms / 1000):
                reached = await rehearse(slot, heard, script, history, load, listener, exact=same_image)
            if isinstance(reached.frame, frames.Ended):
                listener.heard(reached.frame)
        except TimeoutError:
            raise Overloaded("the replay took longer than it may", hint="try again when less is running") from None
        finally:
            slot.release()
            report.fuel["replayed"] = listener.fuel
        report.steps, report.calls = reached.steps, history.calls
        if isinstance(reached.frame, Lost):
            raise Overloaded(f"the worker of the replay was lost: {reached.frame.reason}")
        if recorded.by_itself:
            self._compare(row, recorded, reached, output, report)

    def _compare(
        self, row: RunRow, recorded: _Recorded, reached: Reached, output: Output, report: ReplayReport
    ) -> None:
        at, frame = reached.steps + 1, reached.frame
        code: str | None = "paused"
        if isinstance(frame, frames.Ended):
            code = None if frame.failure is None else frame.failure.code
        elif isinstance(frame, frames.Pending) and recorded.code in ("never_settles", "calls_exhausted"):
            # The host said so of the pause that was reached.
            code = recorded.code
        if code != recorded.code and not (code is None and recorded.code in _BY_SIZE):
            raise Diverged(at, "outcome", recorded.code or "completed", code or "completed")
        if report.same_image and report.fuel["recorded"] != report.fuel["replayed"]:
            raise Diverged(at, "fuel", report.fuel["recorded"], report.fuel["replayed"])
        record = record_of(row)
        if isinstance(frame, frames.Ended) and frame.result is not None and recorded.code is None:
            was, now = _digest_of(row), _digest(frame.result, stored=row.result_ref is not None)
            if was != now:
                raise Diverged(at, "result", {"sha256": was}, {"sha256": now})
        if record.logs != output.logs:
            raise Diverged(at, "logs", len(record.logs), len(output.logs))
        if len(record.emitted) != len(output.emitted):
            raise Diverged(at, "emitted", len(record.emitted), len(output.emitted))


def _recorded(row: RunRow, history: History) -> _Recorded:
    code = None if row.error is None else json.loads(row.error)["code"]
    fuel = int(json.loads(row.usage).get("fuel", 0))
    if history.ending is not None:
        fuel, code = history.ending
    return _Recorded(fuel, code, code not in _BY_HOST)


def _digest_of(row: RunRow) -> str:
    if row.result_ref is not None:
        return str(json.loads(row.result_ref)["sha256"])
    return hashlib.sha256(row.result or b"").hexdigest()


def _digest(result: bytes, *, stored: bool) -> str:
    try:
        return hashlib.sha256(values.document(values.vetted(result)) if stored else result).hexdigest()
    except (FrameError, Unserializable) as e:
        return f"unreadable: {e.message}"
