"""How large a package and a tree may be."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024
PACKAGE_JSON = MIB
"""Bytes of a package.json that is read: nothing else of this process goes on while it is parsed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`packed`, `unpacked`, `files` and `file` are of one package, `packages`, `tree_bytes` and `depth` of a whole
    install; `metadata` of one document of the registry. Sizes are in bytes. Files that nothing reads at run time
    (declarations, source maps, prose) do not count: with that, of a hundred popular packages all but those with native
    parts fit."""

    packed: int = 16 * MIB
    unpacked: int = 64 * MIB
    files: int = 5_000
    path: int = 512
    path_depth: int = 40
    packages: int = 400
    tree_bytes: int = 500 * MIB
    depth: int = 40
    metadata: int = 64 * MIB
