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
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from bridge.wire.errors import Conflict, InvalidRequest, NotFound

Need = Literal["run", "read", "admin"]
"""What an operation asks of a key: to run scripts and call tools, to see what is not its own, to change the home."""
Level = Literal["full", "run", "read", "admin"]

PREFIX: Final = "exk_"
REFRESH_S: Final = 1.0
"""A revoked key is refused, and a new key accepted, at most this long after the store knew of it."""
USE_RECORDED_EVERY_S: Final = 60.0

_SHAPE: Final = re.compile(rb"exk_[A-Za-z0-9_-]{43}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_NOBODY: Final = bytes(32)


LEVELS: Final[dict[str, frozenset[Need]]] = {
    "full": frozenset({"run", "read", "admin"}),
    "run": frozenset({"run"}),
    "read": frozenset({"read"}),
    "admin": frozenset({"read", "admin"}),
}


@dataclass(frozen=True, slots=True)
class Access:
    """What a key may do, and the toolkit that it is tied to. A level that is not known permits nothing."""

    level: str = "full"
    toolkit: str | None = None

    def allows(self, *needs: Need) -> bool:
        """Whether one of `needs` is permitted."""
        return not LEVELS.get(self.level, frozenset()).isdisjoint(needs)


class KeyRow(NamedTuple):
    """A key as stored. Times are Unix seconds; `digest` is the SHA-256 of the whole key."""

    id: str
    name: str
    digest: bytes
    created_at: float
    last_used_at: float | None
    revoked_at: float | None
    access: str = "full"
    toolkit: str | None = None


class KeyStore(Protocol):
    """Where keys are kept. Rows are plain tuples in the order of `KeyRow`."""

    async def add_key(
        self, id: str, name: str, digest: bytes, created_at: float, access: str, toolkit: str | None
    ) -> None: ...

    async def list_keys(self) -> list[tuple[str, str, bytes, float, float | None, float | None, str, str | None]]: ...

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
        self._lent: dict[bytes, KeyRow] = {}
        self._read_at: float | None = None
        self._reading = asyncio.Lock()
        self._used_at: dict[str, float] = {}

    async def create(self, name: str, *, access: Level | None = None, toolkit: str | None = None) -> tuple[KeyRow, str]:
        """A new key and its only showing. `access` is `full` unless a toolkit is given, which is for `run` alone: who
        may read or change everything is not narrowed by a toolkit.

        Raises InvalidRequest for an unusable name, an access that there is not or that is none for a toolkit, Conflict
        for a name in use. Whether the toolkit exists is for the caller to see; one that does not holds no tool.
        """
        level = access or ("full" if toolkit is None else "run")
        if level not in LEVELS:
            raise InvalidRequest(f"{str(level)[:40]!r} is not an access", hint=f"use one of {', '.join(LEVELS)}")
        if toolkit is not None and level != "run":
            raise InvalidRequest("a key that is tied to a toolkit has the access run, and no other")
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"{name!r} is not a key name", hint="use letters, digits, '.', '_', '@' and '-', 64 at most"
            )
        if any(row.name == name for row in await self.list() if row.revoked_at is None):
            raise Conflict(f"a key named {name!r} exists", hint="revoke it first, or choose another name")
        key = PREFIX + secrets.token_urlsafe(32)
        digest = digest_of(key.encode())
        row = KeyRow(f"key_{secrets.token_hex(6)}", name, digest, time.time(), None, None, level, toolkit)
        await self._store.add_key(row.id, row.name, row.digest, row.created_at, level, toolkit)
        self._read_at = None
        return row, key

    def lend(self, id: str) -> str:
        """A key that is good as long as this process lives, and is stored nowhere."""
        key = PREFIX + secrets.token_urlsafe(32)
        row = KeyRow(id, id, digest_of(key.encode()), time.time(), None, None)
        self._lent[row.digest] = row
        return key

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
        row = self._live.get(digest) or self._lent.get(digest)
        same = hmac.compare_digest(digest, row.digest if row is not None else _NOBODY)
        if row is None or not same or not _SHAPE.fullmatch(presented):
            return None
        if digest not in self._lent:
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
