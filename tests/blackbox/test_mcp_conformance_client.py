"""The official conformance suite, its client part: what applies passes, and docs/conformance.md says what happens."""

import pytest

from tests.conformance import clients, report

pytestmark = pytest.mark.anyio


async def test_scenarios_about_oauth_pass():
    """MCP-18"""
    for one in await clients.signed():
        assert one.failed == [], one
        assert one.passed > 0, one
    assert clients.signing_table() in report.PAGE.read_text()


@pytest.mark.parametrize("revision", clients.SCENARIOS)
async def test_every_client_scenario_that_applies_passes(revision: str):
    for one in await clients.outcomes(revision):
        assert one.failed == [], one
        assert one.passed > 0, one
    assert clients.table(revision) in report.PAGE.read_text()
