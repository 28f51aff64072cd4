"""The builds that are broken on purpose can still be built; the long form demands that the suite notices each."""

from __future__ import annotations

import pytest

from tests.calibration.builds import ROOT, Build, applies, builds, copied, tried

BUILDS = builds()


def test_there_are_enough_of_them() -> None:
    assert len(BUILDS) >= 12


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.name)
def test_a_broken_build_applies_and_names_tests_that_there_are(build: Build) -> None:
    assert applies(build, ROOT), f"tests/calibration/{build.name}.patch must be made anew"
    assert build.says.endswith(".")
    assert build.tests
    for one in build.tests:
        file, _, test = one.partition("::")
        assert not test or f"def {test}(" in (ROOT / file).read_text(), one


@pytest.mark.timeout(3600)
def test_every_broken_build_is_noticed(long: bool) -> None:
    if long:
        with copied() as place:
            unnoticed = [build.name for build in BUILDS if not tried(build, place).noticed_by]
        assert unnoticed == []
