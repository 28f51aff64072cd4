"""The tool calls of one run: made through the proxy, recorded, answered once each."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import structlog

from bridge.calls import CallContext, CallRecord
from bridge.proxy import ToolProxy
from bridge.traces import traced
from bridge.wire import codec, frames
from bridge.wire.errors import FrameError, ToolError, ToolErrorCode, Unserializable
from runtime.journal import Journal
from runtime.output import Output
from runtime.tasks import Tasks

MESSAGE_CHARS: Final = 1000
"""Characters of an error's message that the record of its call keeps."""
_FAILURES: Final = 256

_log = structlog.get_logger("executor.calls")


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

    def make(self, call: frames.Call) -> None:
        """Start `call`."""
        self.args_bytes = max(self.args_bytes, len(call.args))
        one = _Call(self, call)
        self._open[call.id] = one
        one.task = self._tasks.spawn(one.make())

    def drop(self) -> None:
        """Abandon what is in flight: cancelled, recorded as it stands, never answered."""
        dropped, self._open = self._open, {}
        for one in dropped.values():
            one.drop()

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

    __slots__ = ("_call", "_calls", "_dropped", "_index", "_record", "task")

    def __init__(self, calls: Calls, call: frames.Call) -> None:
        self.task: asyncio.Task[None] | None = None
        self._calls = calls
        self._call = call
        self._dropped = False
        self._record: CallRecord | None = None
        self._index = calls.output.call_started({"id": call.id, "path": call.path, "outcome": "sending"})

    async def make(self) -> None:
        """Make the call and answer it. Raises nothing: whatever goes wrong is the answer."""
        if not self._dropped:
            ok, value = await self._attempt()
            self._calls.ended(self._call, ok, value)

    def drop(self) -> None:
        """Stop waiting for the call; where its request may have left, nobody knows what became of it."""
        record = self._record or self._unmade()
        sent = record.sent and record.side_effect != "read"
        record.outcome, record.code = ("unknown", "outcome_unknown") if sent else ("failed", "cancelled")
        record.duration_ms = max(0.0, time.time() - record.started_at) * 1000
        self._close(record)
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
            self._calls.journal.called(known)

    def _unmade(self) -> CallRecord:
        return CallRecord(self._call.id, self._call.path, args_bytes=len(self._call.args), started_at=time.time())

    async def _attempt(self) -> tuple[bool, bytes]:
        call, calls = self._call, self._calls
        try:
            if len(call.args) > calls.context.args_bytes:
                raise self._refused("too_large", f"the arguments are larger than {calls.context.args_bytes} bytes")
            try:
                args = codec.decode(call.args)
            except FrameError:
                raise self._refused("invalid_arguments", "the arguments are not a value") from None
            outcome = await calls.proxy.call(
                calls.context,
                call.path,
                args,
                meta=call.meta,
                journal=self,
                args_size=len(call.args),
                call_id=call.id,
            )
            return True, outcome.encoded
        except ToolError as e:
            return False, self._failed(e)
        except Exception as e:
            reference = secrets.token_hex(6)
            _log.error("a tool call failed unexpectedly", path=call.path, reference=reference, exception=traced(e))
            message = f"the call was given up: it failed unexpectedly (reference {reference})"
            return False, self._failed(ToolError("internal", message, path=call.path))

    def _failed(self, error: ToolError) -> bytes:
        """The error as the script gets it; its record says the same in short."""
        self._calls.failed.append(error)
        if not self._dropped:
            facts = {"code": error.code, "message": error.message[:MESSAGE_CHARS], "hint": error.hint}
            calls = self._calls.output.calls
            # A new map: the one that is there may be on its way to the store, on another thread.
            calls[self._index] = calls[self._index] | {"error": {key: value for key, value in facts.items() if value}}
        return _told(error)

    def _refused(self, code: ToolErrorCode, message: str) -> ToolError:
        """A call that does not get as far as the proxy, recorded all the same."""
        record = self._unmade()
        record.outcome, record.code = "failed", code
        self._close(record)
        return ToolError(code, message, path=self._call.path)


def _told(error: ToolError) -> bytes:
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
    return known
