# ruff: noqa: E501 (a row of a table is read across)
"""Building, keeping, verifying and loading the guest images; the snapshot pass and the engine's patches."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import wasmtime
from guest_host import engine, module

from guest import images, snapshot, toolchain, wasm
from guest.images import ImageUnavailable
from guest.javascript import image as javascript
from guest.javascript.patches import PATCHES, PatchFailed, patch

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built() -> images.Manifest:
    return images.build()


@pytest.fixture
def elsewhere(built: images.Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own that holds the images already."""
    folder = tmp_path / "images" / built.key
    folder.parent.mkdir()
    shutil.copytree(built.folder, folder)
    monkeypatch.setenv("EXECUTOR_CACHE_DIR", str(tmp_path))
    return folder


def test_the_manifest_names_each_image_with_hash_size_and_inputs(built: images.Manifest) -> None:
    facts = json.loads((built.folder / "manifest.json").read_text())
    entry = facts["images"]["javascript"]
    data = (built.folder / entry["file"]).read_bytes()
    assert entry["size"] == len(data)
    assert entry["sha256"] == images.load("javascript").sha256
    assert entry["inputs"]["quickjs-ng"].startswith("0.17.0.2 sha256:")
    assert entry["inputs"]["ziglang"]
    assert facts["key"] == images.build_key()


def test_the_image_imports_nothing_and_exports_the_protocol(built: images.Manifest) -> None:
    compiled = module()
    assert compiled.imports == []
    assert {export.name for export in compiled.exports} == javascript.EXPORTS


def test_the_image_may_grow_to_the_ceiling_and_no_further(built: images.Manifest) -> None:
    parts = {part.id: part.body for part in wasm.sections(images.load("javascript").wasm)}
    reader = wasm.Reader(parts[wasm.MEMORY])
    assert [reader.unsigned(), reader.unsigned()] == [1, 1]
    assert reader.unsigned() <= 48
    assert reader.unsigned() == 8192


def test_the_image_needs_no_optional_feature_of_the_engine(built: images.Manifest) -> None:
    config = wasmtime.Config()
    for off in (
        "simd",
        "relaxed_simd",
        "threads",
        "memory64",
        "multi_memory",
        "tail_call",
        "gc",
        "exceptions",
        "function_references",
    ):
        setattr(config, f"wasm_{off}", False)
    wasmtime.Module.validate(wasmtime.Engine(config), images.load("javascript").wasm)


def test_what_the_image_holds_at_rest_is_all_that_it_needs(built: images.Manifest) -> None:
    """No source of the boot code, no stale stack: what is free is zero."""
    store = wasmtime.Store(engine())
    store.set_fuel(10**6)
    exports = wasmtime.Instance(store, module(), []).exports(store)
    memory, pointer = exports["memory"], exports["__stack_pointer"]
    assert isinstance(memory, wasmtime.Memory)
    assert isinstance(pointer, wasmtime.Global)
    data = bytes(memory.read(store, 0, memory.data_len(store)))
    assert not any(data[: pointer.value(store)])
    assert b"The files of this folder are joined" not in data


def test_loading_gives_the_bytes_of_the_manifest(elsewhere: Path) -> None:
    image = images.load("javascript")
    assert image.name == "javascript"
    assert image.wasm == (elsewhere / "javascript.wasm").read_bytes()


def test_one_flipped_bit_is_refused(elsewhere: Path) -> None:
    """PER-14"""
    path = elsewhere / "javascript.wasm"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ImageUnavailable, match="not the one that its manifest names"):
        images.load("javascript")


@pytest.mark.parametrize("damage", ["gone", "no manifest", "not JSON", "other shape"])
def test_what_cannot_be_loaded_says_what_to_do(elsewhere: Path, damage: str) -> None:
    match damage:
        case "gone":
            (elsewhere / "javascript.wasm").unlink()
        case "no manifest":
            (elsewhere / "manifest.json").unlink()
        case "not JSON":
            (elsewhere / "manifest.json").write_text("{")
        case _:
            (elsewhere / "manifest.json").write_text('{"key": "x", "images": {"javascript": {}}}')
    with pytest.raises(ImageUnavailable, match="build"):
        images.load("javascript")


def test_an_image_that_does_not_exist_is_named(elsewhere: Path) -> None:
    with pytest.raises(ImageUnavailable, match="cobol"):
        images.load("cobol")


def test_a_second_build_builds_nothing(elsewhere: Path) -> None:
    lines: list[str] = []
    assert images.build(progress=lines.append).folder == elsewhere
    assert lines == []


def test_a_build_copies_to_a_target(elsewhere: Path, tmp_path: Path) -> None:
    target = tmp_path / "wheel"
    images.build(target)
    assert (target / "javascript.wasm").read_bytes() == (elsewhere / "javascript.wasm").read_bytes()
    assert json.loads((target / "manifest.json").read_text())["images"]["javascript"]


def test_of_two_builders_the_later_one_finds_the_others_work(tmp_path: Path) -> None:
    target = tmp_path / "out"
    met = threading.Barrier(2)

    def fill(text: str) -> None:
        with toolchain.staged(target) as stage:
            (stage / "file").write_text(text)
            met.wait()

    threads = [threading.Thread(target=fill, args=(text,)) for text in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (target / "file").read_text() in ("a", "b")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_source_archive_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*arguments: Any) -> None:
        folder = Path(str(arguments[arguments.index("--dest") + 1]))
        (folder / "quickjs_ng-0.17.0.2.tar.gz").write_bytes(b"something else")

    monkeypatch.setattr(toolchain, "pip", download)
    with pytest.raises(toolchain.BuildFailed, match=r"not the one in images\.lock"):
        toolchain.source_archive("quickjs-ng", tmp_path)
    assert not (tmp_path / "sources").exists()


def test_a_kept_archive_that_was_changed_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "sources" / "quickjs-ng-0.17.0.2.tar.gz"
    kept.parent.mkdir()
    kept.write_bytes(b"tampered")
    asked: list[Any] = []

    def download(*arguments: Any) -> None:
        asked.append(arguments)
        shutil.copy(images.cache_dir() / "sources" / kept.name, str(arguments[arguments.index("--dest") + 1]))

    images.build()
    monkeypatch.setattr(toolchain, "pip", download)
    assert toolchain.source_archive("quickjs-ng", tmp_path) == kept.read_bytes()
    assert len(asked) == 1


def test_every_patch_applies_exactly_once_and_another_source_is_refused() -> None:
    archive = toolchain.source_archive("quickjs-ng", images.cache_dir())
    source = dict(toolchain.members(archive, toolchain.lock()["quickjs-ng"]["folder"]))["quickjs.c"].decode()
    patched = patch("quickjs.c", source)
    assert all(new in patched for _, new in PATCHES["quickjs.c"])
    with pytest.raises(PatchFailed, match="0 times"):
        patch("quickjs.c", patched)
    with pytest.raises(PatchFailed, match="2 times"):
        patch("quickjs.c", source + PATCHES["quickjs.c"][0][0])


def _wat(text: str) -> bytes:
    return bytes(wasmtime.wat2wasm(text))


COUNTER = """(module
  (memory (export "memory") 1)
  (global $sp (export "__stack_pointer") (mut i32) (i32.const 1024))
  (global $n (export "n") (mut i64) (i64.const -5))
  (data (i32.const 2000) "start")
  (func (export "_initialize") (i32.store (i32.const 4096) (i32.const 7)))
  (func (export "alloc") (param i32) (result i32) (drop (memory.grow (i32.const 1))) (i32.const 66000))
  (func (export "dealloc") (param i32))
  (func (export "load") (param i32 i32) (result i32)
    (i32.store8 (i32.const 100) (i32.const 9))
    (i32.store8 (i32.const 131071) (i32.load8_u (local.get 0)))
    (global.set $n (i64.const 1234567890123)) (i32.const 0))
  (func (export "look") (param i32) (result i32) (i32.load8_u (local.get 0))))"""


def test_a_snapshot_begins_where_the_start_up_left_off() -> None:
    store = wasmtime.Store()
    made = snapshot.preinitialise(_wat(COUNTER), [("load", b"\x2a")])
    exports = wasmtime.Instance(store, wasmtime.Module(store.engine, made), []).exports(store)
    look: Any = exports["look"]
    counter: Any = exports["n"]
    assert [look(store, at) for at in (2000, 4096, 131071)] == [ord("s"), 7, 42]
    assert look(store, 100) == 0, "what lies below the stack pointer is dead"
    assert look(store, 66000) == 0, "what was handed in is not kept"
    assert counter.value(store) == 1234567890123
    assert {e.name for e in wasmtime.Module(store.engine, made).exports}.isdisjoint({"_initialize", "load"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('(module (import "a" "b" (func)) (memory (export "memory") 1))', "imports"),
        ('(module (memory (export "memory") 1) (func $f) (start $f))', "start function"),
        ('(module (memory (export "memory") 1) (global (mut i32) (i32.const 1)))', "mutable global 0"),
        ('(module (memory (export "memory") 1) (global (export "g") (mut f64) (f64.const 1)))', "mutable global 0"),
        ('(module (memory (export "memory") 1) (data $d "x") (func (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))))',
         "data segments at run time"),
    ],
)  # fmt: skip
def test_a_snapshot_refuses_what_it_does_not_understand(text: str, why: str) -> None:
    with pytest.raises(wasm.MalformedModule, match=why):
        snapshot.preinitialise(_wat(text), [])


def test_a_start_up_that_fails_says_why() -> None:
    text = COUNTER.replace("(global.set $n (i64.const 1234567890123)) (i32.const 0)", "(i32.const 3)")
    with pytest.raises(RuntimeError, match="load gave 3"):
        snapshot.preinitialise(_wat(text), [("load", b"x")])


def test_a_module_with_an_import_or_a_stray_export_is_no_image() -> None:
    with pytest.raises(wasm.MalformedModule, match="imports"):
        javascript.check(_wat('(module (import "a" "b" (func)) (func (export "x")))'), {"x"})
    with pytest.raises(wasm.MalformedModule, match="exports"):
        javascript.check(_wat('(module (func (export "x")) (func (export "y")))'), {"x"})


@pytest.mark.parametrize("cut", [0, 4, 8, 9, 20, 60])
def test_a_cut_module_is_malformed(cut: int) -> None:
    data = _wat(COUNTER)
    if cut == 8:
        assert wasm.sections(data[:8]) == []
        return
    with pytest.raises(wasm.MalformedModule):
        wasm.sections(data[:cut])


def test_a_module_is_written_as_it_was_read() -> None:
    data = images.load("javascript").wasm
    assert wasm.write(wasm.sections(data)) == data


def test_the_images_can_be_built_without_the_rest_of_the_house() -> None:
    """The wheel's build hook runs where nothing of ours but this package is installed."""
    code = "import sys; from guest import images; images.builders(); print([m for m in sys.modules if m.split('.')[0] in ('bridge', 'catalog', 'runtime', 'executor')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
