"""`executor run`: what a person hears while nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from executor.cli.commands import run
from executor.cli.output import Progress

pytestmark = pytest.mark.anyio

ENDED: dict[str, Any] = {"type": "result", "data": {"run_id": "run_1", "status": "completed"}}


class Heard(Progress):
    def __init__(self) -> None:
        super().__init__()
        self.waiting = asyncio.Event()

    def waits(self) -> None:
        self.waiting.set()


class Queue:
    """A session whose run starts when `start` is set; without one, at once."""

    def __init__(self, start: asyncio.Event | None) -> None:
        self.start = start

    async def run(self, code: str, **options: Any) -> dict[str, Any]:
        return {"run_id": "run_1"}

    async def watch(self, run_id: str) -> AsyncIterator[dict[str, Any]]:
        if self.start is not None:
            yield {"type": "status", "data": {"status": "queued"}}
            await asyncio.wait_for(self.start.wait(), 30)
        yield {"type": "status", "data": {"status": "running"}}
        yield ENDED


async def test_a_run_that_does_not_start_says_why_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "START_S", 0.0)
    heard = Heard()
    answer = await run._seen(Queue(heard.waiting), "1", {}, heard)  # type: ignore[arg-type]
    assert answer["status"] == "completed"
    assert heard.waiting.is_set()


async def test_a_run_that_has_started_says_nothing_of_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "START_S", 0.0)
    heard = Heard()
    await run._seen(Queue(None), "1", {}, heard)  # type: ignore[arg-type]
    for _ in range(3):
        await asyncio.sleep(0)
    assert not heard.waiting.is_set()
