"""Which file a specifier means: Node's resolution over a map of files, without a disk.

The algorithms are those of Node's documentation: "Modules: Packages", "Modules: ECMAScript modules" (PACKAGE_RESOLVE,
PACKAGE_EXPORTS_RESOLVE, PACKAGE_TARGET_RESOLVE) and "Modules: CommonJS modules" (LOAD_AS_FILE, LOAD_AS_DIRECTORY).
What a manifest says is hostile: a target that leaves its package is none.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from catalog.kinds.npm.limits import PACKAGE_JSON
from catalog.kinds.npm.tree import FOLDER

Kind = Literal["import", "require"]

CONDITIONS: Final[dict[Kind, tuple[str, ...]]] = {
    "import": ("import", "workerd", "worker", "edge-light", "module-sync", "default"),
    "require": ("require", "workerd", "worker", "edge-light", "default"),
}
"""Those of edge runtimes, which have the Web's APIs and no files, as an isolate; never `browser`, where packages expect
a document. `node` is tried where these lead nowhere, and before a `default` that is called the build for browsers."""

_ENDINGS: Final = ("", ".js", ".json", ".node", ".cjs", ".mjs")
_INDEXES: Final = ("index.js", "index.json", "index.node", "index.cjs", "index.mjs")
_MAX_DEPTH: Final = 32
MAX_PATTERNS: Final = 1_000
"""Keys with a star of one table that are tried."""
_BLOCKED: Final = object()
"""A target of null: the package says that there is nothing, whatever stands behind it."""


class Unresolved(Exception):
    """Raised when a specifier means no file of the tree."""


class Resolver:
    """Resolves within `files`, whose paths are like `node_modules/ai/package.json`."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._folders = {folder for path in files for folder in _parents(path)}
        self._manifests: dict[str, dict[str, Any]] = {}
        self._stars: dict[int, tuple[Mapping[str, Any], list[tuple[str, str, Any]]]] = {}

    def resolve(self, base: str, specifier: str, kind: Kind) -> str:
        """The path that `specifier` means in the file at `base`. Raises Unresolved."""
        if specifier.startswith("#"):
            return self._import_of_package(base, specifier, kind)
        if specifier.startswith(("./", "../")) or specifier in (".", ".."):
            # `.`, `..` and a slash at the end mean a folder, whatever file has that name.
            folder = specifier.endswith(("/", ".")) and specifier.rpartition("/")[2] in ("", ".", "..")
            found = self._file(_joined(posixpath.dirname(base), specifier), folder=folder)
        else:
            found = self._package(base, specifier, kind)
        if found is None:
            raise Unresolved(f"Cannot find {specifier[:200]!r} from {base}")
        return found

    def scope(self, path: str) -> tuple[str, dict[str, Any]]:
        """The nearest package around a file: its folder and its manifest."""
        for folder in _parents(path):
            if f"{folder}/package.json" in self._files or folder == "":
                return folder, self.manifest(folder)
            if folder.rpartition("/")[2] == FOLDER:
                break
        return "", {}

    def manifest(self, folder: str) -> dict[str, Any]:
        """The package.json of `folder`; empty when there is none, or none that can be read."""
        known = self._manifests.get(folder)
        if known is None:
            known = self._manifests[folder] = _manifest(self._files.get(f"{folder}/package.json" if folder else ""))
        return known

    def _package(self, base: str, specifier: str, kind: Kind) -> str | None:
        parts = specifier.split("/")
        count = 2 if specifier.startswith("@") else 1
        name, rest = "/".join(parts[:count]), "/".join(parts[count:])
        if not name or ".." in parts[:count] or "\\" in name:
            return None
        subpath = f"./{rest}" if rest else "."
        folder, own = self.scope(base)
        if own.get("name") == name and own.get("exports") is not None:
            return self._exported(folder, own["exports"], subpath, kind)
        for parent in _parents(base):
            if parent.rpartition("/")[2] == FOLDER:
                continue
            at = f"{parent}/{FOLDER}/{name}" if parent else f"{FOLDER}/{name}"
            if at in self._folders:
                exports = self.manifest(at).get("exports")
                if exports is not None:
                    return self._exported(at, exports, subpath, kind)
                return self._file(_joined(at, rest or "."), folder=not rest or rest.endswith("/"))
        return None

    def _exported(self, folder: str, exports: Any, subpath: str, kind: Kind) -> str | None:
        if isinstance(exports, dict) and any(key.startswith(".") for key in exports):
            return self._mapped(folder, exports, subpath, kind)
        return self._chosen(folder, exports, None, kind, None) if subpath == "." else None

    def _import_of_package(self, base: str, specifier: str, kind: Kind) -> str:
        folder, own = self.scope(base)
        imports = own.get("imports")
        found = self._mapped(folder, imports, specifier, kind, base=base) if isinstance(imports, dict) else None
        if found is None:
            raise Unresolved(f"Package import {specifier[:200]!r} is not defined for {base}")
        return found

    def _mapped(
        self, folder: str, table: Mapping[str, Any], key: str, kind: Kind, base: str | None = None
    ) -> str | None:
        target, star = self._entry(table, key)
        return self._chosen(folder, target, star, kind, base)

    def _chosen(self, folder: str, target: Any, star: str | None, kind: Kind, base: str | None) -> str | None:
        for conditions in (CONDITIONS[kind], (*CONDITIONS[kind], "node")):
            found = self._target(folder, target, star, conditions, kind, base, 0)
            if found is not None:
                return found if isinstance(found, str) else None
        return None

    def _entry(self, table: Mapping[str, Any], key: str) -> tuple[Any, str | None]:
        """The target of a key, and what stands for the star where the key is a pattern's; the longest pattern wins."""
        if key in table and "*" not in key:
            return table[key], None
        for head, tail, target in self._patterns(table):
            if key.startswith(head) and key != head and key.endswith(tail) and len(key) >= len(head) + len(tail):
                return target, key[len(head) : len(key) - len(tail)]
        return {}, None

    def _patterns(self, table: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
        """The keys of `table` that stand for many, as what is before the star and behind it, the longest first."""
        known = self._stars.get(id(table))
        if known is None:
            split = [(*pattern.partition("*"), target) for pattern, target in table.items()]
            found = [(head, tail, target) for head, mark, tail, target in split if mark or head.endswith("/")]
            found.sort(key=lambda one: -len(one[0]))
            known = self._stars[id(table)] = table, found[:MAX_PATTERNS]
        return known[1]

    def _target(
        self,
        folder: str,
        target: Any,
        star: str | None,
        conditions: tuple[str, ...],
        kind: Kind,
        base: str | None,
        depth: int,
    ) -> Any:
        if depth > _MAX_DEPTH:
            return None
        if isinstance(target, str):
            return self._target_path(folder, target, star, kind, base)
        if target is None:
            return _BLOCKED
        options: list[Any] = []
        if isinstance(target, dict):
            options = [value for key, value in target.items() if key in conditions]
            if "node" in target and "browser" in str(target.get("default")):
                options.insert(max(len(options) - 1, 0), target["node"])
        elif isinstance(target, list):
            options = target
        for option in options:
            found = self._target(folder, option, star, conditions, kind, base, depth + 1)
            if found is not None and (found is not _BLOCKED or isinstance(target, dict)):
                return found
        return None

    def _target_path(self, folder: str, target: str, star: str | None, kind: Kind, base: str | None) -> str | None:
        if star is not None:
            target = target.replace("*", star) if "*" in target else target + star
        if not target.startswith("./"):
            if base is None or target.startswith(("../", "/", "#")):
                return None
            if target.startswith("node:"):
                return target
            try:
                return self.resolve(f"{folder}/package.json", target, kind)
            except Unresolved:
                return None if "." in target.split("/")[0] else target
        parts = target[2:].replace("\\", "/").split("/")
        if ".." in parts or "." in parts or FOLDER in parts:
            return None
        path = _joined(folder, target)
        return path if path in self._files else None

    def _file(self, path: str | None, *, folder: bool = False, again: bool = True) -> str | None:
        if path is None:
            return None
        if not folder:
            for ending in _ENDINGS:
                if path + ending in self._files:
                    return path + ending
        if path in self._folders:
            main = self.manifest(path).get("main")
            if again and isinstance(main, str) and (found := self._file(_joined(path, main), again=False)) is not None:
                return found
            for index in _INDEXES:
                if f"{path}/{index}" in self._files:
                    return f"{path}/{index}"
        return None


def _joined(folder: str, path: str) -> str | None:
    """The path of `path` in `folder`; None when it leaves the tree."""
    joined = posixpath.normpath(posixpath.join("/", folder, path))
    escapes = posixpath.normpath(posixpath.join(folder or ".", path)).startswith("..")
    return None if escapes else joined.removeprefix("/")


def _parents(path: str) -> Iterator[str]:
    while path:
        path = posixpath.dirname(path)
        yield path


def _manifest(data: bytes | None) -> dict[str, Any]:
    if data is not None and len(data) > PACKAGE_JSON:
        return {}
    try:
        found = json.loads((data or b"{}").decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
