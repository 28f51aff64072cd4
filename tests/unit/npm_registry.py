"""A real npm registry on loopback, with the packages that it is given, and an installer in front of it."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bridge.client import Client
from bridge.egress import Gate
from bridge.npm.installer import Installer
from bridge.npm.settings import NpmSettings
from bridge.wire.errors import PackageUnavailable
from catalog.kinds.npm.integrity import integrity_of
from tests.unit.upstream import Upstream, response, upstream

Files = Mapping[str, bytes | str]


def packed(files: Files, *, name: str = "demo", version: str = "1.0.0", **facts: Any) -> bytes:
    """An archive as `npm pack` makes it; without a package.json among `files`, one with `facts`."""
    all_files: dict[str, bytes | str] = {"package.json": json.dumps({"name": name, "version": version} | facts)}
    return tarball([entry(f"package/{path}", text) for path, text in (all_files | dict(files)).items()])


def entry(path: str, text: bytes | str = b"", **facts: Any) -> tuple[tarfile.TarInfo, bytes]:
    data = text.encode() if isinstance(text, str) else text
    info = tarfile.TarInfo(path)
    info.size = len(data)
    for key, value in facts.items():
        setattr(info, key, value)
    return info, data


def tarball(entries: list[tuple[tarfile.TarInfo, bytes]], format: int = tarfile.PAX_FORMAT) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=format) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), 6, mtime=0)


@dataclass
class Shelf:
    """What the registry has. `publish` adds a version; `server.seen` is what was asked for."""

    server: Upstream
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.server.base

    def publish(
        self,
        name: str,
        version: str = "1.0.0",
        files: Files | None = None,
        *,
        archive: bytes | None = None,
        dist: dict[str, Any] | None = None,
        tags: tuple[str, ...] = ("latest",),
        published: str = "2020-01-01T00:00:00.000Z",
        **facts: Any,
    ) -> bytes:
        """`dist` None: the truth; `facts` are of its package.json, such as `dependencies`."""
        data = packed(files or {"index.js": "export default 1"}, name=name, version=version, **facts)
        data = data if archive is None else archive
        path = f"/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
        told = {"tarball": f"{self.url}{path}", "integrity": integrity_of(data)} if dist is None else dist
        manifest = {"name": name, "version": version, "dist": told} | facts
        document = self.documents.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}, "time": {}})
        document["versions"][version] = manifest
        document["time"][version] = published
        document["dist-tags"].update(dict.fromkeys(tags, version))
        self.server.answers[path] = response(data, headers={"content-type": "application/octet-stream"})
        self.say(name, document)
        self.say(f"{name}/{version}", manifest)
        return data

    def say(self, what: str, body: Any, **more: Any) -> None:
        """Answer `body` when the registry is asked about `what`."""
        self.server.answers["/" + what.replace("/", "%2f", 1) if what.startswith("@") else f"/{what}"] = response(
            body, **more
        )

    def asked(self, part: str) -> int:
        """How many requests had `part` in their target."""
        return sum(part in seen.target for seen in self.server.seen)


@asynccontextmanager
async def registry() -> AsyncIterator[Shelf]:
    async with upstream() as server:
        server.answers["*"] = response({"error": "Not found"}, status=404)
        yield Shelf(server)


@asynccontextmanager
async def installer(shelf: Shelf | str, folder: Path, **settings: Any) -> AsyncIterator[Installer]:
    client = Client()
    url = shelf if isinstance(shelf, str) else shelf.url
    gate = Gate.configured(settings.pop("egress_allow", None), ())
    try:
        async with Installer(NpmSettings(registry=url, folder=folder, **settings), client, gate) as one:
            yield one
    finally:
        await client.close()


@contextmanager
def quick(monkeypatch: Any) -> Iterator[list[float]]:
    """No wait is waited for; the list has how long each would have been."""
    waits: list[float] = []

    async def passed(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("bridge.npm.registry.pause", passed)
    yield waits


async def refused(shelf: Shelf, folder: Path, name: str, spec: str = "latest", **settings: Any) -> PackageUnavailable:
    async with installer(shelf, folder, **settings) as npm:
        with pytest.raises(PackageUnavailable) as caught:
            await npm.lock(name, spec)
    return caught.value
