"""What an install made: a lock that names every package by its place, and the files that the lock stands for."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

FOLDER: Final = "node_modules"
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Locked:
    """One package at one place of a tree.

    `at` is its folder as Node's resolution finds it, such as `node_modules/ai/node_modules/zod`. `name` and `version`
    are the package's own, which an alias makes another than the last part of `at`. `integrity` is the SHA-512 of its
    archive, `sha512-` and base64, computed here whatever the registry says.
    """

    at: str
    name: str
    version: str
    integrity: str


@dataclass(frozen=True, slots=True)
class Lock:
    """A resolved install: `packages` in order of `at`, the asked-for one at `root`. Equal locks hold equal files."""

    name: str
    version: str
    packages: tuple[Locked, ...]
    digest: str = field(init=False)
    """SHA-256 of all of it, in hex: what an image of the tree is keyed by."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "packages", tuple(sorted(self.packages, key=lambda one: one.at)))
        object.__setattr__(self, "digest", hashlib.sha256(self.to_json()).hexdigest())

    @property
    def root(self) -> str:
        """The folder of the asked-for package."""
        return f"{FOLDER}/{self.name}"

    def to_json(self) -> bytes:
        """Canonical, so that equal locks are equal bytes."""
        rows = [[one.at, one.name, one.version, one.integrity] for one in self.packages]
        facts = {"format": FORMAT, "name": self.name, "packages": rows, "version": self.version}
        return json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Raises ValueError for anything that `to_json` does not make."""
        facts: Any = json.loads(data)
        try:
            if facts["format"] != FORMAT:
                raise ValueError("the lock is of another format")
            rows = [Locked(*row) for row in facts["packages"]]
            lock = cls(facts["name"], facts["version"], tuple(rows))
        except (KeyError, TypeError) as e:
            raise ValueError("the lock is not one") from e
        if lock.to_json() != data:
            raise ValueError("the lock is not in its canonical form")
        return lock


@dataclass(frozen=True, slots=True)
class PackageTree:
    """A lock and the bytes of every file under it, by path: `node_modules/ai/package.json`."""

    lock: Lock
    files: Mapping[str, bytes]

    @classmethod
    def of(cls, name: str, version: str, files: Mapping[str, bytes]) -> Self:
        """A tree of packages that are given as they are, with no archive behind them."""
        packages = [_given(at, files) for at in _places(files)]
        return cls(Lock(name, version, tuple(packages)), dict(files))

    @property
    def root(self) -> str:
        return self.lock.root

    @property
    def digest(self) -> str:
        return self.lock.digest

    def under(self, at: str) -> Iterator[tuple[str, bytes]]:
        """The files of the package at `at` without those of packages nested in it, by their path within it."""
        prefix, nested = f"{at}/", f"{at}/{FOLDER}/"
        for path, data in self.files.items():
            if path.startswith(prefix) and not path.startswith(nested):
                yield path[len(prefix) :], data


def _places(files: Iterable[str]) -> list[str]:
    found = set()
    for path in files:
        head, mark, rest = path.rpartition(f"{FOLDER}/")
        if mark:
            parts = rest.split("/")
            found.add(head + mark + "/".join(parts[: 2 if rest.startswith("@") else 1]))
    return sorted(found)


def _given(at: str, files: Mapping[str, bytes]) -> Locked:
    try:
        facts: Any = json.loads(files[f"{at}/package.json"])
    except (KeyError, ValueError):
        facts = {}
    if not isinstance(facts, dict):
        facts = {}
    digest = hashlib.sha512()
    for path in sorted(path for path in files if path.startswith(f"{at}/")):
        digest.update(f"{len(path)}:{path}{len(files[path])}:".encode() + files[path])
    integrity = "sha512-" + base64.b64encode(digest.digest()).decode()
    name = at.rpartition(f"{FOLDER}/")[2]
    return Locked(at, str(facts.get("name", name)), str(facts.get("version", "0.0.0")), integrity)
