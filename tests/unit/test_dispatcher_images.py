"""Images that are added to the pool when a run first needs them: each worker that remains has every one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.wire.errors import ConfigError, Overloaded
from guest import images
from runtime import dispatcher as dispatcher_module
from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.link import Died, Link
from tests.blackbox.rogue import CompiledHere, guest
from tests.blackbox.runs import run

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def pool() -> AsyncIterator[Dispatcher]:
    settings = DispatcherSettings(workers=1, images={"quick": guest()})
    async with Dispatcher(settings, cache=CompiledHere()) as dispatcher:
        yield dispatcher


async def adding(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> list[asyncio.Event]:
    """Let the pool add images on demand, each that of `quick`. A worker starts once its event, in order, is set."""
    dispatcher.settings = replace(dispatcher.settings, images=None)
    code = dispatcher._modules["quick"]
    monkeypatch.setattr(dispatcher_module, "_compiled_on_demand", lambda name, cache, mode: (code, name))
    gates: list[asyncio.Event] = []
    spawn = dispatcher._spawn

    async def gated(closed: Any) -> Link:
        gates.append(gate := asyncio.Event())
        made = await spawn(closed)
        await gate.wait()
        return made

    monkeypatch.setattr(dispatcher, "_spawn", gated)
    return gates


async def until_there_are(gates: list[asyncio.Event], count: int) -> None:
    async with asyncio.timeout(30):
        while len(gates) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_whoever_comes_while_an_image_is_added_waits_for_workers_that_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pool() as dispatcher:
        gates = await adding(dispatcher, monkeypatch)
        first = asyncio.create_task(dispatcher.prepare("python"))
        await until_there_are(gates, 1)
        second = asyncio.create_task(dispatcher.prepare("python"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not second.done()
        gates[0].set()
        async with asyncio.timeout(30):
            await asyncio.gather(first, second)
        assert (await run(dispatcher, "1", language="python")).result == b"\x02"


async def test_two_images_that_are_added_at_once_are_both_in_the_workers_that_remain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pool() as dispatcher:
        gates = await adding(dispatcher, monkeypatch)
        one = asyncio.create_task(dispatcher.prepare("python"))
        await until_there_are(gates, 1)
        other = asyncio.create_task(dispatcher.prepare("node"))
        await until_there_are(gates, 2)
        gates[1].set()
        async with asyncio.timeout(30):
            await other
        gates[0].set()
        await until_there_are(gates, 3)
        gates[2].set()
        async with asyncio.timeout(30):
            await one
        for language in ("node", "python"):
            assert (await run(dispatcher, "1", language=language)).result == b"\x02"


async def test_an_image_with_which_no_worker_starts_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool() as dispatcher:
        gates = await adding(dispatcher, monkeypatch)
        spawn = dispatcher._spawn
        fails = [Died(-9)]

        async def failing(closed: Any) -> Link:
            if fails:
                raise fails.pop()
            return await spawn(closed)

        monkeypatch.setattr(dispatcher, "_spawn", failing)
        with pytest.raises(Overloaded, match="no worker could be started"):
            await dispatcher.prepare("python")
        again = asyncio.create_task(dispatcher.prepare("python"))
        await until_there_are(gates, 1)
        gates[0].set()
        async with asyncio.timeout(30):
            await again
        assert (await run(dispatcher, "1", language="python")).result == b"\x02"


def test_an_image_that_is_not_built_is_said_once_and_what_to_do_beside_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(images, "ROOT", tmp_path)
    monkeypatch.setattr(images, "cache_dir", lambda: tmp_path)
    with pytest.raises(ConfigError) as caught:
        dispatcher_module._installed()
    assert (caught.value.message, caught.value.hint) == ("the guest images are not built", "executor images build")
