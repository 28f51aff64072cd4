"""Runs as a service: admission, the life of each, and what can be asked about them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final

import anyio
import structlog

from bridge.calls import CallContext, CallOutcome, CallRecord, Door
from bridge.proxy import ToolProxy
from bridge.traces import traced
from bridge.view import Narrowing
from bridge.wire.errors import Conflict, Overloaded, RequestRefused, StorageFull
from runtime import run
from runtime.budgets import BudgetPolicy
from runtime.calls import Calls, facts
from runtime.driver import Ending
from runtime.journal import Journal, call_row
from runtime.live import Live
from runtime.places import Places
from runtime.records import Records, plain
from runtime.replay import Replays
from runtime.request import RunRequest, checked
from runtime.results import ReplayReport, RunRecord, RunResult
from runtime.settle import settle
from runtime.slot import Lost, Slot
from runtime.store.runs import NO_RUN, RunStore
from runtime.tasks import Tasks

CLOSE_S: Final = 30.0
"""How long closing waits for runs to end; a worker's grace is far shorter."""
RETRY_S: Final = 1.0
"""How often the record of a run that ended on a full disk is tried again."""

_log = structlog.get_logger("executor.run")


class Runs:
    """Every run of one Executor: those in progress here, those that ended in the store."""

    def __init__(
        self,
        store: RunStore,
        places: Places,
        proxy: ToolProxy,
        policy: BudgetPolicy,
        *,
        languages: tuple[str, ...],
        isolation: str,
        max_live: int,
        journal_bytes: int,
    ) -> None:
        self._store = store
        self._places = places
        self._proxy = proxy
        self._policy = policy
        self._languages = languages
        self._isolation = isolation
        self._max_live = max_live
        self._journal_bytes = journal_bytes
        self._live: dict[str, Live] = {}
        self.records = Records(store, self._live)
        self._replays = Replays(store, places)
        self._once_lock = asyncio.Lock()
        self._lives = Tasks()
        self._calls = Tasks()
        self._closing = asyncio.Event()

    async def run(self, code: Any, *, wait: bool, principal: str, **asked: Any) -> RunResult:
        """See `Executor.run`."""
        request = checked(
            self._policy,
            code,
            languages=self._languages,
            default_isolation=self._isolation,
            principal=principal,
            **asked,
        )
        self._proxy.check_view(request.toolkit, request.narrowings)
        if request.idempotency_key is None:
            live = await self._accept(request, durable=not wait)
            return await self._attend(live) if wait else live.answer()
        return await self._once(request, wait)

    async def wait(self, run_id: str) -> RunRecord:
        live = self._live.get(run_id)
        if live is not None:
            await live.done.wait()
        return await self.records.get(run_id)

    async def cancel(self, run_id: str) -> RunRecord:
        live = self._live.get(run_id)
        if live is not None:
            live.cancel("the run was cancelled on request")
        return await self.wait(run_id)

    async def replay(self, run_id: str) -> ReplayReport:
        """See `Executor.replay_run`."""
        return await self._replays.replay(await self.records.row(run_id))

    async def call(
        self,
        path: str,
        args: Any,
        *,
        meta: bool,
        principal: str,
        door: Door,
        toolkit: str | None,
        narrowings: tuple[Narrowing, ...] = (),
    ) -> Any:
        """See `Executor.call`."""
        self._proxy.check_view(toolkit, narrowings)
        context = CallContext(principal=principal, door=door, toolkit=toolkit, narrowings=narrowings)
        outcome: CallOutcome = await self._proxy.call(
            context, path, {} if args is None else args, meta=meta, journal=_Direct(self._store)
        )
        return {"value": outcome.value, "http": outcome.http} if meta else outcome.value

    def health(self) -> dict[str, int]:
        running = sum(live.status == "running" for live in self._live.values())
        return {"running": running, "queued": len(self._live) - running, "capacity": self._max_live}

    async def close(self) -> None:
        """Cancel what is in progress and wait until it is recorded. New runs are refused from now on."""
        self._closing.set()
        for live in list(self._live.values()):
            live.cancel("Executor is closing")
        await self._lives.join(CLOSE_S)
        await self._lives.close()
        await self._calls.close()

    # The life of one run

    async def _accept(self, request: RunRequest, *, durable: bool) -> Live:
        """Give a request its id, its record and its task. Raises Overloaded, StorageFull."""
        if self._closing.is_set():
            raise Overloaded("this Executor is closing", hint="try again when it is back")
        if len(self._live) >= self._max_live:
            raise Overloaded(f"all {self._max_live} places for runs and their queue are taken")
        n = self._store.number()
        live = Live(request, n, Journal(self._store, n, self._journal_bytes))
        self._live[live.id] = live
        forget: Callable[[], None] | None = None
        # A store that failed is tried before anything runs, so that a full disk refuses runs instead of losing them.
        if durable or self._store.database.failing:
            try:
                await self._store.accept(live.row())
            except asyncio.CancelledError:
                # The record may be there by now, so that it gets its end.
                live.cancel("the caller went away")
                self._lives.spawn(self._live_through(live, None))
                raise
            except BaseException:
                del self._live[live.id]
                raise
        else:
            forget = self._store.begin(live.row)
        self._lives.spawn(self._live_through(live, forget))
        return live

    async def _once(self, request: RunRequest, wait: bool) -> RunResult:
        """The run of this idempotency key: a new one, or the one that is there already."""
        async with self._once_lock:
            live = self._keyed(request)
            row = None if live is not None else await self._store.by_idempotency_key(*_key(request))
            mine = live is None and row is None
            if live is None and row is None:
                live = await self._accept(request, durable=True)
        known = request.fingerprint() if mine or live is None else live.request.fingerprint()
        if row is not None:
            known = str(row.request_sha256)
        if known != request.fingerprint():
            raise Conflict("the idempotency key was used for another request", hint="use a new key for a new request")
        if live is None:
            assert row is not None
            return plain(await self.records.of(row))
        if not wait:
            return live.answer()
        if mine:
            return await self._attend(live)
        await live.done.wait()
        return live.answer()

    def _keyed(self, request: RunRequest) -> Live | None:
        return next((live for live in self._live.values() if _key(live.request) == _key(request)), None)

    async def _attend(self, live: Live) -> RunResult:
        """The answer of `live`; the task that waits here owns it, and takes it along when it is cancelled."""
        try:
            await live.done.wait()
        except asyncio.CancelledError:
            live.cancel("the caller went away")
            await _outlast(live.done)
            raise
        if live.refused is not None:
            raise live.refused
        return live.answer()

    async def _live_through(self, live: Live, forget: Callable[[], None] | None) -> None:
        """From acceptance to the record. `forget` takes back the record of a run that nobody was promised."""
        try:
            try:
                ending = await self._drive(live)
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
            self._live.pop(live.id, None)
            live.done.set()

    async def _drive(self, live: Live) -> Ending:
        """Take a place, run there, give it back. Raises Overloaded when there is none."""
        driver, request = live.driver, live.request
        slot: Slot | None = None
        try:
            with live.queueing:
                await self._places.prepare(request.language)
                slot = await self._places.acquire(driver.frame, isolation=request.isolation)
            if slot is not None:
                live.started()
                driver.image = self._places.image(request.language)
                live.calls = Calls(
                    self._proxy, self._context(live), live.output, live.journal, self._calls, driver.answered
                )
                driver.start(slot, live.calls)
            while (ending := await driver.ended()) is None:
                assert slot is not None
                slot.release()
                slot = await self._other_place(live)
            return ending
        finally:
            if slot is not None:
                slot.release()

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

    def _context(self, live: Live) -> CallContext:
        request = live.request
        return CallContext(
            run_id=live.id,
            principal=request.principal,
            door="script",
            toolkit=request.toolkit,
            narrowings=request.narrowings,
            args_bytes=request.budgets.call_args_bytes,
            value_bytes=request.budgets.call_value_bytes,
            deadline=asyncio.get_running_loop().time() + request.budgets.wall_ms / 1000,
        )

    async def _record(self, live: Live, ending: Ending, forget: Callable[[], None] | None) -> None:
        """Commit how the run ended, then tell. While the disk is full the run keeps its place and is tried again."""
        blobs = await settle(live, ending)
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
            except StorageFull as e:
                e.details = {"run_id": live.id, "status": live.status}
                live.refused = e
                live.output.close(live.status)
                live.done.set()
                if closing:
                    _log.error("the record of a run is lost: the disk is full", run_id=live.id)
                    return
                with anyio.move_on_after(RETRY_S):
                    await self._closing.wait()
        live.output.close(live.status)


class _Direct:
    """The journal of a call outside any run."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._id = store.direct_number()

    async def sending(self, record: CallRecord) -> None:
        if record.side_effect != "read":
            await self._store.sending(call_row(NO_RUN, facts(self._id, record) | {"outcome": "sending"}))

    def finished(self, record: CallRecord) -> None:
        self._store.called(call_row(NO_RUN, facts(self._id, record)))


def _key(request: RunRequest) -> tuple[str, str]:
    return request.principal, request.idempotency_key or ""


async def _outlast(event: asyncio.Event) -> None:
    """Wait through further cancellations: the dispatcher's grace bounds how long a cancelled run can take."""
    while not event.is_set():
        try:
            with anyio.CancelScope(shield=True):
                await event.wait()
        except asyncio.CancelledError:
            continue
