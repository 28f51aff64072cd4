"""Work on large texts and values: beside the event loop, one at a time, and without the collector's walks."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from typing import Final, TypeVar, TypeVarTuple, Unpack

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

LARGE: Final = 256 * 1024
"""Bytes from which a text takes long enough to parse that others must get their turn meanwhile."""

Args = TypeVarTuple("Args")
Result = TypeVar("Result")

_turns: Final[RunVar[anyio.CapacityLimiter]] = RunVar("large")
_lock: Final = Lock()
_pauses: Final[list[bool]] = []
"""One for each that goes on; the first says whether the collector was on before."""


async def beside(work: Callable[[Unpack[Args]], Result], *args: *Args) -> Result:
    """`work(*args)` in a thread. One at a time, so that no more of them are in memory than if the loop did them; they
    would not be faster together, either."""
    try:
        turns = _turns.get()
    except LookupError:
        turns = anyio.CapacityLimiter(1)
        _turns.set(turns)
    return await anyio.to_thread.run_sync(_uncollected, work, args, limiter=turns)


def _uncollected(work: Callable[[Unpack[Args]], Result], args: tuple[*Args]) -> Result:
    with uncollected():
        return work(*args)


@contextmanager
def uncollected() -> Generator[None]:
    """Without the cyclic collector: a parser makes no cycle, and the collector's walks over the half of a value that is
    there already take several times as long as the parsing, with every other thread waiting."""
    with _lock:
        _pauses.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            was_on = _pauses.pop()
            if was_on and not _pauses:
                gc.enable()
