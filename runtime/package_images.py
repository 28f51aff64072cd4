"""Images of loaded packages: the memory of an isolate that has imported one, so that the next call begins there.

An image is made without an environment and without a parameter, so no secret is in it, and only of a package that drew
no random number, set no timer and fetched nothing while it was loaded: what it did then is the same in every isolate.
Of one that drew random numbers there are memories that are good for one call each (`runtime.package_stock`). An image
names what it read of the environment; a call that sets any of that loads the package anew.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgpack

from runtime.engine.instance import Unusable
from runtime.engine.pages import checked
from runtime.engine.sealed import Sealed
from runtime.package_run import Pages

_MAGIC: Final = b"EXPKGIM2"
_ENTRIES: Final = 512
_DISK_BYTES: Final = 2 << 30
_MEMORY_BYTES: Final = 256 << 20
_MAX_NAMES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is known of a package that was loaded once. `env` are the names that it read then, `*` for all of them.

    Not `pure`: there is no image, and each call loads the package itself. `once`: it drew random numbers, which no two
    calls may share, so that its memory is good for one call.
    """

    pure: bool
    env: tuple[str, ...]
    exports: tuple[str, ...]
    logs: tuple[tuple[str, str], ...] = ()
    once: bool = False

    def suits(self, env: dict[str, str]) -> bool:
        """Whether loading the package with this environment would have come to the same."""
        return self.pure and not (set(env) & set(self.env)) and not (env and "*" in self.env)


@dataclass(frozen=True, slots=True)
class PackageImage:
    loaded: Loaded
    pages: Pages | None


class PackageImages:
    """Images by key, in memory and on disk, both bounded. What is on disk is under an HMAC."""

    def __init__(self, sealed: Sealed | None = None) -> None:
        self._sealed = sealed or Sealed("package-images", ".pages", _MAGIC, entries=_ENTRIES, most_bytes=_DISK_BYTES)
        self._held: OrderedDict[str, PackageImage] = OrderedDict()
        self._bytes = 0

    async def get(self, key: str) -> PackageImage | None:
        """The image of `key`, None when there is none that can be trusted and read."""
        held = self._held.get(key)
        if held is not None:
            self._held.move_to_end(key)
            return held
        data = await asyncio.to_thread(self._sealed.get, key.encode())
        image = None if data is None else _read(key, data)
        if image is not None:
            self._hold(key, image)
        return image

    async def put(self, key: str, loaded: Loaded, pages: bytes) -> PackageImage:
        """Keep what loading a package made. Pages that are none are not kept, and the package counts as not pure; pages
        that are good for one call are for the caller to keep."""
        if loaded.pure and not sound(pages):
            loaded = Loaded(False, loaded.env, loaded.exports)
        image = PackageImage(loaded, Pages(key, pages) if loaded.pure and not loaded.once else None)
        self._hold(key, image)
        await asyncio.to_thread(self._sealed.put, key.encode(), _packed(image))
        return image

    def _hold(self, key: str, image: PackageImage) -> None:
        self._held[key] = image
        self._bytes += _size(image)
        while len(self._held) > 1 and self._bytes > _MEMORY_BYTES:
            _, oldest = self._held.popitem(last=False)
            self._bytes -= _size(oldest)


def loaded_of(said: dict[str, Any], logs: list[dict[str, Any]]) -> Loaded | None:
    """What a guest said of a package that it has loaded; None when that is in another shape."""
    env, exports, pure, random = (said.get(name) for name in ("env", "exports", "pure", "random"))
    if not _are_names(env) or not _are_names(exports) or type(pure) is not bool or type(random) is not bool:
        return None
    assert env is not None
    assert exports is not None
    return Loaded(pure, tuple(env), tuple(exports), tuple((line["level"], line["text"]) for line in logs), random)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MAX_NAMES and all(isinstance(name, str) for name in value)


def sound(pages: bytes) -> bool:
    try:
        checked(pages)
    except Unusable:
        return False
    return True


def _size(image: PackageImage) -> int:
    return 1024 + (len(image.pages.data) if image.pages is not None else 0)


def _packed(image: PackageImage) -> bytes:
    facts = json.dumps(asdict(image.loaded)).encode()
    packed = msgpack.packb([facts, image.pages.data if image.pages else b""], use_bin_type=True)
    assert isinstance(packed, bytes)
    return packed


def _read(key: str, data: bytes) -> PackageImage | None:
    facts, pages = msgpack.unpackb(data)
    known = json.loads(facts)
    logs = tuple((level, text) for level, text in known["logs"])
    loaded = Loaded(known["pure"], tuple(known["env"]), tuple(known["exports"]), logs, known["once"])
    if not loaded.pure or loaded.once:
        return PackageImage(loaded, None)
    return PackageImage(loaded, Pages(key, pages)) if sound(pages) else None
