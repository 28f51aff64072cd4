"""The secret ports: providers that turn a reference into a value, and the stores that the local provider needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

MIN_LENGTH = 8
"""Characters of the shortest secret: anything shorter cannot be masked without damaging ordinary text."""
MAX_BYTES = 64 * 1024
"""Bytes of the largest secret, as UTF-8, wherever it is kept."""


class Secret:
    """A secret value in the host. It shows itself only through `reveal`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


class SecretMissing(Exception):
    """Raised when a reference leads to nothing usable; `reason` is fit to show and holds no value."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SecretUnavailable(SecretMissing):
    """Raised when where the secret is kept does not answer: the same may work later."""


class SecretProvider(Protocol):
    """One kind of reference. `key` is what follows the colon; `scope` is the connection's."""

    async def resolve(self, scope: str, key: str) -> Secret:
        """Raises SecretMissing when there is no such secret, or it is not usable."""
        ...


class SecretRow(NamedTuple):
    """A sealed value: `sealed` is nonce and ciphertext."""

    scope: str
    name: str
    version: int
    sealed: bytes
    created_at: float


class SecretStore(Protocol):
    """Rows of sealed secrets. Each method is one transaction, durable when it returns."""

    async def secret(self, scope: str, name: str) -> SecretRow | None: ...

    async def secrets(self) -> list[SecretRow]: ...

    async def put_secret(self, row: SecretRow) -> None: ...

    async def swap_secret(self, row: SecretRow, expected: int | None) -> bool:
        """Put `row` where the version that is stored is still `expected` (None: there is none), at once with looking.
        Whether it was."""
        ...

    async def delete_secret(self, scope: str, name: str) -> bool: ...

    async def secret_names(self, scope: str) -> list[str]: ...

    async def reseal(self, rows: Sequence[SecretRow], key_check: bytes) -> None:
        """Put the rows in place of those of the same scope and name, and the key-check value, all or nothing. What
        they replace is overwritten in the file."""
        ...


class KeyStore(Protocol):
    """Where the key-check value lives: beside the sealed rows, so that the wrong key is noticed before it is used."""

    async def key_check(self) -> bytes | None: ...

    async def put_key_check(self, value: bytes) -> None: ...


class MemorySecrets:
    """A SecretStore and KeyStore that forgets everything when the process ends."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], SecretRow] = {}
        self._check: bytes | None = None

    async def secret(self, scope: str, name: str) -> SecretRow | None:
        return self._rows.get((scope, name))

    async def put_secret(self, row: SecretRow) -> None:
        self._rows[row.scope, row.name] = row

    async def swap_secret(self, row: SecretRow, expected: int | None) -> bool:
        stored = self._rows.get((row.scope, row.name))
        if (None if stored is None else stored.version) != expected:
            return False
        self._rows[row.scope, row.name] = row
        return True

    async def delete_secret(self, scope: str, name: str) -> bool:
        return self._rows.pop((scope, name), None) is not None

    async def secret_names(self, scope: str) -> list[str]:
        return sorted(name for owner, name in self._rows if owner == scope)

    async def secrets(self) -> list[SecretRow]:
        return list(self._rows.values())

    async def reseal(self, rows: Sequence[SecretRow], key_check: bytes) -> None:
        self._rows |= {(row.scope, row.name): row for row in rows}
        self._check = key_check

    async def key_check(self) -> bytes | None:
        return self._check

    async def put_key_check(self, value: bytes) -> None:
        self._check = value
