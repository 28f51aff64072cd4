"""Runs as a service: admission, the life of each, and what can be asked about them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import anyio
import structlog

from bridge.calls import CallContext, CallOutcome, Door
from bridge.proxy import ToolProxy
from bridge.view import Narrowing
from bridge.wire.errors import Conflict, Overloaded
from runtime.budgets import BudgetPolicy
from runtime.call import Held
from runtime.direct import Direct
from runtime.handles import Handles
from runtime.history import History
from runtime.interactions import Approvals
from runtime.journal import Journal
from runtime.live import Live
from runtime.lives import Lives
from runtime.patience import Patience
from runtime.places import Places
from runtime.records import Records, plain
from runtime.replay import Replays
from runtime.request import RunRequest, checked
from runtime.results import TERMINAL, ReplayReport, RunRecord, RunResult
from runtime.store.interactions import Decided
from runtime.store.runs import RunRow, RunStore
from runtime.tasks import Tasks

CLOSE_S: Final = 30.0
"""How long closing waits for runs to end; a worker's grace is far shorter."""
HOLD_S: Final = 3.0
"""How long closing waits for the calls of runs that go on after it."""
TAKE_UP_S: Final = 1.0
"""How long after the start the runs of the last host are taken up, when nobody asks for a run before."""

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
        approval_s: float = 86_400.0,
        max_waiting: int = 10_000,
        max_denials: int = 5,
        take_up: bool = True,
    ) -> None:
        self._store = store
        self._proxy = proxy
        self._policy = policy
        self._languages = languages
        self._isolation = isolation
        self._max_live = max_live
        self._journal_bytes = journal_bytes
        self._closing = asyncio.Event()
        approvals = Approvals(store.interactions, approval_s, max_waiting, max_denials)
        held = Held()
        self._patience = Patience(store, approvals, proxy, self._wake, held)
        self.handles = Handles(store)
        self._life = Lives(store, places, proxy, approvals, self._closing, self.handles, held, self._wake)
        self._live = self._life.table
        self.records = Records(store, self._live)
        self._replays = Replays(store, places)
        self._once_lock = asyncio.Lock()
        self._lives = Tasks()
        self._calls = self._life.calls
        self._left: OrderedDict[str, None] = OrderedDict.fromkeys(store.left)
        """Ids of the runs that the last host left in the middle, and that nobody has taken up yet."""
        self._takes_up = take_up
        self._begun = False
        self._timer = asyncio.get_running_loop().call_later(TAKE_UP_S, self.begin)

    def begin(self) -> None:
        """Take up what the last host left, from now on, and look after what waits. Later calls do nothing."""
        self._timer.cancel()
        if self._begun or not self._takes_up or self._closing.is_set():
            return
        self._begun = True
        self._calls.spawn(self._patience.watch())
        if self._left:
            _log.info("runs_taken_up", count=len(self._left))
            self._calls.spawn(self._take_up_all())

    async def run(self, code: Any, *, wait: bool, principal: str, **asked: Any) -> RunResult:
        """See `Executor.run`."""
        self.begin()
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

    async def wait(self, run_id: str, *, rest: bool = False) -> RunRecord:
        """The record of a run once it has ended; with `rest`, also once it waits for a person."""
        self.begin()
        while True:
            appeared = self.records.appears(run_id)
            live = self._live.get(run_id)
            if live is not None:
                await (live.rested if rest else live.done).wait()
            record = await self.records.get(run_id)
            if record.ended or (rest and record.status == "waiting"):
                return record
            if live is None:
                await appeared.wait()

    async def cancel(self, run_id: str) -> RunRecord:
        live = self._live.get(run_id)
        if live is None:
            row = await self.records.row(run_id)
            history = None if row.status in TERMINAL else await self._life.history(row)
            live = self._live.get(run_id)
            if live is None and row.status not in TERMINAL:
                mine = self._left.pop(run_id, row) is None or await self._store.claim(row.n)
                live = self._revive(row, crashed=False, cancelled=True, history=history) if mine else None
                live = live or self._live.get(run_id)
        if live is not None:
            live.cancel("the run was cancelled on request")
        return await self.wait(run_id)

    async def resume(
        self, run_id: str, interaction: Any, action: Any, content: Any, *, principal: str, wait: bool
    ) -> RunRecord:
        """See `Executor.resume`."""
        row = await self.records.row(run_id)
        decided = await self._patience.answer(row, interaction, action, content, principal)
        if action == "cancel":
            return await self.cancel(run_id) if decided.fresh else await self.wait(run_id)
        if run_id in self._left:
            await self._take_up(run_id)
        return await self.wait(run_id, rest=True) if wait else await self.records.get(run_id)

    def _wake(self, run_id: str, decided: Decided) -> None:
        """Tell a run that an interaction was decided; one that waits nowhere but in the store is taken up."""
        live = self._live.get(run_id)
        if live is None:
            if decided.claimed and not self._closing.is_set():
                self._calls.spawn(self._take_up(run_id, crashed=False))
        elif live.calls is not None:
            live.calls.decided(decided.interaction)
        else:
            live.early.append(decided.interaction)

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
            context, path, {} if args is None else args, meta=meta, journal=Direct(self._store)
        )
        return {"value": outcome.value, "http": outcome.http} if meta else outcome.value

    def may_ask(self, path: str) -> bool:
        """Whether only a run can make a call of the tool to its end: its server may ask a person on the way."""
        return self._proxy.may_ask(path)

    def health(self) -> dict[str, int]:
        running = sum(live.status == "running" for live in self._live.values())
        return {"running": running, "queued": len(self._live) - running, "capacity": self._max_live}

    async def close(self) -> None:
        """Leave what is to go on at the next start, cancel the rest, and wait until all of it is recorded. New runs are
        refused from now on."""
        self._closing.set()
        self._timer.cancel()
        for live in list(self._live.values()):
            lasting = live.durable and self._store.database.durable and live.journal.whole
            if lasting and live.status != "waiting":
                self._lives.spawn(self._leave(live))
            elif not lasting:
                live.cancel("Executor is closing")
        await self._lives.join(CLOSE_S)
        await self._lives.close()
        await self._calls.close()

    async def _leave(self, live: Live) -> None:
        """Let the calls of a run come back, and leave the run as it is: it is taken up at the next start."""
        if live.calls is not None:
            await live.calls.hold(HOLD_S)
            live.calls.leave()
        live.driver.suspend()
        live.queueing.cancel()

    async def _take_up_all(self) -> None:
        for run_id in list(self._left):
            await self._take_up(run_id)

    async def _take_up(self, run_id: str, *, crashed: bool = True) -> None:
        """Take up a run that was claimed, or that the last host left."""
        if crashed and run_id not in self._left:
            return
        self._left.pop(run_id, None)
        row = await self._store.get(run_id)
        if row is not None and run_id not in self._live and row.status not in TERMINAL and not self._closing.is_set():
            self._revive(row, crashed=crashed)

    def _revive(self, row: RunRow, *, crashed: bool, cancelled: bool = False, history: History | None = None) -> Live:
        journal = Journal(self._store, row.n, self._journal_bytes)
        live = self._live[row.id] = Live.again(row, journal)
        self.records.appeared(row.id)
        live.driver.waits = lambda waits: self._waits(live, waits)
        if cancelled:
            live.restore(row, history)
        self._lives.spawn(self._life.through(live, None, None if cancelled else (row, crashed)))
        return live

    def _waits(self, live: Live, waits: bool) -> None:
        """The run has begun to wait for a person, or goes on."""
        if waits:
            live.waits()
            live.durable = True
            self._lives.spawn(self._patience.rest(live, self._closing))
        else:
            live.goes_on()
            self._store.going_on(live.n)

    # The life of one run

    async def _accept(self, request: RunRequest, *, durable: bool) -> Live:
        """Give a request its id, its record and its task. Raises Overloaded, StorageFull."""
        if self._closing.is_set():
            raise Overloaded("this Executor is closing", hint="try again when it is back")
        if len(self._live) >= self._max_live:
            raise Overloaded(f"all {self._max_live} places for runs and their queue are taken")
        n = self._store.number()
        live = Live(request, n, Journal(self._store, n, self._journal_bytes))
        live.durable = durable
        live.driver.waits = lambda waits: self._waits(live, waits)
        self._live[live.id] = live
        forget: Callable[[], None] | None = None
        # A store that failed is tried before anything runs, so that a full disk refuses runs instead of losing them.
        if durable or self._store.database.failing:
            try:
                await self._store.accept(live.row())
            except asyncio.CancelledError:
                # The record may be there by now, so that it gets its end.
                live.cancel("the caller went away")
                self._lives.spawn(self._life.through(live, None))
                raise
            except BaseException:
                del self._live[live.id]
                raise
        else:
            forget = self._store.begin(live.row)
        self._lives.spawn(self._life.through(live, forget))
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
            return plain(await self.wait(row.id, rest=True) if wait else await self.records.of(row))
        if not wait:
            return live.answer()
        return await self._attend(live) if mine else plain(await self.wait(live.id, rest=True))

    def _keyed(self, request: RunRequest) -> Live | None:
        return next((live for live in self._live.values() if _key(live.request) == _key(request)), None)

    async def _attend(self, live: Live) -> RunResult:
        """The answer of `live`; the task that waits here owns it, and takes it along when it is cancelled."""
        try:
            await live.rested.wait()
        except asyncio.CancelledError:
            live.cancel("the caller went away")
            await _outlast(live.done)
            raise
        if live.refused is not None:
            raise live.refused
        return live.answer()


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
