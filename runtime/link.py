"""A worker process and the socket to it, seen from the host, which trusts nothing that comes out of it.

Every frame is decoded once, within limits, and validated; a frame that is malformed, unexpected or about a run that the
worker does not have ends the worker, and its runs as Lost. A worker never outlives its link, nor the host.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import structlog

from bridge.wire import distrust, frames
from bridge.wire.errors import FrameError
from bridge.wire.frames import Cancel, Ended, Keep, Pending, Ready, Resume, Splitter, Start
from runtime.engine import interpreter
from runtime.grace import cpu_seconds
from runtime.slot import Sink, Slot

_log = structlog.get_logger("executor.dispatcher")

BOOT_S: Final = 60
"""Seconds that a worker may take to lock itself down; usually 0.2."""

KEPT_BYTES: Final = 256 * 1024 * 1024
"""Of the pages that a worker keeps."""

EXIT_ENGINE: Final = 70
EXIT_FIBERS: Final = 71
EXIT_IMAGE: Final = 72
EXIT_WALLS: Final = 73
EXIT_FRAME: Final = 74

_WHY: Final = {
    EXIT_ENGINE: "the wasm engine accepts features that must be off",
    EXIT_FIBERS: "the wasm engine's C API is not as known",
    EXIT_IMAGE: "a compiled guest image does not load",
    EXIT_WALLS: "the kernel lacks isolation layers that are required",
    EXIT_FRAME: "the worker refused what it was sent",
}


class Died(Exception):
    """Raised when a worker ended before it was ready. `code` is its exit code, negative for a signal."""

    def __init__(self, code: int | None) -> None:
        super().__init__(_WHY.get(code or 0, f"the worker ended with exit code {code} before it was ready"))
        self.code = code


class _NotReady(Exception):
    """Raised inside `spawn` when the worker is gone before it is ready."""


class Link(asyncio.Protocol):
    """One worker. Made by `spawn`; `closed` is called once, when the process is gone and reaped."""

    def __init__(self, process: subprocess.Popen[bytes], closed: Callable[[Link], None], grace_s: float) -> None:
        self.pid = process.pid
        self.layers: list[str] = []
        self.gone: str | None = None
        """Why the worker is gone; None while it is not."""
        self.draining = False
        """Whether it takes no more runs, and ends when those it has are over."""
        self.worn = False
        """Whether it is to drain as soon as another has taken its place."""
        self.runs_taken = 0
        self.heard = 0
        """Frames that have come from the worker."""
        self.freed: Callable[[Link], None] = lambda link: None
        """Called when a place in this worker has become free."""
        self._process = process
        self._closed = closed
        self._grace_s = grace_s
        self._splitter = Splitter()
        self._slots: dict[int, Slot] = {}
        self._nested: set[int] = set()
        self._kept: OrderedDict[str, int] = OrderedDict()
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._reaped: asyncio.Future[int] = self._loop.create_future()
        self._watch()

    @classmethod
    async def spawn(
        cls,
        boot: bytes,
        *,
        mode: str,
        grace_s: float,
        closed: Callable[[Link], None],
        command: list[str] | None = None,
    ) -> Link:
        """Start a worker, send it the packed boot frame, and wait until it has locked itself down.

        The process must be started by the thread that runs the loop: the kernel ends a worker with the thread that
        started it. `command` replaces the worker's command line; its last argument is the socket's descriptor.
        Raises Died when the worker ends instead.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = _start(command or worker_command(mode), theirs.fileno())
        except BaseException:
            ours.close()
            raise
        link = cls(process, closed, grace_s)
        try:
            ours.setblocking(False)
            await asyncio.get_running_loop().create_connection(lambda: link, sock=ours)
            assert link._transport is not None
            link._transport.write(boot if command else interpreter.code() + boot)
            async with asyncio.timeout(BOOT_S):
                await link._ready
        except BaseException as e:
            code = await link.close("the worker did not start")
            if link._transport is None:
                ours.close()
            if isinstance(e, (_NotReady, TimeoutError, OSError)):
                raise Died(code) from None
            raise
        return link

    def open_slot(self, sink: Sink, *, nested: bool = False) -> Slot:
        """A place for a run in this worker. `nested`: another run waits for it."""
        self.runs_taken += 1
        slot = Slot(self, self.runs_taken, sink, self._grace_s)
        self._slots[slot.number] = slot
        if nested:
            self._nested.add(slot.number)
        return slot

    @property
    def load(self) -> int:
        """How many places are taken."""
        return len(self._slots)

    @property
    def nested(self) -> int:
        """How many of them are taken by runs that others wait for."""
        return len(self._nested)

    def send(self, frame: Start | Resume | Cancel | Keep) -> None:
        if self._transport is not None and self.gone is None:
            self._transport.write(frames.pack(frame))

    def keep(self, key: str, pages: bytes) -> None:
        """Have the worker keep pages for runs that begin from them; what was used least recently makes room."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return
        self._kept[key] = len(pages)
        while len(self._kept) > 1 and sum(self._kept.values()) > KEPT_BYTES:
            self.drop(next(iter(self._kept)))
        self.send(Keep(frames.VERSION, frames.KEEP, 0, key, pages))

    def drop(self, key: str) -> None:
        """Have the worker keep those pages no longer; runs that began from them have what they need."""
        if self._kept.pop(key, None) is not None:
            self.send(Keep(frames.VERSION, frames.KEEP, 0, key, b""))

    def free(self, slot: Slot) -> None:
        if self._slots.pop(slot.number, None) is not None:
            self._nested.discard(slot.number)
            self.freed(self)

    def cpu_s(self) -> float | None:
        """Processor seconds that the process has used; None where the system does not tell."""
        return cpu_seconds(self.pid)

    def kill(self, reason: str, culprit: Slot | None = None) -> None:
        """End the process at once, and every run in it as Lost. Later calls do nothing.

        Without a `culprit` the one run that was computing is suspected of it; among several nobody is.
        """
        if self.gone is not None:
            return
        computing = [slot for slot in self._slots.values() if slot.stepping]
        suspect = computing[0] if culprit is None and len(computing) == 1 else culprit
        self.gone = reason
        self._signal()
        if self._transport is not None:
            self._transport.abort()
        if not self._ready.done():
            self._ready.set_exception(_NotReady(reason))
            self._ready.exception()
        for slot in list(self._slots.values()):
            slot.lost(reason, slot is suspect)

    async def close(self, reason: str = "the worker was stopped") -> int:
        """End the process and wait until it is reaped; its exit code."""
        self.kill(reason)
        return await self.ended()

    async def ended(self) -> int:
        """Wait until the process has ended and is reaped; its exit code, negative for a signal."""
        return await asyncio.shield(self._reaped)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for body in self._splitter.feed(data):
                self.heard += 1
                self._frame(distrust.read(body))
                if self.gone is not None:
                    return
        except FrameError as e:
            _log.warning("worker_broke_protocol", worker=self.pid, reason=e.message)
            self.kill("the worker broke the protocol")

    def connection_lost(self, exc: Exception | None) -> None:
        self.kill("the worker ended")

    def _frame(self, frame: Ready | Pending | Ended) -> None:
        if isinstance(frame, Ready):
            if self._ready.done() or frame.pid != self.pid:
                raise FrameError("a worker is ready once, and knows who it is")
            self.layers = frame.layers
            self._ready.set_result(None)
            return
        slot = self._slots.get(frame.run)
        if slot is None or not self._ready.done():
            raise FrameError("a worker spoke of a run that it does not have")
        if isinstance(frame, Ended) and frame.recycle:
            self.draining = True
        slot.said(frame)

    def _signal(self) -> None:
        if not self._reaped.done():
            os.kill(self.pid, signal.SIGKILL)

    def _watch(self) -> None:
        """Learn of the process's end through a pidfd, or a thread where the system has none."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait, daemon=True).start()
            return

        def ended() -> None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            self._exited(self._process.wait())

        self._loop.add_reader(descriptor, ended)

    def _wait(self) -> None:
        code = self._process.wait()
        self._loop.call_soon_threadsafe(self._exited, code)

    def _exited(self, code: int) -> None:
        self._reaped.set_result(code)
        self.kill(f"the worker ended with exit code {code}" if code >= 0 else f"the worker was ended by signal {-code}")
        self._closed(self)


def worker_command(mode: str) -> list[str]:
    """The command line of a worker, but for the descriptor that `spawn` adds."""
    return interpreter.sent(
        "runtime.worker.main", "int(sys.argv[4]),sys.argv[2],int(sys.argv[3])", mode, str(os.getpid())
    )


def _start(command: list[str], descriptor: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*command, str(descriptor)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        pass_fds=(descriptor,),
        start_new_session=True,
    )
