"""The cache of compiled code believes only what it wrote itself, for exactly this guest, engine and machine."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog
import wasmtime
from structlog.testing import LogCapture

from bridge.wire.errors import ConfigError
from runtime.engine import interpreter, modules, sealed, settings
from runtime.engine.compiled import Compiled
from runtime.engine.modules import ModuleCache

WASM = bytes(wasmtime.wat2wasm('(module (func (export "f") (result i32) (i32.const 7)))'))
OTHER = bytes(wasmtime.wat2wasm('(module (func (export "f") (result i32) (i32.const 8)))'))


class Compiler:
    """Stands in for the compiling process; counts, and gives code that names what it was made from."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, wasm: bytes, mode: settings.Mode = "fibers") -> bytes:
        self.runs += 1
        return b"native code of " + wasm + mode.encode()


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    compiler = Compiler()
    monkeypatch.setattr(modules, "compile_apart", compiler)
    return compiler


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[MutableMapping[str, Any]]:
    """Every line that the cache logs, whatever has configured logging in this process."""
    lines = LogCapture()
    monkeypatch.setattr(sealed, "_log", structlog.wrap_logger(None, processors=[lines]))
    return lines.entries


def cache(tmp_path: Path) -> ModuleCache:
    return ModuleCache(tmp_path / "cache" / "compiled", tmp_path / "config" / "cache.key")


def entry(tmp_path: Path) -> Path:
    [path] = (tmp_path / "cache" / "compiled").glob("*.cwasm")
    return path


def test_what_was_compiled_once_is_found_again(tmp_path: Path, compiler: Compiler) -> None:
    first = cache(tmp_path).compiled(WASM)
    assert cache(tmp_path).compiled(WASM) == first == compiler(WASM)
    assert compiler.runs == 2


def test_another_guest_and_other_settings_are_compiled_apart(tmp_path: Path, compiler: Compiler) -> None:
    codes = {cache(tmp_path).compiled(WASM), cache(tmp_path).compiled(OTHER), cache(tmp_path).compiled(WASM, "calls")}
    assert len(codes) == compiler.runs == 3


def test_a_changed_setting_is_another_entry(
    tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine itself accepts code that was compiled for another wasm stack."""
    cache(tmp_path).compiled(WASM)
    monkeypatch.setattr(settings, "WASM_STACK", settings.WASM_STACK // 2)
    cache(tmp_path).compiled(WASM)
    assert compiler.runs == 2


def test_another_engine_or_processor_is_another_entry(
    tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache(tmp_path).compiled(WASM)
    monkeypatch.setattr(modules, "_library_hash", lambda: "another library")
    cache(tmp_path).compiled(WASM)
    monkeypatch.setattr(modules, "_processor", lambda: "another processor")
    cache(tmp_path).compiled(WASM)
    assert compiler.runs == 3


def test_every_flipped_bit_is_refused_and_the_module_is_compiled_again(
    tmp_path: Path, compiler: Compiler, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PER-08."""
    structlog.reset_defaults()  # whatever a door in this process has configured
    monkeypatch.setattr(sealed, "_log", structlog.get_logger())
    code = cache(tmp_path).compiled(WASM)
    path = entry(tmp_path)
    whole = path.read_bytes()
    places = random.Random(8)
    for count in range(1, 301):
        flipped = bytearray(whole)
        bit = places.randrange(len(whole) * 8)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert cache(tmp_path).compiled(WASM) == code
        assert compiler.runs == count + 1
        assert path.read_bytes() == whole
    assert "compiled_module_refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [lambda whole: b"", lambda whole: whole[:20], lambda whole: whole[:-1], lambda whole: whole + b"\0"],
    ids=["emptied", "cut to its head", "cut by a byte", "longer by a byte"],
)
def test_an_entry_of_another_length_is_refused(tmp_path: Path, compiler: Compiler, change: object) -> None:
    """PER-10."""
    code = cache(tmp_path).compiled(WASM)
    path = entry(tmp_path)
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    assert cache(tmp_path).compiled(WASM) == code
    assert compiler.runs == 2


def test_an_entry_put_in_the_place_of_another_is_refused(tmp_path: Path, compiler: Compiler) -> None:
    """PER-10: a genuine entry, for another guest."""
    code = cache(tmp_path).compiled(WASM)
    path = entry(tmp_path)
    cache(tmp_path).compiled(OTHER)
    [other] = set((tmp_path / "cache" / "compiled").glob("*.cwasm")) - {path}
    path.write_bytes(other.read_bytes())
    assert cache(tmp_path).compiled(WASM) == code
    assert compiler.runs == 3


def _flip(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)


def _without_mac(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:8] + bytes(32) + path.read_bytes()[40:])


def _behind_link(path: Path) -> None:
    path.symlink_to(path.rename(path.with_suffix(".genuine")))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "spoil",
    [
        _flip,
        _without_mac,
        _behind_link,
        _folder,
        _pipe,
        lambda path: path.chmod(0o666),
        lambda path: os.truncate(path, 9),
    ],
    ids=["flipped", "empty MAC", "link", "folder", "pipe", "open to others", "short MAC"],
)
def test_a_spoilt_entry_is_refused_said_once_and_made_anew(
    tmp_path: Path, compiler: Compiler, told: list[MutableMapping[str, Any]], spoil: Callable[[Path], None]
) -> None:
    """PER-08, PER-10."""
    code = cache(tmp_path).compiled(WASM)
    path = entry(tmp_path)
    spoil(path)
    assert cache(tmp_path).compiled(WASM) == code == cache(tmp_path).compiled(WASM)
    assert compiler.runs == 2
    assert [(line["event"], line["entry"]) for line in told] == [("compiled_module_refused", path.name)]
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600


def test_an_entry_of_another_user_is_refused(
    tmp_path: Path, compiler: Compiler, told: list[MutableMapping[str, Any]]
) -> None:
    """PER-11: only root can give a file away, and only root is refused one that it may read."""
    if os.geteuid() != 0:
        return
    code = cache(tmp_path).compiled(WASM)
    os.chown(entry(tmp_path), 65534, 65534)
    assert cache(tmp_path).compiled(WASM) == code
    assert (compiler.runs, [line["event"] for line in told]) == (2, ["compiled_module_refused"])
    assert entry(tmp_path).stat().st_uid == 0


def test_a_folder_that_cannot_be_trusted_is_said_once_for_all_images(
    tmp_path: Path, compiler: Compiler, told: list[MutableMapping[str, Any]]
) -> None:
    """PER-11."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "compiled").symlink_to(tmp_path / "elsewhere")
    here = cache(tmp_path)
    for wasm in (WASM, OTHER):
        here.compiled(wasm)
    assert [line["event"] for line in told] == ["module_cache_unusable"]
    assert not list((tmp_path / "elsewhere").iterdir())


def test_changing_a_file_after_it_was_loaded_changes_nothing(tmp_path: Path) -> None:
    """PER-10: the engine gets bytes, so that there is no file behind running code."""
    code = Compiled.unpacked(cache(tmp_path).compiled(WASM)).code
    engine = settings.engine()
    module = wasmtime.Module.deserialize(engine, code)
    entry(tmp_path).write_bytes(b"\xcc" * 5000)
    store = wasmtime.Store(engine)
    store.set_fuel(1000)
    call = wasmtime.Instance(store, module, []).exports(store)["f"]
    assert isinstance(call, wasmtime.Func)
    assert call(store) == 7


def test_another_key_finds_nothing_and_spoils_nothing(tmp_path: Path, compiler: Compiler) -> None:
    here, there = cache(tmp_path), ModuleCache(tmp_path / "cache" / "compiled", tmp_path / "elsewhere" / "cache.key")
    for each in (here, there, here, there):
        each.compiled(WASM)
    assert compiler.runs == 2


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o701], ids=oct)
def test_a_folder_that_others_may_enter_is_not_used(tmp_path: Path, compiler: Compiler, mode: int) -> None:
    """PER-11."""
    cache(tmp_path).compiled(WASM)
    (tmp_path / "cache" / "compiled").chmod(mode)
    cache(tmp_path).compiled(WASM)
    assert compiler.runs == 2


def test_a_folder_behind_a_link_is_not_used(tmp_path: Path, compiler: Compiler) -> None:
    """PER-11."""
    cache(tmp_path).compiled(WASM)
    folder = tmp_path / "cache" / "compiled"
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    cache(tmp_path).compiled(WASM)
    assert compiler.runs == 2


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PER-11."""
    cache(tmp_path).compiled(WASM)
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    cache(tmp_path).compiled(WASM)
    assert compiler.runs == 2


def test_an_entry_behind_a_link_is_not_followed(tmp_path: Path, compiler: Compiler) -> None:
    cache(tmp_path).compiled(WASM)
    path = entry(tmp_path)
    genuine = path.rename(tmp_path / "genuine")
    path.symlink_to(genuine)
    cache(tmp_path).compiled(WASM)
    assert compiler.runs == 2
    assert not path.is_symlink()


def test_a_place_that_cannot_be_written_costs_time_and_nothing_else(tmp_path: Path, compiler: Compiler) -> None:
    (tmp_path / "cache").write_text("in the way")
    assert cache(tmp_path).compiled(WASM) == cache(tmp_path).compiled(WASM)
    assert compiler.runs == 2


def test_folder_and_key_are_private_and_apart(tmp_path: Path, compiler: Compiler) -> None:
    cache(tmp_path).compiled(WASM)
    key = tmp_path / "config" / "cache.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "cache" / "compiled").stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(tmp_path).stat().st_mode) == 0o600
    assert key.read_bytes() not in entry(tmp_path).read_bytes()


@pytest.mark.parametrize("spoil", [lambda key: key.chmod(0o644), lambda key: key.write_bytes(b"short")])
def test_a_key_that_others_know_or_that_is_none_is_not_used(tmp_path: Path, compiler: Compiler, spoil: object) -> None:
    cache(tmp_path).compiled(WASM)
    spoil(tmp_path / "config" / "cache.key")  # type: ignore[operator]
    cache(tmp_path).compiled(WASM)
    assert compiler.runs == 2


def test_the_folders_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTOR_CACHE_DIR", str(tmp_path / "c"))
    monkeypatch.setenv("EXECUTOR_CONFIG_DIR", str(tmp_path / "k"))
    ModuleCache().compiled(WASM)
    assert (tmp_path / "k" / "cache.key").exists()
    assert list((tmp_path / "c" / "compiled").glob("*.cwasm"))


def test_old_entries_make_room(tmp_path: Path, compiler: Compiler) -> None:
    for number in range(20):
        cache(tmp_path).compiled(WASM + bytes([0, 2, 1, number]))
    assert len(list((tmp_path / "cache" / "compiled").iterdir())) == 16


def test_the_compiling_process_gives_code_for_this_engine() -> None:
    code = Compiled.unpacked(modules.compile_apart(WASM)).code
    module = wasmtime.Module.deserialize(settings.engine(), code)
    assert [export.name for export in module.exports] == ["f"]


def test_what_does_not_compile_is_named() -> None:
    with pytest.raises(ConfigError, match="not compiled"):
        modules.compile_apart(b"\0asm\x01\0\0\0 nonsense")


def test_a_fresh_interpreter_inherits_nothing(tmp_path: Path) -> None:
    command = interpreter.finding("runtime.engine.compiler", "sys.argv[2]", "fibers")
    assert command[1:4] == ["-I", "-S", "-B"]
    probe = [*command[:5], "import sys, os; print(len(os.environ), len(sys.path), 'site' in sys.modules)"]
    environment = {"PYTHONPATH": str(tmp_path), "SECRET": "cnry_1"}
    listed = subprocess.run(probe, capture_output=True, text=True, env={}, cwd="/", check=True)
    given = subprocess.run(probe, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
    assert listed.stdout.split()[1:] == given.stdout.split()[1:]
    assert listed.stdout.split()[2] == "False"
    assert sys.executable == command[0]


def test_a_worker_is_sent_its_code_and_can_import_nothing_else_of_ours() -> None:
    command = interpreter.sent("runtime.worker.lockdown", "0", "value")
    arguments = [each.replace("main(0)", PROBE).replace("import main", "import level") for each in command]
    reading, writing = os.pipe()
    with subprocess.Popen([*arguments, str(reading)], pass_fds=[reading], env={}, cwd="/", stdout=-1) as process:
        os.close(reading)
        with open(writing, "wb") as stream:
            stream.write(interpreter.code())
        said = process.communicate()[0].decode().split()
    assert said == ["refused"] * 4 + ["value", "process"]
    assert process.returncode == 0


PROBE = """
import importlib
for name in ("executor", "catalog", "runtime.store", "bridge.egress"):
    try:
        importlib.import_module(name)
    except ImportError:
        print("refused")
print(sys.argv[2], level([]))
"""


def box(tmp_path: Path, *, entries: int = 3, most: int = 1 << 20) -> sealed.Sealed:
    return sealed.Sealed(
        "made", ".made", b"MADE", entries=entries, most_bytes=most, folder=tmp_path / "made", key_file=tmp_path / "k"
    )


def test_what_is_used_outlives_what_is_not(tmp_path: Path) -> None:
    made = box(tmp_path)
    for number, name in enumerate((b"old", b"used", b"new")):
        made.put(name, name * 2)
        for path in (tmp_path / "made").iterdir():
            # Each is older than the next, by a clock that does not have to go on.
            os.utime(path, (1000 + number, 1000 + number)) if path.stat().st_mtime > 1e6 else None
    assert made.get(b"old") == b"oldold"
    made.put(b"more", b"")
    assert [made.get(name) for name in (b"old", b"used", b"new", b"more")] == [b"oldold", None, b"newnew", b""]


def test_entries_have_a_bound_in_bytes_and_the_newest_is_kept_whatever_its_size(tmp_path: Path) -> None:
    made = box(tmp_path, entries=100, most=1000)
    made.put(b"a", b"x" * 300)
    made.put(b"b", b"x" * 300)
    assert made.get(b"a") is not None
    made.put(b"c", b"x" * 5000)
    assert [made.get(name) is not None for name in (b"a", b"b", b"c")] == [False, False, True]


def test_a_full_disk_costs_time_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = box(tmp_path)
    made.put(b"a", b"1")

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sealed, "_write_new", full)
    made.put(b"b", b"2")
    assert (made.get(b"a"), made.get(b"b")) == (b"1", None)


def test_a_folder_in_the_place_of_an_entry_makes_room_for_it(tmp_path: Path) -> None:
    made = box(tmp_path)
    made.put(b"a", b"1")
    [path] = (tmp_path / "made").iterdir()
    path.unlink()
    path.mkdir()
    assert made.get(b"a") is None
    made.put(b"a", b"2")
    assert made.get(b"a") == b"2"


@pytest.mark.parametrize("mode", [0o622, 0o602, 0o620], ids=oct)
def test_an_entry_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    """PER-11."""
    made = box(tmp_path)
    made.put(b"a", b"1")
    [path] = (tmp_path / "made").iterdir()
    path.chmod(mode)
    assert made.get(b"a") is None
    path.chmod(0o600)
    assert made.get(b"a") == b"1"
