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


def reserved(places: int) -> int:
    """How many more places there are for runs that the holders of `places` wait for."""
    return max(1, places // 4)


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
        self._places = {
            False: asyncio.Semaphore(sizes.max_fresh),
            True: asyncio.Semaphore(reserved(sizes.max_fresh)),
        }
        self._nested: set[Link] = set()
        """Workers of runs that another run waits for."""
        self._links: set[Link] = set()
        self._spare: asyncio.Task[Link] | None = None
        self._closing = False

    async def acquire(self, sink: Sink, *, nested: bool = False) -> Slot:
        """A slot in a fresh worker; `nested` as in `Dispatcher.acquire`.

        Raises Overloaded when too many wait, or when no worker starts.
        """
        if self.queued >= self._sizes.max_queued:
            raise Overloaded(f"{self.running} runs have workers of their own and {self.queued} are waiting")
        self.queued += 1
        try:
            await self._places[nested].acquire()
        finally:
            self.queued -= 1
        try:
            link = await self._take()
        except BaseException as e:
            self._places[nested].release()
            if isinstance(e, (Died, OSError)):
                _log.error("worker_not_started", reason=str(e))
                raise Overloaded("no worker could be started") from None
            raise
        self.running += 1
        if nested:
            self._nested.add(link)
        link.freed = self._freed
        self._warm()
        return link.open_slot(sink, nested=nested)

    async def renew(self) -> None:
        """Give up the worker that is kept warm, for it was started without something that runs now need."""
        spare, self._spare = self._spare, None
        if spare is None:
            return
        spare.cancel()
        for outcome in await asyncio.gather(spare, return_exceptions=True):
            if isinstance(outcome, Link):
                outcome.kill("the worker was replaced")

    async def aclose(self) -> None:
        """End every worker. Later calls do nothing."""
        self._closing = True
        if self._spare is not None:
            self._spare.cancel()
            await asyncio.gather(self._spare, return_exceptions=True)
        await asyncio.gather(*(link.close("the service is stopping") for link in self._links))

    async def _take(self) -> Link:
        spare, self._spare = self._spare, None
        if spare is None:
            return await self._start()
        try:
            link = await asyncio.shield(spare)
        except asyncio.CancelledError:
            self._spare = spare
            raise
        return link if link.gone is None else await self._start()

    async def _start(self) -> Link:
        link = await self._spawn(self._links.discard)
        self._links.add(link)
        return link

    def _warm(self) -> None:
        if self._spare is None and not self._closing:
            self._spare = asyncio.get_running_loop().create_task(self._start())
            self._spare.add_done_callback(self._warmed)

    def _warmed(self, spare: asyncio.Task[Link]) -> None:
        if not spare.cancelled() and (error := spare.exception()) is not None:
            _log.warning("worker_not_started", reason=str(error))
            if self._spare is spare:
                self._spare = None

    def _freed(self, link: Link) -> None:
        self.running -= 1
        link.kill("the run of this worker is over")
        nested = link in self._nested
        self._nested.discard(link)
        self._places[nested].release()
