"""The tool calls of one run: made through the proxy, recorded, answered once each."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import structlog

from bridge.approvals import Ask, NeedsApproval
from bridge.calls import CallContext, CallOutcome, CallRecord
from bridge.proxy import ToolProxy
from bridge.traces import traced
from bridge.wire import codec, frames
from bridge.wire.errors import FrameError, StorageError, ToolError, Unserializable
from runtime.handles import READ, Handles
from runtime.interactions import Approvals, refusal, shown
from runtime.journal import Journal
from runtime.output import Output
from runtime.store.interactions import InteractionRow
from runtime.tasks import Tasks

MESSAGE_CHARS: Final = 1000
"""Characters of an error's message that the record of its call keeps."""
_FAILURES: Final = 256

_log = structlog.get_logger("executor.calls")


class Parked(Exception):
    """Raised inside a call that waits for a person: there is no answer yet."""


class Known(NamedTuple):
    """What is known of a call without making it; `facts` are those of its record, where it has one."""

    answer: frames.Answer | ToolError
    facts: dict[str, Any] | None = None


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
        self._open: dict[int, _Call] = {}
        self._approvals = approvals
        self.handles = handles
        self.inline_bytes = value_bytes
        """Bytes of the largest value that is handed over; larger ones are kept, and a handle stands for them."""
        self._tell_parked = parked
        self._tell_released = released
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

    def restore(
        self,
        places: dict[int, int],
        known: dict[int, Known],
        interactions: dict[int, InteractionRow],
    ) -> None:
        """Begin with open calls that have `places` in the output already. What was answered meanwhile stays so."""
        self._places = places
        self._known = known
        self.interactions = interactions | self.interactions

    def decided(self, row: InteractionRow) -> None:
        """A person has answered, or nobody did in time."""
        newest = self.interactions.get(row.call)
        if newest is None or row.created_at >= newest.created_at:
            self.interactions[row.call] = row
            self._tell_released(row.call)

    def make(self, call: frames.Call) -> None:
        """Start `call`, or start it again when it has waited for a person."""
        if self._held:
            return
        self.args_bytes = max(self.args_bytes, len(call.args))
        one = _Call(self, call)
        self._open[call.id] = one
        one.task = self._tasks.spawn(one.make())

    async def park(self, call: frames.Call, index: int, ask: Ask) -> None:
        """Let a call wait for a person. Raises ToolError, also for what was denied to this run before; StorageFull."""
        for row in self.interactions.values():
            if row.state == "denied" and row.path == ask.path and row.arguments == shown(ask):
                error = refusal(row)
                assert error is not None
                raise error
        row = await self._asked(call, ask)
        if self._open.pop(call.id, None) is None:
            # The run has ended meanwhile: nobody needs to answer.
            self._approvals.close(self.journal.number)
            return
        self._parked[call.id] = index
        known = self.interactions.get(call.id)
        if known is not None and known.id == row.id and known.state != "pending":
            # Somebody was faster than the news of the question.
            self._tell_parked(call)
            self._tell_released(call.id)
            return
        self.interactions[call.id] = row
        self._tell_parked(call)

    async def _asked(self, call: frames.Call, ask: Ask) -> InteractionRow:
        """The question about a call: the one that is open already, or a new one."""
        before = self.interactions.get(call.id)
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
        return row.binding if row is not None and row.state == "approved" else None

    def leave(self) -> None:
        """Abandon what is in flight: cancelled, recorded as it stands, never answered."""
        dropped, self._open = self._open, {}
        for one in dropped.values():
            one.drop()

    def drop(self) -> None:
        """Abandon what is in flight, and what waits for a person."""
        self.leave()
        parked, self._parked = self._parked, {}
        for index in parked.values():
            self.output.call_ended(index, self.output.calls[index] | {"outcome": "failed", "code": "cancelled"})
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


class _Call:
    """One call, and its journal: the proxy says what it is about to do and what came of it."""

    __slots__ = ("_began", "_call", "_calls", "_closed", "_dropped", "_index", "_record", "task")

    def __init__(self, calls: Calls, call: frames.Call) -> None:
        self.task: asyncio.Task[None] | None = None
        self._calls = calls
        self._call = call
        self._began = time.perf_counter()
        self._dropped = False
        self._record: CallRecord | None = None
        self._closed: dict[str, Any] | None = None
        """The facts of a call with an effect, until its answer is recorded with them."""
        self._index = calls.place(call)

    async def make(self) -> None:
        """Make the call and answer it. Raises nothing: whatever goes wrong is the answer."""
        if self._dropped:
            return
        try:
            ok, value = await self._attempt()
            if self._closed is not None:
                self._calls.journal.called(self._closed, frames.Answer(self._call.id, ok, value))
            self._calls.ended(self._call, ok, value)
        except Parked:
            return

    def drop(self) -> None:
        """Stop waiting for the call; where its request may have left, nobody knows what became of it."""
        record = self._record or self._unmade()
        sent = record.sent and record.side_effect != "read"
        record.outcome, record.code = ("unknown", "outcome_unknown") if sent else ("failed", "cancelled")
        record.duration_ms = self._took_ms()
        self._close(record)
        if self._closed is not None:
            self._calls.journal.called(self._closed)
        self._dropped = True
        if self.task is not None:
            self.task.cancel()

    async def sending(self, record: CallRecord) -> None:
        """The call is about to leave. Committed first, unless it only reads; raises StorageFull when it cannot be."""
        self._record = record
        if record.side_effect != "read":
            await self._calls.journal.sending(facts(self._call.id, record) | {"outcome": "sending"})

    def finished(self, record: CallRecord) -> None:
        self._close(record)

    def _close(self, record: CallRecord) -> None:
        # What was dropped is already recorded: the run may have ended, and its record is closed.
        if self._dropped:
            return
        known = facts(self._call.id, record)
        self._calls.output.call_ended(self._index, known)
        if record.sent and record.side_effect != "read":
            self._closed = known

    def _took_ms(self) -> float:
        return (time.perf_counter() - self._began) * 1000

    def _unmade(self) -> CallRecord:
        """A record of the call without making it; what was decided before it waited for a person still holds."""
        before = self._calls.output.calls[self._index]
        return CallRecord(
            self._call.id,
            self._call.path,
            side_effect=before.get("side_effect", "unknown"),
            decision=before.get("decision"),
            rule=before.get("rule"),
            args_bytes=len(self._call.args),
            started_at=time.time(),
        )

    async def _attempt(self) -> tuple[bool, bytes]:
        call, calls = self._call, self._calls
        try:
            if (known := calls.known(call.id)) is not None:
                return self._recall(known)
            if len(call.args) > calls.context.args_bytes:
                raise self._refused(
                    ToolError("too_large", f"the arguments are larger than {calls.context.args_bytes} bytes")
                )
            try:
                args = codec.decode(call.args)
            except FrameError:
                raise self._refused(ToolError("invalid_arguments", "the arguments are not a value")) from None
            if call.path == READ:
                return True, await self._read(args)
            outcome = await calls.proxy.call(
                calls.context,
                call.path,
                args,
                meta=call.meta,
                journal=self,
                args_size=len(call.args),
                call_id=call.id,
                waits=True,
                approved=calls.approved(call.id),
            )
            if outcome.record.value_bytes <= calls.inline_bytes:
                return True, outcome.encoded
            return True, await self._kept(outcome, call.meta)
        except NeedsApproval as e:
            return await self._park(e.ask)
        except ToolError as e:
            return False, self._failed(e)
        except Exception as e:
            reference = secrets.token_hex(6)
            _log.error("a tool call failed unexpectedly", path=call.path, reference=reference, exception=traced(e))
            message = f"the call was given up: it failed unexpectedly (reference {reference})"
            return False, self._failed(ToolError("internal", message, path=call.path))

    async def _kept(self, outcome: CallOutcome, meta: bool) -> bytes:
        """Keep a value that is too large to be handed over; what stands for it. Raises ToolError, StorageError."""
        calls = self._calls
        ref = await calls.handles.keep(calls.journal.number, calls.context.principal, outcome.value)
        return codec.encode({"value": ref, "http": outcome.http} if meta else ref)

    async def _read(self, args: Any) -> bytes:
        """A part of what was kept. Raises ToolError."""
        record = self._unmade()
        record.side_effect, record.decision = "read", "approve"
        try:
            value = codec.encode(await self._calls.handles.read(self._calls.context.principal, args))
        except ToolError as e:
            raise self._refused(e) from None
        record.outcome, record.value_bytes = "done", len(value)
        record.duration_ms = self._took_ms()
        self._close(record)
        return value

    async def _park(self, ask: Ask) -> tuple[bool, bytes]:
        """Let the call wait for a person; the answer is for a call that cannot. Raises Parked."""
        calls = self._calls
        # Facts first: whoever hears of the interaction may look at the call.
        known = {"outcome": "waiting", "side_effect": ask.side_effect, "decision": "require_approval"}
        if ask.rule is not None:
            known["rule"] = ask.rule
        calls.output.calls[self._index] = facts(self._call.id, self._unmade()) | known
        try:
            await calls.park(self._call, self._index, ask)
        except ToolError as e:
            return False, self._failed(self._refused(e))
        except StorageError as e:
            error = ToolError(
                "approval_required", f"The question to a person cannot be kept: {e.message}.", hint=e.hint
            )
            return False, self._failed(self._refused(error))
        raise Parked

    def _recall(self, known: Known) -> tuple[bool, bytes]:
        """The answer of a call that is not made, because of what is known of it."""
        if known.facts is not None:
            self._calls.output.call_ended(self._index, known.facts)
        if isinstance(known.answer, ToolError):
            if known.facts is None:
                self._refused(known.answer)
            return False, self._failed(known.answer)
        return known.answer.ok, known.answer.value

    def _failed(self, error: ToolError) -> bytes:
        """The error as the script gets it; its record says the same in short."""
        self._calls.failed.append(error)
        if not self._dropped:
            facts = {"code": error.code, "message": error.message[:MESSAGE_CHARS], "hint": error.hint}
            calls = self._calls.output.calls
            # A new map: the one that is there may be on its way to the store, on another thread.
            calls[self._index] = calls[self._index] | {"error": {key: value for key, value in facts.items() if value}}
        return told(error)

    def _refused(self, error: ToolError) -> ToolError:
        """Record a call that does not get as far as its tool."""
        record = self._unmade()
        record.outcome, record.code = "failed", error.code
        self._close(record)
        error.path = record.path
        return error


def told(error: ToolError) -> bytes:
    """A ToolError as a script gets it; details that cannot cross stay behind."""
    try:
        return codec.encode(error.as_dict())
    except Unserializable:
        error.details = None
        return codec.encode(error.as_dict())


def facts(id: int, record: CallRecord) -> dict[str, Any]:
    """A call as answers and records show it; facts that are not there are left out."""
    known: dict[str, Any] = {
        "id": id,
        "path": record.path,
        "outcome": record.outcome,
        "side_effect": record.side_effect,
        "args_bytes": record.args_bytes,
        "value_bytes": record.value_bytes,
        "started_at": round(record.started_at, 6),
        "duration_ms": round(record.duration_ms, 3),
    }
    if record.code is not None:
        known["code"] = record.code
    if record.status is not None:
        known["status"] = record.status
    if record.decision is not None:
        known["decision"] = record.decision
    if record.rule is not None:
        known["rule"] = record.rule
    if record.idempotent:
        known["idempotent"] = True
    return known
