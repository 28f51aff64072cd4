"""fetch and paginate from scripts against a real server: ordinary calls, under the same policy, budget and record."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from executor import Config, Executor
from tests.unit.upstream import Seen, Upstream, document, operation, parameter, response, upstream

pytestmark = pytest.mark.anyio


class Place(NamedTuple):
    ex: Executor
    server: Upstream

    async def run(self, code: str, **options: Any) -> Any:
        return await self.ex.run(code.replace("BASE", self.server.base), **options)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def place() -> AsyncIterator[Place]:
    async with Executor.open(config=Config(workers=1)) as ex, upstream() as server:

        async def numbers(seen: Seen, reader: Any, writer: Any) -> None:
            page = int(seen.target.rpartition("page=")[2]) if "page=" in seen.target else 1
            link = {"link": f'<{server.base}/v1/numbers?page={page + 1}>; rel="next"'} if page < 4 else {}
            writer.write(response([page * 10, page * 10 + 1], headers=link))

        server.answers["/v1/numbers"] = numbers
        await ex.add_http("web", [server.base + "/v1"], allow_private=["127.0.0.1"], fetch=True)
        described = document({"/v1/numbers": {"get": operation(parameter("page"))}}, server.base)
        await ex.add_openapi("api", described, allow_private=["127.0.0.1"])
        yield Place(ex, server)


async def test_a_script_fetches_what_was_granted(place: Place) -> None:
    answer = await place.run("""
    const response = await fetch("BASE/v1/things?x=1", { headers: { "X-Mine": "yes" } });
    const seen = await response.json();
    [response.ok, response.headers.get("content-type"), seen.target, seen.headers["x-mine"]]
    """)
    assert answer.unwrap() == [True, "application/json", "/v1/things?x=1", "yes"]
    [call] = answer.calls
    assert (call["path"], call["outcome"], call["status"]) == ("web.org.main.http.get", "done", 200)
    assert answer.usage["bridge_calls"] == 1


async def test_a_fetch_that_was_not_granted_is_a_type_error_that_says_what_to_grant(place: Place) -> None:
    answer = await place.run("\nawait fetch('https://api.example.com/x')")
    assert (answer.error["name"], answer.error["line"]) == ("TypeError", 2)
    assert "executor add http NAME --allow https://api.example.com --fetch" in answer.error["message"]


@pytest.mark.parametrize(("decision", "result"), [("approve", "x"), ("deny", "approval_denied")])
async def test_a_fetch_that_writes_waits_for_a_person_like_any_call(place: Place, decision: str, result: str) -> None:
    before = len(place.server.seen)
    answer = await place.run("""
    await fetch("BASE/v1/things", { method: "POST", body: "x" })
      .then(async (r) => (await r.json()).body, (e) => e.cause.code)
    """)
    [asked] = answer.interactions
    assert (answer.status, asked["path"]) == ("waiting", "web.org.main.http.request")
    assert asked["arguments"]["path"] == place.server.base + "/v1/things"
    assert len(place.server.seen) == before
    ended = await place.ex.resume(answer.run_id, asked["id"], decision)
    assert (ended.status, ended.result) == ("completed", result)
    assert len(place.server.seen) - before == (decision == "approve")


async def test_fetches_count_against_the_budget_of_calls(place: Place) -> None:
    answer = await place.run("for (let n = 0; n < 9; n++) await fetch('BASE/v1/x')", budgets={"bridge_calls": 3})
    assert (answer.error["code"], answer.usage["bridge_calls"]) == ("calls_exhausted", 3)


@pytest.mark.parametrize("tool", ["web.org.main.http.get", "api.org.main.op"])
@pytest.mark.parametrize(
    ("options", "items", "calls"),
    [
        ("{}", [10, 11, 20, 21, 30, 31, 40, 41], 4),
        ("{ limit: 3 }", [10, 11, 20], 2),
        ("{ limit: 2 }", [10, 11], 1),
        ("{ pages: 2 }", [10, 11, 20, 21], 2),
    ],
)
async def test_a_script_goes_through_the_pages_of_a_list(
    place: Place, tool: str, options: str, items: list[int], calls: int
) -> None:
    args = {"path": "/v1/numbers"} if "http" in tool else {}
    source = f"const out = []; for await (const n of tools.paginate('{tool}', input, {options})) out.push(n); out"
    answer = await place.run(source, input=args)
    assert answer.unwrap() == items
    assert [call["path"] for call in answer.calls] == [tool] * calls


async def test_the_sdk_goes_through_pages_as_a_script_does(place: Place) -> None:
    before = len(place.server.seen)
    assert [n async for n in place.ex.paginate("api.org.main.op", {})] == [10, 11, 20, 21, 30, 31, 40, 41]
    assert [n async for n in place.ex.paginate("api.org.main.op", limit=2)] == [10, 11]
    assert [n async for n in place.ex.paginate("api.org.main.op", limit=3)] == [10, 11, 20]
    assert [n async for n in place.ex.paginate("api.org.main.op", pages=2)] == [10, 11, 20, 21]
    assert len(place.server.seen) - before == 9


async def test_a_scope_without_the_tool_has_no_fetch_either(place: Place) -> None:
    scoped = place.ex.scope(tools=["api.*"])
    answer = await scoped.run(f"await fetch('{place.server.base}/v1/x').catch((e) => e.cause.code)")
    assert answer.unwrap() == "tool_not_found"


@pytest.mark.parametrize(
    "source",
    [
        "[n async for n in tools.paginate('api.org.main.op', {}, limit=3)]",
        "[n for n in tools.paginate('api.org.main.op', limit=3)]",
        "out = []\nfor n in tools.paginate(tools.api.org.main.op, {}):\n    out.append(n)\n    if n == 20: break\nout",
        "def f():\n    return list(tools.paginate('api.org.main.op', {}, limit=3))\nf()",
        "async def f():\n    return [n async for n in await tools.paginate('api.org.main.op', limit=3)]\nawait f()",
    ],
)
async def test_a_python_script_goes_through_pages_in_either_way(place: Place, source: str) -> None:
    answer = await place.run(source, language="python")
    assert answer.unwrap() == [10, 11, 20]
    assert len(answer.calls) == 2


async def test_what_asks_for_no_pages_is_refused_where_it_stands(place: Place) -> None:
    for options, message in (("{ limit: 0 }", "limit"), ("{ pages: 1.5 }", "pages")):
        answer = await place.run(f"\n tools.paginate('api.org.main.op', {{}}, {options})")
        assert (answer.error["name"], answer.error["line"]) == ("TypeError", 2)
        assert message in answer.error["message"]
    answer = await place.run("tools.paginate('api.org.main.op', limit=0)", language="python")
    assert answer.error["name"] == "TypeError"


async def test_a_busy_server_tells_a_script_how_long_to_wait(place: Place) -> None:
    place.server.answers["/v1/busy"] = response({}, status=429, headers={"retry-after": "60"})
    source = (
        "const { http } = tools.web.org.main;"
        "await http.get({ path: '/v1/busy' }).catch((e) => [e.status, e.retryable, e.retry_after_ms])"
    )
    assert (await place.run(source)).unwrap() == [429, True, 60_000]
    source = (
        "try:\n    tools.web.org.main.http.get(path='/v1/busy')\n"
        "except ToolError as e:\n    [e.status, e.retryable, e.retry_after_ms]"
    )
    assert (await place.run(source, language="python")).unwrap() == [429, True, 60_000]


async def test_meta_says_where_a_stream_was_cut(place: Place) -> None:
    async def stream(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {"n": 1}\n\ndata: 2')
        await writer.drain()
        await reader.read()

    place.server.answers["/v1/stream"] = stream
    answer = await place.run(
        "await tools.call('web.org.main.http.get', { path: '/v1/stream' }, { meta: true })", budgets={"wall_ms": 3000}
    )
    result = answer.unwrap()
    assert result["value"] == [{"data": {"n": 1}}]
    assert result["http"]["cut"]["by"] == "time"
