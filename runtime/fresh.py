"""Workers of one run each, for isolation `run`: a place costs a process, so there are few, and one is kept warm."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from bridge.wire.errors import Overloaded
from runtime.link import Died, Link
from runtime.slot import Sink, Slot

_log = structlog.get_logger("executor.dispatcher")


class Sizes(Protocol):
    """What the pool needs of the settings."""

    @property
    def max_fresh(self) -> int: ...

    @property
    def max_queued(self) -> int: ...


class Fresh:
    """Gives each run a worker that no other run has been in, and ends the worker with the run."""

    def __init__(self, spawn: Callable[[Callable[[Link], None]], Awaitable[Link]], sizes: Sizes) -> None:
        self.running = 0
        self.queued = 0
        self._spawn = spawn
        self._sizes = sizes
        self._places = asyncio.Semaphore(sizes.max_fresh)
        self._links: set[Link] = set()
        self._spare: Link | None = None
        self._warming: asyncio.Task[None] | None = None
        self._closing = False

    async def acquire(self, sink: Sink) -> Slot:
        """A slot in a fresh worker. Raises Overloaded when too many wait, or when no worker starts."""
        if self.queued >= self._sizes.max_queued:
            raise Overloaded(f"{self.running} runs have workers of their own and {self.queued} are waiting")
        self.queued += 1
        try:
            await self._places.acquire()
        finally:
            self.queued -= 1
        try:
            link = await self._take()
        except BaseException as e:
            self._places.release()
            if isinstance(e, (Died, OSError)):
                _log.error("worker_not_started", reason=str(e))
                raise Overloaded("no worker could be started") from None
            raise
        self.running += 1
        link.freed = self._freed
        self._warm()
        return link.open_slot(sink)

    async def aclose(self) -> None:
        """End every worker. Later calls do nothing."""
        self._closing = True
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.gather(self._warming, return_exceptions=True)
        await asyncio.gather(*(link.close("the service is stopping") for link in self._links))

    async def _take(self) -> Link:
        spare, self._spare = self._spare, None
        if spare is not None and spare.gone is None:
            return spare
        return await self._start()

    async def _start(self) -> Link:
        link = await self._spawn(self._links.discard)
        self._links.add(link)
        return link

    def _warm(self) -> None:
        if self._spare is None and not self._closing and (self._warming is None or self._warming.done()):
            self._warming = asyncio.get_running_loop().create_task(self._keep_warm())

    async def _keep_warm(self) -> None:
        try:
            self._spare = await self._start()
        except (Died, OSError) as e:
            _log.warning("worker_not_started", reason=str(e))

    def _freed(self, link: Link) -> None:
        self.running -= 1
        link.kill("the run of this worker is over")
        self._places.release()
