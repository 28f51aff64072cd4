"""`local:NAME`: values sealed with AES-256-GCM in the store, under a master key that lives elsewhere.

Each value is bound to its scope, name and version as associated data, so that a row moved to another place does not
open there. A key-check value beside the rows tells a wrong key from a damaged row.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from bridge.secrets import masterkey
from bridge.secrets.ports import MAX_BYTES, MIN_LENGTH, KeyStore, Secret, SecretMissing, SecretRow, SecretStore
from bridge.secrets.references import is_local, local_key
from bridge.wire.errors import ConfigError, InvalidRequest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE: Final = 12
_CHECK: Final = b"executor key check"
_CHECK_AAD: Final = b"v1|key-check"


class LocalSecrets:
    """The sealed store. `key_file` None: a key that lives as long as this object, for a home in memory."""

    def __init__(self, store: SecretStore, keys: KeyStore, key_file: Path | None) -> None:
        self._store = store
        self._keys = keys
        self._key_file = key_file
        self._ciphers: list[AESGCM] = []
        self._changing = anyio.Lock()

    async def verify(self) -> None:
        """Check that the key opens what is stored. Raises ConfigError when it is missing or another one."""
        if await self._keys.key_check() is not None:
            await self._opened()

    async def set(self, scope: str, name: str, value: str) -> None:
        """Seal `value` under `name`, in place of an earlier one. Raises InvalidRequest or ConfigError."""
        local_key(name)
        value = value.removesuffix("\n").removesuffix("\r")
        try:
            plain = value.encode()
        except UnicodeEncodeError:
            raise InvalidRequest("The secret holds a lone surrogate.") from None
        if len(value) < MIN_LENGTH or len(plain) > MAX_BYTES:
            raise InvalidRequest(
                f"A secret has at least {MIN_LENGTH} characters, since shorter ones cannot be kept out of answers,"
                f" and at most {MAX_BYTES} bytes.",
                hint="A short password can be named by env:NAME instead; it is then not masked in answers.",
            )
        async with self._changing:
            cipher = (await self._opened())[0]
            earlier = await self._store.secret(scope, name)
            version = earlier.version + 1 if earlier is not None else 1
            sealed = _sealed(cipher, plain, _bound(scope, name, version))
            await self._store.put_secret(SecretRow(scope, name, version, sealed, time.time()))

    async def delete(self, scope: str, name: str) -> bool:
        async with self._changing:
            return is_local(name) and await self._store.delete_secret(scope, name)

    async def names(self, scope: str) -> list[str]:
        return [name for name in await self._store.secret_names(scope) if is_local(name)]

    # What Executor itself keeps here has names that no reference can have: `purpose:NAME`.

    async def kept(self, scope: str, name: str) -> tuple[int | None, str | None]:
        """The version and the text of what `keep` sealed; None where there is none, and no text where it does not open.
        Raises ConfigError without the key."""
        row = await self._store.secret(scope, name)
        if row is None:
            return None, None
        plain = await self._open(row)
        return row.version, None if plain is None else plain.decode()

    async def keep(self, scope: str, name: str, text: str, *, expected: int | None) -> int | None:
        """Seal `text` in place of the version `expected` (None: there is none yet). The new version, durable now, or
        None where another one is stored by now: then nothing changed."""
        assert not is_local(name)
        async with self._changing:
            cipher = (await self._opened())[0]
            # What is stored anew after it was forgotten must not look like what somebody read before.
            version = max((expected or 0) + 1, time.time_ns() // 1000)
            sealed = _sealed(cipher, text.encode(), _bound(scope, name, version))
            row = SecretRow(scope, name, version, sealed, time.time())
            return version if await self._store.swap_secret(row, expected) else None

    async def forget(self, scope: str, name: str) -> None:
        async with self._changing:
            await self._store.delete_secret(scope, name)

    async def resolve(self, scope: str, key: str) -> Secret:
        """Raises SecretMissing when there is no such secret or its row does not open, ConfigError without the key."""
        row = await self._store.secret(scope, key) if is_local(key) else None
        if row is None:
            raise SecretMissing(f"no secret {key} is stored in scope {scope}")
        plain = await self._open(row)
        if plain is None or (row.scope, row.name) != (scope, key):
            raise SecretMissing(f"the stored secret {key} is damaged")
        return Secret(plain.decode())

    async def _open(self, row: SecretRow) -> bytes | None:
        """What is sealed in `row`; None when it does not open. Raises ConfigError without the key."""
        bound = _bound(row.scope, row.name, row.version)
        # While the key is being changed, a row that was read before may be under the one that was.
        opened = (_unsealed(cipher, row.sealed, bound) for cipher in await self._opened())
        return next((one for one in opened if one is not None), None)

    async def rotate(self, *, forget: bool = False) -> dict[str, Any]:
        """Seal every secret under a new master key: `{"secrets": how many, "damaged": [names]}`.

        The key file holds the new key and the old one before the first row changes, and the rows change together, so
        that every secret opens whatever happens in between. The old keys stay in the file for other homes and for
        backups, unless `forget`. What did not open before is left as it is. Raises ConfigError, StorageFull.
        """
        async with self._changing:
            ciphers = await self._opened()
            key = secrets.token_bytes(masterkey.KEY_BYTES)
            if self._key_file is not None:
                key = await anyio.to_thread.run_sync(masterkey.add, self._key_file)
            fresh = _aes(key)
            rows, damaged = [], []
            for row in await self._store.secrets():
                bound = _bound(row.scope, row.name, row.version)
                plain = _unsealed(ciphers[0], row.sealed, bound)
                if plain is None:
                    damaged.append(f"{row.scope}/{row.name}")
                else:
                    rows.append(row._replace(sealed=_sealed(fresh, plain, bound)))
            check = _sealed(fresh, _CHECK, _CHECK_AAD)
            with anyio.CancelScope(shield=True):
                # The rows and what seals the next one must not part company.
                self._ciphers = [ciphers[0], fresh, *ciphers[1:]]
                await self._store.reseal(rows, check)
                self._ciphers = [fresh, *ciphers]
                if forget and self._key_file is not None:
                    await anyio.to_thread.run_sync(masterkey.keep_only, self._key_file, key)
        return {"secrets": len(rows), "damaged": damaged}

    async def _opened(self) -> list[AESGCM]:
        """The cipher that seals, and before it is gone also the one that did. Raises ConfigError."""
        if not self._ciphers:
            check = await self._keys.key_check()
            ciphers = [_aes(key) for key in self._key(required=check is not None)]
            if check is None:
                await self._keys.put_key_check(_sealed(ciphers[0], _CHECK, _CHECK_AAD))
                self._ciphers = ciphers[:1]
                return self._ciphers
            self._ciphers = [cipher for cipher in ciphers if _unsealed(cipher, check, _CHECK_AAD) == _CHECK]
            if not self._ciphers:
                raise ConfigError(
                    "The master key is not the one that the stored secrets were sealed with.",
                    hint="Point EXECUTOR_KEY_FILE at the right key file.",
                )
        return self._ciphers

    def _key(self, *, required: bool) -> list[bytes]:
        if self._key_file is None:
            return [secrets.token_bytes(masterkey.KEY_BYTES)]
        keys = masterkey.read(self._key_file)
        if keys:
            return keys
        if required:
            raise ConfigError(
                "The master key file is missing, and there are secrets that only it can open.",
                hint="Restore it, or point EXECUTOR_KEY_FILE at it. A new key is never made over old secrets.",
            )
        return [masterkey.create(self._key_file)]


def _aes(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _bound(scope: str, name: str, version: int) -> bytes:
    return f"v1|{scope}|{name}|{version}".encode()


def _sealed(cipher: AESGCM, plain: bytes, bound: bytes) -> bytes:
    nonce = secrets.token_bytes(_NONCE)
    return nonce + cipher.encrypt(nonce, plain, bound)


def _unsealed(cipher: AESGCM, sealed: bytes, bound: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], bound)
    except (InvalidTag, ValueError):
        return None
