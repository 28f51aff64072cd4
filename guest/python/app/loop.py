"""The event loop: asyncio's own futures and tasks on a clock that the host sets. Nothing in it blocks.

`run` goes on until nothing is left to do in this step. A pause leaves no frame of a script on a stack, unless plain
synchronous code waits: then `wire.wait` holds the step where it is until the host has something.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import heapq
import weakref
from asyncio import events, futures, tasks
from collections.abc import Callable
from contextvars import Context
from typing import Any

from . import wire


class NeverSettles(BaseException):
    """Raised when the script waits for something that nothing can bring about any more."""


class Loop(asyncio.AbstractEventLoop):
    """One per run. `waiting` maps the number of a call that has no answer yet to its future."""

    def __init__(self) -> None:
        self._ready: collections.deque[events.Handle] = collections.deque()
        self._timers: list[tuple[int, int, events.TimerHandle]] = []
        self._sequence = 0
        self._generators: weakref.WeakSet[Any] | None = None
        self.tasks = 0
        self.waiting: dict[int, asyncio.Future[Any]] = {}

    def run(self) -> int | None:
        """Run everything that can run now; when to wake, on the clock in microseconds, or None for no timer."""
        outer = events._get_running_loop()
        events._set_running_loop(self)
        ready, timers = self._ready, self._timers
        try:
            while True:
                while ready:
                    handle = ready.popleft()
                    if not handle._cancelled:
                        # the task has such an exit, and whoever awaits the task gets it
                        with contextlib.suppress(SystemExit, KeyboardInterrupt):
                            handle._run()
                while timers and timers[0][2]._cancelled:
                    heapq.heappop(timers)
                if not timers:
                    return None
                if timers[0][0] > wire.now():
                    return timers[0][0]
                ready.append(heapq.heappop(timers)[2])
        finally:
            events._set_running_loop(outer)

    def answered(self, answers: list[tuple[int, bool, Any]], failed: Callable[[Any], BaseException]) -> None:
        """Settle the futures of the calls that were answered."""
        for number, ok, value in answers:
            future = self.waiting.pop(number, None)
            if future is None or future.done():
                continue
            if ok:
                future.set_result(value)
            else:
                future.set_exception(failed(value))

    def wait_for(self, future: asyncio.Future[Any]) -> None:
        """Wait in plain synchronous code until `future` is done; other tasks do not run meanwhile."""
        while not future.done():
            if not any(waiting is future for waiting in self.waiting.values()):
                raise NeverSettles
            wire.wait(None)

    def run_until_complete(self, future: Any) -> Any:
        """asyncio.run and its like, inside of a script that is itself run by this loop."""
        task = asyncio.ensure_future(future, loop=self)
        current = tasks.current_task(self)
        if current is not None:
            tasks._leave_task(self, current)
        try:
            while not task.done():
                wake = self.run()
                if task.done():
                    break
                if wake is None and not self.waiting:
                    raise NeverSettles
                wire.wait(wake)
        finally:
            if current is not None:
                tasks._enter_task(self, current)
        return task.result()

    def create_future(self) -> asyncio.Future[Any]:
        return futures.Future(loop=self)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Anything that can be awaited becomes a task, a tool's call too."""
        self.tasks += 1
        if not asyncio.iscoroutine(coro) and hasattr(type(coro), "__await__"):
            coro = _awaited(coro)
        return tasks.Task(coro, loop=self, **options)

    def generator_begins(self, generator: Any) -> None:
        """Called by the interpreter for an async generator that is used for the first time."""
        if self._generators is None:
            self._generators = weakref.WeakSet()
        self._generators.add(generator)

    def generator_is_lost(self, generator: Any) -> None:
        """Called by the interpreter when nobody holds an async generator that has not ended: it is closed properly."""
        self.call_soon(self.create_task, generator.aclose())

    def close_generators(self) -> bool:
        """Begin to close those that are left at the end of a run; False when there are none."""
        left, self._generators = list(self._generators or ()), None
        for generator in left:
            self.call_soon(self.create_task, generator.aclose())
        return bool(left)

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> events.Handle:
        handle = events.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> events.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> events.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> events.TimerHandle:
        handle = events.TimerHandle(when, callback, args, self, context)
        self._sequence += 1
        due = wire.began() + round(min(max(when * 1_000_000, 0), 2**61))
        heapq.heappush(self._timers, (due, self._sequence, handle))
        return handle

    def time(self) -> float:
        return (wire.now() - wire.began()) / 1_000_000

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        pass

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def stop(self) -> None:
        raise RuntimeError("the loop of a script cannot be stopped")

    def run_forever(self) -> None:
        raise RuntimeError("the loop of a script runs already: await what should be done")

    def close(self) -> None:
        pass

    async def shutdown_asyncgens(self) -> None:
        pass

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        pass

    def get_exception_handler(self) -> None:
        return None

    def set_exception_handler(self, handler: Any) -> None:
        pass

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        wire.log(True, f"{context.get('message')}: {context.get('exception')!r}\n")

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException) and not isinstance(error, Exception):
            return
        self.default_exception_handler(context)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """There are no threads: the function runs at once."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _timer_handle_cancelled(self, handle: events.TimerHandle) -> None:
        pass


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def _unsupported(name: str) -> Any:
    def refuse(self: Loop, *args: Any, **options: Any) -> Any:
        raise PermissionError(f"{name} is not possible here: there is no network and no other process")

    return refuse


for _name in [
    "getaddrinfo",
    "getnameinfo",
    "create_connection",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "start_tls",
    "sendfile",
    "create_datagram_endpoint",
    "connect_read_pipe",
    "connect_write_pipe",
    "subprocess_exec",
    "subprocess_shell",
    "add_reader",
    "add_writer",
    "sock_recv",
    "sock_sendall",
    "sock_connect",
    "sock_accept",
    "add_signal_handler",
]:
    setattr(Loop, _name, _unsupported(_name))
