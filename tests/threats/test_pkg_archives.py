"""Group PKG of the threat catalogue: what is in an archive, and what becomes of one that is kept."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bridge.npm.store import PackageStore
from bridge.wire.errors import PackageUnavailable
from catalog.kinds.npm.archive import read_archive
from catalog.kinds.npm.integrity import integrity_of
from catalog.kinds.npm.limits import Limits
from tests.unit.npm_registry import entry, installer, packed, refused, registry, tarball

pytestmark = pytest.mark.anyio


CATALOGUE = Limits(packed=5 << 20, unpacked=20 << 20, files=2_000)


def files(folder: Path, kind: str) -> list[Path]:
    return list((folder / kind).glob("*/*"))


def sri(data: bytes, algorithm: str) -> str:
    return f"{algorithm}-{base64.b64encode(hashlib.new(algorithm, data).digest()).decode()}"


async def test_pkg_05_an_archive_is_what_the_registry_states(tmp_path: Path) -> None:
    """PKG-05"""
    other = packed({}, name="other")
    async with registry() as shelf:
        data = shelf.publish("demo")
        address = {"tarball": f"{shelf.url}/demo/-/demo-1.0.0.tgz"}
        sha1 = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        bad: list[dict[str, Any]] = [
            {},
            {"shasum": sha1},
            {"integrity": sri(other, "sha512")},
            {"integrity": sri(data, "sha256") + " " + sri(other, "sha512")},
            {"integrity": "md5-abc", "shasum": sha1},
            {"integrity": "sha512-AAAA", "shasum": sha1},
        ]
        for index, dist in enumerate(bad):
            shelf.publish("demo", dist=address | dist)
            assert (await refused(shelf, tmp_path / str(index), "demo")).reason == "integrity", dist
        good = [sri(data, "sha512"), sri(data, "sha384"), sri(other, "sha512") + " " + sri(data, "sha512")]
        for index, text in enumerate(good):
            shelf.publish("demo", dist=address | {"integrity": text})
            async with installer(shelf, tmp_path / f"good{index}") as npm:
                await npm.lock("demo")
        shelf.publish("demo", dist=address | {"shasum": sha1})
        async with installer(shelf, tmp_path / "sha1", sha1=True) as npm:
            assert (await npm.lock("demo")).packages[0].integrity == integrity_of(data)
        shelf.publish("demo", dist=address | {"shasum": "0" * 40})
        assert (await refused(shelf, tmp_path / "sha1bad", "demo", sha1=True)).reason == "integrity"


async def test_pkg_05_what_a_version_was_at_first_use_it_stays(tmp_path: Path) -> None:
    """PKG-05"""
    async with registry() as shelf:
        shelf.publish("part", files={"index.js": "1"})
        shelf.publish("one", dependencies={"part": "1.0.0"})
        shelf.publish("two", dependencies={"part": "1.0.0"})
        async with installer(shelf, tmp_path) as npm:
            await npm.lock("one")
        shelf.publish("part", files={"index.js": "steal()"})
        assert (await refused(shelf, tmp_path, "two")).reason == "integrity"
        async with installer(shelf, tmp_path) as npm:
            tree = await npm.tree(await npm.lock("one", "1.0.0"))
        assert tree.files["node_modules/part/index.js"] == b"1"


async def test_pkg_05_a_version_that_has_to_be_fetched_again_is_the_one_that_it_was(tmp_path: Path) -> None:
    """PKG-05: also where the registry states another kind of digest now, which cannot be compared with the first."""
    async with registry() as shelf:
        shelf.publish("part", files={"index.js": "1"})
        async with installer(shelf, tmp_path) as npm:
            await npm.lock("part")
        (kept,) = files(tmp_path, "archives")
        kept.unlink()
        other = packed({"index.js": "steal()"}, name="part")
        address = {"tarball": f"{shelf.url}/part/-/part-1.0.0.tgz", "integrity": sri(other, "sha384")}
        shelf.publish("part", files={"index.js": "steal()"}, dist=address)
        shelf.publish("two", dependencies={"part": "1.0.0"})
        assert (await refused(shelf, tmp_path, "two")).reason == "integrity"


def link(kind: bytes, target: str, path: str = "package/x") -> list[tuple[tarfile.TarInfo, bytes]]:
    return [entry("package/package.json", "{}"), entry(path, type=kind, linkname=target)]


HOSTILE: dict[str, bytes] = {
    "dot-dot": tarball([entry("package/../../x", "1")]),
    "dot-dot first": tarball([entry("../x", "1")]),
    "absolute": tarball([entry("/etc/x", "1")]),
    "drive": tarball([entry("C:\\x", "1")]),
    "drive with slash": tarball([entry("C:/x", "1")]),
    "backslash": tarball([entry("package\\..\\..\\x", "1")]),
    "symbolic link": tarball(link(tarfile.SYMTYPE, "/etc")),
    "hard link": tarball(link(tarfile.LNKTYPE, "/etc/passwd")),
    "link, then a file through it": tarball([*link(tarfile.SYMTYPE, "/etc"), entry("package/x/passwd", "root")]),
    "hard link to a deeper link": tarball([*link(tarfile.SYMTYPE, "a/b/c"), *link(tarfile.LNKTYPE, "x", "package/y")]),
    "device": tarball(link(tarfile.CHRTYPE, "")),
    "block device": tarball(link(tarfile.BLKTYPE, "")),
    "fifo": tarball(link(tarfile.FIFOTYPE, "")),
    "beside the package": tarball([entry("package", "1")]),
    "NUL in an extended path": tarball([entry("package/x", "1", pax_headers={"path": "package/a\0b"})]),
    "control character": tarball([entry("package/a\nb", "1")]),
    "case": tarball([entry("package/A.js", "1"), entry("package/a.js", "2")]),
    "spelling": tarball([entry("package/é.js", "1"), entry("package/e\u0301.js", "2")]),
    "file and folder": tarball([entry("package/a", "1"), entry("package/a/b", "2")]),
    "too deep": tarball([entry("package/" + "d/" * 60 + "x", "1")]),
    "too long": tarball([entry("package/" + "x" * 700, "1")]),
    "long name": tarball([entry("package/" + "n" * 5000, "1")], tarfile.GNU_FORMAT),
    "extended header of 1 MiB": tarball([entry("package/x", "1", pax_headers={"comment": "x" * (1 << 20)})]),
    "sparse": tarball(
        [entry("package/x", "1", pax_headers={"GNU.sparse.major": "1", "GNU.sparse.realsize": str(10**10)})]
    ),
    "size of 10 GiB": tarball([entry("package/x", "1", pax_headers={"size": str(10 << 30)})]),
    "size that is none": tarball([entry("package/x", "1", pax_headers={"size": "-1"})]),
    "many files": tarball([entry(f"package/{n}", "") for n in range(2_001)]),
    "no gzip": b"PK\3\4" + bytes(600),
    "no archive": gzip.compress(b"<html>" + bytes(600)),
    "one long file": tarball([entry("package/x", bytes((20 << 20) + 1))]),
    "bomb": gzip.compress(bytes(100 << 20), 9),
    "packed": os.urandom((5 << 20) + 1),
    "thousands of archives in a row": gzip.compress(b"", mtime=0) * 5_000 + tarball([entry("package/x", "1")]),
    "extended headers without end": tarball([entry("package/x", "1", pax_headers={"comment": "x" * 60_000})] * 150),
}


def negative() -> bytes:
    raw = bytearray(gzip.decompress(tarball([entry("package/x", "1")])))
    raw[124:136] = b"\xff" * 12
    raw[148:156] = b"%06o\0 " % (sum(raw[:148]) + 8 * 32 + sum(raw[156:512]))
    return gzip.compress(bytes(raw))


@pytest.mark.parametrize("name", [*HOSTILE, "negative size", "wrong sum"])
def test_pkg_07_an_archive_that_holds_anything_but_plain_files_within_the_package_is_refused(name: str) -> None:
    """PKG-07, PKG-25"""
    data = negative() if name == "negative size" else HOSTILE.get(name)
    if data is None:
        raw = bytearray(gzip.decompress(tarball([entry("package/x", "1")])))
        raw[0] ^= 1
        data = gzip.compress(bytes(raw))
    with pytest.raises(PackageUnavailable):
        read_archive(data, CATALOGUE)


def test_pkg_07_an_archive_cut_anywhere_is_refused_or_has_only_whole_files() -> None:
    """PKG-07"""
    data = packed({"a.js": "a" * 700, "b.js": "b" * 700})
    whole = read_archive(data, CATALOGUE)
    for end in range(0, len(data), 7):
        try:
            part = read_archive(data[:end], CATALOGUE)
        except PackageUnavailable:
            continue
        assert part.items() <= whole.items()


def test_pkg_07_of_one_path_twice_the_last_counts_and_modes_are_not_looked_at() -> None:
    """PKG-07"""
    data = tarball([entry("package/x.js", "1"), entry("package/x.js", "2", mode=0o6777)])
    assert read_archive(data, CATALOGUE) == {"x.js": b"2"}


async def test_pkg_07_a_hostile_archive_leaves_nothing_behind(tmp_path: Path) -> None:
    """PKG-07, PKG-25"""
    async with registry() as shelf:
        for index, data in enumerate(HOSTILE.values()):
            shelf.publish(f"demo{index}", archive=data)
            error = await refused(shelf, tmp_path, f"demo{index}", limits=CATALOGUE)
            assert error.reason in ("refused", "too_large")
    left = [path for path, _, files in os.walk(tmp_path) if files and "/tags/" not in path]
    assert left == []


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b'{"name": "other"}',
        b"{}",
        b"[" * 100_000,
        b'{"name": "demo"}' + b" " * (1 << 20),
    ],
)
async def test_pkg_10_a_package_json_that_is_none_or_is_another_packages_is_refused(
    text: bytes, tmp_path: Path
) -> None:
    """PKG-10"""
    async with registry() as shelf:
        shelf.publish("demo", files={"package.json": text})
        assert (await refused(shelf, tmp_path, "demo")).reason == "refused"


def test_pkg_16_names_that_could_be_one_file_are_several(tmp_path: Path) -> None:
    """PKG-16"""
    store = PackageStore(tmp_path, 1 << 30)
    names = ["@a/b@1.0.0", "@a%2fb@1.0.0", "@A/b@1.0.0", "../x@1.0.0", "a" * 300]
    for index, name in enumerate(names):
        store.pin(name, "here", f"sha512-{index}")
        store.put_led_to(name, "here", str(index))
    assert [store.pinned(name, "here") for name in names] == [f"sha512-{n}" for n in range(5)]
    assert [store.led_to(name, "here") for name in names] == [str(n) for n in range(5)]
    assert store.pinned(names[0], "elsewhere") is None
    assert all(path.is_relative_to(tmp_path) for path in tmp_path.rglob("*"))


async def test_pkg_17_a_kept_archive_that_was_changed_cut_or_replaced_by_a_link_is_fetched_again(
    tmp_path: Path,
) -> None:
    """PKG-17"""
    async with registry() as shelf:
        data = shelf.publish("demo", files={"index.js": "good"})
        async with installer(shelf, tmp_path / "cache") as npm:
            lock = await npm.lock("demo", "1.0.0")
            (kept,) = files(tmp_path / "cache", "archives")
            other = tmp_path / "other"
            other.write_bytes(packed({"index.js": "evil"}))

            def spoil(how: str) -> None:
                kept.unlink(missing_ok=True)
                if how == "link":
                    kept.symlink_to(other)
                elif how == "pipe":
                    os.mkfifo(kept)
                elif how == "open":
                    kept.write_bytes(data)
                    kept.chmod(0o666)
                elif how != "gone":
                    kept.write_bytes({"other": other.read_bytes(), "cut": data[:-9], "empty": b""}[how])

            for how in ("other", "cut", "empty", "link", "pipe", "open", "gone"):
                spoil(how)
                tree = await npm.tree(lock)
                assert tree.files["node_modules/demo/index.js"] == b"good", how
        spoil("other")
        shelf.publish("demo", files={"index.js": "evil"})
        async with installer(shelf, tmp_path / "cache") as npm:
            with pytest.raises(PackageUnavailable) as caught:
                await npm.tree(lock)
        assert caught.value.reason == "integrity"


async def test_pkg_17_a_damaged_lock_is_made_again(tmp_path: Path) -> None:
    """PKG-17"""
    async with registry() as shelf:
        shelf.publish("demo")
        async with installer(shelf, tmp_path) as npm:
            lock = await npm.lock("demo", "1.0.0")
        (kept,) = files(tmp_path, "locks")
        for text in (b"", b"{}", kept.read_bytes()[:-3], lock.to_json().replace(b"demo", b"evil")):
            kept.write_bytes(text)
            async with installer(shelf, tmp_path) as npm:
                assert await npm.lock("demo", "1.0.0") == lock
            assert kept.read_bytes() == lock.to_json()


def test_pkg_17_writers_at_the_same_time_leave_one_whole_file(tmp_path: Path) -> None:
    """PKG-17"""
    from concurrent.futures import ThreadPoolExecutor

    stores = [PackageStore(tmp_path, 1 << 30) for _ in range(8)]
    data = os.urandom(1 << 18)
    with ThreadPoolExecutor(8) as threads:
        kept = list(threads.map(lambda store: store.put_archive(data), stores))
        pins = set(threads.map(lambda n: stores[n].pin("demo@1", "here", f"sha512-{n}"), range(8)))
    assert len(set(kept)) == 1
    assert stores[0].archive(kept[0]) == data
    assert len(pins) == 1
    assert not list(tmp_path.rglob(".*"))


async def test_pkg_21_what_a_package_carries_in_the_place_of_another_is_not_taken(tmp_path: Path) -> None:
    """PKG-21"""
    async with registry() as shelf:
        shelf.publish("part", "1.0.0", files={"index.js": "real"})
        shelf.publish("part", "2.0.0", files={"index.js": "real 2"})
        evil = {"node_modules/part/index.js": "evil", "node_modules/part/extra.js": "evil"}
        shelf.publish("middle", files=evil, dependencies={"part": "1.0.0"})
        shelf.publish("demo", dependencies={"middle": "1", "part": "2.0.0"})
        async with installer(shelf, tmp_path) as npm:
            tree = await npm.tree(await npm.lock("demo"))
    assert tree.files["node_modules/middle/node_modules/part/index.js"] == b"real"
    assert "node_modules/middle/node_modules/part/extra.js" not in tree.files
    assert tree.files["node_modules/part/index.js"] == b"real 2"
