"""References to secrets, `provider:key`, and what a key looks like for each provider."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from bridge.wire.errors import Forbidden, InvalidRequest

MAX_LENGTH: Final = 512
HINT: Final = "Store a value first with `executor secret set NAME`, then refer to it as local:NAME."
SHAPES: Final = (
    "local:NAME, env:NAME, file:/PATH, keychain:SERVICE/ACCOUNT, vault:MOUNT/PATH#FIELD or op:VAULT/ITEM/FIELD"
)

_LOCAL: Final = re.compile(r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z")
_ENV: Final = re.compile(r"\A[A-Za-z_][A-Za-z0-9_]*\Z")


class SecretRef(NamedTuple):
    """A reference such as `local:github`, `env:GITHUB_TOKEN` or `file:/run/secrets/github`."""

    provider: str
    key: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.key}"


class VaultKey(NamedTuple):
    """`MOUNT/PATH#FIELD`, or `MOUNT/PATH?version=N#FIELD` for a version that stays."""

    mount: str
    path: tuple[str, ...]
    field: str
    version: int | None


class ItemKey(NamedTuple):
    """`VAULT/ITEM/FIELD` or `VAULT/ITEM/SECTION/FIELD`, each by name or id."""

    vault: str
    item: str
    section: str | None
    field: str


def parse_ref(text: Any) -> SecretRef:
    """Raises InvalidRequest when `text` is not `provider:key`. The key is the provider's own business."""
    provider, separator, key = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not separator or not provider.isascii() or not provider.isalpha() or not key or not key.isprintable():
        raise InvalidRequest(f"A secret reference looks like {SHAPES}.", hint=HINT)
    return SecretRef(provider.lower(), key)


def check_ref(text: Any) -> str:
    """The reference as it is kept. Raises InvalidRequest for one that no provider could ever resolve."""
    ref = parse_ref(text)
    parse = _PARSERS.get(ref.provider)
    if parse is None or len(ref.key) > MAX_LENGTH:
        what = "is too long" if parse is not None else f"names no provider: there are {', '.join(_PARSERS)}"
        raise InvalidRequest(f"The secret reference {ref.provider[:40]}:… {what}.", hint=HINT)
    parse(ref.key)
    return str(ref)


def check_permitted(references: Sequence[Any], patterns: Sequence[str]) -> None:
    """Raises Forbidden unless a caller over the network may name them: local secrets, and what the operator's patterns
    cover. A key may use what is kept in the store, not what lies in the server's environment or files."""
    for text in references:
        ref = check_ref(text)
        if not ref.startswith("local:") and not any(fnmatchcase(ref, pattern) for pattern in patterns):
            raise Forbidden(
                "over HTTP a secret reference must be `local:NAME`",
                hint="PUT /secrets/NAME first. References of other kinds are made with the CLI on the server's machine,"
                " or allowed by the operator with http_references.",
            )


def vault_key(key: str) -> VaultKey:
    """Raises InvalidRequest."""
    place, _, field = key.partition("#")
    path, mark, query = place.partition("?")
    mount, *rest = path.split("/")
    version = _version(query) if mark else None
    if not _plain(mount, *rest) or not rest or not field or version == 0:
        raise InvalidRequest(
            "A Vault reference looks like vault:MOUNT/PATH#FIELD, with ?version=N before the # for one version.",
            hint="Such as vault:secret/github#token, for the field token of github in the KV v2 engine at secret/.",
        )
    return VaultKey(mount, tuple(rest), field, version)


def _version(query: str) -> int:
    digits = query.removeprefix("version=")
    return int(digits) if digits != query and digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def item_key(key: str) -> ItemKey:
    """Raises InvalidRequest."""
    parts = key.removeprefix("//").split("/")
    if len(parts) not in (3, 4) or not _plain(*parts) or any(mark in part for part in parts for mark in '"\\'):
        raise InvalidRequest(
            "A 1Password reference looks like op:VAULT/ITEM/FIELD or op:VAULT/ITEM/SECTION/FIELD.",
            hint="An id stands for a name that has a slash or a quotation mark in it, or that comes twice.",
        )
    return ItemKey(parts[0], parts[1], parts[2] if len(parts) == 4 else None, parts[-1])


def keychain_key(key: str) -> tuple[str, str]:
    """Service and account; the account is what follows the last slash. Raises InvalidRequest."""
    service, _, account = key.rpartition("/")
    if not service or not account:
        raise InvalidRequest("A keychain reference looks like keychain:SERVICE/ACCOUNT.")
    return service, account


def file_key(key: str) -> str:
    """Raises InvalidRequest for a path that is relative, or that has another spelling."""
    if not os.path.isabs(key) or os.path.normpath(key) != key or key.startswith("//"):
        raise InvalidRequest("A file reference is file: and an absolute path without . and .. in it.")
    return key


def is_local(key: str) -> bool:
    """Whether a stored secret may have this name."""
    return _LOCAL.match(key) is not None


def local_key(key: str) -> str:
    if not _LOCAL.match(key):
        raise InvalidRequest("A secret's name is letters, digits, _, . and -, at most 100 characters.")
    return key


def _env_key(key: str) -> str:
    if not _ENV.match(key):
        raise InvalidRequest("The name of an environment variable is letters, digits and _.")
    return key


def _plain(*segments: str) -> bool:
    return all(segment not in ("", ".", "..") and segment == segment.strip() for segment in segments)


_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "local": local_key,
    "env": _env_key,
    "file": file_key,
    "keychain": keychain_key,
    "vault": vault_key,
    "op": item_key,
}
PROVIDERS: Final = tuple(_PARSERS)
