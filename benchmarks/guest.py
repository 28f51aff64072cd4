"""The JavaScript image compiled for this process, and limits that no probe meets."""

from __future__ import annotations

from functools import cache
from typing import Final

from bridge.wire.frames import Limits
from guest import images
from runtime.engine import settings
from runtime.engine.image import Image
from runtime.engine.modules import ModuleCache

MIB: Final = 1 << 20
LIMITS: Final = Limits(
    fuel=10**11,
    memory_bytes=64 * MIB,
    wall_ms=30_000,
    bridge_calls=10_000,
    call_args_bytes=8 * MIB,
    result_bytes=8 * MIB,
    log_bytes=MIB,
)


@cache
def javascript() -> Image:
    """As workers have it, compiled through the cache."""
    return Image.load(settings.engine(), ModuleCache().compiled(images.load("javascript").wasm))
