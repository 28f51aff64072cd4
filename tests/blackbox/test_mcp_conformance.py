"""The official conformance suite, for both eras: what applies passes, and docs/conformance.md says what happens."""

import pytest

from tests.conformance import report, suite

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("revision", suite.REQUIRED)
async def test_every_scenario_that_applies_passes(revision):
    """MCP-01"""
    found = await report.outcomes(revision)
    assert len(found) > 30
    for one in found:
        assert one.product == "pass" or one.note, one
        assert one.product == "untestable" or one.scenario != report.STATELESS, one
        assert one.product == "untestable" or one.scenario != report.STATELESS, one
        assert one.fixtures == "pass" or one.note == report.TASKS, one
    assert report.table(found) in report.PAGE.read_text(), "run: python -m tests.conformance.report"
