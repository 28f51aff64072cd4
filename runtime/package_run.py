"""One run of a package's isolate: driven to its end, its fetches made, what it used counted."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import structlog

from bridge.calls import CallContext, CallJournal, CallRecord
from bridge.proxy import FETCH, ToolProxy
from bridge.traces import traced
from bridge.wire import codec, frames
from bridge.wire.errors import FrameError, ToolError
from runtime.budgets import Budgets
from runtime.call import facts, told
from runtime.dispatcher import Dispatcher
from runtime.driver import Driver, Ending, Script
from runtime.output import Output
from runtime.tasks import Tasks
from runtime.worker.run import FROM, NODE

_log = structlog.get_logger("executor.packages")

SUMMED: Final = ("fuel", "wall_ms", "bridge_calls", "cpu_ms", "waited_ms")
"""Figures of the usage that add up over the runs of a call; of the others the largest counts."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Memory of a loaded package that a run can begin from; `once`: one run, and no other."""

    key: str
    data: bytes = field(repr=False)
    once: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended, what it had said, and what it had used."""

    ending: Ending
    logs: list[dict[str, Any]]
    calls: list[dict[str, Any]]
    usage: dict[str, int | float]


class PackageRuns:
    """Runs isolates of the Node image; what they fetch goes through `proxy`."""

    def __init__(self, dispatcher: Dispatcher, proxy: ToolProxy, journal: Callable[[], CallJournal | None]) -> None:
        self._dispatcher, self._proxy, self._journal = dispatcher, proxy, journal

    async def run(
        self,
        order: bytes,
        budgets: Budgets,
        context: CallContext,
        *,
        source: str = "",
        pages: Pages | None = None,
        nested: bool = False,
    ) -> Ran:
        """Give an isolate `order` and see it through. `nested`: another run waits for it. Raises Overloaded when there
        is no place for it."""
        output = Output(budgets.log_bytes, budgets.result_bytes)
        text = source if pages is None else FROM + pages.key
        driver = Driver(Script(NODE, text, order, secrets.randbits(63), budgets), output, _Quiet())
        bounded = replace(context, args_bytes=budgets.call_args_bytes, value_bytes=budgets.call_value_bytes)
        fetches = _Fetches(self._proxy, bounded, output, self._journal, driver.answered)
        asked = time.perf_counter()
        began: float | None = None
        ending: Ending | None = None
        try:
            while ending is None:
                slot = await self._dispatcher.acquire(driver.frame, nested=nested)
                began = began or time.perf_counter()
                try:
                    if pages is not None:
                        slot.keep(pages.key, pages.data)
                    driver.start(slot, fetches)
                    fetches.bound(driver.deadline)
                    ending = await driver.ended()
                finally:
                    if pages is not None and pages.once:
                        slot.drop(pages.key)
                    slot.release()
        finally:
            fetches.drop()
            await fetches.close()
        assert began is not None
        usage = _usage(driver, fetches, output, began - asked, time.perf_counter() - began)
        usage["source_bytes"] = len(order)
        usage["result_bytes"] = len(ending.result or b"")
        return Ran(ending, list(output.logs), list(output.calls), usage)


def _usage(driver: Driver, fetches: _Fetches, output: Output, waited: float, took: float) -> dict[str, int | float]:
    used = driver.usage
    return {
        "fuel": used.fuel,
        "wall_ms": round(took * 1000, 3),
        "memory_bytes": used.memory_bytes,
        "bridge_calls": driver.calls_made,
        "bridge_calls_in_flight": driver.in_flight_peak,
        "call_args_bytes": fetches.args_bytes,
        "call_value_bytes": fetches.value_bytes,
        "source_bytes": 0,
        "input_bytes": 0,
        "result_bytes": 0,
        "log_bytes": output.log_bytes,
        "cpu_ms": round(used.cpu_us / 1000, 3),
        "waited_ms": round(waited * 1000, 3),
    }


def together(first: dict[str, int | float], second: dict[str, int | float]) -> dict[str, int | float]:
    """The usage of two runs that were one call."""
    return {
        name: round(first[name] + second[name], 3) if name in SUMMED else max(first[name], second[name])
        for name in first
    }


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

    async def close(self) -> None:
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

    async def sending(self, record: CallRecord) -> None:
        if self._journal is not None:
            await self._journal.sending(record)

    def finished(self, record: CallRecord) -> None:
        self._output.call_ended(self._index, facts(self._id, record))
        if self._journal is not None:
            self._journal.finished(record)
