"""Runs find a worker: a pool of processes, a bounded queue before it, and the replacing of what ends or wears out."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

import structlog

from bridge.wire import frames
from bridge.wire.errors import ConfigError, InvalidRequest, Overloaded
from guest import images as installed
from guest import toolchain
from guest.wasm import MalformedModule
from runtime.engine import interpreter
from runtime.engine.modules import ModuleCache
from runtime.engine.settings import Mode
from runtime.fresh import Fresh, reserved
from runtime.link import EXIT_FIBERS, EXIT_WALLS, Died, Link
from runtime.memory import give_back
from runtime.slot import Lost, Sink, Slot
from runtime.worker import lockdown

__all__ = ["Dispatcher", "DispatcherSettings", "Lost", "Sink", "Slot"]

_log = structlog.get_logger("executor.dispatcher")

_STOPPING: Final = "the service is stopping"
_HINTS: Final = {EXIT_WALLS: "allow weak isolation to run without them, at your own risk"}
_THREADS_FOR_CALLS: Final = 16
_OPTIONAL: Final = frozenset({"python", "node"})
"""Languages whose image is not in a worker before a script wants it."""
_BACKOFF_S: Final = (0.0, 0.1, 0.5, 2.0, 5.0)

Isolation = Literal["shared", "run"]


@dataclass(frozen=True)
class DispatcherSettings:
    """How many of what.

    `threads` are for guest code that outlives its first slice, in each worker. `max_running` runs have a place at once,
    `max_queued` wait for one. With isolation `run` a run gets a fresh worker to itself, at most `max_fresh` at once.
    Runs that another run waits for have places of their own, a quarter as many of each kind. A shared one is replaced
    after `recycle_after_runs`. One that does not stop a run within `grace_ms` is killed. `require` is the lowest
    acceptable level: `full`, `syscalls`, or `process` for any. `images` are guest modules by language, those of the
    installation when None.
    """

    workers: int = field(default_factory=lambda: max(1, min(4, os.cpu_count() or 1)))
    threads: int = 2
    max_running: int = 256
    max_queued: int = 1024
    max_fresh: int = 8
    isolation: Isolation = "shared"
    recycle_after_runs: int = 5_000
    grace_ms: int = 500
    require: str = "syscalls"
    images: Mapping[str, bytes] | None = None

    @property
    def max_nested(self) -> int:
        """Places that only runs take for which another run waits."""
        return reserved(self.max_running)


class _Waiter(NamedTuple):
    sink: Sink
    slot: asyncio.Future[Slot]


class Dispatcher:
    """A pool of workers, entered once. `acquire` gives a run its slot."""

    def __init__(self, settings: DispatcherSettings | None = None, *, cache: ModuleCache | None = None) -> None:
        self.settings = settings or DispatcherSettings()
        self._cache = cache
        self._mode: Mode = "fibers"
        self._boot = b""
        self._modules: dict[str, bytes] = {}
        self._hashes: dict[str, str] = {}
        """The SHA-256 of each module's wasm."""
        self._generation = 0
        """Of the boot frame: a worker that was started with an older one lacks an image."""
        self._preparing: dict[str, asyncio.Task[None]] = {}
        self._links: set[Link] = set()
        """Shared workers, those that drain too."""
        self._starting = 0
        self._failures = 0
        self._queues: dict[bool, deque[_Waiter]] = {False: deque(), True: deque()}
        """Those that wait for a place, and those of them for which another run waits already."""
        self._fresh = Fresh(self._spawn, self.settings)
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = self._closing = False

    async def __aenter__(self) -> Self:
        """Compile what is not compiled yet and start the workers.

        Raises ConfigError when no worker can be started as required.
        """
        try:
            await self._start()
        except BaseException:
            await self.aclose()
            raise
        self._started = True
        self._keep_up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop every worker; runs in them end as Lost. Later calls do nothing."""
        self._closing = True
        for queue in self._queues.values():
            while queue:
                waiter = queue.popleft()
                if not waiter.slot.done():
                    waiter.slot.set_exception(Overloaded(_STOPPING))
        tasks = [*self._tasks, *self._preparing.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(self._fresh.aclose(), *(link.close(_STOPPING) for link in self._links))

    async def acquire(self, sink: Sink, *, isolation: str | None = None, nested: bool = False) -> Slot:
        """A place for one run, in the order of asking. `sink` then takes what the worker says.

        `nested`: another run holds a place until this one is over. Such a run must wait for no other, and has places
        that no other takes, so that one is always found.

        Raises Overloaded when as many as may wait already do.
        """
        if self._closing:
            raise Overloaded(_STOPPING)
        if (isolation or self.settings.isolation) == "run":
            return await self._fresh.acquire(sink, nested=nested)
        queue = self._queues[nested]
        link = None if queue else self._free_link(nested)
        if link is not None:
            return self._open(link, sink, nested)
        if len(queue) >= self.settings.max_queued:
            raise Overloaded(f"{self._running()} runs are running and {self._waiting()} are waiting")
        waiter = _Waiter(sink, asyncio.get_running_loop().create_future())
        queue.append(waiter)
        try:
            return await waiter.slot
        except asyncio.CancelledError:
            if waiter.slot.cancelled():
                with contextlib.suppress(ValueError):
                    queue.remove(waiter)
            elif waiter.slot.exception() is None:
                waiter.slot.result().release()
            raise

    def level(self) -> dict[str, Any]:
        """`level`, `layers`, `workers`, `running`, `queued`, `mode`; the level is the lowest among the workers."""
        links = [link for link in self._links if link.gone is None]
        layers = set.intersection(*(set(link.layers) for link in links)) if links else set()
        return {
            "level": lockdown.level(list(layers)),
            "layers": sorted(layers),
            "workers": len(links),
            "running": self._running() + self._fresh.running,
            "queued": self._waiting() + self._fresh.queued,
            "mode": self._mode,
        }

    def image(self, language: str) -> str:
        """The SHA-256 of what runs `language`: of its image, and of what strips types where it has any."""
        names = ("javascript", "typescript") if language == "typescript" else (language,)
        hashes = [self._hashes.get(name, "") for name in names]
        return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()

    async def prepare(self, language: str) -> None:
        """Have workers that run `language`. Only what is not in every worker from the start takes time: its image is
        built and compiled where it is not yet, and the workers are replaced by ones that have it.

        Raises InvalidRequest, saying why, where the image cannot be made; Overloaded where no worker starts with it.
        """
        if language not in _OPTIONAL or self.settings.images is not None:
            return
        task = self._preparing.get(language)
        if task is None:
            if language in self._modules:
                return
            task = self._preparing[language] = asyncio.get_running_loop().create_task(self._add(language))
            task.add_done_callback(lambda done: self._preparing.pop(language, None))
        # Who waits may go away; the others that wait still want it.
        await asyncio.shield(task)

    async def _add(self, language: str) -> None:
        """Put an image into the boot frame, and every worker out of service that was started without it."""
        self._modules[language], self._hashes[language] = await asyncio.to_thread(
            _compiled_on_demand, language, self._cache or ModuleCache(), self._mode
        )
        self._pack_boot()
        try:
            link = await self._newest()
        except BaseException as e:
            del self._modules[language], self._hashes[language]
            self._pack_boot()
            if isinstance(e, (Died, OSError)):
                _log.error("worker_not_started", reason=str(e))
                raise Overloaded("no worker could be started") from None
            raise
        for other in self._links:
            other.worn = True
        self._join(link)
        self._keep_up()
        await self._fresh.renew()

    async def _newest(self) -> Link:
        """A worker with every image, also those that were added while it started."""
        while True:
            generation = self._generation
            link = await self._spawn(self._gone)
            if generation == self._generation:
                return link
            link.kill("the worker was replaced")

    async def _start(self) -> None:
        await self._prepare()
        try:
            await self._fill()
        except Died as e:
            if e.code is None or (e.code >= 0 and e.code != EXIT_FIBERS):
                raise ConfigError(f"no worker can be started: {e}", hint=_HINTS.get(e.code or 0)) from None
            # Not the engine that the C bindings were written for. Everything works without them, only slower.
            _log.warning("fibers_unavailable", reason=str(e))
            self._mode = "calls"
            await self._prepare()
            try:
                await self._fill()
            except Died as again:
                raise ConfigError(f"no worker can be started: {again}") from None

    async def _prepare(self) -> None:
        """Pack the boot frame of this mode, compiling what is not in the cache."""
        cache = self._cache or ModuleCache()
        made = await asyncio.to_thread(_compiled, self.settings.images, cache, self._mode)
        self._modules = {name: code for name, (code, _) in made.items()}
        self._hashes = {name: sha256 for name, (_, sha256) in made.items()}
        self._pack_boot()

    def _pack_boot(self) -> None:
        threads = self.settings.threads if self._mode == "fibers" else max(self.settings.threads, _THREADS_FOR_CALLS)
        self._boot = frames.pack(
            frames.Boot(frames.VERSION, frames.BOOT, 0, self._modules, threads, self.settings.require)
        )
        self._generation += 1

    async def _fill(self) -> None:
        starting = [self._spawn(self._gone) for _ in range(self.settings.workers)]
        for outcome in await asyncio.gather(*starting, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
            self._join(outcome)
        await asyncio.to_thread(give_back)

    async def _spawn(self, closed: Callable[[Link], None]) -> Link:
        return await Link.spawn(self._boot, mode=self._mode, grace_s=self.settings.grace_ms / 1000, closed=closed)

    def _join(self, link: Link) -> None:
        """Take a new worker into the pool, unless it is gone already, and let those drain that it replaces."""
        if link.gone is not None:
            return
        link.freed = self._freed
        self._links.add(link)
        for other in list(self._links):
            if other.worn and not other.draining:
                other.draining = True
                self._retire(other)
        self._pump()

    def _keep_up(self) -> None:
        """Start as many workers as are missing."""
        if self._closing or not self._started:
            return
        fit = sum(1 for link in self._links if link.gone is None and not link.worn and not link.draining)
        for _ in range(self.settings.workers - fit - self._starting):
            self._starting += 1
            self._do(self._replace())

    async def _replace(self) -> None:
        try:
            link = await self._replacement()
        finally:
            self._starting -= 1
        self._join(link)
        # It may have gone in the meantime, and whoever noticed still counted it among those that start.
        self._keep_up()
        await asyncio.to_thread(give_back)

    async def _replacement(self) -> Link:
        while True:
            await asyncio.sleep(_BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)])
            generation = self._generation
            try:
                link = await self._spawn(self._gone)
            except (Died, OSError) as e:
                self._failures += 1
                _log.error("worker_not_started", reason=str(e), failures=self._failures)
            else:
                self._failures = 0
                if generation == self._generation:
                    return link
                link.kill("the worker was replaced")

    def _gone(self, link: Link) -> None:
        if link in self._links:
            self._links.discard(link)
            if not self._closing and not link.draining:
                _log.warning("worker_lost", worker=link.pid, reason=link.gone)
        self._keep_up()

    def _freed(self, link: Link) -> None:
        self._retire(link)
        self._keep_up()
        self._pump()

    def _retire(self, link: Link) -> None:
        if link.draining and link.load == 0 and link.gone is None:
            link.kill("the worker was replaced")

    def _free_link(self, nested: bool) -> Link | None:
        taken = sum(link.nested for link in self._links)
        sizes = self.settings
        if taken >= sizes.max_nested if nested else self._running() - taken >= sizes.max_running:
            return None
        open_links = [link for link in self._links if link.gone is None and not link.draining]
        return min(open_links, key=lambda link: link.load, default=None)

    def _open(self, link: Link, sink: Sink, nested: bool) -> Slot:
        slot = link.open_slot(sink, nested=nested)
        if link.runs_taken >= self.settings.recycle_after_runs and not link.worn:
            link.worn = True
            self._keep_up()
        return slot

    def _pump(self) -> None:
        """Give free places to those that wait."""
        for nested, queue in self._queues.items():
            while queue and (link := self._free_link(nested)) is not None:
                waiter = queue.popleft()
                if not waiter.slot.done():
                    waiter.slot.set_result(self._open(link, waiter.sink, nested))

    def _waiting(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def _running(self) -> int:
        return sum(link.load for link in self._links)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _compiled(images: Mapping[str, bytes] | None, cache: ModuleCache, mode: Mode) -> dict[str, tuple[bytes, str]]:
    """Each module's code, with the SHA-256 of its wasm."""
    interpreter.code()
    wasms = (images or _installed()).items()
    return {name: (cache.compiled(wasm, mode), hashlib.sha256(wasm).hexdigest()) for name, wasm in wasms}


def _compiled_on_demand(name: str, cache: ModuleCache, mode: Mode) -> tuple[bytes, str]:
    try:
        image = installed.load(name)
    except installed.ImageUnavailable:
        try:
            installed.build(progress=lambda line: _log.info("building_image", step=line), sets=(name,))
            image = installed.load(name)
        except (installed.ImageUnavailable, toolchain.BuildFailed, MalformedModule, OSError, RuntimeError) as e:
            _log.warning("image_not_built", image=name, reason=str(e)[-500:])
            what = "npm packages are" if name == "node" else f"language {name!r} is"
            raise InvalidRequest(
                f"{what} not available on this machine: the image could not be built",
                hint="`executor images build` says why; scripts in JavaScript and TypeScript run all the same",
            ) from None
    return cache.compiled(image.wasm, mode), image.sha256


def _installed() -> dict[str, bytes]:
    try:
        return {name: installed.load(name).wasm for name in installed.builders()}
    except installed.ImageUnavailable as e:
        # What it says behind the semicolon is the hint.
        raise ConfigError(str(e).partition("; ")[0], hint="executor images build") from None
