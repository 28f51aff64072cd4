"""Runs that wait for people: kept while they wait, answered once, told when nobody answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

import anyio
import structlog

from bridge.calls import CallContext
from bridge.proxy import ToolProxy
from bridge.wire.errors import ExecutorError, InvalidRequest, StorageError
from runtime import values
from runtime.call import Held
from runtime.interactions import STATES, Approvals, arguments_of, check, check_approver, filled_in
from runtime.live import Live, narrowings_of
from runtime.store.interactions import Decided, InteractionRow
from runtime.store.runs import RunRow, RunStore

LINGER_S: Final = 1.0
"""How long a run that waits keeps its isolate."""
SWEEP_S: Final = 600.0
"""How often runs past their limits are looked for, besides at the start and after many that ended."""
_RETRY_S: Final = 1.0
_LONGEST_S: Final = 60.0

_log = structlog.get_logger("executor.run")

Wake = Callable[[str, Decided], None]
"""Called with a run's id when an interaction of it was decided."""


class Patience:
    def __init__(self, store: RunStore, approvals: Approvals, proxy: ToolProxy, wake: Wake, held: Held) -> None:
        self.approvals = approvals
        self._held = held
        self._began = time.time()
        self._store = store
        self._proxy = proxy
        self._wake = wake
        self._asked = asyncio.Event()

    async def rest(self, live: Live, closing: asyncio.Event) -> None:
        """Keep a run that has begun to wait, durably; tell those that wait for it; take its isolate from it soon."""
        period = live.waits_so_far
        self._asked.set()
        while live.waiting_since(period):
            try:
                await self._store.accept(live.row())
                break
            except StorageError as e:
                _log.error("a waiting run cannot be kept", run_id=live.id, reason=e.message)
                if closing.is_set():
                    return
                with anyio.move_on_after(_RETRY_S):
                    await closing.wait()
        if not live.waiting_since(period):
            return
        live.rested.set()
        with anyio.move_on_after(LINGER_S):
            await closing.wait()
        if live.waiting_since(period) and live.journal.whole:
            live.driver.suspend()

    async def answer(self, row: RunRow, id: Any, action: Any, content: Any, by: str) -> Decided:
        """Take a person's answer to an interaction of a run. The same answer again is accepted again.

        Raises NotFound, InvalidRequest, Forbidden (`own_approval`), and Conflict: `already_decided`,
        `approval_expired`, `approval_void`.
        """
        if action not in STATES:
            raise InvalidRequest(f"{str(action)[:40]!r} is not an answer", hint=f"use one of {', '.join(STATES)}")
        asked = await self.approvals.find(row.n, id)
        state = STATES[action]
        content = filled_in(asked, action, content)
        if action == "approve":
            check_approver(asked, row.principal, by)
        if asked.state == "pending" and not self._can_be(action, row, asked):
            state = "void"
        decided = await self.approvals.answer(asked, state, content, by)
        if decided.fresh:
            self._wake(row.id, decided)
        check(decided, STATES[action], content)
        return decided

    def _can_be(self, action: str, row: RunRow, asked: InteractionRow) -> bool:
        """Whether the answer can have its effect."""
        if asked.kind == "input" and asked.resume is None and (row.n, asked.call) not in self._held:
            # Its session went with the process that asked.
            return action == "cancel"
        return action != "approve" or self._stands(row, asked)

    def _stands(self, row: RunRow, asked: InteractionRow) -> bool:
        """Whether the question is still the one that would be asked: tool, connection and policy are what they were."""
        context = CallContext(
            run_id=row.id, principal=row.principal, door="script", toolkit=row.toolkit, narrowings=narrowings_of(row)
        )
        try:
            arguments = values.from_json(arguments_of(asked))
            ask = self._proxy.asks(context, asked.path, arguments, call_id=asked.call, made=asked.kind == "input")
        except ExecutorError:
            return False
        return ask is not None and ask.binding == asked.binding

    async def watch(self) -> None:
        """For ever: close interactions that nobody answered in time, let their runs know, and sweep out old runs."""
        swept = time.monotonic()
        orphaned = True
        while True:
            self._asked.clear()
            try:
                if orphaned:
                    for lost in await self._store.interactions.orphans(self._began):
                        self._wake(lost.run_id, Decided(lost.interaction, True, lost.claimed))
                    orphaned = False
                if time.monotonic() - swept > SWEEP_S:
                    swept = time.monotonic()
                    await self._store.sweep()
                for overdue in await self._store.interactions.expire(time.time()):
                    self._wake(overdue.run_id, Decided(overdue.interaction, True, overdue.claimed))
                soonest = await self._store.interactions.next_expiry()
            except StorageError:
                soonest = time.time() + _RETRY_S
            left = _LONGEST_S if soonest is None else min(_LONGEST_S, max(0.01, soonest - time.time()))
            with anyio.move_on_after(left):
                await self._asked.wait()
