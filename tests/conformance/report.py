"""Runs the suite against the product and against the fixtures, and says of each scenario what came of it.

`python -m tests.conformance.report` writes docs/conformance.md; the tests compare it with a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from starlette.routing import Route, Router

from executor import Config, Executor
from executor.http.app import App, _Routed, build_app
from executor.http.edge import Edge
from executor.http.mcp import McpEndpoint
from executor.http.metrics import Metrics
from executor.http.server import Server
from executor.http.settings import EdgeSettings
from tests.conformance import suite
from tests.conformance.fixtures import Fixtures

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
SETTINGS = EdgeSettings(require_key=False)

NAMED_TOOL = "asks for a tool of its own by name"
NAMED_PROMPT = "asks for a prompt of its own by name"
NAMED_RESOURCE = "asks for a resource of its own by name"
NO_LOGGING = "Executor announces no logging: a run's console lines are in its answer"
NO_COMPLETION = "Executor announces no completion: its one prompt takes free text"
NO_SUBSCRIPTIONS = "Executor announces no subscriptions: its one resource never changes"
TASKS = "an extension that Executor does not announce; not scored by the suite"

STATELESS = "server-stateless"
NOT_APPLICABLE = {
    "logging-set-level": NO_LOGGING,
    "completion-complete": NO_COMPLETION,
    "resources-subscribe": NO_SUBSCRIPTIONS,
    "resources-unsubscribe": NO_SUBSCRIPTIONS,
    "resources-read-text": NAMED_RESOURCE,
    "resources-read-binary": NAMED_RESOURCE,
    "resources-templates-read": NAMED_RESOURCE,
    "prompts-get-simple": NAMED_PROMPT,
    "prompts-get-with-args": NAMED_PROMPT,
    "prompts-get-embedded-resource": NAMED_PROMPT,
    "prompts-get-with-image": NAMED_PROMPT,
    "input-required-result-non-tool-request": NAMED_PROMPT,
    "http-custom-header-server-validation": "no tool of Executor's has arguments that travel as headers",
    STATELESS: "four of its checks ask for tools of its own by name; the others pass",
    **dict.fromkeys(
        (
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-with-logging",
            "tools-call-error",
            "tools-call-with-progress",
            "tools-call-sampling",
            "tools-call-elicitation",
            "json-schema-2020-12",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
            "input-required-result-basic-elicitation",
            "input-required-result-basic-sampling",
            "input-required-result-basic-list-roots",
            "input-required-result-request-state",
            "input-required-result-multiple-input-requests",
            "input-required-result-multi-round",
            "input-required-result-result-type",
            "input-required-result-tampered-state",
            "input-required-result-capability-check",
        ),
        NAMED_TOOL,
    ),
}
"""Why a scenario that the product fails does not apply to it. The fixtures pass every one of these."""


class Outcome(NamedTuple):
    """`product` and `fixtures`: `pass`, `untestable` where checks found nothing to look at and all others pass, or the
    failed checks."""

    scenario: str
    product: str
    fixtures: str

    @property
    def note(self) -> str:
        if self.product == "pass":
            return ""
        return TASKS if self.scenario.startswith("tasks-") else NOT_APPLICABLE.get(self.scenario, "")


@asynccontextmanager
async def served(app: App) -> AsyncIterator[str]:
    """The URL of the MCP endpoint of an application while it is served on loopback."""
    server = Server(app, host="127.0.0.1", port=0, max_body=SETTINGS.largest_body, max_connections=256)
    await server.start()
    try:
        yield f"http://127.0.0.1:{server.port}/mcp"
    finally:
        await server.stop_accepting()
        await app.close()
        await server.close()


def fixtures(executor: Executor) -> App:
    """The suite's own tools behind the layer that serves the product's."""
    mcp = McpEndpoint(Fixtures().server)
    router = Router([Route("/mcp", mcp, methods=None)])
    return App(Edge(_Routed(router), executor.keys, SETTINGS, Metrics()), mcp)


async def outcomes(revision: str) -> list[Outcome]:
    """One for each scenario of the revision."""
    async with (
        Executor.open(config=Config(workers=1)) as executor,
        served(build_app(executor, SETTINGS)) as url,
        served(fixtures(executor)) as other,
    ):
        ran = await asyncio.gather(suite.run(url, revision), suite.run(other, revision))
    product, own = map(_by_scenario, ran)
    assert set(product) == set(own)
    return [Outcome(name, product[name], own[name]) for name in sorted(product)]


def _by_scenario(checks: list[suite.Check]) -> dict[str, str]:
    failed: dict[str, list[suite.Check]] = {}
    for check in checks:
        failed.setdefault(check.scenario, []).extend([check] if check.status == "FAILURE" else [])
    return {name: _said(found) for name, found in failed.items()}


def _said(failed: list[suite.Check]) -> str:
    if not failed:
        return "pass"
    wrong = [check.id for check in failed if not check.message.startswith("Not testable")]
    return ", ".join(wrong) or "untestable"


def table(found: list[Outcome]) -> str:
    """The outcomes as the rows of the page."""
    lines = ["| scenario | Executor | fixtures | why it does not apply |", "|---|---|---|---|"]
    for one in found:
        product = "pass" if one.product == "pass" else "not applicable" if one.note else "FAIL"
        own = "pass" if one.fixtures == "pass" else "not applicable" if one.note == TASKS else "FAIL"
        lines.append(f"| `{one.scenario}` | {product} | {own} | {one.note} |")
    return "\n".join(lines)


async def main() -> None:
    page = PAGE.read_text()
    for revision in suite.REQUIRED:
        start, end = f"<!-- {revision} -->\n", f"<!-- end {revision} -->"
        before, _, rest = page.partition(start)
        page = before + start + table(await outcomes(revision)) + "\n" + end + rest.partition(end)[2]
    PAGE.write_text(page)


if __name__ == "__main__":
    asyncio.run(main())
