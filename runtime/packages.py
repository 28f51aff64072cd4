"""Exports of npm packages, run as tools: the package loaded and the tool executed in one isolate, within budgets."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import structlog

from bridge.calls import CallContext, CallJournal
from bridge.proxy import FETCH, ToolProxy
from bridge.traces import traced
from bridge.wire import codec, frames
from bridge.wire.errors import FrameError, InvalidRequest, ToolError, Unserializable
from catalog.kinds.npm.bundle import Bundle
from runtime import values
from runtime.budgets import Budgets, limit_of
from runtime.calls import facts, told
from runtime.dispatcher import Dispatcher
from runtime.driver import Driver, Ending, Script
from runtime.output import Output
from runtime.results import RunResult
from runtime.run import failure
from runtime.settle import HINTS
from runtime.tasks import Tasks

LANGUAGE: Final = "node"
REASONS: Final = frozenset({"load_failed", "not_found", "invalid", "threw"})
"""`error["reason"]` where the package is at fault: it did not load; it has no such export; the export is no tool; the
tool threw. Every other failure is a run's, such as a limit's."""

_MAX_ENV: Final = 1024 * 1024
_log = structlog.get_logger("executor.packages")


@dataclass(frozen=True, slots=True)
class PackageCall:
    """Run `export` of the package in `bundle` with `params` (JSON data), as `execute(params, {toolCallId, …})`.

    `env` is what the package finds in `process.env`, set before any of it is loaded and shared with no other call. With
    `fallback` the default export stands in for an export that there is not.
    """

    bundle: Bundle
    export: str
    params: Any
    env: Mapping[str, str] = field(default_factory=dict)
    fallback: bool = False


class Packages:
    """Runs packages in the workers of `dispatcher`; what they fetch goes through `proxy`, like a script's `fetch`.

    `journal` gives what hears of each fetch, for the record of calls; None keeps no record of them.
    """

    def __init__(
        self, dispatcher: Dispatcher, proxy: ToolProxy, journal: Callable[[], CallJournal | None] = lambda: None
    ) -> None:
        self._dispatcher = dispatcher
        self._proxy = proxy
        self._journal = journal

    async def run(self, call: PackageCall, budgets: Budgets, context: CallContext) -> RunResult:
        """The result of a call: completed with the tool's output, or failed.

        A failure of the package itself is `script_error` and has a `reason` (see REASONS). Raises InvalidRequest for
        parameters or an environment that cannot be given, and where the machine has no image for packages; Overloaded.
        """
        order = _order(call)
        await self._dispatcher.prepare(LANGUAGE)
        one = _Run(self._dispatcher, self._proxy, self._journal, budgets, context)
        return await one.through(order)


def _order(call: PackageCall) -> bytes:
    """The input of the isolate."""
    env = dict(call.env)
    if not all(isinstance(part, str) for pair in env.items() for part in pair):
        raise InvalidRequest("env is an object of strings")
    if sum(len(name) + len(value) for name, value in env.items()) > _MAX_ENV:
        raise InvalidRequest(f"env has more than {_MAX_ENV} characters")
    asked = {
        "name": call.export,
        "params": call.params,
        "fallback": call.fallback,
        "call_id": f"call_{secrets.token_hex(8)}",
    }
    try:
        codec.check(call.params, json=True)
        return codec.encode(
            {"modules": dict(call.bundle.modules), "entry": call.bundle.entry, "env": env, "call": asked}, parsed=True
        )
    except Unserializable as e:
        raise InvalidRequest(f"the parameters cannot be given: {e.message} at {e.path}") from None


class _Quiet:
    """A run that cannot be replayed keeps no journal of its own."""

    def started(self, language: str, seed: int, now_us: int, image: str) -> None:
        pass

    def paused(self, fuel: int, calls: Sequence[frames.Call], wake_us: int | None) -> None:
        pass

    def resumed(self, now_us: int, answers: Sequence[frames.Answer]) -> None:
        pass


class _Fetches:
    """The calls of a package: fetches, and nothing else."""

    def __init__(
        self,
        proxy: ToolProxy,
        context: CallContext,
        output: Output,
        journal: Callable[[], CallJournal | None],
        answer: Callable[[frames.Answer], None],
    ) -> None:
        self._proxy = proxy
        self._context = context
        self._output = output
        self._journal = journal
        self._answer = answer
        self._tasks = Tasks()
        self._open: dict[int, asyncio.Task[None]] = {}
        self.args_bytes = self.value_bytes = 0

    def make(self, call: frames.Call) -> None:
        self._open[call.id] = self._tasks.spawn(self._make(call))

    def bound(self, deadline: float) -> None:
        self._context = replace(self._context, deadline=deadline)

    def drop(self) -> None:
        for task in self._open.values():
            task.cancel()
        self._open.clear()

    async def aclose(self) -> None:
        await self._tasks.close()

    async def _make(self, call: frames.Call) -> None:
        try:
            answer = frames.Answer(call.id, True, await self._fetched(call))
        except ToolError as e:
            answer = frames.Answer(call.id, False, told(e))
        except Exception as e:
            reference = secrets.token_hex(6)
            _log.error("a package's call failed unexpectedly", reference=reference, exception=traced(e))
            problem = ToolError("internal", f"the call was given up: it failed unexpectedly (reference {reference})")
            answer = frames.Answer(call.id, False, told(problem))
        self._open.pop(call.id, None)
        self._answer(answer)

    async def _fetched(self, call: frames.Call) -> bytes:
        if call.path != FETCH:
            raise ToolError("tool_not_found", "a package has no tools: it can fetch what was granted")
        try:
            args = codec.decode(call.args)
        except FrameError:
            raise ToolError("invalid_arguments", "the arguments are not a value") from None
        self.args_bytes = max(self.args_bytes, len(call.args))
        listening = _Listening(call.id, self._output, self._journal())
        outcome = await self._proxy.call(self._context, FETCH, args, journal=listening, args_size=len(call.args))
        self.value_bytes = max(self.value_bytes, outcome.record.value_bytes)
        return outcome.encoded


class _Listening:
    """Puts a call into the answer, and tells the journal of calls where there is one."""

    def __init__(self, id: int, output: Output, journal: CallJournal | None) -> None:
        self._id = id
        self._output = output
        self._journal = journal
        self._index = output.call_started({"id": id, "path": FETCH, "outcome": "decided"})

    async def sending(self, record: Any) -> None:
        if self._journal is not None:
            await self._journal.sending(record)

    def finished(self, record: Any) -> None:
        self._output.call_ended(self._index, facts(self._id, record))
        if self._journal is not None:
            self._journal.finished(record)


class _Run:
    def __init__(
        self,
        dispatcher: Dispatcher,
        proxy: ToolProxy,
        journal: Callable[[], CallJournal | None],
        budgets: Budgets,
        context: CallContext,
    ) -> None:
        self._dispatcher = dispatcher
        self._budgets = budgets
        self._output = Output(budgets.log_bytes, budgets.result_bytes)
        self._id = f"run_{secrets.token_hex(16)}"
        self._context = replace(
            context, run_id=self._id, args_bytes=budgets.call_args_bytes, value_bytes=budgets.call_value_bytes
        )
        self._proxy, self._journal = proxy, journal

    async def through(self, order: bytes) -> RunResult:
        asked = time.perf_counter()
        script = Script(LANGUAGE, "", order, secrets.randbits(63), self._budgets)
        driver = Driver(script, self._output, _Quiet())
        fetches = _Fetches(self._proxy, self._context, self._output, self._journal, driver.answered)
        began = None
        try:
            while True:
                slot = await self._dispatcher.acquire(driver.frame)
                began = began or time.perf_counter()
                try:
                    driver.start(slot, fetches)
                    fetches.bound(driver.deadline)
                    ending = await driver.ended()
                finally:
                    slot.release()
                if ending is not None:
                    break
        finally:
            fetches.drop()
            await fetches.aclose()
        assert began is not None
        usage = self._usage(driver, fetches, order, began - asked, time.perf_counter() - began)
        return self._result(ending, usage)

    def _usage(
        self, driver: Driver, fetches: _Fetches, order: bytes, waited: float, took: float
    ) -> dict[str, int | float]:
        used = driver.usage
        return {
            "fuel": used.fuel,
            "wall_ms": round(took * 1000, 3),
            "memory_bytes": used.memory_bytes,
            "bridge_calls": driver.calls_made,
            "bridge_calls_in_flight": driver.in_flight_peak,
            "call_args_bytes": fetches.args_bytes,
            "call_value_bytes": fetches.value_bytes,
            "source_bytes": len(order),
            "input_bytes": 0,
            "result_bytes": 0,
            "log_bytes": self._output.log_bytes,
            "cpu_ms": round(used.cpu_us / 1000, 3),
            "waited_ms": round(waited * 1000, 3),
        }

    def _result(self, ending: Ending, usage: dict[str, int | float]) -> RunResult:
        result = RunResult(
            self._id, "failed", logs=list(self._output.logs), calls=list(self._output.calls), usage=usage
        )
        reason = ending.failure
        if ending.result is not None:
            usage["result_bytes"] = len(ending.result)
            if len(ending.result) > self._budgets.result_bytes:
                reason = failure("result_too_large", f"the result is larger than {self._budgets.result_bytes} bytes")
            else:
                return self._said(result, ending.result)
        assert reason is not None
        result.status = "cancelled" if reason.code == "cancelled" else "failed"
        known = {"code": reason.code, "message": reason.message, "name": reason.name, "stack": reason.stack}
        result.error = {key: value for key, value in (known | {"hint": HINTS.get(reason.code)}).items() if value}
        result.limit = limit_of(reason.code, self._budgets, usage)
        return result

    def _said(self, result: RunResult, packed: bytes) -> RunResult:
        """What the guest's own code says of the call; it is believed of the package, and of nothing else."""
        try:
            said: Any = values.vetted(packed)
        except (values.TooManyNodes, Unserializable, FrameError):
            said = None
        match said:
            case {"outcome": "done", "output": str(text)}:
                try:
                    result.result = json.loads(text)
                    result.status = "completed"
                    return result
                except (ValueError, RecursionError):
                    result.error = {"code": "unserializable", "message": "the result is nested too deeply"}
            case {"outcome": str(reason), "error": {"name": str(name), "message": str(message)} as error} if (
                reason in REASONS
            ):
                result.error = {"code": "script_error", "reason": reason, "name": name, "message": message}
                if isinstance(stack := error.get("stack"), str):
                    result.error["stack"] = stack
            case _:
                _log.error("a package's isolate answered in another shape")
                result.error = {"code": "internal", "message": "the package's isolate failed"}
        return result
