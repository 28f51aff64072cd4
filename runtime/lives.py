"""The life of a run: a place, its calls, the way back to where it was, its record."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from typing import Final

import anyio
import structlog

from bridge.calls import CallContext
from bridge.proxy import ToolProxy
from bridge.traces import traced
from bridge.wire.errors import FrameError, Overloaded, RequestRefused, StorageError
from runtime import journal, run
from runtime.call import Held
from runtime.calls import Calls
from runtime.driver import Ending
from runtime.handles import VALUE_BYTES, Handles
from runtime.history import History, history_of
from runtime.interactions import Approvals
from runtime.live import Live
from runtime.patience import Wake
from runtime.places import Places
from runtime.revival import CannotGoOn, Revival
from runtime.settle import settle
from runtime.slot import Lost, Slot
from runtime.store.runs import RunRow, RunStore
from runtime.tasks import Tasks

REVIVALS: Final = 16
"""How many runs are taken up at a time."""
RETRY_S: Final = 1.0
"""How often the record of a run that ended on a full disk is tried again."""

_log = structlog.get_logger("executor.run")


class Lives:
    """The runs in progress, by id in `table`, and what is done with each. `closing` is set when all of it shall end."""

    def __init__(
        self,
        store: RunStore,
        places: Places,
        proxy: ToolProxy,
        approvals: Approvals,
        closing: asyncio.Event,
        handles: Handles,
        held: Held,
        wake: Wake,
    ) -> None:
        self.table: dict[str, Live] = {}
        self.calls = Tasks()
        self._store = store
        self._places = places
        self._proxy = proxy
        self._approvals = approvals
        self._handles = handles
        self._held = held
        self._wake = wake
        self._revival = Revival(store, places, REVIVALS)
        self._closing = closing

    async def through(
        self, live: Live, forget: Callable[[], None] | None, before: tuple[RunRow, bool] | None = None
    ) -> None:
        """From acceptance to the record. `forget` takes back the record of a run that nobody was promised; `before` is
        the row of a run that was begun earlier, and whether its host died."""
        try:
            if live.begun_before:
                live.journal.goes_on(*await self._store.journal_size(live.n))
            try:
                ending = await (self._drive(live) if before is None else self._drive_on(live, *before))
                if live.driver.suspended:
                    return
            except CannotGoOn as e:
                assert before is not None
                live.restore(before[0], await self.history(before[0]))
                ending = Ending(None, e.failure)
            except RequestRefused as e:
                if forget is not None:
                    forget()
                    live.refused = e
                    return
                ending = Ending(None, run.failure("worker_lost", f"no worker took the run: {e.message}"))
            except Exception as e:
                _log.error("a run could not be driven", run_id=live.id, exception=traced(e))
                ending = Ending(None, run.failure("internal", f"the run could not be driven ({type(e).__name__})"))
            await self._record(live, ending, forget)
        finally:
            self.table.pop(live.id, None)
            live.done.set()
            live.rested.set()
            if not live.output.closed:
                live.output.move()

    async def history(self, row: RunRow) -> History | None:
        """What the journal of a run tells; None where it cannot be read."""
        try:
            return history_of(journal.read(await self._store.journal(row.n)))
        except (FrameError, StorageError):
            return None

    async def _drive(self, live: Live, slot: Slot | None = None) -> Ending:
        """Take a place, run there, give it back; in `slot` the run is on its way already. Raises Overloaded."""
        driver, request = live.driver, live.request
        going = slot is not None or live.calls is not None
        try:
            if not going:
                with live.queueing:
                    await self._places.prepare(request.language)
                    slot = await self._places.acquire(driver.frame, isolation=request.isolation)
            if slot is not None and not going:
                live.started()
                driver.image = self._places.image(request.language)
                live.calls = self._calls_of(live)
                driver.start(slot, live.calls)
            while (ending := await driver.ended()) is None:
                assert slot is not None
                slot.release()
                slot = await (self._moved(live) if driver.moving else self._other_place(live))
            return ending
        finally:
            if slot is not None:
                slot.release()

    def _calls_of(self, live: Live) -> Calls:
        driver = live.driver
        return Calls(
            self._proxy,
            self._context(live),
            live.output,
            live.journal,
            self.calls,
            driver.answered,
            self._approvals,
            self._handles,
            live.request.budgets.call_value_bytes,
            driver.parked,
            driver.released,
            self._held,
            self._wake,
        )

    async def _drive_on(self, live: Live, row: RunRow, crashed: bool) -> Ending:
        """Take a run to where it was, and drive it on from there. Raises CannotGoOn."""
        live.reviving = True
        try:
            past = await self._revival.past(row, crashed=crashed)
            if not past.history.steps:
                live.reviving = False
                return await self._drive_anew(live)
            live.calls = calls = self._calls_of(live)
            peaks = json.loads(row.usage)
            calls.args_bytes, calls.value_bytes = peaks.get("call_args_bytes", 0), peaks.get("call_value_bytes", 0)
            live.driver.was_in_flight(peaks.get("bridge_calls_in_flight", 0))
            for interaction in live.early:
                calls.decided(interaction)
            slot: Slot | None = None
            with live.queueing:
                slot = await self._revival.catch_up(live, past, calls)
        finally:
            live.reviving = False
            live.revived.set()
        return await self._drive(live, slot)

    async def _drive_anew(self, live: Live) -> Ending:
        """Drive a run from its start that nobody is there to be told of a lack of places."""
        while True:
            try:
                return await self._drive(live)
            except Overloaded:
                await asyncio.sleep(RETRY_S)

    async def _other_place(self, live: Live) -> Slot | None:
        """Start a run again whose worker died before it said anything of it. None when the run ends instead."""
        driver, calls = live.driver, live.calls
        assert calls is not None
        slot: Slot | None = None
        # Its wall time has begun: whoever waits past the deadline is ended by it.
        live.queueing = anyio.CancelScope(deadline=calls.context.deadline or math.inf)
        with live.queueing:
            try:
                slot = await self._places.acquire(driver.frame, isolation=live.request.isolation)
            except Overloaded as e:
                driver.frame(Lost(f"the worker was lost, and no other took the run: {e.message}"))
        if slot is not None:
            _log.info("run_moved", run_id=live.id)
            driver.start(slot, calls)
        return slot

    async def _moved(self, live: Live) -> Slot | None:
        """Take a run to where it was, in another worker than the one that is gone. None when the run ends instead."""
        driver, calls = live.driver, live.calls
        assert calls is not None
        if live.status == "waiting" and live.journal.whole:
            driver.suspend()
            return None
        slot: Slot | None = None
        live.queueing = anyio.CancelScope(deadline=calls.context.deadline or math.inf)
        try:
            with live.queueing:
                slot = await self._revival.move(live)
        except (CannotGoOn, Overloaded) as e:
            driver.feed(run.Condemned(run.failure("worker_lost", f"the worker was lost: {e}")))
        if slot is not None:
            _log.info("run_moved", run_id=live.id)
        return slot

    def _context(self, live: Live) -> CallContext:
        request = live.request
        return CallContext(
            run_id=live.id,
            principal=request.principal,
            door="script",
            toolkit=request.toolkit,
            narrowings=request.narrowings,
            args_bytes=request.budgets.call_args_bytes,
            value_bytes=max(VALUE_BYTES, request.budgets.call_value_bytes),
            deadline=asyncio.get_running_loop().time() + request.budgets.wall_ms / 1000,
        )

    async def _record(self, live: Live, ending: Ending, forget: Callable[[], None] | None) -> None:
        """Commit how the run ended, then tell. While the disk is full the run keeps its place and is tried again."""
        blobs = await settle(live, ending)
        self._held.end(live.n)
        if live.begun_before:
            self._approvals.close(live.n)
        live.journal.ended(live.driver.usage.fuel, live.error["code"] if live.error else None)
        if forget is not None:
            # One that ended before its start was written is written once.
            forget()
        row = live.row()
        while True:
            closing = self._closing.is_set()
            try:
                await self._store.finish(row, blobs, lambda: live.journal.whole)
                break
            except StorageError as e:
                e.details = {"run_id": live.id, "status": live.status}
                live.refused = e
                live.output.close(live.status)
                live.done.set()
                live.rested.set()
                if closing:
                    _log.error("the record of a run is lost: the disk is full", run_id=live.id)
                    return
                with anyio.move_on_after(RETRY_S):
                    await self._closing.wait()
        live.output.close(live.status)
