"""What goes on beside a call: its progress is told, and a client that is gone takes it along."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final, cast

from anyio import BrokenResourceError, CancelScope, ClosedResourceError

from runtime.results import RunRecord

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from executor.executor import Executor

PROGRESS_S: Final = 5.0
"""How often a client that asked for it hears that a run goes on."""


async def until_news(executor: Executor, record: RunRecord, seconds: float) -> RunRecord:
    """The run once it has ended or asks something that `record` does not, or as it stands after so many seconds."""
    known = {one["id"] for one in record.interactions}
    try:
        async with asyncio.timeout(seconds), aclosing(cast(Any, executor.events(record.run_id))) as events:
            async for event in events:
                if event.type == "result":
                    break
                if event.type == "status" and event.data["status"] == "waiting":
                    now = await executor.get_run(record.run_id)
                    if any(one["id"] not in known for one in now.interactions):
                        return now
    except TimeoutError:
        pass
    return await executor.get_run(record.run_id)


class Progress:
    """Tells a client that asked for progress, now and then, that its call goes on."""

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self._ctx = ctx
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._tell())

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _tell(self) -> None:
        elapsed = 0.0
        with suppress(ClosedResourceError, BrokenResourceError):
            while True:
                await asyncio.sleep(PROGRESS_S)
                elapsed += PROGRESS_S
                # Goes nowhere where nobody asked for it.
                await self._ctx.session.report_progress(elapsed, message=f"running for {elapsed:.0f} s")


class Presence:
    """Cancels `scope` when `gone` is set: nobody is there to read what it comes to."""

    def __init__(self, gone: asyncio.Event | None, scope: CancelScope) -> None:
        self._gone = gone
        self._scope = scope
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._gone is not None:
            self._watch = asyncio.create_task(self._await(self._gone))

    async def __aexit__(self, *_: object) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])

    async def _await(self, gone: asyncio.Event) -> None:
        await gone.wait()
        self._scope.cancel()
