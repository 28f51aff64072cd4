"""Group PKG of the threat catalogue: packages and their registry are hostile, and what they hold stays in a map."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import os
import tarfile
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bridge.npm.store import PackageStore
from bridge.wire.errors import ConfigError, PackageUnavailable
from catalog.kinds.npm.archive import read_archive
from catalog.kinds.npm.integrity import integrity_of
from catalog.kinds.npm.limits import Limits
from tests.unit.npm_registry import Shelf, entry, installer, packed, quick, registry, tarball
from tests.unit.upstream import redirect, response

pytestmark = pytest.mark.anyio

CATALOGUE = Limits(packed=5 << 20, unpacked=20 << 20, files=2_000)


async def refused(shelf: Shelf, folder: Path, name: str, spec: str = "latest", **settings: Any) -> PackageUnavailable:
    async with installer(shelf, folder, **settings) as npm:
        with pytest.raises(PackageUnavailable) as caught:
            await npm.lock(name, spec)
    return caught.value


@pytest.mark.parametrize(
    "spec",
    [
        "git+https://example.com/x.git",
        "git@example.com:x/y",
        "file:../x",
        "link:../x",
        "http://10.0.0.5/x.tgz",
        "https://evil.test/x.tgz",
        "github:user/repo",
        "user/repo",
        "npm:alias@1",
        "workspace:*",
        "workspace:",
        "catalog:",
        "patch:x@1",
        " 1.0.0 ; curl",
        "$(id)",
        "1.0.0\n--registry=x",
        "../..",
        ">" * 300,
        "1.x || " * 40,
    ],
)
async def test_pkg_02_only_versions_ranges_and_tags_of_the_registry_are_installed(spec: str, tmp_path: Path) -> None:
    """PKG-02"""
    async with registry() as shelf:
        shelf.publish("demo")
        assert (await refused(shelf, tmp_path, "demo", spec)).reason == "refused"
        assert shelf.server.seen == []


@pytest.mark.parametrize("spec", ["*", "latest", "^1", "1.x || 2", "1.0.0", "", "v1.0.0", " 1.0.0 "])
async def test_pkg_02_a_range_or_a_tag_is_resolved_once_and_locked_with_its_integrity(
    spec: str, tmp_path: Path
) -> None:
    """PKG-02"""
    async with registry() as shelf:
        data = shelf.publish("demo")
        async with installer(shelf, tmp_path) as npm:
            lock = await npm.lock("demo", spec)
    assert [(one.at, one.version, one.integrity) for one in lock.packages] == [
        ("node_modules/demo", "1.0.0", integrity_of(data))
    ]


@pytest.mark.parametrize(
    "dependency",
    ["git+https://example.com/x.git", "file:../x", "https://evil.test/x.tgz", "user/repo", "workspace:*", "npm:@x"],
)
async def test_pkg_02_a_dependency_from_elsewhere_is_refused_and_left_out_where_it_is_optional(
    dependency: str, tmp_path: Path
) -> None:
    """PKG-02"""
    async with registry() as shelf:
        shelf.publish("bad", dependencies={"x": dependency})
        shelf.publish("fine", optionalDependencies={"x": dependency})
        assert (await refused(shelf, tmp_path, "bad")).reason == "refused"
        async with installer(shelf, tmp_path) as npm:
            assert [one.name for one in (await npm.lock("fine")).packages] == ["fine"]


@pytest.mark.parametrize(
    "name",
    ["..", "../x", ".x", "_x", "a%2fb", "@a/../b", "UPPER", "naïve", "-rf", "node_modules", "a b", "x" * 215, "@a", ""],
)
async def test_a_name_that_is_none_is_refused_before_the_registry_is_asked(name: str, tmp_path: Path) -> None:
    async with registry() as shelf:
        assert (await refused(shelf, tmp_path, name)).reason == "refused"
        assert shelf.server.seen == []


async def test_pkg_03_versions_are_read_as_npm_reads_them(tmp_path: Path) -> None:
    """PKG-03"""
    async with registry() as shelf:
        shelf.publish("demo", "1.0.0")
        shelf.publish("demo", "1.1.0-beta.1", tags=("next",))
        shelf.publish("demo", "1.0.9", tags=(), deprecated="do not use")
        async with installer(shelf, tmp_path) as npm:
            found = {
                spec: (await npm.lock("demo", spec)).version
                for spec in ("1.0.0+build", "v1.0.0", "01.0.0", "^1.0.0", "next", ">=1.1.0-beta.0", "1.0.9")
            }
            for spec in ("1.0.0-0", "1.1.0", "9" * 31 + ".0.0", "gone"):
                with pytest.raises(PackageUnavailable):
                    await npm.lock("demo", spec)
    assert found == {
        "1.0.0+build": "1.0.0",
        "v1.0.0": "1.0.0",
        "01.0.0": "1.0.0",
        "^1.0.0": "1.0.0",
        "next": "1.1.0-beta.1",
        ">=1.1.0-beta.0": "1.1.0-beta.1",
        "1.0.9": "1.0.9",
    }


@pytest.mark.parametrize(
    "tarball",
    [
        "http://169.254.169.254/x.tgz",
        "http://127.0.0.1:1/x.tgz",
        "https://evil.test/x.tgz",
        "file:///etc/passwd",
        "//evil.test/x.tgz",
        "http://user@127.0.0.1/x.tgz",
        "/demo/-/../../secret",
        "/demo/%2e%2e/x.tgz",
        "",
        None,
        7,
    ],
)
async def test_pkg_04_an_archive_comes_from_the_origin_of_its_registry(tarball: Any, tmp_path: Path) -> None:
    """PKG-04"""
    async with registry() as shelf:
        data = shelf.publish("demo")
        shelf.publish("demo", dist={"tarball": tarball, "integrity": integrity_of(data)})
        await refused(shelf, tmp_path, "demo", "1.0.0")
        assert [seen.target for seen in shelf.server.seen] == ["/demo/1.0.0"] or tarball in ("", "/demo/-/../../secret")


async def test_pkg_04_a_redirect_to_another_place_is_not_followed(tmp_path: Path) -> None:
    """PKG-04"""
    async with registry() as shelf, registry() as other:
        shelf.publish("demo")
        shelf.server.answers["/demo/-/demo-1.0.0.tgz"] = redirect(f"{other.url}/demo.tgz")
        await refused(shelf, tmp_path, "demo")
        assert other.server.seen == []


async def test_pkg_04_the_operators_egress_allowlist_bounds_the_registry_too(tmp_path: Path) -> None:
    """PKG-04"""
    async with registry() as shelf:
        shelf.publish("demo")
        assert "egress" in (await refused(shelf, tmp_path, "demo", egress_allow=["https://api.example.com"])).message
        assert shelf.server.seen == []


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
        b'{"name": "demo"}' + b" " * (5 << 20),
    ],
)
async def test_pkg_10_a_package_json_that_is_none_or_is_another_packages_is_refused(
    text: bytes, tmp_path: Path
) -> None:
    """PKG-10"""
    async with registry() as shelf:
        shelf.publish("demo", files={"package.json": text})
        assert (await refused(shelf, tmp_path, "demo")).reason == "refused"


async def test_pkg_14_an_operator_can_wait_before_a_version_is_taken(tmp_path: Path) -> None:
    """PKG-14"""
    yesterday = (datetime.now(UTC) - timedelta(hours=20)).isoformat()
    async with registry() as shelf:
        shelf.publish("demo", "1.0.0")
        shelf.publish("demo", "1.1.0", published=yesterday)
        shelf.publish("young", "1.0.0", published=yesterday)
        shelf.publish("undated", "1.0.0", published="some day")
        async with installer(shelf, tmp_path, min_age_s=3 * 86_400) as npm:
            assert (await npm.lock("demo")).version == "1.0.0"
            assert (await npm.lock("demo", "^1")).version == "1.0.0"
            for name, spec in (("demo", "1.1.0"), ("young", "latest"), ("undated", "*")):
                with pytest.raises(PackageUnavailable):
                    await npm.lock(name, spec)
        async with installer(shelf, tmp_path) as npm:
            assert (await npm.lock("demo")).version == "1.1.0"


async def test_pkg_14_an_operator_can_deny_packages_wherever_they_are_in_a_tree(tmp_path: Path) -> None:
    """PKG-14"""
    async with registry() as shelf:
        shelf.publish("evil", "1.0.0")
        shelf.publish("evil", "0.9.0", tags=())
        shelf.publish("demo", dependencies={"evil": "^1"})
        shelf.publish("older", dependencies={"evil": "^0.9"})
        async with installer(shelf, tmp_path) as npm:
            before = await npm.lock("demo", "1.0.0")
        for deny in (["evil"], ["ev*"], ["evil@>=1"]):
            async with installer(shelf, tmp_path, deny=deny) as npm:
                with pytest.raises(PackageUnavailable):
                    await npm.lock("demo", "1.0.0")
                with pytest.raises(PackageUnavailable):
                    await npm.tree(before)
        async with installer(shelf, tmp_path, deny=["evil@>=1"]) as npm:
            await npm.lock("older")


async def test_pkg_14_an_operator_can_name_the_packages_that_may_be_asked_for(tmp_path: Path) -> None:
    """PKG-14"""
    async with registry() as shelf:
        shelf.publish("part")
        shelf.publish("@ours/demo", dependencies={"part": "1"})
        shelf.publish("demo")
        async with installer(shelf, tmp_path, allow=["@ours/*"]) as npm:
            assert len((await npm.lock("@ours/demo")).packages) == 2
            with pytest.raises(PackageUnavailable, match="not among"):
                await npm.lock("demo")
        assert not any(seen.target.startswith("/demo") for seen in shelf.server.seen)
        for wrong in ("**/", "a b", "demo@latest", "demo@git+x", ""):
            with pytest.raises(ConfigError):
                async with installer(shelf, tmp_path, deny=[wrong]):
                    pass


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


async def test_pkg_22_a_registry_that_fails_is_an_error_and_what_is_kept_still_installs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PKG-22"""
    async with registry() as shelf:
        shelf.publish("demo")
        async with installer(shelf, tmp_path / "kept") as npm:
            known = await npm.lock("demo")
        broken = {
            "busy": response({}, status=429, headers={"retry-after": "1"}),
            "down": response({}, status=503),
            "long wait": response({}, status=503, headers={"retry-after": "3600"}),
            "server error": response({}, status=500),
            "captive portal": response(b"<html>pay</html>", headers={"content-type": "text/html"}),
            "half": b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{",
            "no HTTP": b"hello\r\n\r\n",
            "not an object": response([1]),
            "stream": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: 1\n\n",
        }
        with quick(monkeypatch) as waits:
            for what, answer in broken.items():
                shelf.server.answers = {"*": answer}
                if what in ("half", "no HTTP", "stream"):
                    shelf.server.answers = {"*": closing(answer)}
                error = await refused(shelf, tmp_path / "new", "demo")
                assert error.reason == "unreachable", what
                async with installer(shelf, tmp_path / "kept") as npm:
                    assert await npm.lock("demo", "1.0.0") == known
                    assert await npm.lock("demo", "latest") == known, what
        assert waits[:2] == [1.0, 1.0]


def closing(answer: bytes) -> Any:
    async def say(_seen: Any, _reader: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        writer.close()

    return say


async def test_pkg_22_a_registry_that_says_nothing_ends_at_the_deadline(tmp_path: Path) -> None:
    """PKG-22"""
    async with registry() as shelf:

        async def silent(_seen: Any, _reader: Any, _writer: Any) -> None:
            await shelf.server.released.wait()

        shelf.server.answers = {"*": silent}
        started = time.monotonic()
        error = await refused(shelf, tmp_path, "demo", timeout_s=0.2)
        assert error.reason == "unreachable"
        assert time.monotonic() - started < 10


async def test_pkg_22_half_an_archive_is_no_archive(tmp_path: Path) -> None:
    """PKG-22"""
    async with registry() as shelf:
        shelf.publish("demo")
        shelf.server.answers["/demo/-/demo-1.0.0.tgz"] = closing(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nabc")
        assert (await refused(shelf, tmp_path, "demo")).reason == "unreachable"


async def test_pkg_23_no_token_of_the_host_is_read_or_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PKG-23"""
    async with registry() as shelf:
        host = shelf.url.removeprefix("http:")
        (tmp_path / ".npmrc").write_text(f"{host}/:_authToken=npm_TOKEN\nalways-auth=true\n")
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password npm_TOKEN\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        for name in ("NPM_TOKEN", "NODE_AUTH_TOKEN", "npm_config__authToken", "NPM_CONFIG__AUTH"):
            monkeypatch.setenv(name, "npm_TOKEN")
        shelf.publish("demo", dependencies={"part": "^1"})
        shelf.publish("part")
        async with installer(shelf, tmp_path / "cache") as npm:
            await npm.lock("demo")
        sent = json.dumps([[seen.target, seen.headers] for seen in shelf.server.seen])
        assert "npm_TOKEN" not in sent
        assert "authorization" not in sent.lower()


async def test_pkg_24_a_hundred_first_requests_are_one_download(tmp_path: Path) -> None:
    """PKG-24"""
    async with registry() as shelf:
        shelf.publish("part")
        shelf.publish("demo", dependencies={"part": "1"})
        async with installer(shelf, tmp_path) as npm:
            locks = await asyncio.gather(*(npm.lock("demo") for _ in range(100)))
        assert len(set(locks)) == 1
        assert shelf.asked("/-/demo-1.0.0.tgz") == 1
        assert shelf.asked("/-/part-1.0.0.tgz") == 1


async def test_pkg_24_who_goes_away_does_not_take_the_install_from_those_who_wait(tmp_path: Path) -> None:
    """PKG-24"""
    async with registry() as shelf:
        data = shelf.publish("demo")
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def slowly(_seen: Any, _reader: Any, writer: asyncio.StreamWriter) -> None:
            reached.set()
            await go_on.wait()
            writer.write(response(data))

        shelf.server.answers["/demo/-/demo-1.0.0.tgz"] = slowly
        async with installer(shelf, tmp_path) as npm:
            first = asyncio.create_task(npm.lock("demo"))
            second = asyncio.create_task(npm.lock("demo"))
            await asyncio.wait_for(reached.wait(), 30)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            go_on.set()
            assert (await asyncio.wait_for(second, 30)).version == "1.0.0"
        assert shelf.asked(".tgz") == 1


async def test_metadata_about_something_else_is_not_believed(tmp_path: Path) -> None:
    async with registry() as shelf:
        shelf.publish("demo")
        shelf.say("demo", shelf.documents["demo"] | {"name": "other"})
        assert (await refused(shelf, tmp_path, "demo")).reason == "integrity"
        shelf.say("demo/1.0.0", shelf.documents["demo"]["versions"]["1.0.0"] | {"version": "2.0.0"})
        assert (await refused(shelf, tmp_path, "demo", "1.0.0")).reason == "integrity"


async def test_metadata_that_is_too_much_or_contradicts_itself_is_refused(tmp_path: Path) -> None:
    async with registry() as shelf:
        shelf.publish("demo")
        facts = shelf.documents["demo"]
        one = facts["versions"]["1.0.0"]
        shelf.say("demo", facts | {"versions": {"1.0.0": one | {"version": "6.6.6"}}})
        assert (await refused(shelf, tmp_path, "demo")).reason == "integrity"
        shelf.say("demo", facts | {"versions": {f"1.0.{n}": {} for n in range(20_001)}})
        assert (await refused(shelf, tmp_path, "demo")).reason == "too_large"
        shelf.say("demo", facts | {"versions": {"1.0.0": one | {"dependencies": {f"a{n}": "*" for n in range(1_001)}}}})
        assert (await refused(shelf, tmp_path, "demo")).reason == "too_large"
        odd: list[Any] = [[], "x", {"1.0.0": "x"}, {"1.0.0": {}}, {"1.0.0": one | {"dist": []}}, {"../x": one}]
        for versions in odd:
            shelf.say("demo", facts | {"versions": versions})
            assert (await refused(shelf, tmp_path, "demo")).reason in ("integrity", "not_found"), versions
        for part in ("dependencies", "peerDependencies", "optionalDependencies", "engines", "bundleDependencies"):
            for value in (None, 5, [], "x", {"a": 5}, {"..": "1"}):
                shelf.say("demo", facts | {"versions": {"1.0.0": one | {part: value}}})
                async with installer(shelf, tmp_path / part) as npm:
                    expected = PackageUnavailable if isinstance(value, dict) else AssertionError
                    with suppress(expected):
                        await npm.lock("demo")


async def test_a_tree_may_be_only_so_large_and_so_deep(tmp_path: Path) -> None:
    async with registry() as shelf:
        for n in range(12):
            shelf.publish(f"p{n}", dependencies={f"p{n + 1}": "1"} if n < 11 else {})
        error = await refused(shelf, tmp_path, "p0", limits=Limits(packages=8))
        assert error.reason == "too_large"
        async with installer(shelf, tmp_path, limits=Limits(tree_bytes=100)) as npm:
            with pytest.raises(PackageUnavailable, match="unpacks to more"):
                await npm.tree(await npm.lock("p0"))
        # Two packages that want each other in ever other versions.
        for version, other in (("1.0.0", "2"), ("2.0.0", "1")):
            shelf.publish("ping", version, dependencies={"pong": other})
            shelf.publish("pong", version, dependencies={"ping": version[0]})
        assert (await refused(shelf, tmp_path, "ping")).reason == "too_large"
