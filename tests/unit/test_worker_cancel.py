"""Cancelling inside a worker: a run that waits for a turn ends at once, whatever the others do."""

from __future__ import annotations

import socket

from bridge.wire import distrust, frames
from bridge.wire.frames import Cancel, Ended, Splitter, Start
from runtime.worker.main import Worker
from runtime.worker.run import Run
from runtime.worker.turns import Turns
from tests.blackbox.runs import LIMITS

START = Start(frames.VERSION, frames.START, 1, "javascript", "1", b"\xc0", 1, 0, LIMITS)


def test_a_run_that_waits_for_its_turn_is_cancelled_before_it_gets_one() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        # Calls have no first slice in the thread that reads, and nobody here takes turns.
        worker = Worker(theirs, {}, "calls")
        worker._turns = waiting = Turns[Run](0, worker._turn)
        for frame in (START, Cancel(frames.VERSION, frames.CANCEL, 1)):
            ours.sendall(frames.pack(frame))
        ours.shutdown(socket.SHUT_WR)
        worker.serve(Splitter())
        [body] = Splitter().feed(ours.recv(65536))
        ended = distrust.read(body)
        assert isinstance(ended, Ended)
        assert ended.failure is not None
        assert (ended.run, ended.failure.code) == (1, "cancelled")
        [run] = waiting._lines[0]
        assert not worker._turn(run), "its turn comes to nothing"
        ours.setblocking(False)
        theirs.close()
        assert ours.recv(1) == b""
