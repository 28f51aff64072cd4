"""Small packages, made for tests of how packages are loaded and run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from catalog.kinds.npm.tree import PackageTree


def package(name: str, files: Mapping[str, str], *, at: str | None = None, **manifest: Any) -> dict[str, bytes]:
    """The files of a package in node_modules, or of one that is nested at another place."""
    root = at or f"node_modules/{name}"
    facts = {"name": name, "version": "1.0.0", **manifest}
    found = {f"{root}/package.json": json.dumps(facts).encode()}
    return found | {f"{root}/{path}": text.encode() for path, text in files.items()}


def tree(*parts: Mapping[str, bytes], name: str = "tool") -> PackageTree:
    return PackageTree.of(name, "1.0.0", {path: data for part in parts for path, data in part.items()})


def esm(source: str, *others: Mapping[str, bytes], **files: str) -> PackageTree:
    """A package named `tool` whose one entry is an ES module, with `others` beside it."""
    own = package("tool", {"index.js": source, **files}, type="module", exports="./index.js")
    return tree(own, *others)


def cjs(source: str, *others: Mapping[str, bytes], **files: str) -> PackageTree:
    return tree(package("tool", {"index.js": source, **files}, main="index.js"), *others)
