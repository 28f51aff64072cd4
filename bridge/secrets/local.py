"""`local:NAME`: values sealed with AES-256-GCM in the store, under a master key that lives elsewhere.

Each value is bound to its scope, name and version as associated data, so that a row moved to another place does not
open there. A key-check value beside the rows tells a wrong key from a damaged row.
"""

from __future__ import annotations

import re
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bridge.secrets import masterkey
from bridge.secrets.ports import MIN_LENGTH, KeyStore, Secret, SecretMissing, SecretRow, SecretStore
from bridge.wire.errors import ConfigError, InvalidRequest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAX_LENGTH: Final = 64 * 1024
_NONCE: Final = 12
_CHECK: Final = b"executor key check"
_CHECK_AAD: Final = b"v1|key-check"
_NAME: Final = re.compile(r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z")


class LocalSecrets:
    """The sealed store. `key_file` None: a key that lives as long as this object, for a home in memory."""

    def __init__(self, store: SecretStore, keys: KeyStore, key_file: Path | None) -> None:
        self._store = store
        self._keys = keys
        self._key_file = key_file
        self._cipher: AESGCM | None = None

    async def verify(self) -> None:
        """Check that the key opens what is stored. Raises ConfigError when it is missing or another one."""
        if await self._keys.key_check() is not None:
            await self._opened()

    async def set(self, scope: str, name: str, value: str) -> None:
        """Seal `value` under `name`, in place of an earlier one. Raises InvalidRequest or ConfigError."""
        if not _NAME.match(name):
            raise InvalidRequest("A secret's name is letters, digits, _, . and -, at most 100 characters.")
        value = value.removesuffix("\n").removesuffix("\r")
        if not MIN_LENGTH <= len(value) <= MAX_LENGTH:
            raise InvalidRequest(
                f"A secret has {MIN_LENGTH} to {MAX_LENGTH} characters: shorter ones cannot be kept out of answers.",
                hint="A short password can be named by env:NAME instead; it is then not masked in answers.",
            )
        cipher = await self._opened()
        earlier = await self._store.secret(scope, name)
        version = earlier.version + 1 if earlier is not None else 1
        nonce = secrets.token_bytes(_NONCE)
        try:
            plain = value.encode()
        except UnicodeEncodeError:
            raise InvalidRequest("The secret holds a lone surrogate.") from None
        sealed = nonce + cipher.encrypt(nonce, plain, _bound(scope, name, version))
        await self._store.put_secret(SecretRow(scope, name, version, sealed, time.time()))

    async def delete(self, scope: str, name: str) -> bool:
        return await self._store.delete_secret(scope, name)

    async def names(self, scope: str) -> list[str]:
        return await self._store.secret_names(scope)

    async def resolve(self, scope: str, key: str) -> Secret:
        """Raises SecretMissing when there is no such secret or its row does not open, ConfigError without the key."""
        row = await self._store.secret(scope, key)
        if row is None:
            raise SecretMissing(f"no secret {key} is stored in scope {scope}")
        cipher = await self._opened()
        plain = _unsealed(cipher, row.sealed, _bound(row.scope, row.name, row.version))
        if plain is None or (row.scope, row.name) != (scope, key):
            raise SecretMissing(f"the stored secret {key} is damaged")
        return Secret(plain.decode())

    async def _opened(self) -> AESGCM:
        if self._cipher is None:
            check = await self._keys.key_check()
            cipher = _aes(self._key(required=check is not None))
            if check is None:
                nonce = secrets.token_bytes(_NONCE)
                await self._keys.put_key_check(nonce + cipher.encrypt(nonce, _CHECK, _CHECK_AAD))
            elif _unsealed(cipher, check, _CHECK_AAD) != _CHECK:
                raise ConfigError(
                    "The master key is not the one that the stored secrets were sealed with.",
                    hint="Point EXECUTOR_KEY_FILE at the right key file.",
                )
            self._cipher = cipher
        return self._cipher

    def _key(self, *, required: bool) -> bytes:
        if self._key_file is None:
            return secrets.token_bytes(masterkey.KEY_BYTES)
        key = masterkey.read(self._key_file)
        if key is not None:
            return key
        if required:
            raise ConfigError(
                "The master key file is missing, and there are secrets that only it can open.",
                hint="Restore it, or point EXECUTOR_KEY_FILE at it. A new key is never made over old secrets.",
            )
        return masterkey.create(self._key_file)


def _aes(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _bound(scope: str, name: str, version: int) -> bytes:
    return f"v1|{scope}|{name}|{version}".encode()


def _unsealed(cipher: AESGCM, sealed: bytes, bound: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], bound)
    except (InvalidTag, ValueError):
        return None
