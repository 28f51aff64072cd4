"""Everything that a package may load, with its resolutions worked out: what an isolate is given in place of a disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from catalog.kinds.npm.resolution import Kind, Resolver, Unresolved
from catalog.kinds.npm.sources import Asked, asked, format_of
from catalog.kinds.npm.tree import PackageTree

RULES: Final = 2
"""Of how a bundle is made. What was loaded from bundles by other rules is loaded again."""
MAX_MODULES: Final = 20_000
MAX_BYTES: Final = 48 * 1024 * 1024
"""Of the sources of one bundle, together. What a run's memory allows is usually less."""
MAX_CPU_S: Final = 30.0
"""Of processor time, for finding out what a bundle is of; the largest packages take a few seconds."""
MAX_FOLDER: Final = 2_000
"""Files that are taken of a folder from which a module picks by name."""

_NAMES: Final = (
    "assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain "
    "events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl "
    "stream string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib"
)
BUILTINS: Final = frozenset(_NAMES.split(" "))
"""Names that mean a part of Node's library whatever is installed."""

_PICKED: Final = (".js", ".json", ".cjs", ".mjs")


class TooLarge(Exception):
    """Raised when a package's code is more than an isolate can be given."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The modules that `entry` may reach, by id: the path in the tree with a slash in front.

    A module is `{format, source, imports, requires, statics}`: the two tables map specifiers to ids, `statics` are the
    ids that are imported before it runs.
    """

    entry: str
    modules: Mapping[str, dict[str, Any]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PackageSource:
    """A package that can be run: `digest` names it and everything under it, `specifier` what is imported.

    `read` brings its files. It may block, and is called only when what is known of the digest does not suffice.
    """

    digest: str
    specifier: str
    read: Callable[[], PackageTree] = field(repr=False)

    @classmethod
    def of(cls, tree: PackageTree) -> Self:
        return cls(tree.digest, tree.lock.name, lambda: tree)

    def bundle(self) -> Bundle:
        """Raises Unresolved, TooLarge."""
        return bundled(self.read(), self.specifier)


def bundled(tree: PackageTree, specifier: str | None = None) -> Bundle:
    """What the tree's package, or another `specifier` seen from its folder, may load. Raises Unresolved, TooLarge."""
    resolver = Resolver(tree.files)
    entry = resolver.resolve("index.mjs", specifier or tree.lock.name, "import")
    return Bundle(f"/{entry}", _Reach(tree.files, resolver).of(entry))


class _Reach:
    def __init__(self, files: Mapping[str, bytes], resolver: Resolver) -> None:
        self._files = files
        self._resolver = resolver
        self._modules: dict[str, dict[str, Any]] = {}
        self._waiting: list[str] = []
        self._bytes = 0
        self._began = time.thread_time()

    def of(self, entry: str) -> dict[str, dict[str, Any]]:
        self._waiting.append(entry)
        while self._waiting:
            path = self._waiting.pop()
            if f"/{path}" not in self._modules:
                self._take(path)
        return self._modules

    def _take(self, path: str) -> None:
        data = self._files[path]
        self._bytes += len(data) if not path.endswith((".node", ".wasm")) else 0
        if len(self._modules) >= MAX_MODULES or self._bytes > MAX_BYTES:
            raise TooLarge(f"the package reaches more than {MAX_MODULES} modules or {MAX_BYTES} bytes of source")
        text = "" if path.endswith((".node", ".wasm")) else data.decode("utf-8-sig", "replace")
        form = format_of(path, text, self._resolver.scope(path)[1])
        wants = asked(text, form)
        imports = self._table(path, (*wants.statics, *wants.dynamics), "import")
        requires = self._table(path, wants.requires, "require")
        self._modules[f"/{path}"] = {
            "format": form,
            "source": _without_shebang(text),
            "imports": imports,
            "requires": requires,
            "statics": [imports[one] for one in wants.statics if one in imports],
        }
        self._waiting += [id[1:] for id in (*requires.values(), *reversed(imports.values())) if id.startswith("/")]
        self._pick(path, wants)
        for place in wants.texts:
            self._text(_folder(path, place)[:-1])

    def _text(self, path: str) -> None:
        """Take along a file that is read, not loaded."""
        data = self._files.get(path)
        if data is None or f"/{path}" in self._modules:
            return
        if path.endswith(".json"):
            self._waiting.append(path)
            return
        self._bytes += len(data)
        nothing: dict[str, Any] = {"imports": {}, "requires": {}, "statics": []}
        self._modules[f"/{path}"] = {"format": "text", "source": data.decode("utf-8", "replace")} | nothing

    def _table(self, path: str, specifiers: tuple[str, ...], kind: Kind) -> dict[str, str]:
        found: dict[str, str] = {}
        for specifier in specifiers:
            self._check_time()
            name = specifier.removeprefix("node:")
            builtin = name.split("/")[0] in BUILTINS and not name.endswith("/")
            if builtin or specifier.startswith("node:"):
                continue
            try:
                id = self._resolver.resolve(path, specifier.removesuffix("/") if kind == "require" else specifier, kind)
            except Unresolved:
                continue
            if id in self._files:
                found[specifier] = f"/{id}"
            elif id.removeprefix("node:") in BUILTINS:
                found[specifier] = f"node:{id.removeprefix('node:')}"
        return found

    def _pick(self, path: str, wants: Asked) -> None:
        """Take along the files of folders from which the module picks one by a name that only code knows."""
        for specifier in wants.folders:
            self._check_time()
            folder = _folder(path, specifier)
            near = (one for one in self._files if one.startswith(folder) and one.endswith(_PICKED))
            for count, one in enumerate(near):
                if count == MAX_FOLDER:
                    break
                self._waiting.append(one)

    def _check_time(self) -> None:
        if time.thread_time() - self._began > MAX_CPU_S:
            raise TooLarge(f"finding out what the package is made of takes more than {MAX_CPU_S:g} s")


def _folder(path: str, specifier: str) -> str:
    parts = path.split("/")[:-1]
    for part in specifier.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) + "/"


def _without_shebang(text: str) -> str:
    return f"//{text[2:]}" if text.startswith("#!") else text
