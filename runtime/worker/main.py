"""The worker's loop: frames in, steps run, frames out. Started by `runtime.link`; knows nothing but what it is sent.

The first slice of every step runs here, in the thread that reads the socket, holding the GIL: most steps end in it, and
handing them to a thread would cost more than they take. What is left moves to the `Turns`. A run belongs to one thread
at a time. Three facts about it change under the lock: `stepping`, whether a step is under way; `turning`, whether a
thread of the turns has it at this moment; `over`, whether it has ended. A run that only waits for a turn is cancelled
here and at once, so that a cancellation never waits for other runs.
"""

from __future__ import annotations

import gc
import os
import socket
import threading
from typing import Any, Final, NoReturn

import wasmtime

from bridge.wire import frames
from bridge.wire.errors import FrameError
from bridge.wire.frames import Ended, Limits, Splitter, Start
from runtime.engine import plain, selftest, settings
from runtime.engine.image import Image
from runtime.engine.instance import Unusable
from runtime.engine.shelf import Shelf
from runtime.worker import lockdown
from runtime.worker.run import NODE, Run
from runtime.worker.turns import Turns

EXIT_ENGINE: Final = 70
"""The engine accepts what it should refuse."""
EXIT_FIBERS: Final = 71
"""The C API is not as known; another worker in `calls` mode may work."""
EXIT_IMAGE: Final = 72
"""A compiled image does not load."""
EXIT_WALLS: Final = 73
"""Fewer layers stand than required."""
EXIT_FRAME: Final = 74
"""The host sent what is no frame."""

_CHUNK: Final = 64 * 1024
"""Bytes read at once. Above half of the size from which malloc maps memory, each read would map and unmap it."""


class Worker:
    """The runs of one process, and the socket to the host."""

    def __init__(self, link: socket.socket, images: dict[str, Image], mode: settings.Mode) -> None:
        self._link = link
        self._images = images
        self._inline = mode == "fibers"
        self._runs: dict[int, Run] = {}
        self._shelf = Shelf(images[NODE].pristine) if NODE in images else None
        self._lock = threading.Lock()
        self._turns: Turns[Run] | None = None

    def start_threads(self, count: int) -> None:
        self._turns = Turns(count, self._turn)

    def serve(self, splitter: Splitter) -> None:
        """Read frames until the host closes the link."""
        receive = self._link.recv
        while data := receive(_CHUNK):
            for body in splitter.feed(data):
                self._arrived(frames.unpack(body))

    def send(self, frame: Any) -> None:
        self._link.sendall(frames.pack(frame))

    def _arrived(self, frame: list[Any]) -> None:
        kind = frame[1]
        if kind == frames.RESUME:
            _, _, number, now_us, answers = frame
            run = self._runs[number]
            if run.stepping:
                raise FrameError("a run was resumed in the middle of a step")
            run.stepping = True
            run.resume(now_us, answers)
        elif kind == frames.START:
            start = Start(*frame)
            run = Run(start._replace(limits=Limits(*start.limits)), self._images, self._shelf)
            self._runs[run.number] = run
        elif kind == frames.CANCEL:
            self._cancel(frame[2])
            return
        elif kind == frames.KEEP:
            if self._shelf is None:
                raise FrameError("this worker keeps no pages")
            if frame[4]:
                self._shelf.put(frame[3], frame[4])
            else:
                self._shelf.drop(frame[3])
            return
        else:
            raise FrameError("not a frame that a host sends")
        if not self._inline or self._step(run, hold=True):
            assert self._turns is not None
            self._turns.add(run)

    def _cancel(self, number: int) -> None:
        with self._lock:
            run = self._runs.get(number)
            if run is None:
                return
            if run.turning:
                run.cancelled = True
                return
            del self._runs[number]
            run.over = True
            self.send(run.cancel())
        run.dispose()

    def _turn(self, run: Run) -> bool:
        with self._lock:
            if run.over:
                return False
            run.turning = True
        return self._step(run, hold=False)

    def _step(self, run: Run, *, hold: bool) -> bool:
        """Run a slice and send what comes out of it; True when the step needs another."""
        try:
            frame = run.turn(hold=hold)
        except Exception:
            frame = run.fault()
        # The frame is sent under the lock: whoever ends this run next must come after it.
        with self._lock:
            run.turning = False
            if run.cancelled and not isinstance(frame, Ended):
                frame = run.cancel(frame)
            if frame is None:
                return True
            run.stepping = False
            if isinstance(frame, Ended):
                run.over = True
                del self._runs[run.number]
            self.send(frame)
        if isinstance(frame, Ended):
            run.dispose()
        return False


def main(descriptor: int, mode: settings.Mode, parent: int) -> NoReturn:
    """Boot, lock down, serve. Never returns; the exit code says why it did not get far."""
    link = socket.socket(fileno=descriptor)
    splitter = Splitter()
    code = 0
    try:
        bodies: list[bytes] = []
        while not bodies:
            data = link.recv(_CHUNK)
            if not data:
                os._exit(0)
            bodies = splitter.feed(data)
        boot = frames.Boot(*frames.unpack(bodies[0]))
        engine = _engine(mode)
        worker = Worker(link, _images(engine, boot.modules, mode), mode)
        layers = lockdown.before_threads(parent)
        worker.start_threads(boot.threads)
        if mode == "calls":
            _tick(engine)
        gc.collect()
        gc.freeze()
        layers += lockdown.after_threads()
        if not lockdown.suffices(lockdown.level(layers), boot.require):
            os._exit(EXIT_WALLS)
        worker.send(frames.Ready(frames.VERSION, frames.READY, 0, os.getpid(), layers))
        worker.serve(splitter)
    except FrameError:
        code = EXIT_FRAME
    except OSError:
        code = 0
    os._exit(code)


def _engine(mode: settings.Mode) -> wasmtime.Engine:
    engine = settings.engine(mode)
    if selftest.features(engine):
        os._exit(EXIT_ENGINE)
    if mode == "fibers" and selftest.fibers_work(engine) is not None:
        os._exit(EXIT_FIBERS)
    return engine


def _images(engine: wasmtime.Engine, modules: dict[str, bytes], mode: settings.Mode) -> dict[str, Image]:
    try:
        return {name: Image.load(engine, compiled, mode) for name, compiled in modules.items()}
    except Unusable:
        os._exit(EXIT_IMAGE)


def _tick(engine: wasmtime.Engine) -> None:
    """Move the epoch on for ever: the deadline of calls that have no slices."""
    pause = threading.Event()

    def tick() -> None:
        while not pause.wait(plain.TICK_S):
            engine.increment_epoch()

    threading.Thread(target=tick, name="epochs", daemon=True).start()
