"""What a GraphQL API, or a script that uses one, could try. Ids are those of the catalogue."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from starlette.responses import JSONResponse

from bridge.wire.errors import ExecutorError, ImportFailed
from catalog.kinds.graphql import reader
from catalog.kinds.graphql.integration import GraphQL
from executor import Config, Executor, ToolError
from tests.blackbox.graphql_tracker import SDL, TOKEN, Tracker, tracker_running

pytestmark = pytest.mark.anyio

LOCAL = ["127.0.0.1"]
ANY = "tr.org.main.graphql"


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
    await opened.add_graphql("tr", SDL, url=tracker.url, allow_private=LOCAL, any_query=True)
    yield opened
    for one in opened.toolbox.integrations():
        await opened.remove(one["name"], connections=True)


async def refusal(executor: Executor, args: dict[str, Any], path: str = ANY) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await executor.call(path, args)
    return caught.value


DISGUISED = {
    "plain": "mutation { deleteIssue(id: 1) }",
    "named like a query": "mutation query { deleteIssue(id: 1) }",
    "aliased as a query": "mutation { viewer: deleteIssue(id: 1) }",
    "after a comment": "# query { viewer { id } }\nmutation { deleteIssue(id: 1) }",
    "behind commas and a mark": "\ufeff,,,\r\n#\r mutation,{,deleteIssue(id:1),}",
    "in a fragment": "mutation { ...F } fragment F on Mutation { deleteIssue(id: 1) }",
    "in an inline fragment": "mutation { ... on Mutation { ... @include(if: true) { deleteIssue(id: 1) } } }",
    "under a condition": "mutation($no: Boolean = false) { deleteIssue(id: 1) @include(if: $no) }",
    "beside __typename": "mutation { __typename deleteIssue(id: 1) }",
}


@pytest.mark.parametrize("document", DISGUISED.values(), ids=DISGUISED)
async def test_a_mutation_is_known_for_one_however_it_is_written(
    executor: Executor, tracker: Tracker, document: str
) -> None:
    """POL-24: the parsed operation and its root fields decide, not the text."""
    error = await refusal(executor, {"query": document})
    assert error.code == "approval_required"
    assert (error.details or {})["side_effect"] == "write"
    assert "mutation.deleteIssue" in error.message
    assert tracker.requests == []


async def test_of_several_operations_the_one_that_is_chosen_decides_and_goes_alone(
    executor: Executor, tracker: Tracker
) -> None:
    """POL-24"""
    both = "query Read { viewer { login } } mutation Write { deleteIssue(id: 1) }"
    assert "say which" in (await refusal(executor, {"query": both})).message
    assert (await refusal(executor, {"query": both, "operationName": "Write"})).code == "approval_required"
    assert await executor.call(ANY, {"query": both, "operationName": "Read"}) == {"viewer": {"login": "ann"}}
    assert [one["operationName"] for one in tracker.requests] == ["Read"]
    assert "deleteIssue" not in tracker.queries()[0]


async def test_a_rule_for_a_field_holds_within_any_document(executor: Executor, tracker: Tracker) -> None:
    """POL-24: approving the tool that takes documents approves nothing that its fields' own tools may not do."""
    await executor.toolbox.add_policy("tr", "graphql", "approve")
    error = await refusal(executor, {"query": "mutation { ok: closeIssue(id: 1) { id } }"})
    assert error.code == "approval_required"
    assert "mutation.closeIssue" in (error.hint or "")
    await executor.toolbox.add_policy("tr", "mutation.*", "approve")
    assert await executor.call(ANY, {"query": 'mutation { ok: closeIssue(id: "i1") { state } }'})
    await executor.toolbox.add_policy("tr", "mutation.deleteIssue", "block")
    await executor.toolbox.add_policy("tr", "query.node", "block")
    tracker.requests.clear()
    for document in (
        'mutation { a: closeIssue(id: "i1") { id } b: deleteIssue(id: "i1") }',
        "mutation { ...F } fragment F on Mutation { deleteIssue(id: 1) }",
        "{ viewer { login } x: node(id: 1) { id } }",
    ):
        assert (await refusal(executor, {"query": document})).code == "blocked"
    assert tracker.requests == []


async def test_what_narrows_a_caller_narrows_its_documents(executor: Executor, tracker: Tracker) -> None:
    """POL-24"""
    await executor.toolbox.toolkits.create("kit", tools=["tr.org.main.graphql", "tr.org.main.query.viewer"])
    kit = executor.scope(toolkit="kit")
    assert await kit.call(ANY, {"query": "{ me: viewer { login } }"}) == {"me": {"login": "ann"}}
    with pytest.raises(ToolError) as caught:
        await kit.call(ANY, {"query": "{ viewer { login } issues { totalCount } }"})
    assert caught.value.code == "blocked"
    assert len(tracker.requests) == 1


async def test_a_person_who_says_yes_says_it_to_the_document_that_is_sent(executor: Executor, tracker: Tracker) -> None:
    """POL-24"""
    code = f"await tools.call({ANY!r}, {{ query: input }})"
    run = await executor.run(code, input='mutation { viewer: deleteIssue(id: "i1") }')
    asked = run.interactions[0]
    assert asked["side_effect"] == "write"
    assert "mutation.deleteIssue" in asked["reason"]
    done = await executor.resume(run.run_id, asked["id"], "approve", wait=True)
    assert done.result == {"viewer": True}
    assert len(tracker.requests) == 1


async def test_a_selection_cannot_end_its_operation_and_begin_another(executor: Executor, tracker: Tracker) -> None:
    """POL-24: the selection of a read."""
    for select in (
        "{ id } } mutation { deleteIssue(id: 1)",
        "id } } mutation M { deleteIssue(id: 1) } query Q { viewer { id",
        '{ id } #\n} mutation { deleteIssue(id: "i1") }',
        'id body(format: """ } } mutation { a } """) } mutation { deleteIssue(id: 1)',
        "...F } fragment F on Issue { id",
    ):
        error = await refusal(executor, {"id": "i1", "select": select}, "tr.org.main.query.issue")
        assert error.code == "invalid_arguments"
    assert tracker.requests == []


async def test_floods_are_refused_and_batches_cannot_be_written(executor: Executor, tracker: Tracker) -> None:
    """SSRF-54 and POL-24: aliases, depth, size, fragments that double each other, an array of operations."""
    doubling = "\n".join(f"fragment F{at} on User {{ ...F{at + 1} ...F{at + 1} }}" for at in range(60))
    floods = [
        "{ " + " ".join(f"a{at}: viewer {{ id }}" for at in range(10_000)) + " }",
        "{ viewer { " + " ".join(f"a{at}: id" for at in range(200)) + " } }",
        "{ issue(id: 1) " + "{ parent " * 1000 + "{ id }" + " }" * 1000 + " }",
        "{ viewer { ...F0 } }\n" + doubling + "\nfragment F60 on User { id }",
        "{ " + "viewer { id } " * 150 + " }",
        "{ viewer { id } } #" + "x" * 500_000,
        "{ viewer @include(if: true) { id" + " @include(if: true)" * 2000 + " } }",
        "{ echo(select: " + "[" * 2000,
        '[{"query": "{ viewer { id } }"}]',
    ]
    for document in floods:
        assert (await refusal(executor, {"query": document})).code == "invalid_arguments", document[:60]
    error = await refusal(executor, {"query": [{"query": "{ viewer { id } }"}] * 2})
    assert error.code == "invalid_arguments"
    assert tracker.requests == []


def _introspection(types: list[Any], **more: Any) -> dict[str, Any]:
    return {"data": {"__schema": {"queryType": {"name": "Query"}, "types": types, "directives": []} | more}}


def _object(name: str, *fields: Any) -> dict[str, Any]:
    return {"kind": "OBJECT", "name": name, "fields": list(fields), "interfaces": []}


def _field(name: Any, kind: Any = None, args: Any = ()) -> dict[str, Any]:
    kind = kind or {"kind": "SCALAR", "name": "Int"}
    return {"name": name, "args": list(args), "type": kind, "isDeprecated": False}


FINE = _object("Query", _field("fine"))


@pytest.mark.parametrize(
    "types",
    [
        [FINE, None, 1, "x", [], {}, {"kind": "OBJECT"}, {"name": "A"}, {"kind": "MAGIC", "name": "A"}],
        [FINE, {"kind": "OBJECT", "name": "A", "fields": {"a": 1}, "interfaces": 7}],
        [FINE, {"kind": "ENUM", "name": "E", "enumValues": [None, {"name": "true"}, {"name": "a b"}]}],
        [FINE, {"kind": "UNION", "name": "U", "possibleTypes": [{"name": "U"}, {"name": "Query"}, {"name": "No"}]}],
        [FINE, {"kind": "INPUT_OBJECT", "name": "I", "inputFields": [_field("i", {"kind": "NON_NULL"})]}],
        [_object("Query", _field("fine"), _field("__proto__"), _field("a b"), _field(None), _field("x" * 5000))],
        [_object("Query", _field("fine"), _field("a", {"kind": "LIST"}), _field("b", {"name": "Nope"}), 7, None)],
        [_object("Query", _field("fine"), _field("fine", {"kind": "LIST", "ofType": {"kind": "SCALAR"}}))],
        [_object("Query", _field("fine"), _field("a", {"kind": "OBJECT", "name": "__Schema"}))],
        [_object("Query", _field("fine"), _field("a", args=[_field("x", {"kind": "OBJECT", "name": "Query"})] * 9))],
        [FINE, FINE | {"fields": [_field("other")]}, _object("String"), {"kind": "OBJECT", "name": "Int"}],
    ],
)
def test_descriptions_that_are_wrong_lose_what_is_wrong_and_no_more(types: list[Any]) -> None:
    """SSRF-54: kinds that are none, names that are none, references to nowhere."""
    manifest = GraphQL("x").resolve_tools({"document": _introspection(types), "endpoint": "https://a.example/g"})
    assert "query.fine" in {one.name for one in manifest.tools}
    assert all("__" not in one.name for one in manifest.tools)


def test_descriptions_without_end_are_refused_or_read_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSRF-54: more types than are read, more fields, types nested without end, types in a circle."""
    assert reader.MAX_TYPES <= 20_000
    assert reader.MAX_MEMBERS <= 200_000
    monkeypatch.setattr(reader, "MAX_TYPES", 4000)
    monkeypatch.setattr(reader, "MAX_MEMBERS", 20_000)
    deep: Any = {"kind": "SCALAR", "name": "Int"}
    for _ in range(5000):
        deep = {"kind": "LIST", "ofType": deep}
    many = [_object(f"T{at}", _field("a")) for at in range(reader.MAX_TYPES)]
    wide = _object("Wide", *[_field(f"f{at}") for at in range(reader.MAX_MEMBERS)])
    for types, said in (([FINE, *many], "types"), ([FINE, wide], "fields")):
        with pytest.raises(ImportFailed, match=f"more than|at most .* {said}|{said}"):
            GraphQL("x").resolve_tools({"document": _introspection(types), "endpoint": "https://a.example/g"})
    ring = [
        _object(f"T{at}", _field("next", {"kind": "OBJECT", "name": f"T{(at + 1) % 3000}"}), _field("own"))
        for at in range(3000)
    ]
    query = _object("Query", _field("fine"), _field("deep", deep), _field("ring", {"kind": "OBJECT", "name": "T0"}))
    manifest = GraphQL("x").resolve_tools(
        {"document": _introspection([query, *ring]), "endpoint": "https://a.example/g"}
    )
    assert [one.name for one in manifest.tools] == ["query.fine", "query.ring"]
    assert len(manifest.tools[1].binding["selection"]) < 200


@pytest.mark.parametrize(
    "text",
    [
        "type Query { a: " + "[" * 200_000 + "Int" + "]" * 200_000 + " }",
        "type Query { a(x: Int = " + "[" * 100_000 + "): Int }",
        "type Query { a: Int @x(y: " + "{a:" * 100_000 + ") }",
        "{" * 500_000,
        '{"data": ' + '{"a":' * 100_000,
        "[" * 500_000,
        "type Query " + "{ a: Int } type Query " * 3 + "\x00",
        'type Query { a: Int } """' + "x" * 1000,
    ],
)
def test_texts_that_are_no_schema_are_refused_however_deep_they_are(text: str) -> None:
    """SSRF-54"""
    with pytest.raises(ImportFailed):
        GraphQL("x").resolve_tools({"document": text, "endpoint": "https://a.example/g"})


async def test_a_description_cannot_send_the_calls_elsewhere_and_private_endpoints_are_refused(
    tracker: Tracker,
) -> None:
    """SSRF-54: the endpoint is the operator's word, and the gate's to allow."""
    async with Executor.open() as ex:
        for url in (
            tracker.url,
            "http://169.254.169.254/latest/meta-data",
            "http://[::ffff:127.0.0.1]/graphql",
            "http://localhost/graphql",
            "http://2130706433/graphql",
            "file:///etc/passwd",
        ):
            for source, options in ((url, {}), (SDL, {"url": url}), (url, {"url": "https://93.184.216.34/graphql"})):
                with pytest.raises(ExecutorError):
                    await ex.add_graphql("tr", source, **options)
        assert tracker.requests == []
        report = await ex.add_graphql("tr", SDL, url=tracker.url, allow_private=LOCAL)
        assert report.origins == [f"POST {tracker.url}"]
        tracker.answer = JSONResponse({}, 307, {"location": "http://127.0.0.1:1/graphql"})
        error = await refusal(ex, {}, "tr.org.main.query.viewer")
        assert error.code == "upstream_error"
        assert len(tracker.requests) == 1


async def test_a_kept_credential_does_not_follow_to_a_new_endpoint(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-01: a caller over the network that replaces an integration does not get its account's secret sent along."""
    monkeypatch.setenv("TRACKER", TOKEN)
    async with Executor.open() as ex:
        await ex.add_graphql("tr", SDL, url="https://93.184.216.34/graphql", secret="env:TRACKER")
        adding = ex.toolbox.add_graphql("tr", tracker.url, allow_private=LOCAL, replace=True, host=False)
        with pytest.raises(ImportFailed, match="was not given for"):
            await adding
        assert tracker.authorizations == []


async def test_an_answer_without_end_is_cut_off_and_its_texts_stay_data(executor: Executor, tracker: Tracker) -> None:
    """SSRF-54: errors by the thousand, keys that mean something to a runtime, secrets of nobody."""
    error = {"message": "x" * 10_000, "path": ["a"] * 1000, "extensions": {"code": "Y", "trace": "t" * 100_000}}
    tracker.answer = JSONResponse({"data": {"viewer": None}, "errors": [error] * 40})
    caught = await refusal(executor, {}, "tr.org.main.query.viewer")
    assert len(json.dumps(caught.as_dict())) < 100_000
    tracker.answer = JSONResponse({"data": {"viewer": {"__proto__": {"polluted": 1}, "constructor": 2, "id": "u"}}})
    code = "const v = await tools.tr.org.main.query.viewer(); [v.polluted, ({}).polluted, Object.keys(v)]"
    found = (await executor.run(code)).unwrap()
    assert found == [None, None, ["__proto__", "constructor", "id"]]
