"""Answers of a provider kept for a moment, so that a burst of calls asks it once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import anyio

from bridge.secrets.ports import Secret, SecretMissing, SecretProvider

MAX_KEPT: Final = 256


class CachedSecrets:
    """`provider`, asked at most once in `seconds` for a key, and by one caller at a time. Refusals are kept as well,
    so that callers do not wait for a provider that is down one after the other."""

    def __init__(self, provider: SecretProvider, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._provider = provider
        self._seconds = seconds
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[float, Secret | SecretMissing]] = OrderedDict()
        self._asking: dict[tuple[str, str], anyio.Lock] = {}

    async def resolve(self, scope: str, key: str) -> Secret:
        """Raises what the provider raises."""
        asked = self._clock()
        place = (scope, key)
        lock = self._asking.setdefault(place, anyio.Lock())
        try:
            async with lock:
                found = self._fresh(place, asked)
                if found is None:
                    found = self._kept[place] = (self._clock(), await self._ask(scope, key))
                    self._kept.move_to_end(place)
                    while len(self._kept) > MAX_KEPT:
                        self._kept.popitem(last=False)
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._asking.pop(place, None)
        if isinstance(found[1], SecretMissing):
            raise type(found[1])(found[1].reason)
        return found[1]

    def forget(self) -> None:
        """Ask anew from now on: a value that was kept has been refused."""
        self._kept.clear()

    def _fresh(self, place: tuple[str, str], asked: float) -> tuple[float, Secret | SecretMissing] | None:
        """What is kept and not older than `seconds` at the time of asking; an answer that came while the caller waited
        for another's is always young enough."""
        found = self._kept.get(place)
        return found if found is not None and found[0] > asked - self._seconds else None

    async def _ask(self, scope: str, key: str) -> Secret | SecretMissing:
        try:
            return await self._provider.resolve(scope, key)
        except SecretMissing as e:
            return e
