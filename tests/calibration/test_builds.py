"""The builds that are broken on purpose can still be built; the long form demands that the suite notices each."""

from __future__ import annotations

import pytest

from tests.calibration.builds import ROOT, Build, broken, builds, copied, failing, tried

BUILDS = builds()


def test_there_are_enough_of_them() -> None:
    assert len(BUILDS) >= 28


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.name)
def test_a_broken_build_applies_and_names_tests_that_there_are(build: Build) -> None:
    files = broken(build, ROOT)
    assert files, f"tests/calibration/{build.name}.patch must be made anew"
    for path, text in files.items():
        assert text != path.read_text()
        compile(text, path.name, "exec")
    assert build.says.endswith(".")
    assert build.tests
    assert all((ROOT / one.partition("::")[0]).exists() for one in build.tests)


@pytest.mark.timeout(3600)
def test_every_broken_build_is_noticed(long: bool) -> None:
    if long:
        with copied() as place:
            assert failing(BUILDS, place) == ()
            unnoticed = [build.name for build in BUILDS if not tried(build, place).noticed_by]
        assert unnoticed == []
