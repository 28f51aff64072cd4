"""Group PKG of the threat catalogue: which packages are installed, from where, and by whose leave."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest

from bridge.wire.errors import ConfigError, PackageUnavailable
from catalog.kinds.npm.integrity import integrity_of
from catalog.kinds.npm.limits import Limits
from catalog.kinds.npm.manifest import Manifest, Packument, Wanted
from catalog.kinds.npm.resolve import resolve
from catalog.kinds.npm.specs import Spec, parse
from tests.unit.npm_registry import installer, refused, registry
from tests.unit.upstream import redirect

pytestmark = pytest.mark.anyio


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


async def test_peers_that_contradict_each_other_in_a_circle_are_installed_as_far_as_they_fit(tmp_path: Path) -> None:
    """PKG-22: what they need beside them must not be looked for for ever."""
    names = ["p0", "p1", "p2"]
    async with registry() as shelf:
        shelf.publish("demo", dependencies=dict.fromkeys(names, "1"))
        for n, name in enumerate(names):
            for version in ("1.0.0", "2.0.0"):
                peers = {other: "2" if (n + at) % 2 else "1" for at, other in enumerate(names) if other != name}
                shelf.publish(name, version, peerDependencies=peers)
        async with installer(shelf, tmp_path) as npm:
            lock = await npm.lock("demo", "1.0.0")
    assert {one.name for one in lock.packages} == {"demo", *names}


async def test_others_have_their_turn_while_a_tree_is_worked_out() -> None:
    """PKG-22: with every answer at hand, nothing else makes the resolution wait."""
    names = [f"p{n}" for n in range(60)]

    class Shelf:
        async def manifest(self, spec: Spec) -> Manifest:
            wanted = [Wanted(name, "dependency", "1.0.0") for name in names if name != spec.name]
            return Manifest(spec.name, spec.text, {}, tuple(wanted))

    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(others)
        tree = await resolve(parse("p0", "1.0.0"), Shelf(), Limits())
        group.cancel_scope.cancel()
    assert len(tree) == len(names)
    assert turns > 30


def test_of_very_many_versions_one_is_chosen_in_a_thread_and_once() -> None:
    """PKG-22"""
    facts = {"name": "demo", "dist": {}}
    versions = {f"1.0.{n}": facts | {"version": f"1.0.{n}"} for n in range(300)}
    spec = parse("demo", "^1.0.0")
    packument = Packument("demo", {"name": "demo", "versions": versions})
    assert not packument.picks_at_once(spec)
    assert packument.pick(spec).version == "1.0.299"
    assert packument.picks_at_once(spec)
    long = "1.0.0-" + "a" * 300
    with pytest.raises(PackageUnavailable, match="There is no"):
        Packument("demo", {"name": "demo", "versions": {long: facts | {"version": long}}}).pick(
            parse("demo", ">=1.0.0-0")
        )
