"""GraphQL schemas as tools: what is imported, what is selected by default, and what callers may write."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from graphql import build_schema, introspection_from_schema, parse, validate
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.wire.errors import ImportFailed, ToolError
from catalog.kinds.graphql import answers, documents, limits, operations, selections
from catalog.kinds.graphql.integration import GraphQL, head
from catalog.model import Manifest, Outbound, OutboundResponse, ToolSpec
from catalog.validate import checker
from tests.blackbox.graphql_tracker import SDL
from tests.examples import examples

URL = "https://api.example.com/graphql"


def imported(document: Any, **config: Any) -> Manifest:
    return GraphQL("x").resolve_tools({"document": document, "endpoint": URL} | config)


def tool(manifest: Manifest, name: str) -> ToolSpec:
    return next(one for one in manifest.tools if one.name == name)


def problems(manifest: Manifest) -> list[str]:
    """What graphql-core finds wrong with the operations that calls would send, with few and with all arguments."""
    schema = operations.opened(manifest.kept)
    found = []
    for spec in manifest.tools:
        if spec.binding["operation"] == "any":
            continue
        for names in ((spec.input_schema or {}).get("required", []), spec.binding["arguments"]):
            text = head(spec.binding, dict.fromkeys(names)) + spec.binding["selection"] + " }"
            found += [f"{spec.name}: {one.message}" for one in validate(schema, parse(text))]
    return found


def test_sdl_and_introspection_make_the_same_tools() -> None:
    from_sdl = imported(SDL)
    data = introspection_from_schema(build_schema(SDL), input_value_deprecation=False, one_of=True)
    for document in (data, {"data": data}, json.dumps(data), json.dumps({"data": data}).encode()):
        manifest = imported(document)
        assert [one.name for one in manifest.tools] == [one.name for one in from_sdl.tools]
        for one, other in zip(manifest.tools, from_sdl.tools, strict=True):
            assert one.input_schema == other.input_schema
            assert one.binding == other.binding
        assert problems(manifest) == []


def test_each_root_field_is_a_tool_that_reads_or_writes_and_subscriptions_are_told() -> None:
    manifest = imported(SDL)
    effects = {one.name: one.side_effect for one in manifest.tools}
    assert effects["query.issues"] == "read"
    assert effects["mutation.deleteIssue"] == "write"
    assert "graphql" not in effects
    assert [(one.where, one.message) for one in manifest.diagnostics] == [
        ("#Subscription", "left out: subscriptions are not called (changed)")
    ]
    assert [str(one) for one in manifest.reach] == ["POST https://api.example.com/graphql"]
    assert imported(SDL, any_query=True).tools[-1].name == "graphql"


def test_a_default_selection_leaves_out_what_is_deprecated_needs_arguments_or_comes_back_to_itself() -> None:
    manifest = imported(SDL)
    chosen = tool(manifest, "query.issue").binding["selection"]
    assert chosen == "{ id number title state labels createdAt body author { id login email } }"
    assert problems(manifest) == []


def test_a_page_of_a_list_is_selected_with_its_items_and_its_cursor() -> None:
    spec = tool(imported(SDL), "query.issues")
    chosen = spec.binding["selection"]
    assert chosen.startswith("{ nodes { id ")
    assert chosen.endswith("totalCount pageInfo { hasNextPage endCursor } }")
    edges = SDL.replace("nodes: [Issue!]!, ", "")
    assert "{ edges { node { id " in tool(imported(edges), "query.issues").binding["selection"]


def test_unions_and_interfaces_are_told_apart_by_their_types() -> None:
    manifest = imported(SDL)
    found, node = tool(manifest, "query.find"), tool(manifest, "query.node")
    assert found.binding["selection"].startswith("{ __typename ... on Issue { id ")
    assert node.binding["selection"].startswith("{ __typename id ... on User { login")
    items = (found.output_schema or {})["items"]
    assert items["properties"]["__typename"] == {"enum": ["Issue", "User"]}
    assert items["required"] == ["__typename"]


def test_fields_of_one_name_and_different_types_do_not_contradict_each_other_in_a_union() -> None:
    manifest = imported(
        "type A { id: ID!, name: String, n: Int }\ntype B { id: ID, name: String, n: [Int] }\nunion U = A | B\n"
        "interface I { name: String }\ntype Query { u: U, i: [I] }"
    )
    assert tool(manifest, "query.u").binding["selection"] == ("{ __typename ... on A { id name n } ... on B { name } }")
    assert problems(manifest) == []


def test_a_default_selection_costs_a_bounded_number_of_fields_however_large_its_types_are() -> None:
    leaves = " ".join(f"f{at}: Int" for at in range(40))
    nested = " ".join(f"o{at}: T{at}" for at in range(8))
    types = "\n".join(f"type T{at} {{ {leaves} o: Query q: [[T{(at + 1) % 8}]] }}" for at in range(8))
    manifest = imported(f"{types}\ntype Query {{ {leaves} {nested} }}")
    for spec in manifest.tools:
        counted = spec.binding["selection"].replace("{", " ").replace("}", " ").split()
        assert len(counted) <= selections.MAX_FIELDS + sum(selections.NESTED)
    assert problems(manifest) == []


def test_a_type_with_nothing_to_select_still_makes_a_valid_operation() -> None:
    manifest = imported("type A { a(x: Int!): Int }\ntype B { b: B }\ntype Query { a: A! b: [B] }")
    assert tool(manifest, "query.a").binding["selection"] == "{ __typename }"
    assert problems(manifest) == []


def test_arguments_keep_their_types_and_what_has_a_default_may_be_left_out() -> None:
    manifest = imported(SDL)
    taken = tool(manifest, "query.issues").input_schema or {}
    assert "required" not in taken
    assert taken["properties"]["first"] == {"type": "integer", "description": "Default: 2"}
    assert taken["properties"]["filter"] == {"anyOf": [{"$ref": "#/$defs/IssueFilter"}, {"type": "null"}]}
    assert (tool(manifest, "query.issue").input_schema or {})["required"] == ["id"]
    check = checker(tool(manifest, "query.issues").input_schema, manifest.definitions)
    assert check is not None
    assert check({"filter": {"number": {"also": {"from": 1}}, "any": [{"state": "OPEN"}]}}) is None
    assert "SHUT" in str(check({"filter": {"any": [{"state": "SHUT"}]}}))
    assert "form" in str(check({"filter": {"number": {"form": 1}}}))
    which = checker(tool(manifest, "query.which").input_schema, manifest.definitions)
    assert which is not None
    assert which({"by": {"number": 1}}) is None
    assert which({"by": {"number": 1, "id": "i1"}}) is not None


def test_an_argument_called_select_keeps_its_name() -> None:
    assert tool(imported(SDL), "query.echo").binding["select"] == ""
    manifest = imported("type A { a: Int }\ntype Query { a(select: Int, select_: Int): A }")
    assert list((manifest.tools[0].input_schema or {})["properties"]) == ["select", "select_", "select__"]


def test_only_arguments_that_are_given_are_declared() -> None:
    binding = tool(imported(SDL), "query.issues").binding
    assert head(binding, {}) == "query { issues "
    assert head(binding, {"first": 1}) == "query($first: Int!) { issues(first: $first) "


def test_published_schemas_with_faults_lose_only_what_is_faulty() -> None:
    manifest = imported(
        "type A { a: Int a: String b: Missing __c: Int d(x: Missing!): Int e(x: Missing): Int f(i: A): Int }\n"
        "type A { again: Int }\nunion U = A | Missing\nextend type Query { more: Int }\n"
        "directive @x on FIELD\ntype Query { a: A u: U b: Missing then: Int }\nextend type Query { late: Int }"
    )
    assert {one.name for one in manifest.tools} == {"query.a", "query.u", "query.then_", "query.more", "query.late"}
    assert set(manifest.definitions["A"]["properties"]) == {"a", "again", "e", "f"}
    assert {one.where for one in manifest.diagnostics} == {
        "#Query.b", "#A.b", "#A.__c", "#A.d", "#A.d.x", "#A.e.x", "#A.f.i"
    }  # fmt: skip
    assert problems(manifest) == []


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("", "empty"),
        ("<html>", "HTML"),
        ("type Query {", "line 1 column 13"),
        ("{ a b }", "not JSON"),
        ('{"errors": [{"message": "introspection is off"}]}', "introspection is off"),
        ({"data": None, "errors": []}, "no key __schema"),
        ({"__schema": {"types": {}}}, "no list of types"),
        ({"__schema": {"types": [], "queryType": {"name": "Q"}}}, "no query and no mutation"),
        ("type A { a: Int }", "no query and no mutation"),
        (b"\xff\xfe\xff", "not UTF-8"),
        ("type Query { a: " + "[" * 100_000 + "Int", "too deeply"),
    ],
)
def test_what_is_no_schema_is_refused_with_the_reason(document: Any, said: str) -> None:
    with pytest.raises(ImportFailed) as refusal:
        imported(document)
    assert said in refusal.value.message


@pytest.mark.parametrize("endpoint", [None, "", "ftp://x", "/graphql", "https://user@x/"])
def test_an_endpoint_that_is_no_url_is_refused(endpoint: Any) -> None:
    with pytest.raises(ImportFailed, match="not the URL of a GraphQL endpoint"):
        GraphQL("x").resolve_tools({"document": SDL, "endpoint": endpoint})


def selected(text: str) -> str:
    schema = build_schema(SDL)
    return documents.selection(schema, "query { issue(id: 1) ", "select", text, "Issue")


def test_a_selection_is_sent_as_it_was_read() -> None:
    expected = "{\n  id\n  author {\n    login\n  }\n}"
    for text in (
        "{ id author { login } }",
        "id author { login }",
        "\ufeff{id,author{login}#}}\n}",
        " id,author{login}",
        "# mine\n{ id author { login } } # all",
        "#{\nid author { login } # }",
    ):
        assert selected(text) == expected
    assert "@include(if: true)" in selected("id number @include(if: true)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{ nope }", "Cannot query field 'nope' on type 'Issue'"),
        ("{ author }", "must have a selection of subfields"),
        ("{ comments }", "first"),
        ('{ comments(first: "x") }', "Int cannot represent"),
        ("{ id { x } }", "must not have a selection"),
        ("{ ...F }", "Unknown fragment"),
        ("{ id } fragment F on Issue { id }", "more than one selection set"),
        ("{ id } mutation { deleteIssue(id: 1) }", "more than one selection set"),
        ("id } mutation { deleteIssue(id: 1)", "more than one selection set"),
        ("id } } mutation M { deleteIssue(id: 1) } query { issue(id: 2) { id", "cannot be read"),
        ("{ comments(first: $n) }", "Variable '$n' is not defined"),
        ("{ id: title id: number }", "conflict"),
        ("{ id @unknown }", "Unknown directive"),
        ("{ id @defer }", "in parts"),
        ("", "empty"),
        ("{}", "empty"),
        ("{ author {} }", "empty"),
        ("query { id }", "Cannot query field 'query'"),
        ('{ body(format: "x) }', "cannot be read"),
        ("{" * 5000, "nested deeper"),
        ("{ body(format: " + "[" * 5000, "nested deeper"),
        ("a " * 6000, "tokens"),
        ("x" * 10_000_000, "longer than 64 KiB"),
        ("#" * 70_000, "longer than 64 KiB"),
        (" ".join(f"a{at}: id" for at in range(100)), "aliases"),
        ("id " * 100, "the same fields too many times"),
        (" ".join(["author { id }"] * 200), "the same fields too many times"),
        ("parent { " * 30 + "id" + " }" * 30, "deeper than 20"),
        ("... on Issue { " * 50 + "id" + " }" * 50, ""),
    ],
)
def test_a_selection_that_cannot_be_sent_is_refused_before_anything_leaves(text: str, said: str) -> None:
    if not said:
        assert selected(text).count("... on Issue") == 50
        return
    with pytest.raises(ToolError) as refusal:
        selected(text)
    assert refusal.value.code == "invalid_arguments"
    assert said in refusal.value.message
    assert refusal.value.hint


def test_a_field_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(ToolError) as refusal:
        selected("{ author { name } }")
    assert refusal.value.hint == "User has id, login, email, issues."
    for text, hint in (
        ("{ titel }", "Did you mean title? Issue has id, number"),
        ("{ comments(first: 1, autor: 2) }", "Did you mean author? comments takes first, author."),
    ):
        with pytest.raises(ToolError) as refusal:
            selected(text)
        assert (refusal.value.hint or "").startswith(hint)


def test_a_document_is_known_by_its_operation_and_its_root_fields() -> None:
    text = """
    # query { viewer { id } }
    query Read { viewer { login } }
    mutation Write { ok: deleteIssue(id: 1) @skip(if: true) ...More ... on Mutation { closeIssue(id: 2) { id } } }
    fragment More on Mutation { createIssue(input: {title: "mutation { x }"}) { issue { ...Some } } }
    fragment Some on Issue { id }
    fragment Other on Issue { nope }
    """
    write = documents.asked(text, "Write")
    assert (write.kind, write.name) == ("mutation", "Write")
    assert write.roots == ("deleteIssue", "createIssue", "closeIssue")
    assert "fragment Some" in write.text
    for left in ("Read", "Other", "#"):
        assert left not in write.text
    read = documents.asked(text, "Read")
    assert (read.kind, read.roots) == ("query", ("viewer",))
    assert "mutation" not in read.text


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("subscription { changed { id } }", None, "subscription"),
        ("query A { viewer { id } } query B { viewer { id } }", None, "say which, of A, B"),
        ("query A { viewer { id } }", "B", "0 operations called 'B'"),
        ("query A { viewer { id } } query A { viewer { id } }", "A", "2 operations called 'A'"),
        ("{ viewer { id } } { viewer { id } }", None, "2 operations"),
        ("fragment F on User { id }", None, "no operation"),
        ("type A { a: Int }", None, "neither an operation nor a fragment"),
        ("{ ...F } fragment F on Query { viewer { id } } fragment F on Query { viewer { id } }", None, "twice"),
        ("{ ...F } fragment F on Query { ...G } fragment G on Query { ...F }", None, "spreads itself"),
        ("{ viewer { ...F } } fragment F on User { issues(first: 1) { author { ...F } } }", None, "deeper than 20"),
        ("{ " + " ".join(f"a{at}: viewer {{ id }}" for at in range(30)) + " }", None, "30 root fields"),
        ("{ a: viewer { id } " * 2, None, "cannot be read"),
        ("", None, "cannot be read"),
        ("[{}]", None, "cannot be read"),
    ],
)
def test_a_document_that_is_not_one_operation_is_refused(text: str, name: str | None, said: str) -> None:
    with pytest.raises(ToolError) as refusal:
        documents.asked(text, name)
    assert refusal.value.code == "invalid_arguments"
    assert said in refusal.value.message


def test_fragments_that_double_each_other_are_counted_and_not_written_out() -> None:
    bomb = "\n".join(f"fragment F{at} on User {{ ...F{at + 1} ...F{at + 1} }}" for at in range(40))
    with pytest.raises(ToolError, match="more than 500"):
        documents.asked("{ viewer { ...F0 } }\n" + bomb + "fragment F40 on User { id }", None)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "to be provided"),
        ({"id": {"a": 1}}, "ID cannot represent"),
        ({"id": "i1", "more": 1}, "declares no variable 'more'"),
    ],
)
def test_variables_are_checked_before_anything_leaves(variables: dict[str, Any], said: str) -> None:
    document = documents.asked("query($id: ID!) { issue(id: $id) { id } }", None)
    with pytest.raises(ToolError) as refusal:
        documents.check(build_schema(SDL), document, variables)
    assert said in refusal.value.message


def test_a_measured_document_is_checked_in_a_bounded_number_of_steps() -> None:
    """The dearest document within the limits: fields of one name, within fields of one name."""
    inner = "id " * 16
    worst = f"{{ {' '.join([f'author {{ {inner}}}'] * 4)} }}"
    limits.Meter().measure(documents._only_selection(parse(worst)))
    assert selected(worst)


def test_directives_of_documents_are_known_and_those_of_schemas_are_not() -> None:
    manifest = imported("directive @live(x: Int!) on FIELD\ndirective @own on OBJECT\ntype Query { a: Query b: Int }")
    schema = operations.opened(manifest.kept)
    for text in ("{ b @live(x: 1) }", "{ b @skip(if: true) }", "{ ... @include(if: false) { b } }"):
        assert documents.selection(schema, "{ a ", "select", text, "Query")
    for text in ("{ b @live }", "{ b @own }", "{ b @skip }", "{ b @nope }"):
        with pytest.raises(ToolError):
            documents.selection(schema, "{ a ", "select", text, "Query")


NAMES = [f"T{at}" for at in range(6)]
KINDS = ["String", "ID", "Int", "Own", "E", "U", "Missing", *NAMES]
wrapped = st.sampled_from(["{}", "{}!", "[{}]", "[{}!]!", "[[{}]]", "[[[{}!]]!]"])


@st.composite
def _fields(draw: st.DrawFn, names: list[str]) -> str:
    out = []
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=8, unique=True)):
        kind = draw(wrapped).format(draw(st.sampled_from(KINDS)))
        args = draw(st.sampled_from(["", "", "(a: Int)", "(a: Int!)", "(a: Int! = 1)", "(a: I, b: [E!]!)"]))
        out.append(f"{name}{args}: {kind}{draw(st.sampled_from(['', '', ' @deprecated']))}")
    return " ".join(out)


@st.composite
def _schemas(draw: st.DrawFn) -> str:
    names = ["id", "name", "nodes", "edges", "node", "pageInfo", "totalCount", "hasNextPage", "a", "b", "c"]
    parts = ["scalar Own", "enum E { A B }", "input I { i: I, e: E! = A, t: [T0] }"]
    parts.append(f"union U = {' | '.join(draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True)))}")
    for name in NAMES:
        word = draw(st.sampled_from(["type", "type", "interface"]))
        base = draw(st.sampled_from(["", "", *(f" implements {one}" for one in NAMES if one != name)]))
        parts.append(f"{word} {name}{base} {{ {draw(_fields(names))} }}")
    parts.append(f"type Query {{ {draw(_fields(names))} t: T0 u: U }}")
    return "\n".join(parts)


@settings(max_examples=examples(40), deadline=None)
@given(_schemas())
def test_whatever_the_schema_every_operation_that_is_made_is_valid(text: str) -> None:
    manifest = imported(text)
    assert problems(manifest) == []
    assert all(len(one.binding["selection"].split()) < 400 for one in manifest.tools)


@pytest.mark.parametrize("body", [b'{"data": {}}', b'{"data": {"other": 1}}', b'{"data": {}, "errors": []}'])
@pytest.mark.anyio
async def test_an_answer_without_the_field_and_without_an_error_says_so(body: bytes) -> None:
    answer = OutboundResponse(200, [("content-type", "application/json")], body, False)
    with pytest.raises(ToolError, match="without the field that was asked for"):
        await answers.value(answer, cast(Outbound, None), "issue", "api.org.main")
