"""Documents of several parts as one: other files beside the document, and schemas that are named by `$id` or `$anchor`.

Every reference that is no pointer into the document becomes one; the files that it leads to stand under `x-files`.
Of a document in a file, those in its folder and below are read; of one from a URL, those of the same origin, by whoever
may fetch them. Each is read once, so that circles end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from bridge.wire.errors import ImportFailed
from catalog.kinds.openapi import reader
from catalog.model import Diagnostic

MAX_FILES: Final = 5000
MAX_FETCHED: Final = 500
"""Documents that are fetched for one."""
MAX_BYTES: Final = 128 * 1024 * 1024
FILES: Final = "x-files"

_SUFFIXES: Final = (".json", ".yaml", ".yml")
_FOLDER: Final = "https://document.invalid/-/-/-/-/-/-/-/-/"
"""Where the folder of a document is, for resolving references: deep enough that the way up is seen as one."""
_HINT: Final = r"""\$ref['"]?+\s*+:\s*+['"]?+(?!#/)|\$(?:id|anchor|dynamicAnchor)\b"""
_IN_TEXT: Final = re.compile(_HINT)
_IN_BYTES: Final = re.compile(_HINT.encode())
_OPAQUE: Final = frozenset({"example", "examples", "enum", "const", "default"})
_NAMES: Final = frozenset(
    [
        "properties",
        "patternProperties",
        "$defs",
        "definitions",
        "dependentSchemas",
        "schemas",
        "responses",
        "parameters",
        "headers",
        "requestBodies",
        "paths",
        "content",
        "encoding",
        "securitySchemes",
        "pathItems",
        "callbacks",
        "links",
    ]
)
"""Keys whose values map names to things: a property may be called `default`."""

Fetch = Callable[[str], bytes]
"""Gives the document at a URL, of any thread but the event loop's. Raises ImportFailed."""
_Spot = tuple[str, ...]


class _Ref(NamedTuple):
    node: dict[str, Any]
    base: str
    home: str
    spot: _Spot


def whole(
    root: dict[str, Any], source: Any, *, url: str | None, file: Path | None, fetch: Fetch | None = None
) -> tuple[dict[str, Any], list[Diagnostic]]:
    """`root` with every reference a pointer into it, and what could not be read. `source` is what it was read from;
    without `fetch`, no other URL is.

    Raises ImportFailed when the files are more than are read.
    """
    if isinstance(source, (str, bytes)):
        found = _IN_TEXT.search(source) if isinstance(source, str) else _IN_BYTES.search(source)
        if found is None or not _foreign(root):
            return root, []
    elif _foreign(root):
        # The caller's data stays as it is.
        root = deepcopy(root)
    else:
        return root, []
    return _Bundle(root, url, file, fetch).done()


def _foreign(root: Any) -> bool:
    """Whether there is something to do in the document."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            ref = node.get("$ref")
            named = node.get("$id") or node.get("$anchor") or node.get("$dynamicAnchor")
            if (isinstance(ref, str) and not ref.startswith("#/")) or isinstance(named, str):
                return True
            stack.extend(value for value in node.values() if isinstance(value, (dict, list)))
        else:
            stack.extend(value for value in node if isinstance(value, (dict, list)))
    return False


class _Bundle:
    def __init__(self, root: dict[str, Any], url: str | None, file: Path | None, fetch: Fetch | None) -> None:
        self._root = root
        self._fetch = fetch if url is not None else None
        self._folder = file.parent.resolve() if file is not None else None
        self._home = url or _FOLDER + quote(file.name if file is not None else "openapi.json")
        self._places: dict[str, _Spot] = {self._home: ()}
        self._anchors: dict[tuple[str, str], _Spot] = {}
        self._files: dict[str, Any] = {}
        self._bytes = 0
        self._refs: list[_Ref] = []
        self._told: dict[str, Diagnostic] = {}

    def done(self) -> tuple[dict[str, Any], list[Diagnostic]]:
        self._walk(self._root, self._home, ())
        waiting = 0
        while waiting < len(self._refs):
            # Files that are read now may hold references of their own.
            ref = self._refs[waiting]
            waiting += 1
            self._load(urldefrag(urljoin(ref.base, ref.node["$ref"]))[0], ref.spot)
        if self._files:
            self._root[FILES] = self._files
        for ref in self._refs:
            found = self._target(ref)
            if found is not None:
                ref.node["$ref"] = found
        return self._root, list(self._told.values())

    def _walk(self, root: Any, home: str, spot: _Spot) -> None:
        """Note the references, the ids and the anchors of one file; `spot` is where it stands."""
        stack: list[tuple[Any, str, _Spot, bool]] = [(root, home, spot, False)]
        while stack:
            node, base, at, named = stack.pop()
            if isinstance(node, list):
                stack.extend((one, base, (*at, str(index)), False) for index, one in enumerate(node))
            elif isinstance(node, dict):
                base = base if named else self._marked(node, base, home, at)
                for key, value in node.items():
                    if isinstance(value, (dict, list)) and (named or not (key in _OPAQUE or key.startswith("x-"))):
                        stack.append((value, base, (*at, key), not named and key in _NAMES))

    def _marked(self, node: dict[str, Any], base: str, home: str, at: _Spot) -> str:
        if isinstance(node.get("$id"), str):
            base = urldefrag(urljoin(base, node["$id"]))[0]
            self._places.setdefault(base, at)
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(key), str):
                self._anchors.setdefault((base, node[key]), at)
        if isinstance(node.get("$ref"), str):
            self._refs.append(_Ref(node, base, home, at))
        return base

    def _load(self, uri: str, spot: _Spot) -> None:
        """Read what `uri` names, if it is a file of this document's folder, or of its origin."""
        in_folder = uri.startswith("https://document.invalid/")
        if uri in self._places or uri in self._told or (self._folder if in_folder else self._fetch) is None:
            return
        name = unquote(uri.removeprefix(_FOLDER)) if in_folder else uri
        self._places[uri] = (FILES, name)
        try:
            if in_folder and (not uri.startswith(_FOLDER) or ".." in name.split("/")):
                raise _Unread("it is not in the folder of the document")
            self._files[name] = self._parsed(self._read(name) if in_folder else self._fetched(uri))
        except _Unread as e:
            del self._places[uri]
            where, what = reader.pointer(*spot), "the file " if in_folder else ""
            self._told[uri] = Diagnostic(where, f"{what}{name[:200]!r} is not read: {e}")
            return
        self._walk(self._files[name], uri, (FILES, name))

    def _fetched(self, uri: str) -> bytes:
        assert self._fetch is not None
        if _origin(uri) != _origin(self._home):
            raise _Unread("it is not of the origin that the document came from")
        if len(self._files) >= MAX_FETCHED:
            raise ImportFailed(f"The document refers to more than {MAX_FETCHED} others.")
        try:
            return self._fetch(uri)
        except ImportFailed as e:
            raise _Unread(e.message.rstrip(".")) from None

    def _read(self, name: str) -> bytes:
        assert self._folder is not None
        if not name.lower().endswith(_SUFFIXES) or any(part.startswith(".") for part in name.split("/")):
            raise _Unread("it is not a JSON or YAML file")
        try:
            path = (self._folder / name).resolve()
            if not path.is_relative_to(self._folder) or not path.is_file():
                raise _Unread("there is no such file in the folder of the document")
            return path.read_bytes()
        except (OSError, ValueError):
            raise _Unread("it cannot be read") from None

    def _parsed(self, data: bytes) -> Any:
        self._bytes += len(data)
        if len(self._files) >= MAX_FILES or self._bytes > MAX_BYTES:
            raise ImportFailed(f"The document has more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB of them.")
        try:
            return reader.parsed(data)
        except ImportFailed as e:
            raise _Unread(e.message.rstrip(".")) from None

    def _target(self, ref: _Ref) -> str | None:
        """The pointer that takes the place of a reference, None where it leads to nothing known."""
        text: str = ref.node["$ref"]
        uri, fragment = urldefrag(urljoin(ref.base, text))
        spot = self._places.get(uri)
        if spot is None:
            return None
        if fragment and not fragment.startswith("/"):
            spot, fragment = self._anchors.get((uri, unquote(fragment))), ""
            return reader.pointer(*spot) if spot is not None else None
        found = reader.pointer(*spot) + fragment
        if ref.base != ref.home and not self._leads(found) and text.startswith("#/"):
            # Many who give a schema an $id still write references from the root of the document.
            return reader.pointer(*self._places[ref.home]) + text[1:]
        return found

    def _leads(self, ref: str) -> bool:
        node: Any = self._root
        for step in _steps(ref):
            if isinstance(node, Mapping) and step in node:
                node = node[step]
            elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
                node = node[int(step)]
            else:
                return False
        return True


def _origin(url: str) -> tuple[str, str]:
    """Scheme and authority, which two URLs of one origin spell alike: a port that goes without saying is not said."""
    parts = urlsplit(url)
    scheme, authority = parts.scheme.lower(), parts.netloc.lower()
    return scheme, authority.removesuffix({"http": ":80", "https": ":443"}.get(scheme, " "))


class _Unread(Exception):
    """Raised when a file is not read; the message says why."""


def _steps(ref: str) -> Iterator[str]:
    for step in unquote(ref[1:]).split("/")[1:]:
        yield step.replace("~1", "/").replace("~0", "~")
