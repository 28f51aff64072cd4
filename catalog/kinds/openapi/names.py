"""Names of tools: readable, stable from one import to the next, unique within the document.

An operationId with separators groups by them (`issues/list-for-repo` is `issues.listForRepo`); one without is put
under its first tag (`pet.findPetsByStatus`). Without an operationId the method and path speak: `GET /users/{id}` is
`users.get`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

MAX_PART: Final = 96
MAX_PARTS: Final = 6

_SEPARATORS: Final = re.compile(r"[/.:]+")
_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
_VARIABLE: Final = re.compile(r"\{[^}]*\}")
_VERBS: Final = {
    "post": "create",
    "put": "replace",
    "patch": "update",
    "delete": "delete",
    "head": "head",
    "options": "options",
    "trace": "trace",
}
_AWKWARD: Final = frozenset({"then", "__proto__", "constructor", "prototype", "toJSON"})
"""Properties that JavaScript gives a meaning of its own."""


class Namer:
    """Hands out names; the first operation to ask for one keeps it, the next gets a suffix made from its own path."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._reserved: set[str] = set()

    def reserve(self, name: str) -> None:
        """Keep `name` for the operation that will `take` it."""
        self._taken.add(name)
        self._reserved.add(name)

    def take(self, name: str) -> bool:
        """Whether `name` was reserved and is now the caller's."""
        free = name in self._reserved
        self._reserved.discard(name)
        return free

    def name(self, method: str, path: str, operation_id: str | None, tags: Iterable[str]) -> str:
        """A name that no operation was given before."""
        name = from_id(operation_id, tags) if operation_id else ""
        name = name or from_path(method, path)
        if name in self._taken:
            name = f"{name}_{_digest(method, path)}"
        self._taken.add(name)
        return name


def from_id(operation_id: str, tags: Iterable[str]) -> str:
    """The name that an operationId asks for, or "" when it has nothing that a name can be made of."""
    parts = [part for piece in _SEPARATORS.split(operation_id) if (part := _part(piece))]
    if not parts:
        return ""
    if len(parts) == 1:
        group = next((part for tag in tags if (part := _part(tag))), "")
        if group:
            parts = [group[0].lower() + group[1:], _without_group(parts[0], group)]
    if len(parts) > MAX_PARTS:
        parts = [*parts[: MAX_PARTS - 1], "_".join(parts[MAX_PARTS - 1 :])]
    return ".".join(parts)


def _without_group(name: str, group: str) -> str:
    """`users_list` under the tag `users` is `list`."""
    if name.lower().startswith(group.lower() + "_") and len(name) > len(group) + 1:
        return name[len(group) + 1 :]
    return name


def from_path(method: str, path: str) -> str:
    """A name made of the fixed parts of the path and of what the method does to them."""
    pieces = [piece for piece in path.split("/") if piece]
    parts = [part for piece in pieces if (part := _part(_VARIABLE.sub(" ", piece)))]
    one = bool(pieces) and _VARIABLE.search(pieces[-1]) is not None
    verb = _VERBS.get(method) or ("get" if one or not parts else "list")
    kept = parts[-(MAX_PARTS - 1) :]
    return ".".join([*kept, verb]) if kept else f"{verb}_{_digest(method, path)}" if pieces else verb


def _part(text: str) -> str:
    """`text` as one ASCII part: words after the first are capitalised, `_` stays."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = _WORD.findall(plain)
    if not words or not any(character.isalnum() for word in words for character in word):
        return ""
    part: str = words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:])
    if part[0].isdigit():
        part = "_" + part
    if part in _AWKWARD:
        part += "_"
    return part if len(part) <= MAX_PART else part[: MAX_PART - 7] + "_" + _hash(text)


def _digest(method: str, path: str) -> str:
    return _hash(f"{method.upper()} {path}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
