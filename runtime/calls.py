"""The tool calls of one run: made through the proxy, recorded, answered once each."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bridge.approvals import Ask
from bridge.asking import Question
from bridge.calls import CallContext
from bridge.proxy import ToolProxy
from bridge.wire import frames
from bridge.wire.errors import ToolError
from runtime.call import Call, Held, Known, given_up
from runtime.handles import Handles
from runtime.interactions import Approvals, is_answered, refusal, shown
from runtime.journal import Journal
from runtime.output import Output
from runtime.store.interactions import Decided, InteractionRow
from runtime.tasks import Tasks

_FAILURES: Final = 256


class Calls:
    """Makes the calls of a run; `answer` is called once for each that was not dropped."""

    def __init__(
        self,
        proxy: ToolProxy,
        context: CallContext,
        output: Output,
        journal: Journal,
        tasks: Tasks,
        answer: Callable[[frames.Answer], None],
        approvals: Approvals,
        handles: Handles,
        value_bytes: int,
        parked: Callable[[frames.Call], None],
        released: Callable[[int], None],
        held: Held,
        wake: Callable[[str, Decided], None],
    ) -> None:
        self.proxy = proxy
        self.context = context
        self.output = output
        self.journal = journal
        self.args_bytes = 0
        self.value_bytes = 0
        """The largest arguments and the largest value so far."""
        self.failed: deque[ToolError] = deque(maxlen=_FAILURES)
        """The last calls that failed, as the script was told."""
        self._tasks = tasks
        self._answer = answer
        self._open: dict[int, Call] = {}
        self._approvals = approvals
        self.handles = handles
        self.inline_bytes = value_bytes
        """Bytes of the largest value that is handed over; larger ones are kept, and a handle stands for them."""
        self._tell_parked = parked
        self._tell_released = released
        self._asking = held
        self._wake = wake
        self.questions: dict[int, InteractionRow] = {}
        """The newest question that the server of each call has asked in the middle of it."""
        self.interactions: dict[int, InteractionRow] = {}
        """The newest interaction of each call that has or had one."""
        self._parked: dict[int, int] = {}
        """Calls that wait for a person, with their places in the output."""
        self._places: dict[int, int] = {}
        """Open calls that were in the output before this host took the run up."""
        self._held = False
        self._parking = 0
        self._known: dict[int, Known] = {}
        """What is known of calls that were made before the host died, by their id."""

    def bound(self, deadline: float) -> None:
        """Let calls that are made from now on end by `deadline`."""
        self.context = replace(self.context, deadline=deadline)

    async def hold(self, grace_s: float) -> None:
        """Begin no further call, and wait until those in flight have ended, at most `grace_s` seconds."""
        self._held = True
        tasks = [one.task for one in self._open.values() if one.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=grace_s)

    @property
    def waiting(self) -> list[InteractionRow]:
        """What a person is asked now, in the order of the calls."""
        return [self.interactions[id] for id in sorted(self._parked) if self.interactions[id].state == "pending"]

    def held(self) -> set[int]:
        """Calls that are under way in this process while their servers wait for a person."""
        return {call for run, call in self._asking if run == self.journal.number}

    def restore(
        self,
        places: dict[int, int],
        known: dict[int, Known],
        interactions: dict[int, InteractionRow],
        questions: dict[int, InteractionRow],
    ) -> None:
        """Begin with open calls that have `places` in the output already. What was answered meanwhile stays so."""
        self._places = places
        self._known = known
        self.interactions = interactions | self.interactions
        self.questions = questions | self.questions

    def decided(self, row: InteractionRow) -> None:
        """A person has answered, or nobody did in time."""
        newest = self.interactions.get(row.call)
        if newest is None or row.created_at >= newest.created_at:
            self._note(row)
            self._tell_released(row.call)

    def _note(self, row: InteractionRow) -> None:
        self.interactions[row.call] = row
        if row.kind == "input":
            self.questions[row.call] = row

    def make(self, call: frames.Call) -> None:
        """Start `call`, or start it again when it has waited for a person."""
        if self._held:
            return
        self.args_bytes = max(self.args_bytes, len(call.args))
        key = self.journal.number, call.id
        if (held := self._asking.get(key)) is not None:
            row = self.questions[call.id]
            held.move(self)
            if row.state == "pending":
                self._waits(call, held.waits(), row)
                return
            self._open[call.id] = self._asking.pop(key)
            held.go_on(row)
            return
        one = Call(self, call)
        self._open[call.id] = one
        one.task = self._tasks.spawn(one.make())

    async def park(self, call: frames.Call, index: int, ask: Ask) -> None:
        """Let a call wait for a person. Raises ToolError, also for what was denied to this run before; StorageFull."""
        for row in self.interactions.values():
            error = refusal(row) if row.state == "denied" else None
            if error is not None and row.path == ask.path and row.arguments == shown(ask):
                raise error
        row = await self._asked(call, ask)
        if self._open.pop(call.id, None) is None:
            # The run has ended meanwhile: nobody needs to answer.
            self._approvals.close(self.journal.number)
            return
        self._waits(call, index, row)

    async def keep_asked(
        self, call: frames.Call, index: int, ask: Ask, question: Question, held: Call
    ) -> InteractionRow:
        """Let a call wait in its middle for a person; it stays under way. Raises ToolError, StorageFull."""
        before = self.questions.get(call.id)
        if before is not None and before.state != "pending":
            before = None
        self._parking += 1
        try:
            row = await self._approvals.open(
                self.journal.number, self.context.principal, call.id, ask, len(call.args), before, question
            )
        finally:
            self._parking -= 1
        if self._open.pop(call.id, None) is None:
            self._approvals.close(self.journal.number)
            raise ToolError("approval_expired", "The run has ended.")
        self._asking[self.journal.number, call.id] = held
        self._waits(call, index, row)
        return row

    def wait_again(self, call: frames.Call, index: int, row: InteractionRow) -> None:
        """Let a call wait on for the answer to a question that was asked before the host stopped."""
        self._open.pop(call.id, None)
        self._waits(call, index, row)

    async def withdraw(self, row: InteractionRow) -> None:
        """Take back a question that nobody needs an answer to, and let the run go on."""
        decided = await self._approvals.answer(row, "void", None, "")
        if decided.fresh and self.context.run_id is not None:
            self._wake(self.context.run_id, decided)

    def _waits(self, call: frames.Call, index: int, row: InteractionRow) -> None:
        self._parked[call.id] = index
        known = self.interactions.get(call.id)
        if known is not None and known.id == row.id and known.state != "pending":
            # Somebody was faster than the news of the question.
            self._tell_parked(call)
            self._tell_released(call.id)
            return
        self._note(row)
        self._tell_parked(call)

    async def _asked(self, call: frames.Call, ask: Ask) -> InteractionRow:
        """The question about a call: the one that is open already, or a new one."""
        before = self.interactions.get(call.id)
        if before is not None and before.kind != "approval":
            # What was answered in the middle of the call is still needed.
            before = None
        if before is not None and (before.state, before.binding) == ("pending", ask.binding):
            return before
        self._parking += 1
        try:
            return await self._approvals.open(
                self.journal.number, self.context.principal, call.id, ask, len(call.args), before
            )
        finally:
            self._parking -= 1

    def place(self, call: frames.Call) -> int:
        """Where the call is in the output."""
        index = self._parked.pop(call.id, None)
        if index is None and self._places:
            index = self._places.pop(call.id, None)
        if index is None:
            return self.output.call_started({"id": call.id, "path": call.path, "outcome": "sending"})
        self.output.calls[index] = self.output.calls[index] | {"outcome": "sending"}
        return index

    def known(self, id: int) -> Known | None:
        """What is known of a call without making it."""
        if id in self._known:
            return self._known.pop(id)
        row = self.interactions.get(id)
        error = refusal(row) if row is not None else None
        return None if error is None else Known(error)

    def approved(self, id: int) -> str | None:
        row = self.interactions.get(id)
        if row is None or not (row.state == "approved" or is_answered(row)):
            return None
        return row.binding

    def asked(self, id: int) -> InteractionRow | None:
        """The question from which a call goes on."""
        row = self.questions.get(id)
        return row if row is not None and row.resume is not None and row.state != "void" else None

    def leave(self) -> None:
        """Abandon what is in flight: cancelled, recorded as it stands, never answered."""
        dropped, self._open = self._open, {}
        for one in dropped.values():
            one.drop()

    def drop(self) -> None:
        """Abandon what is in flight, and what waits for a person."""
        self.leave()
        parked, self._parked = self._parked, {}
        for id, index in parked.items():
            if (self.journal.number, id) not in self._asking:
                self.output.call_ended(index, given_up(self.output.calls[index]))
        self._asking.end(self.journal.number)
        if parked or self._parking:
            self._approvals.close(self.journal.number)

    def failure(self, message: str) -> ToolError | None:
        """The last call that failed with this message."""
        return next((error for error in reversed(self.failed) if error.message == message), None)

    def ended(self, call: frames.Call, ok: bool, value: bytes) -> None:
        if ok:
            self.value_bytes = max(self.value_bytes, len(value))
        if self._open.pop(call.id, None) is not None:
            self._answer(frames.Answer(call.id, ok, value))
