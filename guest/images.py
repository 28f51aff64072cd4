"""Guest images: built from pinned packages, kept by the hash of what they are built from, loaded by name.

`build` is what the wheel's build hook and `executor images build` both call. `load` finds an image in the installed
wheel first, then in the cache, and verifies its SHA-256 against the manifest beside it.

Images come in sets, each built, kept and found by itself: `javascript`, which everything needs; `python`, which takes
minutes where the first takes seconds, and which a machine may not be able to build; and `node`, the engine of the first
with npm packages' surroundings, which is built when a package is first run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import platformdirs

from guest import toolchain
from guest.context import BuildContext, Progress

ROOT: Final = Path(__file__).parent
_MANIFEST: Final = "manifest.json"
_NOT_INPUTS: Final = frozenset({"images", "__pycache__", "hatch_build.py"})
_SUFFIXES: Final = frozenset({".py", ".c", ".h", ".js", ".lock", ".json", ".txt", ".wit"})


class ImageUnavailable(RuntimeError):
    """Raised when an image is not built yet, or its bytes are not those that its manifest names."""


@dataclass(frozen=True)
class Image:
    """A guest module: `wasm` is core WebAssembly without imports, `sha256` the hash of exactly these bytes."""

    name: str
    wasm: bytes
    sha256: str


@dataclass(frozen=True)
class Entry:
    """One image of a manifest; `inputs` maps what it was built from to versions and hashes."""

    file: str
    sha256: str
    size: int
    inputs: dict[str, str]


@dataclass(frozen=True)
class Manifest:
    """What one build made. `key` is the hash of everything that it was made from, `folder` where it lies."""

    key: str
    images: dict[str, Entry]
    folder: Path

    def as_dict(self) -> dict[str, Any]:
        return {"key": self.key, "images": {name: asdict(entry) for name, entry in self.images.items()}}


Builder = Callable[[BuildContext], bytes]


def builders() -> dict[str, Builder]:
    """The images that are always there, by name, with the function that makes each."""
    from guest.javascript.image import build_javascript
    from guest.javascript.typescript import build_typescript

    return {"javascript": build_javascript, "typescript": build_typescript}


def optional_builders() -> dict[str, Builder]:
    """The images that are built when they are asked for."""
    from guest.node.image import build_node
    from guest.python.image import build_python

    return {"python": build_python, "node": build_node}


SETS: Final = ("javascript", "node", "python")
_BASES: Final[dict[str, frozenset[str]]] = {"node": frozenset({"javascript"})}
"""The sets whose files another one is made of too."""


def _set_of(name: str) -> str:
    return name if name in SETS else "javascript"


def _builders_of(which: str) -> dict[str, Builder]:
    return builders() if which == "javascript" else {which: optional_builders()[which]}


def cache_dir() -> Path:
    """Where builds, downloads and tools are kept: EXECUTOR_CACHE_DIR, else the user's cache folder."""
    override = os.environ.get("EXECUTOR_CACHE_DIR")
    return Path(override) if override else Path(platformdirs.user_cache_dir("executor"))


@cache
def build_key(which: str = "javascript") -> str:
    """The hash of every file that has a part in a set of images, and of their names."""
    digest = hashlib.sha256()
    others = _NOT_INPUTS | (set(SETS) - {which} - _BASES.get(which, frozenset()))
    for path in sorted(ROOT.rglob("*")):
        relative = path.relative_to(ROOT)
        if path.suffix in _SUFFIXES and not others & set(relative.parts):
            digest.update(relative.as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def build(
    target_dir: Path | None = None,
    progress: Progress = lambda line: None,
    *,
    sets: Iterable[str] = ("javascript",),
) -> Manifest:
    """Build the images of `sets` that are not in the cache yet, and copy them to `target_dir` when it is given.

    The manifest names them all; its key and folder are those of the first set. Two processes may build at once: each
    fills a folder of its own and the first to finish gives it its name. Raises BuildFailed or MalformedModule when an
    image cannot be built.
    """
    made = [_built(which, progress) for which in sets]
    if target_dir is not None:
        _copy(made, target_dir)
    return Manifest(made[0].key, {n: entry for one in made for n, entry in one.images.items()}, made[0].folder)


def _built(which: str, progress: Progress) -> Manifest:
    home = cache_dir() / "images"
    home.mkdir(parents=True, exist_ok=True)
    folder = home / build_key(which)
    if not (folder / _MANIFEST).exists():
        with toolchain.staged(folder) as stage:
            _fill(stage, which, progress)
    return read_manifest(folder)


def _fill(stage: Path, which: str, progress: Progress) -> None:
    entries: dict[str, Entry] = {}
    for name, builder in _builders_of(which).items():
        context = BuildContext(cache_dir(), lambda line, name=name: progress(f"{name}: {line}"))  # type: ignore[misc]
        wasm = builder(context)
        file = f"{name}.wasm"
        (stage / file).write_bytes(wasm)
        entries[name] = Entry(file, hashlib.sha256(wasm).hexdigest(), len(wasm), context.inputs)
        progress(f"{name}: {len(wasm)} bytes, sha256 {entries[name].sha256}")
    _write_manifest(stage, Manifest(build_key(which), entries, stage))


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    text = json.dumps(manifest.as_dict(), indent=2, sort_keys=True) + "\n"
    toolchain.write_atomically(folder / _MANIFEST, text.encode())


def gathered(made: Collection[Manifest], target: Path) -> Manifest:
    """The images of several builds copied to `target`, under one manifest."""
    _copy(made, target)
    return read_manifest(target)


def _copy(made: Collection[Manifest], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    entries: dict[str, Entry] = {}
    for manifest in made:
        for name, entry in manifest.images.items():
            toolchain.write_atomically(target / entry.file, (manifest.folder / entry.file).read_bytes())
            entries[name] = entry
    _write_manifest(target, Manifest("+".join(manifest.key for manifest in made), entries, target))


def read_manifest(folder: Path) -> Manifest:
    """The manifest in `folder`. Raises ImageUnavailable when there is none that can be read."""
    try:
        facts = json.loads((folder / _MANIFEST).read_text())
        entries = {name: Entry(**entry) for name, entry in facts["images"].items()}
        return Manifest(facts["key"], entries, folder)
    except FileNotFoundError:
        raise ImageUnavailable("the guest images are not built; run `executor images build`") from None
    except (ValueError, KeyError, TypeError) as e:
        raise ImageUnavailable("the manifest of the guest images cannot be read; build them again") from e


def built() -> Manifest | None:
    """Every image that is there, in one manifest; None when there is none."""
    folders = [ROOT / "images", *(cache_dir() / "images" / build_key(which) for which in SETS)]
    found = [read_manifest(folder) for folder in folders if (folder / _MANIFEST).exists()]
    if not found:
        return None
    entries = {name: entry for one in reversed(found) for name, entry in one.images.items()}
    return Manifest("+".join(one.key for one in found), entries, found[0].folder)


def _find(name: str) -> tuple[Path, Entry]:
    packaged = ROOT / "images"
    folders = [packaged] if (packaged / _MANIFEST).exists() else []
    for folder in [*folders, cache_dir() / "images" / build_key(_set_of(name))]:
        try:
            entry = read_manifest(folder).images.get(name)
        except ImageUnavailable:
            if name not in {**builders(), **optional_builders()}:
                break
            raise
        if entry is not None:
            return folder, entry
    raise ImageUnavailable(f"there is no image named {name}")


def load(name: str) -> Image:
    """The image `name` of the installed wheel or of the cache, its SHA-256 verified.

    Raises ImageUnavailable when it is in neither, or when its bytes have changed.
    """
    folder, entry = _find(name)
    try:
        wasm = (folder / entry.file).read_bytes()
    except FileNotFoundError:
        raise ImageUnavailable(f"the image {name} is missing; run `executor images build`") from None
    if hashlib.sha256(wasm).hexdigest() != entry.sha256:
        raise ImageUnavailable(f"the image {name} is not the one that its manifest names; build it again")
    return Image(name, wasm, entry.sha256)
