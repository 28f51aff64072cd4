"""Whether the client is still there, watched while its answer is made."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from executor.http.edge import ClientGone

T = TypeVar("T")


async def while_present(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The outcome of `work`, which is cancelled when the client leaves. Raises ClientGone then."""
    task = asyncio.current_task()
    assert task is not None
    left = finished = False

    def leave(_: asyncio.Task[None]) -> None:
        nonlocal left
        if not finished:
            left = True
            task.cancel()

    watch = asyncio.create_task(_until_gone(receive))
    watch.add_done_callback(leave)
    try:
        return await work
    except asyncio.CancelledError:
        if left and task.uncancel() == 0:
            raise ClientGone from None
        raise
    finally:
        finished = True
        watch.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
