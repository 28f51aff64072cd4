"""Workers that lie, as real processes on a real socket: each is killed at its first false word, its runs are Lost."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bridge.wire import frames
from bridge.wire.frames import Ended, Pending
from runtime.link import Died, Link
from runtime.slot import Lost, Slot
from tests.blackbox.rogue import READY, worker
from tests.blackbox.runs import LIMITS, Inbox, begin

pytestmark = pytest.mark.anyio

USAGE = [10, 65_536, 5, 0]


def pending(run: int = 1, calls: object = (), logs: object = (), wake: object = None, usage: object = USAGE) -> str:
    return f"send({[1, frames.PENDING, run, list(calls), list(logs), [], wake, usage]!r})\n"  # type: ignore[call-overload]


def ended(run: int = 1, result: object = b"\x02", failure: object = None, usage: object = USAGE) -> str:
    return f"send({[1, frames.ENDED, run, result, failure, [], [], usage, False]!r})\n"


def failure(code: str) -> list[object]:
    return [code, None, "m", None, None, None, None]


CALL = [1, "a.org.b.c", b"\x80", False]
STARTED = READY + "receive()\n"


@asynccontextmanager
async def link_to(script: str) -> AsyncIterator[Link]:
    """A link to a fake worker; on the way out the process is gone and reaped."""
    link = await Link.spawn(
        frames.pack(frames.Boot(1, frames.BOOT, 0, {}, 1, "process")),
        mode="fibers",
        grace_s=0.2,
        closed=lambda link: None,
        command=worker(script),
    )
    try:
        yield link
    finally:
        await link.close()
        with pytest.raises(ProcessLookupError):
            os.kill(link.pid, 0)


def take(link: Link) -> tuple[Slot, Inbox]:
    inbox = Inbox()
    return link.open_slot(inbox), inbox


async def first_word(script: str) -> Pending | Ended | Lost:
    """What the sink of the first run gets from a worker that is ready, then does this once the run has started."""
    async with link_to(STARTED + script) as link:
        slot, inbox = take(link)
        begin(slot, "1")
        frame = await inbox.next()
        slot.release()
        return frame


LIES: dict[str, str] = {
    "garbage": 'link.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")',
    "a length of zero": "link.sendall(bytes(4))",
    "a length of 4 GiB": 'link.sendall(b"\\xff" * 4)',
    "MSG-08 the reserved byte": 'raw(b"\\xc1")',
    "MSG-02 nested maps": 'raw(b"\\x81\\xa1a" * 100_000)',
    "MSG-03 an array of 4 billion": 'raw(b"\\xdd" + b"\\xff" * 4)',
    "MSG-04 an array of nils": 'raw(b"\\xdd" + (10**8).to_bytes(4, "big") + b"\\xc0" * 2**20)',
    "MSG-05 bytes of 4 GiB": 'raw(b"\\xc6" + b"\\xff" * 4 + b"abc")',
    "MSG-17 an ext": 'raw(b"\\xd4\\x01\\x00")',
    "MSG-22 another version": f"send([2, {frames.ENDED}, 1, b'', None, [], [], {USAGE}, False])",
    "MSG-22 an unknown type": "send([1, 99, 1])",
    "MSG-22 the host's own type": f"send([1, {frames.CANCEL}, 1])",
    "MSG-18 a number for a run": f"send([1, 18, '1', [], [], [], None, {USAGE}])",
    "a run it does not have": ended(run=2),
    "run zero": ended(run=0),
    "ready again": READY,
    "a result and a failure": ended(failure=failure("script_error")),
    "neither": ended(result=None),
    "a code that is none": ended(result=None, failure=failure("owned")),
    "worker_lost": ended(result=None, failure=failure("worker_lost")),
    "expired": ended(result=None, failure=failure("expired")),
    "cancelled, unasked": ended(result=None, failure=failure("cancelled")),
    "the same call twice": pending(calls=[CALL, CALL]),
    "more calls than the budget": pending(calls=[[n, "a", b"", False] for n in range(LIMITS.bridge_calls + 1)]),
    "arguments over the budget": pending(calls=[[1, "a", b"HERE", False]]).replace(
        "b'HERE'", f"bytes({LIMITS.call_args_bytes + 1})"
    ),
    "more log text than the budget": pending(logs=[["log", "HERE"]]).replace("'HERE'", "'x' * 200_000"),
    "more fuel than there was": ended(usage=[LIMITS.fuel + 1, 0, 0, 0]),
    "more memory than there was": ended(usage=[0, LIMITS.memory_bytes + 1, 0, 0]),
    "silence after its death": "os._exit(7)",
    "a signal": f"os.kill(os.getpid(), {int(signal.SIGSEGV)})",
    "half a frame, then its death": 'link.sendall(b"\\x00\\x00\\x01\\x00abc"); os._exit(0)',
    "a closed link": "link.shutdown(socket.SHUT_RDWR)",
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_worker_that_breaks_the_protocol_is_killed_and_its_run_is_lost(lie: str) -> None:
    """MSG-02, MSG-03, MSG-04, MSG-05, MSG-08, MSG-17, MSG-18, MSG-22."""
    assert isinstance(await first_word(LIES[lie]), Lost)


async def test_an_honest_frame_is_heard() -> None:
    """The same road, so that the lies above are refused for what they say."""
    frame = await first_word(ended())
    assert isinstance(frame, Ended)
    assert frame.result == b"\x02"


async def test_every_run_of_a_killed_worker_is_lost_and_none_is_told_twice() -> None:
    async with link_to(STARTED + 'receive()\nraw(b"\\xc1")') as link:
        runs = [take(link) for _ in range(2)]
        for slot, _ in runs:
            begin(slot, "1")
        for slot, inbox in runs:
            assert isinstance(await inbox.next(), Lost)
            slot.release()
        await link.close()
        assert all(inbox.empty for _, inbox in runs)


async def test_a_second_result_kills_the_worker_and_the_first_one_stands() -> None:
    """MSG-24, MSG-28."""
    async with link_to(STARTED + ended() + ended(result=b"\x03")) as link:
        slot, inbox = take(link)
        begin(slot, "1")
        frame = await inbox.next()
        assert isinstance(frame, Ended)
        assert frame.result == b"\x02"
        await link.ended()
        assert link.gone == "the worker broke the protocol"
        assert inbox.empty
        slot.release()


async def test_a_worker_that_speaks_before_any_run_is_killed() -> None:
    """MSG-24."""
    async with link_to(READY + ended()) as link:
        slot, inbox = take(link)
        await link.ended()
        assert link.gone == "the worker broke the protocol"
        begin(slot, "1")
        assert isinstance(await inbox.next(), Lost)
        slot.release()


async def test_a_worker_that_pauses_a_run_twice_is_killed() -> None:
    async with link_to(STARTED + pending(calls=[CALL]) + pending(calls=[[2, "a", b"", False]])) as link:
        slot, inbox = take(link)
        begin(slot, "1")
        assert isinstance(await inbox.next(), Pending)
        assert isinstance(await inbox.next(), Lost)
        slot.release()


async def test_a_call_number_that_was_used_in_an_earlier_step_is_refused() -> None:
    async with link_to(STARTED + pending(calls=[CALL]) + "receive()\n" + pending(calls=[CALL])) as link:
        slot, inbox = take(link)
        begin(slot, "1")
        assert isinstance(await inbox.next(), Pending)
        slot.resume(0, [])
        assert isinstance(await inbox.next(), Lost)
        slot.release()


@pytest.mark.parametrize("script", ["", 'link.sendall(b"\\x00\\x00\\x01\\x00abc")'], ids=["silence", "half a frame"])
async def test_a_worker_that_does_not_stop_a_run_is_killed_after_its_grace(script: str) -> None:
    """MSG-23."""
    async with link_to(STARTED + script) as link:
        slot, inbox = take(link)
        begin(slot, "1")
        slot.cancel()
        frame = await inbox.next()
        assert isinstance(frame, Lost)
        assert "200 ms" in frame.reason
        slot.release()


async def test_many_small_frames_at_once_are_all_heard_in_order() -> None:
    """MSG-21: every pause is one frame, and they come byte by byte."""
    steps = 50
    script = STARTED
    script += "def slow(frame):\n    body = msgpack.packb(frame)\n"
    script += "    for byte in struct.pack('>I', len(body)) + body: link.send(bytes([byte]))\n"
    for number in range(steps):
        script += pending(calls=[[number, "a", b"", False]]).replace("send(", "slow(") + "receive()\n"
    async with link_to(script + ended()) as link:
        slot, inbox = take(link)
        begin(slot, "1")
        seen = []
        while isinstance(frame := await inbox.next(), Pending):
            seen += [call.id for call in frame.calls]
            slot.resume(0, [])
        assert isinstance(frame, Ended)
        assert seen == list(range(steps))
        slot.release()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("os._exit(73)", "isolation layers"),
        ("os._exit(1)", "exit code 1"),
        (f"os.kill(os.getpid(), {int(signal.SIGKILL)})", "exit code -9"),
        ('raw(b"\\xc1")', "before it was ready"),
        (READY.replace("os.getpid()", "1"), "before it was ready"),
        (ended(), "before it was ready"),
    ],
    ids=["too few layers", "a fault", "killed", "garbage", "another process's number", "a result"],
)
async def test_a_worker_that_never_becomes_ready_is_reported_and_reaped(script: str, reason: str) -> None:
    with pytest.raises(Died, match=reason):
        async with link_to(script):
            pytest.fail("the link opened")


async def test_a_start_after_the_worker_is_gone_is_lost() -> None:
    async with link_to(READY) as link:
        slot, inbox = take(link)
        await link.close()
        begin(slot, "1")
        assert isinstance(await inbox.next(), Lost)
        slot.release()
        slot.release()


async def test_a_sink_that_fails_harms_no_other_run() -> None:
    async with link_to(STARTED + "receive()\n" + ended(1) + ended(2)) as link:

        def failing(frame: object) -> None:
            raise RuntimeError("a bug in the host")

        broken = link.open_slot(failing)
        slot, inbox = take(link)
        begin(broken, "1")
        begin(slot, "1")
        assert isinstance(await inbox.next(), Ended)
        broken.release()
        slot.release()
        assert link.gone is None
