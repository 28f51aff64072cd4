"""MCP servers at a URL: sessions, credentials, the egress gate, and servers that misbehave."""

import json
from collections.abc import Iterator

import pytest

from bridge.calls import ARGS_BYTES
from bridge.outbound import written_limit
from executor import Config, Executor, Forbidden, ImportFailed, InvalidRequest, ToolError
from tests.blackbox.mcp_upstream import newer_server
from tests.blackbox.processes import until
from tests.blackbox.rogue_mcp_http import Rogue
from tests.blackbox.server import Server

pytestmark = pytest.mark.anyio

TOKEN = "0123456789abcdef-token"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def rogue() -> Iterator[Rogue]:
    with Rogue().running() as running:
        yield running


@pytest.fixture(scope="module")
async def opened():
    async with Executor.open(config=Config(workers=1, search="words")) as executor:
        yield executor


@pytest.fixture
async def ex(opened: Executor):
    yield opened
    for one in opened.toolbox.integrations():
        await opened.remove(one["name"], connections=True)


@pytest.fixture(scope="module")
def newer() -> Iterator[str]:
    with newer_server() as url:
        yield url


async def add(ex: Executor, url: str, **options: object) -> None:
    await ex.add_mcp("far", url=url, allow_private=["127.0.0.1"], **options)  # type: ignore[arg-type]


async def call(ex: Executor, name: str, **args: object) -> object:
    return await ex.call(f"far.org.main.{name}", args)


async def failed(ex: Executor, name: str, **args: object) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await call(ex, name, **args)
    return caught.value


async def test_a_server_of_the_older_era_is_called_in_one_session_that_is_ended(rogue: Rogue):
    async with Executor.open(config=Config(workers=1, search="words")) as ex:
        await add(ex, rogue.url)
        assert await call(ex, "echo", text="hi") == "hi"
        assert (rogue.opened, len(rogue.sessions)) == (1, 1)
        assert {headers.get("mcp-protocol-version") for _, headers in rogue.headers[2:]} == {"2025-06-18"}
    assert rogue.sessions == set()


async def test_a_server_of_the_newer_era_is_called_without_a_session(ex: Executor, newer: str):
    await add(ex, newer)
    described = await ex.describe("far.org.main.add")
    assert "{ a: number; b: number }" in described["signature"]
    assert described["side_effect"] == "read"
    assert await call(ex, "add", a=1, b=2) == {"result": 3}
    assert (await ex.run("await tools.far.org.main.add({a: 20, b: 22})")).unwrap() == {"result": 42}
    error = await failed(ex, "boom")
    assert error.code == "upstream_error"
    assert (await failed(ex, "add", a="x", b=2)).code == "invalid_arguments"


async def test_fifty_calls_at_once_are_answered(ex: Executor, rogue: Rogue, newer: str):
    await add(ex, rogue.url)
    await ex.add_mcp("new", url=newer, allow_private=["127.0.0.1"])
    source = """
    const one = i => i % 2 ? tools.far.org.main.echo({text: String(i)}) : tools.new.org.main.add({a: i, b: 0})
    await Promise.all(Array.from({length: 50}, (_, i) => one(i)))
    """
    result = (await ex.run(source)).unwrap()
    assert result == [str(i) if i % 2 else {"result": i} for i in range(50)]
    assert rogue.opened == 1


async def test_a_private_address_is_refused_until_it_is_named(ex: Executor, rogue: Rogue):
    with pytest.raises(ImportFailed, match="not on the public internet"):
        await ex.add_mcp("far", url=rogue.url)
    assert rogue.headers == []
    for url in ("ftp://127.0.0.1/mcp", "http://u:p@127.0.0.1/mcp", "file:///etc/passwd", "x"):
        with pytest.raises(ImportFailed):
            await add(ex, url)
    for wrong in ({}, {"url": rogue.url, "command": ["true"]}):
        with pytest.raises(InvalidRequest):
            await ex.add_mcp("far", **wrong)


async def test_a_credential_is_placed_in_each_request_and_masked_in_what_comes_back(
    ex: Executor, rogue: Rogue, monkeypatch: pytest.MonkeyPatch
):
    rogue.token = TOKEN
    with pytest.raises(ImportFailed, match="401"):
        await add(ex, rogue.url)
    monkeypatch.setenv("FAR", TOKEN)
    await add(ex, rogue.url, auth="bearer", secret="env:FAR")
    seen = json.loads(str(await call(ex, "headers")))
    assert seen["authorization"] == "Bearer [secret]"
    assert seen["user-agent"] == "executor"
    assert set(seen) <= {
        *("host", "user-agent", "accept-encoding", "accept", "content-type", "content-length"),
        *("authorization", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"),
    }
    rogue.token = "another one"
    error = await failed(ex, "echo", text="x")
    assert (error.code, error.status) == ("credential_rejected", 401)
    monkeypatch.setenv("FAR", "another one")
    assert await call(ex, "echo", text="x") == "x"
    assert rogue.opened == 1


async def test_a_session_that_the_server_has_forgotten_is_opened_again(ex: Executor, rogue: Rogue):
    await add(ex, rogue.url)
    rogue.forget()
    assert await call(ex, "echo", text="still") == "still"
    assert rogue.opened == 2
    rogue.restart()
    assert await call(ex, "echo", text="and again") == "and again"


async def test_an_answer_as_events_is_read_however_it_comes(ex: Executor, rogue: Rogue):
    await add(ex, rogue.url)
    assert await call(ex, "sse") == "sse"
    assert await call(ex, "slow") == "slow"


async def test_what_a_server_says_about_a_failure_is_told(ex: Executor, rogue: Rogue):
    await add(ex, rogue.url)
    error = await failed(ex, "fail")
    assert (error.status, error.retryable, error.retry_after_ms) == (503, True, 7000)
    assert "come back later" in error.message
    assert (await failed(ex, "abandon")).code == "upstream_unreachable"
    assert (await failed(ex, "huge")).code == "too_large"
    assert await call(ex, "echo", text="on") == "on"


async def test_arguments_that_take_too_much_as_they_are_written_are_not_sent(ex: Executor, rogue: Rogue):
    await add(ex, rogue.url)
    error = await failed(ex, "echo", text="\x01" * 500_000)
    assert (error.code, error.details) == ("too_large", {"limit": written_limit(ARGS_BYTES), "size": 3_000_011})
    assert await call(ex, "echo", text="x" * 500_000) == "x" * 500_000


async def test_an_effect_whose_answer_was_lost_is_unknown(ex: Executor, rogue: Rogue):
    await add(ex, rogue.url)
    await ex.toolbox.add_policy("far", "*", "approve")
    run = await ex.run("await tools.far.org.main.lose()")
    assert [one["outcome"] for one in run.calls] == ["unknown"]


async def test_a_redirect_to_another_place_is_not_followed(ex: Executor, rogue: Rogue):
    await add(ex, rogue.url)
    error = await failed(ex, "away")
    assert error.code == "upstream_error"
    assert "not followed" in error.message


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(ex: Executor, rogue: Rogue):
    await add(ex, rogue.url)
    run = await ex.run("await tools.far.org.main.never()", wait=False)
    await until(lambda: any(one.get("params", {}).get("name") == "never" for one in rogue.heard))
    await ex.cancel_run(run.run_id)
    await until(lambda: "notifications/cancelled" in rogue.methods())
    assert await call(ex, "echo", text="on") == "on"


async def test_a_server_that_announces_another_list_is_listed_again(ex: Executor, rogue: Rogue):
    """POL-07"""
    await add(ex, rogue.url)
    await until(lambda: rogue.streams)
    rogue.tools = [tool for tool in rogue.tools if tool["name"] != "sse"]
    rogue.tools = [tool | {"annotations": {"readOnlyHint": True}} for tool in rogue.tools]
    rogue.announce()
    await until(lambda: ex.awaiting_review("far")["tools"])
    assert {one["tool"] for one in ex.awaiting_review("far")["tools"]} == {"write", "lose"}
    assert (await failed(ex, "write")).code == "blocked"
    assert (await failed(ex, "sse")).code == "tool_not_found"


async def test_a_tool_that_is_said_to_be_missing_in_a_result_is_looked_for(ex: Executor, rogue: Rogue):
    await add(ex, rogue.url)
    assert (await failed(ex, "retired")).code == "tool_not_found"
    assert "far.org.main.retired" not in [tool["path"] for tool in (await ex.tools(limit=100))["items"]]


async def test_the_token_of_a_client_goes_to_no_upstream(server: Server, rogue: Rogue):
    """SEC-30"""
    body = {"kind": "mcp", "name": "far", "url": rogue.url, "allow_private": ["127.0.0.1"]}
    assert server.ask("POST", "/integrations", body).status == 201
    called = server.ask("POST", "/tools/far.org.main.headers/call", {"args": {}})
    assert called.status == 200, called.body
    assert server.key
    assert "authorization" not in json.loads(called.json["value"])
    assert not any(server.key in json.dumps(headers) for _, headers in rogue.headers)


async def test_no_program_is_started_at_the_word_of_the_network(server: Server):
    """MCP-14"""
    body = {"kind": "mcp", "name": "shell", "command": ["/bin/sh", "-c", "touch pwned"]}
    refused = server.ask("POST", "/integrations", body)
    assert (refused.status, refused.json["error"]["code"]) == (403, Forbidden.code)
    assert "http_programs" in refused.json["error"]["hint"]
    auth = {"type": "env", "name": "LD_PRELOAD", "value": "/tmp/x.so"}
    added = server.ask("POST", "/integrations", {"kind": "http", "name": "w", "allow": ["https://e.com"], "auth": auth})
    assert added.status == 403


async def test_an_answer_of_too_many_parts_is_refused_before_any_of_them_is_read(ex: Executor, rogue: Rogue):
    """Reading them takes the event loop for seconds, in which nobody else is answered."""
    await add(ex, rogue.url)
    error = await failed(ex, "parts")
    assert (error.code, error.message) == ("upstream_error", "The answer of the server has more than 10000 parts.")


async def test_a_number_that_json_lacks_fails_the_call_and_not_the_run(ex: Executor, rogue: Rogue):
    await add(ex, rogue.url)
    assert (await failed(ex, "nan")).code == "upstream_error"
    caught = "try { await tools.far.org.main.nan({}) } catch (e) { return [e.code, e.message] }"
    code, message = (await ex.run(caught)).unwrap()
    assert code == "upstream_error"
    assert "$.rows[1]" in message


async def test_a_server_that_lists_more_tools_than_there_may_be_is_refused(ex: Executor, rogue: Rogue):
    rogue.tools = [{"name": f"t{at}"} for at in range(10_001)]
    with pytest.raises(ImportFailed, match="more than 10000 tools"):
        await add(ex, rogue.url)


@pytest.mark.parametrize("how", ["error", "result"])
async def test_no_half_of_a_secret_stands_where_what_a_server_says_is_cut(
    ex: Executor, rogue: Rogue, monkeypatch: pytest.MonkeyPatch, how: str
):
    monkeypatch.setenv("FAR_TOKEN", TOKEN)
    rogue.token = TOKEN
    await add(ex, rogue.url, auth="bearer", secret="env:FAR_TOKEN")
    for cut in (1000, 16 * 1024):
        for shown in range(0, 30, 4):
            told = str((await failed(ex, "says", how=how, before=cut - shown)).as_dict())
            assert not any(TOKEN[at : at + 8] in told for at in range(len(TOKEN) - 7))
