"""The tools and sources that images are built from: fetched by the ordinary package client, pinned in images.lock."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent
TARGET: Final = (
    "-target",
    "wasm32-wasi",
    # exactly these features, so that the engine can run with everything optional off
    "-mcpu=mvp+bulk_memory+mutable_globals+sign_ext+nontrapping_fptoint",
)
COMPILE: Final = (
    *("-O3", "-DNDEBUG", "-D_GNU_SOURCE", "-fno-strict-aliasing", "-fwrapv", "-fno-sanitize=all"),
    *("-ffile-prefix-map=.=.", "-g0"),
)

LINK: Final = ("-O3", "-mexec-model=reactor", "-Wl,--strip-all", "-Wl,--gc-sections")
"""What decides how the compiler makes its C library; the rest of a link's flags does not."""

_INCLUDE: Final = re.compile(rb'^\s*#\s*(?:include|embed)\s+"([^"]+)"', re.MULTILINE)


class BuildFailed(RuntimeError):
    """Raised when an image cannot be built; the message holds the end of the tool's own words."""


def lock() -> dict[str, Any]:
    return tomllib.loads((ROOT / "images.lock").read_text())


def run(command: Sequence[str | Path], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    """Run a tool. Raises BuildFailed with the end of what it printed when it fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        raise BuildFailed(f"{Path(command[0]).name} failed:\n{(done.stdout + done.stderr)[-4000:]}")


def pip(*arguments: str | Path) -> None:
    if importlib.util.find_spec("pip") is None:
        raise BuildFailed("building the images needs pip in this Python")
    run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments])


def source_archive(package: str, cache: Path) -> bytes:
    """The source archive of a locked package. Raises BuildFailed when its SHA-256 is not the locked one."""
    entry = lock()[package]
    kept = cache / "sources" / f"{package}-{entry['version']}.tar.gz"
    if kept.exists() and _matches(data := kept.read_bytes(), entry["sdist_sha256"]):
        return data
    with tempfile.TemporaryDirectory() as folder:
        pip(
            *("download", "--quiet", "--no-binary", ":all:", "--no-deps", "--dest", folder),
            f"{package}=={entry['version']}",
        )
        data = next(Path(folder).iterdir()).read_bytes()
    if not _matches(data, entry["sdist_sha256"]):
        raise BuildFailed(f"the source archive of {package} is not the one in images.lock")
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(kept, data)
    return data


def _matches(data: bytes, sha256: str) -> bool:
    return hashlib.sha256(data).hexdigest() == sha256


def write_atomically(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    os.replace(file.name, path)


def members(archive: bytes, folder: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each plain file directly in `folder` of a source archive; nothing is written to disk."""
    with tempfile.TemporaryFile() as file:
        file.write(archive)
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:gz") as tar:
            for member in tar:
                parts = member.name.split("/")
                if member.isfile() and len(parts) == 3 and parts[1] == folder:
                    body = tar.extractfile(member)
                    assert body is not None
                    yield parts[2], body.read()


def zig(cache: Path) -> Path:
    """The pinned compiler: this environment's own when it is the pinned one, else a private copy in the cache."""
    version = lock()["ziglang"]["version"]
    try:
        distribution = importlib.metadata.distribution("ziglang")
        own = Path(str(distribution.locate_file("ziglang/zig")))
        if distribution.version == version and own.exists():
            return own
    except importlib.metadata.PackageNotFoundError:
        pass
    home = cache / "tools" / f"ziglang-{version}"
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with staged(home) as stage:
            pip("install", "--quiet", "--no-deps", "--no-compile", "--target", stage, f"ziglang=={version}")
    return home / "ziglang" / "zig"


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A folder to fill that becomes `target` at once when it is full; of two builders the later one's is dropped."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".stage-") as parent:
        stage = Path(parent) / "stage"
        stage.mkdir()
        yield stage
        try:
            stage.rename(target)
        except OSError:
            if not target.is_dir():
                raise


class Compiler:
    """Compiles C for the guest. Objects are kept by the hash of everything that goes into them."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.zig = zig(cache)
        self.env = {
            **{key: os.environ[key] for key in ("PATH", "TMPDIR", "SYSTEMROOT") if key in os.environ},
            "ZIG_GLOBAL_CACHE_DIR": str(cache / "zig"),
            "ZIG_LOCAL_CACHE_DIR": str(cache / "zig"),
            "HOME": str(cache),
        }
        (cache / "objects").mkdir(parents=True, exist_ok=True)

    def compile(self, folder: Path, sources: Sequence[str], *flags: str) -> list[Path]:
        """Compile files of `folder` side by side, the largest first."""
        order = sorted(sources, key=lambda name: -sum(len(part) for part in _with_includes(folder, name).values()))
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            library = pool.submit(self._library)
            made = dict(zip(order, pool.map(lambda name: self._object(folder, name, flags), order), strict=True))
        library.result()
        return [made[name] for name in sources]

    def _library(self) -> None:
        """The compiler makes its C library at the first link and keeps it; that takes as long as the engine does."""
        mark = self.cache / "zig" / f"library-{lock()['ziglang']['version']}"
        if mark.exists():
            return
        with tempfile.TemporaryDirectory(dir=self.cache) as stage:
            (Path(stage) / "empty.c").write_text("int nothing(void) { return 0; }\n")
            run([self.zig, "cc", *TARGET, *LINK, "empty.c", "-o", "empty.wasm"], cwd=Path(stage), env=self.env)
        mark.touch()

    def _object(self, folder: Path, name: str, flags: Sequence[str]) -> Path:
        command = [*TARGET, *COMPILE, *flags]
        key = hashlib.sha256(repr((command, lock()["ziglang"], name)).encode())
        for part, body in sorted(_with_includes(folder, name).items()):
            key.update(part.encode() + b"\0" + hashlib.sha256(body).digest())
        kept = self.cache / "objects" / f"{key.hexdigest()}.o"
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=self.cache / "objects") as stage:
                out = Path(stage) / "out.o"
                run([self.zig, "cc", *command, "-c", name, "-o", out], cwd=folder, env=self.env)
                os.replace(out, kept)
        return kept

    def link(self, objects: Sequence[Path], *, stack_bytes: int, max_memory: int) -> bytes:
        """The reactor module of `objects`; nothing of it is optional but what its exports need."""
        with tempfile.TemporaryDirectory(dir=self.cache) as stage:
            out = Path(stage) / "out.wasm"
            wanted = (
                *(f"-Wl,-z,stack-size={stack_bytes}", f"-Wl,--max-memory={max_memory}"),
                "-Wl,--export=__stack_pointer",
            )
            run([self.zig, "cc", *TARGET, *LINK, *wanted, *objects, "-o", out], cwd=Path(stage), env=self.env)
            return out.read_bytes()


def _with_includes(folder: Path, name: str) -> dict[str, bytes]:
    """The file and every file of `folder` that it includes or embeds, by name."""
    found: dict[str, bytes] = {}
    wanted = [name]
    while wanted:
        part = wanted.pop()
        path = folder / part
        if part in found or not path.exists():
            continue
        found[part] = path.read_bytes()
        wanted += [include.decode() for include in _INCLUDE.findall(found[part])]
    return found
