"""One tool call of a run: made through the proxy, recorded, answered once."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import structlog

from bridge.approvals import Ask, NeedsApproval
from bridge.asking import Question, Reply, Resumed
from bridge.calls import CallOutcome, CallRecord, since_ms, wall_clock
from bridge.traces import traced
from bridge.wire import codec, frames
from bridge.wire.errors import FrameError, StorageError, ToolError, Unserializable
from runtime.handles import READ
from runtime.interactions import reply_of
from runtime.store.interactions import InteractionRow

if TYPE_CHECKING:
    from runtime.calls import Calls

MESSAGE_CHARS: Final = 1000
"""Characters of an error's message that the record of its call keeps."""

_log = structlog.get_logger("executor.calls")


class Parked(Exception):
    """Raised inside a call that waits for a person: there is no answer yet."""


class Known(NamedTuple):
    """What is known of a call without making it; `facts` are those of its record, where it has one."""

    answer: frames.Answer | ToolError
    facts: dict[str, Any] | None = None


class Call:
    """One call, and its journal: the proxy says what it is about to do and what came of it."""

    __slots__ = ("_answer", "_began", "_call", "_calls", "_closed", "_dropped", "_index", "_record", "task")

    def __init__(self, calls: Calls, call: frames.Call) -> None:
        self.task: asyncio.Task[None] | None = None
        self._calls = calls
        self._call = call
        self._began = time.perf_counter_ns()
        self._dropped = False
        self._record: CallRecord | None = None
        self._closed: dict[str, Any] | None = None
        """The facts of a call with an effect, until its answer is recorded with them."""
        self._index = calls.place(call)
        self._answer: asyncio.Future[InteractionRow] | None = None
        """Of the person whom its server asks."""

    def move(self, calls: Calls) -> None:
        """Go on as a call of `calls`."""
        self._calls = calls
        self._index = calls.place(self._call)

    def waits(self) -> int:
        """Say in the output that the call waits for a person in its middle; where that is."""
        known = facts(self._call.id, self._record or self._unmade()) | {"outcome": "waiting", "sent": True}
        self._calls.output.calls[self._index] = known
        return self._index

    def go_on(self, row: InteractionRow) -> None:
        """Go on with what became of the question."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(row)

    async def asks(self, ask: Ask, question: Question, gone: asyncio.Event) -> Reply:
        """Put a question of the server to a person, and wait for the answer. Raises ToolError."""
        calls = self._calls
        self._answer = asyncio.get_running_loop().create_future()
        try:
            row = await calls.keep_asked(self._call, self.waits(), ask, question, self)
        except StorageError as e:
            raise ToolError(
                "input_required", f"The server's question to a person cannot be kept: {e.message}.", hint=e.hint
            ) from None
        over: asyncio.Future[Any] = asyncio.ensure_future(gone.wait())
        try:
            answered: asyncio.Future[Any] = self._answer
            await asyncio.wait([answered, over], return_when=asyncio.FIRST_COMPLETED)
            if not self._answer.done():
                await calls.withdraw(row)
            row = await self._answer
        finally:
            over.cancel()
        if row.state == "void" and not gone.is_set():
            raise ToolError(
                "outcome_unknown",
                "The tool, its connection or the policy is not what it was when the server asked: it was not answered.",
                hint="Check whether the call took effect before you repeat it.",
            )
        return reply_of(row)

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
        return since_ms(self._began)

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
            started_at=wall_clock(),
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
            resumed = None
            if (asked := calls.asked(call.id)) is not None:
                if asked.state == "pending":
                    self._wait_again(asked)
                resumed = Resumed(json.loads(asked.resume or "{}"), reply_of(asked))
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
                asks=self.asks,
                resumed=resumed,
            )
            calls = self._calls
            if outcome.record.value_bytes <= calls.inline_bytes:
                return True, outcome.encoded
            return True, await self._kept(outcome, call.meta)
        except Parked:
            raise
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

    def _wait_again(self, row: InteractionRow) -> NoReturn:
        """Wait on for the answer to what was asked before the host stopped. Raises Parked."""
        known = {"outcome": "waiting", "side_effect": row.side_effect, "sent": True}
        self._calls.output.calls[self._index] = facts(self._call.id, self._unmade()) | known
        self._calls.wait_again(self._call, self._index, row)
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
        "started_at": record.started_at,
        "duration_ms": record.duration_ms,
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
    if record.answered is not None:
        known["answered"] = record.answered
    return known


def given_up(call: dict[str, Any]) -> dict[str, Any]:
    """The facts of a call whose run ends while it waits for a person."""
    if call.get("sent") and call.get("side_effect") != "read":
        return call | {"outcome": "unknown", "code": "outcome_unknown"}
    return call | {"outcome": "failed", "code": "cancelled"}


class Held(dict[tuple[int, int], "Call"]):
    """Calls that are under way while their server waits for a person, by run and call. They outlast the isolate of
    their run: whoever takes the run up takes them over."""

    def end(self, run: int) -> None:
        """Give up those of a run that has ended."""
        for key in [key for key in self if key[0] == run]:
            self.pop(key).drop()
