"""Scripts against a GraphQL server on loopback, and the doors by which its API is added."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from graphql import build_schema, introspection_from_schema, parse, validate
from jsonschema import Draft202012Validator
from starlette.responses import JSONResponse, PlainTextResponse

from bridge.wire.errors import Conflict, ImportFailed, InvalidRequest
from executor import Config, Executor, ToolError
from executor.cli.commands import add
from executor.cli.options import UsageError, Where
from tests.blackbox.command import cli
from tests.blackbox.graphql_tracker import SDL, TOKEN, Tracker, tracker_running
from tests.blackbox.server import serving

pytestmark = pytest.mark.anyio

LOCAL = ["127.0.0.1"]


@pytest.fixture(scope="module")
def running() -> Iterator[Tracker]:
    with tracker_running() as one:
        yield one


@pytest.fixture
def tracker(running: Tracker) -> Tracker:
    running.reset()
    return running


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def opened() -> AsyncIterator[Executor]:
    async with Executor.open(config=Config(workers=1, search="words")) as ex:
        yield ex


@pytest.fixture
async def executor(opened: Executor, tracker: Tracker) -> AsyncIterator[Executor]:
    await opened.add_graphql("tr", tracker.url, allow_private=LOCAL, any_query=True)
    tracker.requests.clear()
    yield opened
    for one in opened.toolbox.integrations():
        await opened.remove(one["name"], connections=True)


async def ran(executor: Executor, code: str, **options: Any) -> Any:
    return (await executor.run(f"const t = tools.tr.org.main; {code}", **options)).unwrap()


async def refused(executor: Executor, path: str, args: dict[str, Any]) -> ToolError:
    with pytest.raises(ToolError) as refusal:
        await executor.call(f"tr.org.main.{path}", args)
    return refusal.value


async def test_every_generated_operation_is_valid_and_answered_as_described(
    executor: Executor, tracker: Tracker
) -> None:
    schema = build_schema(SDL)
    await executor.toolbox.add_policy("tr", "*", "approve")
    given: dict[str, dict[str, Any]] = {
        "query.issue": {"id": "i1"},
        "query.which": {"by": {"number": 3}},
        "query.find": {"text": "Issue"},
        "query.node": {"id": "uann"},
        "mutation.createIssue": {"input": {"title": "New"}},
        "mutation.closeIssue": {"id": "i1"},
        "mutation.deleteIssue": {"id": "i2"},
    }
    paths = [one["path"].removeprefix("tr.org.main.") for one in (await executor.search("", limit=50))["items"]]
    for name in (one for one in paths if one != "graphql"):
        value = await ran(
            executor, "await tools.call(`tr.org.main.${input[0]}`, input[1])", input=[name, given.get(name, {})]
        )
        told = await executor.describe(f"tr.org.main.{name}", schemas=True)
        Draft202012Validator(told["output_schema"]).validate(value)
    assert len(tracker.requests) == len(paths) - 1 == 11
    for query in tracker.queries():
        assert validate(schema, parse(query)) == [], query


async def test_a_script_reads_selects_pages_and_catches(executor: Executor, tracker: Tracker) -> None:
    found = await ran(
        executor,
        """
        const [one, few, ids] = await Promise.all([
          t.query.issue({ id: "i1" }),
          t.query.issues({ first: 1, select: "nodes { id comments(first: 2) }" }),
          (async () => { const all = []; for await (const i of tools.paginate("tr.org.main.query.issues", { first: 1 }))
            all.push(i.id); return all; })(),
        ]);
        const missing = await t.query.issue({ id: "x" }).catch(e => [e.code, e.message, e.details.errors[0].path]);
        ({ one, few, ids, missing })
        """,
    )
    assert found["one"]["labels"] == {"color": ["red", 1]}
    assert found["few"] == {"nodes": [{"id": "i1", "comments": ["comment 0", "comment 1"]}]}
    assert found["ids"] == ["i1", "i2", "i3"]
    assert found["missing"] == [
        "upstream_error",
        "The server answered with errors and no data: There is no issue x.",
        ["issue"],
    ]
    assert all(isinstance(one, dict) for one in tracker.requests)


async def test_python_calls_it_too(executor: Executor) -> None:
    code = 'await tools.tr.org.main.query.issue(id="i2", select="{ title }")'
    answer = await executor.run(code, language="python")
    assert answer.unwrap() == {"title": "Issue 2"}


async def test_a_part_that_is_missing_is_told_beside_the_value(executor: Executor) -> None:
    answer = await ran(executor, 'await tools.call("tr.org.main.query.parts", {}, { meta: true })')
    assert [one and one["id"] for one in answer["value"]] == ["i1", None]
    assert answer["http"]["errors"] == [
        {"message": "This one cannot be read.", "path": ["parts", 1], "extensions": {"code": "BROKEN"}}
    ]
    assert len(await ran(executor, "await t.query.parts()")) == 2


async def test_what_cannot_be_sent_is_refused_before_anything_leaves(executor: Executor, tracker: Tracker) -> None:
    for path, args, said in [
        ("query.issue", {"id": "i1", "select": "{ nope }"}, "Cannot query field"),
        ("query.issue", {"id": "i1", "selct": "{ id }"}, "Did you mean select?"),
        ("query.issue", {}, "Missing id"),
        ("query.issues", {"first": "2"}, "not of type integer"),
        ("query.issues", {"filter": {"state": "SHUT"}}, "SHUT"),
        ("query.viewer", {"select": ""}, "empty"),
        ("graphql", {"query": "{ nope }"}, "Cannot query field 'nope' on type 'Query'"),
        ("graphql", {"query": "query($n: Int!) { issues(first: $n) { totalCount } }"}, "to be provided"),
        ("graphql", {"query": "subscription { changed { id } }"}, "subscription"),
        ("graphql", {"query": ["{ viewer { id } }"]}, "not of type string"),
    ]:
        error = await refused(executor, path, args)
        assert error.code == "invalid_arguments"
        assert said in error.message, (path, args)
    assert tracker.requests == []


async def test_a_mutation_waits_for_a_person_and_a_query_does_not(executor: Executor, tracker: Tracker) -> None:
    code = 'const a = await t.query.viewer(); const b = await t.mutation.deleteIssue({ id: "i1" }); ({ a, b })'
    run = await executor.run(f"const t = tools.tr.org.main; {code}")
    assert run.status == "waiting"
    assert run.interactions[0]["side_effect"] == "write"
    assert len(tracker.requests) == 1
    done = await executor.resume(run.run_id, run.interactions[0]["id"], "approve", wait=True)
    assert done.result["b"] is True
    assert [one["id"] for one in tracker.issues] == ["i2", "i3"]


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (PlainTextResponse("<title>Bad gateway</title>", 502, media_type="text/html"), "upstream_error", "Bad gateway"),
        (PlainTextResponse("hello"), "upstream_error", "not a GraphQL response"),
        (JSONResponse([{"data": {}}]), "upstream_error", "not a GraphQL response"),
        (JSONResponse({"message": "moved"}), "upstream_error", "not a GraphQL response"),
        (JSONResponse({"data": None}), "upstream_error", "not a GraphQL response"),
        (JSONResponse({"data": {}}), "upstream_error", "without the field"),
        (JSONResponse({"data": "x", "errors": []}), "upstream_error", "not a GraphQL response"),
        (JSONResponse({"errors": "all"}, 400), "upstream_error", "answered 400"),
        (JSONResponse({"errors": [{"message": "wait", "type": "RATE_LIMITED"}]}), "upstream_error", "wait"),
        (JSONResponse({"errors": [None, 1, {"message": {}}]}), "upstream_error", "None; 1"),
        (PlainTextResponse('{"data": ', media_type="application/json"), "upstream_error", "is not"),
        (PlainTextResponse('{"data": ' + "[" * 99999, media_type="application/json"), "too_large", "nested deeper"),
        (JSONResponse({"errors": [{"message": "who?"}]}, 401), "upstream_error", "answered 401: who?"),
        (JSONResponse({"error": "nowhere"}, 404), "upstream_error", "answered 404: nowhere"),
        (JSONResponse({}, 302, {"location": "http://127.0.0.1:1/"}), "upstream_error", "answered 302"),
    ],
)  # fmt: skip
async def test_an_answer_that_is_not_graphql_fails_typed(
    executor: Executor, tracker: Tracker, answer: Any, code: str, said: str
) -> None:
    tracker.answer = answer
    error = await refused(executor, "query.viewer", {})
    assert (error.code, said in error.message) == (code, True), error.message


async def test_errors_with_a_status_of_their_own_media_type_are_read(executor: Executor, tracker: Tracker) -> None:
    media = "application/graphql-response+json"
    tracker.answer = JSONResponse({"errors": [{"message": "no such field"}]}, 400, media_type=media)
    assert "no such field" in (await refused(executor, "query.viewer", {})).message
    tracker.answer = JSONResponse({"data": {"viewer": {"id": "u1"}}}, media_type=media)
    assert await executor.call("tr.org.main.query.viewer", {}) == {"id": "u1"}


async def test_the_schema_is_asked_for_with_the_credential_of_the_connection(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKER", TOKEN)
    async with Executor.open() as ex:
        await ex.add_graphql("tr", tracker.url, allow_private=LOCAL, secret="env:TRACKER")
        await ex.call("tr.org.main.query.viewer", {})
        assert tracker.authorizations == [f"Bearer {TOKEN}"] * 2
        assert (await ex.check_connection("tr"))["status"] == "ok"
        answer = {"data": None, "errors": [{"message": f"bad {TOKEN}", "extensions": {"code": "UNAUTHENTICATED"}}]}
        tracker.answer = JSONResponse(answer)
        with pytest.raises(ToolError) as refusal:
            await ex.call("tr.org.main.query.viewer", {})
        assert refusal.value.code == "credential_rejected"
        assert TOKEN not in json.dumps(refusal.value.as_dict())
        assert (await ex.check_connection("tr"))["status"] == "credential_rejected"
        tracker.answer = None
        await ex.toolbox.refresh("tr")
        assert tracker.authorizations[-1] == f"Bearer {TOKEN}"


async def test_introspection_that_is_refused_says_why_and_what_to_do_and_adds_nothing(tracker: Tracker) -> None:
    """A refused introspection is not an empty catalog."""
    tracker.introspection = False
    async with Executor.open() as ex:
        with pytest.raises(ImportFailed) as refusal:
            await ex.add_graphql("tr", tracker.url, allow_private=LOCAL)
        assert "introspection is not allowed" in refusal.value.message
        assert "SDL" in (refusal.value.hint or "")
        tracker.answer = JSONResponse({"message": "who?"}, 401)
        with pytest.raises(ImportFailed, match="no credential was sent"):
            await ex.add_graphql("tr", tracker.url, allow_private=LOCAL)
        tracker.answer = PlainTextResponse("hello")
        with pytest.raises(ImportFailed, match="not that of a GraphQL endpoint"):
            await ex.add_graphql("tr", tracker.url, allow_private=LOCAL)
        assert ex.toolbox.integrations() == []
        tracker.answer = None
        report = await ex.add_graphql("tr", SDL, url=tracker.url, allow_private=LOCAL)
        assert len(report.tools) == 11


async def test_a_failed_refresh_keeps_what_there_is_and_a_new_mutation_awaits_review(tracker: Tracker) -> None:
    async with Executor.open() as ex:
        await ex.add_graphql("tr", tracker.url, allow_private=LOCAL, any_query=True)
        tracker.introspection = False
        with pytest.raises(ImportFailed):
            await ex.toolbox.refresh("tr")
        assert await ex.call("tr.org.main.query.viewer", {})
        await ex.toolbox.add_policy("tr", "*", "approve")
        more = SDL.replace("type Mutation {", "type Mutation { eraseAll: Boolean ")
        report = await ex.toolbox.refresh("tr", more)
        assert report.awaiting == ["mutation.eraseAll"]
        tracker.requests.clear()
        for path, args in (("mutation.eraseAll", {}), ("graphql", {"query": "mutation { a: eraseAll }"})):
            error = await refused(ex, path, args)
            assert error.code == "blocked"
            assert "awaits review" in error.message
        assert tracker.requests == []
        assert await ex.call("tr.org.main.graphql", {"query": "{ viewer { id } }"}) == {"viewer": {"id": "uann"}}


async def test_what_cannot_be_added_is_refused(tracker: Tracker, tmp_path: Path) -> None:
    file = tmp_path / "schema.graphql"
    file.write_text(SDL)
    async with Executor.open() as ex:
        for source, options in ((SDL, {}), (file, {}), (SDL, {"url": "not a url"})):
            with pytest.raises((InvalidRequest, ImportFailed)):
                await ex.add_graphql("tr", source, **options)
        await ex.add_graphql("tr", file, url="https://93.184.216.34/graphql")
        with pytest.raises(Conflict):
            await ex.add_graphql("tr", file, url="https://93.184.216.34/graphql")
        assert (await ex.toolbox.refresh("tr")).unchanged == 11
        await ex.add_graphql("own", file, url=tracker.url, allow_private=LOCAL)
        assert (await ex.toolbox.refresh("own", tracker.url)).unchanged == 11
        assert "__schema" in tracker.queries()[-1]


async def test_a_home_that_is_opened_again_checks_selections_as_before(tracker: Tracker, tmp_path: Path) -> None:
    async with Executor.open(tmp_path / "home") as ex:
        await ex.add_graphql("tr", tracker.url, allow_private=LOCAL, any_query=True)
    async with Executor.open(tmp_path / "home") as ex:
        assert await ex.call("tr.org.main.query.issue", {"id": "i1", "select": "{ title }"}) == {"title": "Issue 1"}
        assert "nope" in (await refused(ex, "query.issue", {"id": "i1", "select": "{ nope }"})).message
        assert await ex.call("tr.org.main.graphql", {"query": "{ n: issues { totalCount } }"}) == {
            "n": {"totalCount": 3}
        }


async def test_one_type_is_described_with_the_arguments_that_its_fields_take(executor: Executor) -> None:
    told = (await executor.describe("tr.org.main.query.issue#Issue"))["signature"]
    assert "author: User | null; parent: Issue | null; children: Issue[]; createdAt: string;" in told
    assert '"comments(first: Int!, author?)": string[]' in told


def test_it_is_added_over_http_and_on_the_command_line(tracker: Tracker, tmp_path: Path) -> None:
    file = tmp_path / "schema.graphql"
    file.write_text(SDL)
    data = introspection_from_schema(build_schema(SDL))
    with serving(tmp_path / "home") as server:
        local = {"kind": "graphql", "allow_private": LOCAL}
        for name, body in {
            "asked": {"source": tracker.url, "any_query": True},
            "sdl": {"source": SDL, "url": tracker.url},
            "data": {"source": data, "url": tracker.url},
        }.items():
            added = server.ask("POST", "/integrations", local | {"name": name} | body)
            assert added.status == 201, added.body
            assert f"{name}.org.main.query.viewer" in added.json["tools"]
            called = server.ask(
                "POST", f"/tools/{name}.org.main.query.issue/call", {"args": {"id": "i1", "select": "id"}}
            )
            assert called.json["value"] == {"id": "i1"}
        path = {"kind": "graphql", "name": "file", "source": str(file), "url": tracker.url}
        assert server.ask("POST", "/integrations", path).code == "invalid_request"
        odd = {"kind": "graphql", "name": "file", "source": f"{file}#{{", "url": tracker.url}
        assert server.ask("POST", "/integrations", odd).status == 422
        shorter = SDL.replace("closeIssue(id: ID!): Issue", "")
        report = server.ask("POST", "/integrations/sdl/refresh", {"source": shorter}).json
        assert [one["tool"] for one in report["removed"]] == ["mutation.closeIssue"]
        remote = ("--url", server.url, "--key", server.key)
        done = cli(tmp_path / "home", "add", "graphql", str(file), "--name", "far", "--endpoint", tracker.url,
                   "--allow-private", "127.0.0.1", *remote)  # fmt: skip
        assert done.returncode == 0, done.stderr
        done = cli(tmp_path / "home", "refresh", "far", str(file), *remote)
        assert done.returncode == 0, done.stderr
    home = tmp_path / "other"
    done = cli(home, "add", "graphql", tracker.url, "--name", "tr", "--allow-private", "127.0.0.1", "--any-query")
    assert done.returncode == 0, done.stderr
    assert "added tr: 12 tools" in done.stderr + done.stdout
    assert "#Subscription left out: subscriptions" in done.stderr + done.stdout


async def test_a_schema_without_an_endpoint_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "schema.graphql"
    file.write_text(SDL)
    with pytest.raises(UsageError, match="does not say where its API is"):
        await add.graphql(str(file), name="x", where=Where(home=tmp_path / "home"))
