"""Compiled modules, kept between starts. They are native code: whoever changes one runs code in every worker.

So an entry is bytes under an HMAC over a header and the code. The header names everything the code was made from and
for: the guest, the engine's release and the hash of its library, the target, every setting. An entry is read once,
verified, and only then handed on, as bytes; the engine never sees a path. What does not verify is logged and compiled
again. The key is in the configuration folder, never beside what it vouches for.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import importlib.metadata
import json
import os
import platform
import secrets
import stat
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

import platformdirs
import structlog
from wasmtime import _ffi

from bridge.wire.errors import ConfigError
from guest.images import cache_dir
from runtime.engine import interpreter, settings
from runtime.engine.settings import Mode

_log = structlog.get_logger("executor.engine")

_MAGIC: Final = b"EXCWASM1"
_MAC: Final = 32
_LENGTH: Final = struct.Struct(">I")
_COMPILE_S: Final = 600
_KEPT: Final = 32


def config_dir() -> Path:
    """EXECUTOR_CONFIG_DIR, else the user's configuration folder."""
    override = os.environ.get("EXECUTOR_CONFIG_DIR")
    return Path(override) if override else Path(platformdirs.user_config_dir("executor"))


class ModuleCache:
    """Compiled code by what it is compiled from. Where the folders cannot be trusted, everything is compiled anew."""

    def __init__(self, folder: Path | None = None, key_file: Path | None = None) -> None:
        self._folder = folder if folder is not None else cache_dir() / "compiled"
        self._key_file = key_file if key_file is not None else config_dir() / "cache.key"
        self._told = False

    def compiled(self, wasm: bytes, mode: Mode = "fibers") -> bytes:
        """Native code of `wasm` for this machine, from the cache when it is there and whole.

        Raises ConfigError when the module does not compile.
        """
        header = _header(wasm, mode)
        key = self._key() if self._private() else None
        if key is None:
            return compile_apart(wasm, mode)
        # The name depends on the key, so that two configurations do not undo each other's entries.
        path = self._folder / f"{hmac.digest(key, b'name' + header, 'sha256').hex()}.cwasm"
        code = _verified(path, key, header)
        if code is None:
            code = compile_apart(wasm, mode)
            self._keep(path, key, header, code)
        return code

    def _private(self) -> bool:
        """Whether the folder is ours alone; made when it is missing."""
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            found = self._folder.lstat()
        except OSError as e:
            self._tell(type(e).__name__)
            return False
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            self._tell("the folder is a link, or open to other users")
            return False
        return True

    def _key(self) -> bytes | None:
        try:
            return _read_key(self._key_file) or _make_key(self._key_file)
        except OSError as e:
            self._tell(f"{self._key_file.name}: {_said(e)}")
            return None

    def _tell(self, reason: str) -> None:
        """Once, although each image asks."""
        if not self._told:
            _log.warning("module_cache_unusable", reason=reason, hint="images are compiled at every start until then")
        self._told = True

    def _keep(self, path: Path, key: bytes, header: bytes, code: bytes) -> None:
        mac = hmac.digest(key, _signed(header) + code, "sha256")
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            _write_new(fresh, _MAGIC + mac + _signed(header) + code)
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            fresh.replace(path)
            self._prune()
        except OSError as e:
            fresh.unlink(missing_ok=True)
            _log.warning("module_not_cached", reason=type(e).__name__)

    def _prune(self) -> None:
        """Keep the newest entries: each build of a guest leaves some behind."""
        entries = sorted(self._folder.glob("*.cwasm"), key=lambda entry: entry.stat().st_mtime, reverse=True)
        for entry in entries[_KEPT:]:
            entry.unlink(missing_ok=True)


def compile_apart(wasm: bytes, mode: Mode = "fibers") -> bytes:
    """Compile in a process of its own. Raises ConfigError when the module does not compile."""
    command = interpreter.finding("runtime.engine.compiler", "sys.argv[2]", mode)
    try:
        done = subprocess.run(
            command, input=wasm, capture_output=True, env={}, cwd="/", timeout=_COMPILE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise ConfigError(f"the compiler of guest images did not run: {type(e).__name__}") from e
    if done.returncode != 0 or not done.stdout:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit {done.returncode}"]
        raise ConfigError(f"a guest image was not compiled: {reason[0][:300]}")
    return done.stdout


def _header(wasm: bytes, mode: Mode) -> bytes:
    facts = {
        "guest": hashlib.sha256(wasm).hexdigest(),
        "wasmtime": importlib.metadata.version("wasmtime"),
        "library": _library_hash(),
        "target": [sys.platform, platform.machine(), _processor()],
        "settings": settings.described(mode),
    }
    return json.dumps(facts, sort_keys=True).encode()


@cache
def _library_hash() -> str:
    """Of the engine's native library: the package's version does not tell which release is inside."""
    return hashlib.sha256(Path(_ffi.filename).read_bytes()).hexdigest()


@cache
def _processor() -> str:
    """The processor's features, which the compiler makes use of: a cache may travel with a disk."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(" ".join(sorted(features.split(":", 1)[-1].split())).encode()).hexdigest()


def _signed(header: bytes) -> bytes:
    return _LENGTH.pack(len(header)) + header


def _verified(path: Path, key: bytes, header: bytes) -> bytes | None:
    """The code in an entry, None when there is no entry or it is not exactly what was stored for this header."""
    try:
        stored = _read(path)
    except FileNotFoundError:
        return None
    except OSError as e:
        _log.warning("compiled_module_refused", entry=path.name, reason=_said(e))
        return None
    start = len(_MAGIC) + _MAC
    mac, rest = stored[len(_MAGIC) : start], stored[start:]
    prefix = _signed(header)
    genuine = hmac.compare_digest(mac, hmac.digest(key, rest, "sha256"))
    if not genuine or not stored.startswith(_MAGIC) or not rest.startswith(prefix):
        _log.warning("compiled_module_refused", entry=path.name, reason="its bytes are not those that were stored")
        return None
    return rest[len(prefix) :]


def _read(path: Path) -> bytes:
    """The bytes of a regular file that nobody but its owner, this user, may write. Raises PermissionError for others.

    A pipe in its place is not waited for.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except OSError as e:
        if e.errno == errno.ELOOP:
            raise PermissionError("it is a link") from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise PermissionError("it is no regular file")
    with open(descriptor, "rb") as file:
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
            raise PermissionError("it is another user's, or others may write to it")
        return file.read()


def _said(error: OSError) -> str:
    return str(error) if error.errno is None else type(error).__name__


def _write_new(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)


def _read_key(path: Path) -> bytes | None:
    try:
        key = _read(path)
        found = path.lstat()
    except FileNotFoundError:
        return None
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError("it must be this user's alone, mode 0600; remove it, and a new one is made")
    if len(key) != _MAC:
        what = "is empty" if not key else f"has {len(key)} bytes, not {_MAC}"
        raise PermissionError(f"it {what}, so it is no key; remove it, and a new one is made")
    return key


def _make_key(path: Path) -> bytes:
    """A new key; where another process made one first, that one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    _write_new(fresh, secrets.token_bytes(_MAC))
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    key = _read_key(path)
    if key is None:
        raise FileNotFoundError("the key of the module cache has gone")
    return key
