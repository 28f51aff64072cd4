"""Where runs get their slots."""

from __future__ import annotations

from typing import Protocol

from runtime.slot import Sink, Slot


class Places(Protocol):
    """What runs need of the workers; `runtime.dispatcher.Dispatcher` is one."""

    async def prepare(self, language: str) -> None:
        """Have workers that run `language`. Raises InvalidRequest where there can be none."""
        ...

    async def acquire(self, sink: Sink, *, isolation: str | None = None) -> Slot:
        """A place for one run. Raises Overloaded."""
        ...

    def image(self, language: str) -> str:
        """The SHA-256 of the images that run `language` now, for a run to be compared with itself."""
        ...
