"""What the TypeScript image is built from is the pinned package, and nothing that differs from it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from guest import images, npm, toolchain, wasm
from guest.javascript import typescript


def archive(files: dict[str, bytes]) -> bytes:
    """A package as npm packs it, with a link in it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        link = tarfile.TarInfo("package/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return out.getvalue()


def test_the_integrity_of_an_archive_is_npms_own_notation() -> None:
    empty = "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
    assert npm.integrity(b"") == empty


def test_only_plain_files_of_an_archive_are_read() -> None:
    found = npm.members(archive({"package/a.js": b"1", "../../b.js": b"2"}))
    assert found == {"package/a.js": b"1", "../../b.js": b"2"}


def test_an_archive_with_another_hash_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pack(command: list[object], **options: object) -> None:
        folder = Path(str(command[command.index("--pack-destination") + 1]))
        (folder / "sucrase.tgz").write_bytes(archive({"package/a.js": b"1"}))

    monkeypatch.setattr(toolchain, "run", pack)
    with pytest.raises(toolchain.BuildFailed, match="not the one in"):
        npm.package("sucrase", tmp_path)
    assert not (tmp_path / "sources").exists()


def test_a_kept_archive_that_was_changed_is_fetched_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = toolchain.lock()["sucrase"]["version"]
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / f"sucrase-{version}.tgz").write_bytes(b"changed")
    asked: list[object] = []

    def pack(command: list[object], **options: object) -> None:
        asked.extend(command)
        raise toolchain.BuildFailed("asked")

    monkeypatch.setattr(toolchain, "run", pack)
    with pytest.raises(toolchain.BuildFailed, match="asked"):
        npm.package("sucrase", tmp_path)
    assert f"sucrase@{version}" in asked


def test_a_parser_that_is_not_the_expected_one_stops_the_build() -> None:
    images.build()
    package = npm.package("sucrase", images.cache_dir())
    typescript.bundle(package, "")
    name = "package/dist/esm/parser/traverser/statement.js"
    with pytest.raises(ValueError, match="is found"):
        typescript.bundle({**package, name: package[name].replace(b"match(tt.at)", b"matches(tt.at)", 1)}, "")
    with pytest.raises(KeyError):
        typescript.bundle({key: body for key, body in package.items() if key != name}, "")


def test_the_image_has_no_imports_and_exports_stripping_alone() -> None:
    images.build()
    parts = {part.id: part.body for part in wasm.sections(images.load("typescript").wasm)}
    assert wasm.IMPORT not in parts
    names = {export.name for export in wasm.exports(parts[wasm.EXPORT])}
    assert names == {"memory", "__stack_pointer", "io", "alloc", "dealloc", "strip"}
