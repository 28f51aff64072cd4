"""Bearer keys: 256 random bits, shown once, stored as a SHA-256 digest, found by digest, compared in constant time.

A key has full entropy, so that a fast digest is enough; what is stored can't be turned back into a key.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from bridge.wire.errors import Conflict, InvalidRequest, NotFound

PREFIX: Final = "exk_"
REFRESH_S: Final = 1.0
"""A revoked key is refused, and a new key accepted, at most this long after the store knew of it."""
USE_RECORDED_EVERY_S: Final = 60.0

_SHAPE: Final = re.compile(rb"exk_[A-Za-z0-9_-]{43}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_NOBODY: Final = bytes(32)


class KeyRow(NamedTuple):
    """A key as stored. Times are Unix seconds; `digest` is the SHA-256 of the whole key."""

    id: str
    name: str
    digest: bytes
    created_at: float
    last_used_at: float | None
    revoked_at: float | None


class KeyStore(Protocol):
    """Where keys are kept. Rows are plain tuples in the order of `KeyRow`."""

    async def add_key(self, id: str, name: str, digest: bytes, created_at: float) -> None: ...

    async def list_keys(self) -> list[tuple[str, str, bytes, float, float | None, float | None]]: ...

    async def revoke_key(self, id: str, revoked_at: float) -> None: ...

    async def mark_key_used(self, id: str, used_at: float) -> None:
        """Best effort: it neither waits for the disk nor raises."""
        ...


def digest_of(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


class Keyring:
    """The keys of one home: made and revoked by an operator, asked by the doors at each request."""

    def __init__(self, store: KeyStore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._live: dict[bytes, KeyRow] = {}
        self._read_at: float | None = None
        self._reading = asyncio.Lock()
        self._used_at: dict[str, float] = {}

    async def create(self, name: str) -> tuple[KeyRow, str]:
        """A new key and its only showing. Raises InvalidRequest for an unusable name, Conflict for one in use."""
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"{name!r} is not a key name", hint="use letters, digits, '.', '_', '@' and '-', 64 at most"
            )
        if any(row.name == name for row in await self.list() if row.revoked_at is None):
            raise Conflict(f"a key named {name!r} exists", hint="revoke it first, or choose another name")
        key = PREFIX + secrets.token_urlsafe(32)
        row = KeyRow(f"key_{secrets.token_hex(6)}", name, digest_of(key.encode()), time.time(), None, None)
        await self._store.add_key(row.id, row.name, row.digest, row.created_at)
        self._read_at = None
        return row, key

    async def list(self) -> list[KeyRow]:
        return [KeyRow(*row) for row in await self._store.list_keys()]

    async def revoke(self, which: str) -> KeyRow:
        """Revoke the live key of this id or name. Raises NotFound when there is none."""
        for row in await self.list():
            if row.revoked_at is None and which in (row.id, row.name):
                now = time.time()
                await self._store.revoke_key(row.id, now)
                self._live.pop(row.digest, None)
                return row._replace(revoked_at=now)
        raise NotFound(f"there is no live key {which!r}", hint="`executor key list` shows the keys")

    async def find(self, presented: bytes) -> KeyRow | None:
        """The live key that `presented` is, or None. Takes the same steps for every wrong key."""
        await self._refresh()
        digest = digest_of(presented)
        row = self._live.get(digest)
        same = hmac.compare_digest(digest, row.digest if row is not None else _NOBODY)
        if row is None or not same or not _SHAPE.fullmatch(presented):
            return None
        await self._note_use(row)
        return row

    async def _refresh(self) -> None:
        if self._fresh():
            return
        async with self._reading:
            if not self._fresh():
                self._live = {row.digest: row for row in await self.list() if row.revoked_at is None}
                self._read_at = self._clock()

    def _fresh(self) -> bool:
        return self._read_at is not None and self._clock() - self._read_at < REFRESH_S

    async def _note_use(self, row: KeyRow) -> None:
        now = self._clock()
        if now - self._used_at.get(row.id, -USE_RECORDED_EVERY_S) >= USE_RECORDED_EVERY_S:
            self._used_at[row.id] = now
            await self._store.mark_key_used(row.id, time.time())
