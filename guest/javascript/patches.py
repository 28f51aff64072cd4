"""Exact replacements in the engine's source. Each text must stand there exactly once, or the build stops."""

from __future__ import annotations

from typing import Final

PATCHES: Final[dict[str, list[tuple[str, str]]]] = {}


class PatchFailed(RuntimeError):
    """Raised when the text that a patch replaces is not there exactly once: the engine's source has changed."""


def patch(name: str, source: str) -> str:
    for old, new in PATCHES.get(name, []):
        if source.count(old) != 1:
            raise PatchFailed(f"{name}: a patch's text is there {source.count(old)} times: {old[:60]!r}")
        source = source.replace(old, new)
    return source
