"""Pools of workers with guests written by hand, and what tests ask of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgpack

from bridge.wire.frames import Answer, Ended
from runtime.dispatcher import Dispatcher, DispatcherSettings, Slot
from runtime.link import Link
from tests.blackbox.rogue import CompiledHere, guest
from tests.blackbox.runs import Inbox, begin

HELD = msgpack.packb([1, None, [[1, "a.org.b.c", b"\x80", False]], [], [], None])
ENDLESS = "(loop $l (br $l)) (i64.const 0)"
TRAP = "unreachable"
FILLED = "(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x8000000)) (br $l)) (i64.const 0)"
IMAGES = {
    "quick": guest(),
    "held": guest(HELD),
    "endless": guest(ENDLESS),
    "trapping": guest(TRAP),
    "filling": guest(FILLED, pages=2100),
}


@asynccontextmanager
async def pool(**settings: Any) -> AsyncIterator[Dispatcher]:
    chosen = {"workers": 1, "images": IMAGES} | settings
    async with Dispatcher(DispatcherSettings(**chosen), cache=CompiledHere()) as dispatcher:
        yield dispatcher


def links(dispatcher: Dispatcher) -> list[Link]:
    return list(dispatcher._links)


async def held(dispatcher: Dispatcher, **options: Any) -> tuple[Slot, Inbox]:
    """A run that waits for its call."""
    inbox = Inbox()
    slot = await dispatcher.acquire(inbox, **options)
    begin(slot, "", language="held")
    await inbox.paused()
    return slot, inbox


async def finish(slot: Slot, inbox: Inbox) -> None:
    slot.resume(0, [Answer(1, True, b"\xc0")])
    frame = await inbox.next()
    assert isinstance(frame, Ended)
    assert frame.result == b"\x02"
    slot.release()


async def worker_ids(dispatcher: Dispatcher, count: int) -> set[int]:
    """The workers, once there are `count` that are not among those that drain."""

    def found() -> set[int]:
        return {link.pid for link in links(dispatcher) if not (link.draining or link.worn or link.gone)}

    async with asyncio.timeout(30):
        while len(found()) != count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found()
