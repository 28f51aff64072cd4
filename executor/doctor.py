"""What this machine and this home give: each part is really tried, not looked up.

A check never raises and changes nothing but the caches that any start would fill.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib.metadata
import os
import platform
import resource
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from bridge.wire.errors import ExecutorError

Status = Literal["ok", "warn", "fail"]

LAYERS: Final[dict[str, str]] = {
    "process": "a process of its own",
    "rlimits": "limits on memory, files and processes",
    "no_new_privs": "no privileges to be gained",
    "uid": "an unprivileged user",
    "landlock": "no files and no network, by Landlock",
    "seccomp": "only the system calls that it needs",
}
_WITHOUT: Final[dict[str, str]] = {
    "uid": "only root can give a worker another user; as an ordinary user it keeps yours",
    "landlock": "Linux 5.13 or newer, with landlock among the kernel's security modules",
    "seccomp": "a kernel built with seccomp filters, on x86-64 or aarch64",
}
_LANDLOCK_CREATE_RULESET: Final = 444
_LANDLOCK_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `hint` says what to do about a `warn` or `fail`."""

    name: str
    status: Status
    detail: str
    hint: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


async def examine(home: Path) -> AsyncIterator[Check]:
    """Every check, in order, as it is made."""
    steps: list[Callable[[], Awaitable[list[Check]]]] = [
        _in_thread(_python),
        _in_thread(_engine),
        _in_thread(_images),
        _in_thread(_kernel),
        _isolation,
        _in_thread(_caches),
        lambda: _home(home),
        _in_thread(_key_files),
        _in_thread(_descriptors),
    ]
    for step in steps:
        for check in await step():
            yield check


def _in_thread(step: Callable[[], list[Check]]) -> Callable[[], Awaitable[list[Check]]]:
    return lambda: asyncio.to_thread(step)


def _python() -> list[Check]:
    return [Check("python", "ok", f"{platform.python_version()} on {platform.machine()}")]


def _engine() -> list[Check]:
    try:
        return [Check("engine", "ok", f"wasmtime {importlib.metadata.version('wasmtime')}")]
    except importlib.metadata.PackageNotFoundError:
        return [Check("engine", "fail", "wasmtime is not installed", "install Executor again")]


def _images() -> list[Check]:
    from guest import images

    checks = []
    there = images.built()
    optional = [name for name in images.optional_builders() if there is not None and name in there.images]
    for name in [*images.builders(), *optional]:
        try:
            image = images.load(name)
        except images.ImageUnavailable as e:
            checks.append(Check(f"image {name}", "fail", str(e).partition("; ")[0], "executor images build"))
        else:
            facts = f"{len(image.wasm) / 2**20:.2f} MiB, sha256 {image.sha256[:16]}…, as its manifest says"
            checks.append(Check(f"image {name}", "ok", facts))
    checks.extend(
        Check(f"image {name}", "ok", f"not built yet: the first use does it, or `executor images build {name}`")
        for name in images.optional_builders()
        if name not in optional
    )
    return checks


def _kernel() -> list[Check]:
    libc = ctypes.CDLL(None, use_errno=True)
    abi = libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)
    landlock = f"Landlock ABI {abi}" if abi > 0 else "no Landlock"
    filters = "seccomp filters" if Path("/proc/sys/kernel/seccomp/actions_avail").exists() else "no seccomp filters"
    status: Status = "ok" if abi > 0 and filters == "seccomp filters" else "warn"
    hint = None if status == "ok" else "workers have fewer walls here; see isolation below"
    return [Check("kernel", status, f"{platform.system()} {platform.release()}: {landlock}, {filters}", hint)]


async def _isolation() -> list[Check]:
    """Start a worker as a server would, run a script in it, and see which walls stand."""
    from executor.config import Config
    from executor.executor import Executor

    began = time.perf_counter()
    try:
        config = Config.load().model_copy(update={"workers": 1, "require": "process"})
        async with Executor.open(None, config=config) as executor:
            ready = time.perf_counter()
            answer = await executor.run("1 + 1")
            took = (time.perf_counter() - ready) * 1000
            facts = executor.health()["isolation"]
    except ExecutorError as e:
        return [Check("worker", "fail", e.message, e.hint)]
    if answer.result != 2:
        return [Check("worker", "fail", f"1 + 1 gave {answer.result!r} ({answer.status})", "please report this")]
    checks = [Check("worker", "ok", f"started in {ready - began:.2f} s, ran 1 + 1 in {took:.1f} ms")]
    strong = facts["level"] == "full"
    checks.append(
        Check(
            "isolation",
            "ok" if strong else "warn",
            facts["level"],
            None if strong else "`executor serve --allow-weak-isolation` starts all the same",
        )
    )
    for layer, meaning in LAYERS.items():
        if layer in facts["layers"]:
            checks.append(Check(f"  {layer}", "ok", meaning))
        else:
            checks.append(Check(f"  {layer}", "warn", f"missing: {meaning}", _WITHOUT.get(layer)))
    if facts.get("mode", "fibers") != "fibers":
        checks.append(Check("engine mode", "warn", "without fibers: everything works, only slower", None))
    return checks


def _caches() -> list[Check]:
    from guest.images import cache_dir

    folder = cache_dir() / "compiled"
    if not folder.is_dir():
        return [Check("cache", "warn", "compiled images are not kept: every start compiles", f"make {folder} writable")]
    mode = stat.S_IMODE(folder.lstat().st_mode)
    if mode & 0o077:
        return [Check("cache", "fail", f"{folder} is open to others ({mode:03o})", f"chmod 700 {folder}")]
    entries = list(folder.glob("*.cwasm"))
    return [Check("cache", "ok", f"{len(entries)} compiled images, private, each under its own MAC")]


async def _home(home: Path) -> list[Check]:
    from executor.config import Config
    from runtime.store.sqlite import Database
    from runtime.store.store import FILE

    checks = await asyncio.to_thread(_folder, home)
    if not home.is_dir() or any(check.status == "fail" for check in checks):  # noqa: ASYNC240
        return checks
    try:
        Config.load(home)
        database = await Database.open(home / FILE)
        await database.close()
    except ExecutorError as e:
        return [*checks, Check("store", "fail", e.message, e.hint)]
    return [*checks, Check("store", "ok", "whole")]


def _folder(home: Path) -> list[Check]:
    from runtime.store.home import HomeLock

    if not home.exists():
        return [Check("home", "ok", f"{home} will be made")]
    if not os.access(home, os.W_OK | os.X_OK):
        return [Check("home", "fail", f"{home} is not writable", "choose another --home")]
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & 0o077:
        return [Check("home", "warn", f"{home} is open to others ({mode:03o})", f"chmod 700 {home}")]
    try:
        HomeLock(home).release()
    except ExecutorError as e:
        return [Check("home", "ok", e.message)]
    return [Check("home", "ok", f"{home}, for your eyes only")]


def _key_files() -> list[Check]:
    from runtime.engine.modules import config_dir

    folder = config_dir()
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    elsewhere = os.environ.get("EXECUTOR_KEY_FILE")
    if elsewhere:
        files.append(Path(elsewhere))
    open_to_others = [str(path) for path in files if path.is_file() and stat.S_IMODE(path.lstat().st_mode) & 0o077]
    if open_to_others:
        names = " ".join(open_to_others)
        return [Check("key files", "fail", f"others can read {names}", f"chmod 600 {names}")]
    if not files:
        return [Check("key files", "ok", f"{folder} will be made")]
    return [Check("key files", "ok", ", ".join(sorted({str(path.parent) for path in files})) + ", for your eyes only")]


def _descriptors() -> list[Check]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    best = max(soft, min(hard, 4096) if hard != resource.RLIM_INFINITY else 4096)
    if best < 512:
        return [Check("open files", "warn", f"{best} at most", "raise it with ulimit -n: it bounds connections")]
    return [Check("open files", "ok", f"{best} at most")]
