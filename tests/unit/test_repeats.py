"""Calls that may be made again when nobody knows what became of them: those that are declared idempotent, no others."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.calls import CallContext
from bridge.toolbox import Toolbox
from bridge.wire.errors import InvalidRequest, ToolError
from executor import Config, Executor
from tests.unit.upstream import Journal, Upstream, call, document, operation, parameter, response, toolbox, upstream

pytestmark = pytest.mark.anyio

KEY = parameter("Idempotency-Key", "header", schema={"type": "string", "format": "uuid", "maxLength": 36})
PATHS = {
    "/plain": {"post": operation(operationId="plain")},
    "/said": {"post": operation(operationId="said", **{"x-executor-idempotent": True})},
    "/keyed": {"post": operation(KEY, operationId="keyed")},
    "/both": {"post": operation(KEY, operationId="both", **{"x-executor-idempotent": True})},
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[tuple[Upstream, Toolbox]]:
    async with upstream() as server, toolbox(allow_private=["127.0.0.1"]) as box:
        await box.add_openapi("api", document(PATHS, server.base), **options)
        yield server, box


async def silent(seen: Any, reader: Any, writer: Any) -> None:
    """Hang up without an answer."""
    writer.close()


@pytest.mark.parametrize(
    ("tool", "args", "repeatable"),
    [
        ("plain", {}, False),
        ("said", {}, True),
        ("both", {}, True),
        ("keyed", {}, False),
        ("keyed", {"Idempotency-Key": "5f0d6f9c-7f3f-4f57-9d1e-2f2a4f1f9d0a"}, True),
    ],
)
async def test_what_is_declared_idempotent_may_be_repeated_after_silence(
    tool: str, args: dict[str, Any], repeatable: bool
) -> None:
    """PER-17"""
    async with served() as (server, box):
        server.answers[f"/{tool}"] = silent
        journal = Journal()
        with pytest.raises(ToolError) as lost:
            await call(box, f"api.org.main.{tool}", args, journal=journal)
        assert (lost.value.code, lost.value.retryable) == ("upstream_unreachable", repeatable)
        assert ("may be repeated" in str(lost.value.hint)) is repeatable
        assert (journal.records[0].outcome, journal.records[0].idempotent) == ("unknown", repeatable)


async def test_the_operator_declares_tools_by_pattern() -> None:
    async with served(idempotent=["pl*"]) as (server, box):
        server.answers["/plain"] = silent
        with pytest.raises(ToolError) as lost:
            await call(box, "api.org.main.plain")
        assert lost.value.retryable
        told = {
            name: box.describe(f"api.org.main.{name}").get("idempotent", False) for name in ("plain", "keyed", "said")
        }
        assert told == {"plain": True, "keyed": False, "said": True}
        with pytest.raises(InvalidRequest):
            await box.add_openapi("other", document(PATHS, server.base), idempotent=["a?"])


async def test_a_busy_server_is_asked_again_only_where_repeating_is_harmless() -> None:
    async with served() as (server, box):
        answers = {"plain": 1, "said": 2}
        for tool, requests in answers.items():

            async def later(seen: Any, reader: Any, writer: Any) -> None:
                first = sum(one.target == seen.target for one in server.seen) == 1
                writer.write(response({}, status=503 if first else 200, headers={"retry-after": "0"}))

            server.answers[f"/{tool}"] = later
            with nullcontext() if requests == 2 else pytest.raises(ToolError, match="503"):
                await call(box, f"api.org.main.{tool}")
            assert sum(one.target == f"/{tool}" for one in server.seen) == requests


async def test_a_declared_tool_that_takes_a_key_gets_the_same_whenever_the_call_is_made() -> None:
    """PER-17"""
    async with served() as (server, box):
        for run, number in (("run_1", 1), ("run_1", 1), ("run_1", 2), ("run_2", 1), (None, 1), (None, 1)):
            await call(box, "api.org.main.both", ctx=CallContext(run_id=run), call_id=number)
        keys = [str(one.header("idempotency-key")) for one in server.seen]
        assert keys[0] == keys[1]
        assert len(set(keys)) == 5
        await call(box, "api.org.main.both", {"Idempotency-Key": "mine"}, ctx=CallContext(run_id="run_1"))
        await call(box, "api.org.main.keyed")
        assert [one.header("idempotency-key") for one in server.seen[-2:]] == ["mine", None]


@pytest.mark.parametrize(
    "schema", [{"type": "integer"}, {"type": "string", "maxLength": 8}, {"type": "string", "pattern": "^k_"}]
)
async def test_a_key_that_would_not_fit_is_not_made(schema: dict[str, Any]) -> None:
    key = parameter("Idempotency-Key", "header", schema=schema)
    async with upstream() as server, toolbox(allow_private=["127.0.0.1"]) as box:
        paths = {"/x": {"post": operation(key, **{"x-executor-idempotent": True})}}
        await box.add_openapi("api", document(paths, server.base))
        await call(box, "api.org.main.op", ctx=CallContext(run_id="run_1"))
        assert server.seen[0].header("idempotency-key") is None


async def test_a_refresh_that_calls_a_tool_idempotent_awaits_review() -> None:
    """POL-06"""
    async with served() as (server, box):
        changed = {**PATHS, "/plain": {"post": operation(operationId="plain", **{"x-executor-idempotent": True})}}
        report = await box.refresh("api", document(changed, server.base))
        assert report.awaiting == ["plain"]
        assert (report.changed[0]["what"], report.changed[0]["after"]["side_effect"]) == (
            ["side_effect"],
            "write, idempotent",
        )


HOST = """
import asyncio, json, sys
from executor import Config, Executor

async def main():
    async with Executor.open(sys.argv[1], config=Config(workers=1)) as ex:
        async def act(args):
            print(json.dumps(args), flush=True)
            await asyncio.Event().wait()
        ex.tool("h.org.main.again", act, side_effect="write", idempotent=True)
        ex.tool("h.org.main.once", act, side_effect="write")
        await ex.toolbox.add_policy("h", "*", "approve")
        code = "Promise.allSettled([tools.h.org.main.again({n: 1}), tools.h.org.main.once({n: 2})])"
        run = await ex.run(f"(await {code}).map(one => one.value ?? one.reason.code)", wait=False)
        print(json.dumps(run.run_id), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_after_a_crash_the_idempotent_call_is_made_again_and_no_other(tmp_path: Path) -> None:
    """PER-17, POL-30"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, str(tmp_path), stdout=subprocess.PIPE)
    assert process.stdout is not None
    with anyio.fail_after(60):
        said = [json.loads(await process.stdout.readline()) for _ in range(3)]
        process.kill()
        await process.stdout.read()
        await process.wait()
    run_id = next(one for one in said if isinstance(one, str))
    made: list[Any] = []
    async with Executor.open(tmp_path, config=Config(workers=1)) as ex:
        ex.tool("h.org.main.again", lambda args: made.append(args) or "again", side_effect="write", idempotent=True)
        ex.tool("h.org.main.once", lambda args: made.append(args), side_effect="write")
        with anyio.fail_after(60):
            record = await ex.wait_run(run_id)
        assert (record.status, record.result) == ("completed", ["again", "outcome_unknown"])
        assert made == [{"n": 1}]
        assert [(one["path"][-5:], one["outcome"], one.get("idempotent")) for one in record.calls] == [
            ("again", "done", True),
            (".once", "unknown", None),
        ]
        assert (await ex.replay_run(run_id)).divergence is None
