"""From a name and a spec to a lock whose archives are here, and from a lock to its files."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import anyio
import anyio.to_thread
import structlog

from bridge.client import Client
from bridge.egress import Gate
from bridge.npm.registry import Registry, spec_of
from bridge.npm.rules import Rules
from bridge.npm.settings import NpmSettings
from bridge.npm.store import PackageStore
from bridge.wire.errors import ConfigError, PackageUnavailable
from catalog.kinds.npm import integrity, resolve
from catalog.kinds.npm.archive import read_archive
from catalog.kinds.npm.limits import PACKAGE_JSON
from catalog.kinds.npm.manifest import NODE, Manifest
from catalog.kinds.npm.specs import Spec, parse
from catalog.kinds.npm.tree import FOLDER, FORMAT, Lock, Locked, PackageTree

_PARALLEL: Final = 12
_HELD: Final = 512
_log = structlog.get_logger("executor.npm")

Progress = Callable[[str], None]
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Installer:
    """Installs packages; nothing of them is ever run here. Close it when done.

    Callers who ask for the same at the same time share one install, which goes on when one of them goes away.
    """

    def __init__(self, settings: NpmSettings, client: Client, gate: Gate, *, progress: Progress | None = None) -> None:
        """Raises ConfigError for settings that cannot be used."""
        self._settings = settings
        self._rules = Rules(settings.allow, settings.deny)
        self._registry = Registry(client, gate, settings, self._rules) if settings.registry is not None else None
        if settings.folder is None:
            raise ConfigError("There is no folder for npm packages.")
        self._store = PackageStore(settings.folder, settings.cache_bytes)
        self._progress = progress or (lambda line: None)
        self._installs: dict[tuple[str, str], asyncio.Task[Lock]] = {}
        self._locks: OrderedDict[str, Lock] = OrderedDict()
        self._downloads: dict[str, asyncio.Task[str]] = {}
        origin = None if self._registry is None else str(self._registry.url)
        terms = [FORMAT, NODE, origin, settings.min_age_s, settings.sha1]
        self._terms = hashlib.sha256(json.dumps(terms).encode()).hexdigest()
        self._origin = origin or ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End what is under way. Safe to call again."""
        tasks = [*self._installs.values(), *self._downloads.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def lock(self, name: str, text: str = "latest") -> Lock:
        """What `name` at `text` (a version, a range or a tag) is, with every archive of it in the store.

        An exact version that was installed before is what it was then, and needs no registry. Raises
        PackageUnavailable.
        """
        spec = spec_of(name, text)
        self._rules.check_asked(name)
        known = await self._known(spec) if spec.kind == "version" else None
        if known is None:
            known = await self._shared(self._installs, (name, spec.text), lambda: self._install(spec))
        self._check(known)
        return known

    async def tree(self, lock: Lock) -> PackageTree:
        """The files of `lock`. What is no longer in the store is fetched again. Raises PackageUnavailable."""
        self._check(lock)
        files: dict[str, bytes] = {}
        places = {one.at for one in lock.packages}
        limit = self._settings.limits.tree_bytes
        for one in lock.packages:
            data = await anyio.to_thread.run_sync(self._store.archive, one.integrity)
            if data is None:
                data = await self._again(one)
            content = await anyio.to_thread.run_sync(read_archive, data, self._settings.limits)
            for path, body in content.items():
                full = f"{one.at}/{path}"
                if _owner(full, one.at, places) == one.at:
                    files[full] = body
                    limit -= len(body)
            if limit < 0:
                raise PackageUnavailable(
                    f"{lock.name}@{lock.version} unpacks to more than {self._settings.limits.tree_bytes} bytes.",
                    reason="too_large",
                )
        return PackageTree(lock, files)

    async def _known(self, spec: Spec) -> Lock | None:
        """What an exact version was resolved to before; what it needs that has gone is fetched when it is read."""
        label = str(spec)
        lock = self._locks.get(label)
        if lock is None:
            lock = await anyio.to_thread.run_sync(self._stored, spec)
            self._hold(label, lock)
        return lock

    def _hold(self, label: str, lock: Lock | None) -> None:
        if lock is not None:
            self._locks[label] = lock
            while len(self._locks) > _HELD:
                self._locks.popitem(last=False)

    def _stored(self, spec: Spec) -> Lock | None:
        lock = self._store.lock(str(spec), self._terms)
        if lock is None or not all(self._store.has_archive(one.integrity) for one in lock.packages):
            return None
        return lock

    def _check(self, lock: Lock) -> None:
        self._rules.check_resolved(lock.name, lock.version, [(one.name, one.version) for one in lock.packages])

    async def _shared(
        self, under_way: dict[_Key, asyncio.Task[_Value]], key: _Key, work: Callable[[], Coroutine[Any, Any, _Value]]
    ) -> _Value:
        task = under_way.get(key)
        if task is None:
            task = under_way[key] = asyncio.get_running_loop().create_task(work())
            task.add_done_callback(lambda done: _forget(under_way, key, done))
        return await asyncio.shield(task)

    async def _install(self, spec: Spec) -> Lock:
        try:
            with anyio.fail_after(self._settings.timeout_s):
                return await self._installed(spec)
        except TimeoutError:
            raise PackageUnavailable(
                f"{spec} was not installed within {self._settings.timeout_s:g} s.", reason="unreachable"
            ) from None

    async def _installed(self, spec: Spec) -> Lock:
        exact = await self._exact(spec)
        known = await self._known(exact)
        if known is not None:
            return known
        self._progress(f"resolving {exact}")
        manifests = await resolve.resolve(exact, self._asked(), self._settings.limits)
        self._rules.check_resolved(spec.name, exact.text, [(one.name, one.version) for one in manifests.values()])
        unique = {one.label: one for one in manifests.values()}
        self._progress(f"fetching {len(unique)} packages of {exact}")
        locked = await self._archives(unique)
        packages = [Locked(at, one.name, one.version, locked[one.label]) for at, one in manifests.items()]
        lock = Lock(exact.name, exact.text, tuple(packages))
        await anyio.to_thread.run_sync(self._store.put_lock, lock, self._terms)
        self._hold(str(exact), lock)
        _log.info("package_installed", package=str(exact), packages=len(packages), digest=lock.digest)
        return lock

    async def _exact(self, spec: Spec) -> Spec:
        """The version that `spec` leads to; when the registry does not answer, the one that it led to before."""
        if spec.kind == "version":
            return spec
        try:
            version = (await self._asked().manifest(spec)).version
        except PackageUnavailable as e:
            before = await anyio.to_thread.run_sync(self._store.led_to, str(spec), self._terms)
            if e.reason != "unreachable" or before is None:
                raise
            _log.warning("registry_unreachable", package=str(spec), used=before, reason=e.message[:300])
            version = before
        else:
            await anyio.to_thread.run_sync(self._store.put_led_to, str(spec), self._terms, version)
        return parse(spec.name, version, asked=True)

    def _asked(self) -> Registry:
        if self._registry is None:
            raise PackageUnavailable(
                "There is no npm registry to install from.", hint="Set npm_registry in the configuration to its URL."
            )
        return self._registry

    async def _archives(self, unique: Mapping[str, Manifest]) -> dict[str, str]:
        """The integrity of every package, its archive checked and in the store."""
        found: dict[str, str] = {}
        failures: list[PackageUnavailable] = []
        places = anyio.Semaphore(_PARALLEL)

        async def one(manifest: Manifest) -> None:
            async with places:
                if failures:
                    return
                try:
                    found[manifest.label] = await self._shared(
                        self._downloads, manifest.label, lambda: self._download(manifest)
                    )
                except PackageUnavailable as e:
                    failures.append(e)

        async with anyio.create_task_group() as group:
            for manifest in unique.values():
                group.start_soon(one, manifest)
        if failures:
            raise failures[0]
        return found

    async def _download(self, manifest: Manifest) -> str:
        pinned = await anyio.to_thread.run_sync(self._store.pinned, manifest.label, self._origin)
        if pinned is not None:
            self._check_pin(manifest, pinned)
            if await anyio.to_thread.run_sync(self._store.archive, pinned) is not None:
                return pinned
        data = await self._asked().archive(manifest)
        return await anyio.to_thread.run_sync(self._keep, manifest, data)

    def _check_pin(self, manifest: Manifest, pinned: str) -> None:
        """The registry may not say something else of a version than it did when it was first installed."""
        claim = integrity.stated(manifest.dist)
        if claim is not None and claim[0] == "sha512" and all(integrity.text_of(one) != pinned for one in claim[1]):
            raise _changed(manifest.label)

    def _keep(self, manifest: Manifest, data: bytes) -> str:
        integrity.check(manifest.label, data, manifest.dist, sha1=self._settings.sha1)
        self._check_content(manifest, data)
        kept = self._store.put_archive(data)
        if self._store.pin(manifest.label, self._origin, kept) != kept:
            raise _changed(manifest.label)
        return kept

    def _check_content(self, manifest: Manifest, data: bytes) -> None:
        """Raises PackageUnavailable for an archive that is none, or that is another package's."""
        try:
            content = read_archive(data, self._settings.limits)
        except PackageUnavailable as e:
            message = f"The archive of {manifest.label} is refused: {e.message}."
            raise PackageUnavailable(message, reason=e.reason) from None
        check_package(manifest.label, manifest.name, content)

    async def _again(self, one: Locked) -> bytes:
        """Fetch what a lock names and the store no longer has. It must be the same bytes."""
        label = f"{one.name}@{one.version}"
        manifest = await self._asked().manifest(parse(one.name, one.version))
        data = await self._asked().archive(manifest)
        if integrity.integrity_of(data) != one.integrity:
            raise _changed(label)
        await anyio.to_thread.run_sync(self._store.put_archive, data)
        return data


def check_package(label: str, name: str, content: Mapping[str, bytes]) -> None:
    """Raises PackageUnavailable unless `content` has a `package.json` that names this package.

    Its version is the registry's to say: some were published with another one in the file.
    """
    data = content.get("package.json")
    if data is None:
        raise PackageUnavailable(f"The archive of {label} is refused: it has no package.json.")
    try:
        facts: Any = json.loads(data.removeprefix(b"\xef\xbb\xbf")) if len(data) <= PACKAGE_JSON else None
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise PackageUnavailable(f"The archive of {label} is refused: its package.json is not a JSON object.")
    if facts.get("name") != name:
        raise PackageUnavailable(f"The archive of {label} is refused: its package.json is another package's.")


def _changed(label: str) -> PackageUnavailable:
    return PackageUnavailable(
        f"{label} is not what it was when it was first installed here.",
        reason="integrity",
        hint="A published version never changes: somebody has replaced it.",
    )


def _owner(path: str, at: str, places: set[str]) -> str:
    """The package whose place `path` is in, of those at `places`: what one carries in the place of another is not
    taken."""
    index = path.find(f"/{FOLDER}/", len(at))
    while index != -1:
        start = index + len(FOLDER) + 2
        parts = path[start:].split("/")
        nested = path[:start] + "/".join(parts[: 2 if parts[0].startswith("@") else 1])
        if nested in places:
            return nested
        index = path.find(f"/{FOLDER}/", start)
    return at


def _forget(under_way: dict[_Key, asyncio.Task[_Value]], key: _Key, task: asyncio.Task[_Value]) -> None:
    del under_way[key]
    if not task.cancelled():
        task.exception()  # whoever waited has it; nobody may be left to
