"""The OpenAPI importer: documents, servers and names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.wire.errors import ImportFailed
from catalog.kinds.openapi import names
from catalog.kinds.openapi.reader import parsed
from catalog.model import Manifest
from tests.examples import examples
from tests.unit.imported import BASE, imported
from tests.unit.upstream import call, document, operation, parameter, toolbox, upstream

pytestmark = pytest.mark.anyio

LIBRARY = Path(__file__).parent.parent / "data" / "library.yaml"


def library() -> Manifest:
    return imported(LIBRARY.read_bytes())


def tool_of(manifest: Manifest, name: str) -> Any:
    return next(spec for spec in manifest.tools if spec.name == name)


def test_a_real_document_arrives_with_readable_names_and_side_effects() -> None:
    found = {spec.name: spec.side_effect for spec in library().tools}
    assert list(found.items())[:6] == [
        ("books.searchAll", "read"),
        ("books.create", "write"),
        ("books.getCopy", "read"),
        (next(name for name in found if name.startswith("books.getCopy_")), "delete"),
        ("books.cover.list", "read"),
        ("loans.replace", "write"),
    ]
    assert list(found)[6:] == ["fees"]


def test_what_is_broken_is_reported_with_its_place_and_the_rest_arrives() -> None:
    reported = dict(library().diagnostics)
    assert "path variable id has no parameter" in reported["#/paths/~1broken~1{id}/get"]
    assert "not a path" in reported["#/paths/~1odd"]
    assert "leads nowhere" in str(library().diagnostics)
    assert "Host is left out" in str(library().diagnostics)


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("multipleOf", 0),
        ("multipleOf", "x"),
        ("enum", 5),
        ("minLength", "x"),
        ("maxItems", -1),
        ("minimum", True),
        ("pattern", "("),
        ("pattern", "a)("),
        ("pattern", "[a"),
        ("pattern", "a\\"),
        ("pattern", 5),
        ("type", "frob"),
        ("type", ["string", 5]),
        ("required", "a"),
        ("required", [1]),
        ("dependentRequired", {"a": "b"}),
        ("properties", []),
        ("items", 5),
        ("allOf", {}),
        ("anyOf", []),
        ("additionalProperties", "no"),
    ],
)
@pytest.mark.parametrize("shared", [True, False])
async def test_a_keyword_that_makes_no_sense_is_left_out_and_reported(keyword: str, value: Any, shared: bool) -> None:
    schema = {"description": "odd", keyword: value}
    components = {"schemas": {"Odd": schema}} if shared else {}
    where = "#/components/schemas/Odd" if shared else "#/paths/~1x/get"
    node = parameter("q", schema={"$ref": "#/components/schemas/Odd"} if shared else schema)
    async with upstream() as server, toolbox() as box:
        described = document({"/x": {"get": operation(node)}}, server.base, components=components)
        report = await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        (told,) = report.diagnostics
        assert told.where == where
        assert told.message.startswith(f"the schema keyword {keyword} is left out: it is not ")
        for argument in (1, 0, "a", 1.5):
            assert (await call(box, "api.org.main.op", {"q": argument})).value["target"] == f"/x?q={argument}"


@pytest.mark.parametrize(
    "pattern", ["(?<year>[0-9]{4})", "(?=a)", "\\p{L}+", "[[a]", "(" * 900 + ")" * 900, "[(]", "\\("]
)
def test_a_pattern_of_another_dialect_is_no_mistake(pattern: str) -> None:
    node = parameter("q", schema={"type": "string", "pattern": pattern})
    manifest = imported(document({"/x": {"get": operation(node)}}, BASE))
    assert manifest.diagnostics == ()
    assert manifest.tools[0].input_schema["properties"]["q"]["pattern"] == pattern


def test_an_operation_id_that_comes_twice_is_reported_with_the_name_given_instead() -> None:
    manifest = imported(document({"/x": {"get": operation()}, "/y": {"post": operation()}}, BASE))
    (told,) = manifest.diagnostics
    assert told.where == "#/paths/~1y/post"
    assert "the operationId 'op' is that of GET /x too" in told.message
    assert manifest.tools[1].name in told.message


def test_tags_that_are_no_list_are_passed_over() -> None:
    assert imported(document({"/x": {"get": operation(tags=5)}}, BASE)).tools[0].name == "op"


def test_servers_with_variables_and_schemes_are_read() -> None:
    manifest = library()
    assert str(manifest.reach[0]) == "https://north.library.test"
    assert set(map(str, manifest.reach[1:])) == set(map(str, manifest.offered))
    assert set(map(str, manifest.offered)) == {"https://south.library.test", "https://fallback.library.test"}
    assert tool_of(manifest, "books.searchAll").binding["base"] == "https://north.library.test/v2"
    assert manifest.schemes["key"] == {"type": "apiKey", "carrier": "header", "field": "X-Library-Key", "prefix": ""}
    assert manifest.security == (("key",), ())


def test_parameters_of_the_same_name_in_two_places_have_keys_of_their_own() -> None:
    spec = tool_of(library(), "loans.replace")
    arguments = {"id", "id_query", "body", "body_header", "If-Match", "server", "server_variables"}
    assert set(spec.input_schema["properties"]) == arguments
    assert spec.input_schema["required"] == ["id", "If-Match"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "empty"),
        ("<html></html>", "HTML"),
        ('{"openapi": "3.0.0",}', "line 1 column 21"),
        ("openapi: [3\n", "not valid YAML"),
        ("[1, 2]", "a list"),
        ("{}", "#/openapi"),
        ('{"swagger": "2.0"}', "#/paths"),
        ('{"swagger": "1.2", "apis": []}', "#/swagger"),
        ('{"openapi": "4.0.0", "paths": {}}', "#/openapi"),
        ('{"openapi": 3, "paths": {}}', "#/openapi"),
        ('{"openapi": "3.0.0"}', "#/paths"),
        ('{"openapi": "3.0.0", "paths": []}', "#/paths"),
        ('{"openapi": "3.0.0", "paths": {}}', "no operation"),
        ('{"openapi": "3.0.0", "paths": {"/x": {"get": {}}}}', "#/servers"),
        (json.dumps(document({"/{x}": {"get": operation()}}, BASE)), "#/paths/~1{x}/get"),
        (b"\xff\xfe\xfd", "UTF-8"),
        ("[" * 100_000, "too deeply"),
        ('{"openapi": "3.0.0", "x": ' + "9" * 5000 + "}", "number too long"),
        ("x: 0x" + "f" * 5000, "not valid YAML"),
        ("x: !!int 1:30", "not valid YAML"),
        ("x: !!bool maybe", "not valid YAML"),
        ("x: !!timestamp now", "not valid YAML"),
        ("x: !!float 1:" + "59:" * 2000 + "1", "not valid YAML"),
    ],
)
def test_a_malformed_document_says_what_is_wrong_and_where(source: Any, message: str) -> None:
    with pytest.raises(ImportFailed, match=message.replace("{", r"\{").replace("[", r"\[")):
        imported(source)


def test_plain_text_in_yaml_is_what_yaml_1_2_says() -> None:
    """What YAML 1.1 takes for true, 45045 or a date is text: a country may be called NO."""
    words = ["NO", "yes", "on", "y", "12:30:45", "2020-01-01", "1_000", "0b1", "1.2.3", "="]
    read = parsed(
        f"words: [{', '.join(words)}]\nnumbers: [010, 0o10, 0x1F, 1e3, .5, -7, +5]\nrest: [True, false, ~, Null]"
    )
    assert read["words"] == words
    assert read["numbers"] == [10, 8, 31, 1000.0, 0.5, -7, 5]
    assert read["rest"] == [True, False, None, None]
    assert parsed("a: &a {b: }\nc: {<<: *a, d: ''}\n200: x") == {
        "a": {"b": None},
        "c": {"b": None, "d": ""},
        "200": "x",
    }


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("ftp://api.test", "not http"),
        ("https://user@api.test", "user information"),
        ("http://2130706433/", "plainly written"),
        ("https://api.test:0", "port"),
        ("api.test", "absolute URL"),
    ],
)
def test_a_base_url_that_cannot_be_dialled_is_refused_by_name(base: str, message: str) -> None:
    with pytest.raises(ImportFailed, match=message):
        imported(document({"/x": {"get": operation()}}, BASE), base_url=base)


@pytest.mark.parametrize(
    ("servers", "config", "base"),
    [
        ([], {"document_url": "https://d.test/docs/v1/openapi.json"}, "https://d.test/"),
        ([{"url": "../api"}], {"document_url": "https://d.test/docs/v1/openapi.json"}, "https://d.test/docs/api"),
        ([{"url": "/v3"}], {"document_url": "https://d.test/docs/openapi.json"}, "https://d.test/v3"),
        ([{"url": "https://a.test/v1/"}], {}, "https://a.test/v1/"),
        ([{"url": "https://{x}.test"}, {"url": "https://b.test"}], {}, "https://b.test/"),
        ([{"url": "https://a.test"}], {"base_url": "https://mine.test/x"}, "https://mine.test/x"),
        ([{"url": "https://a.test/{v}", "variables": {"v": {"default": "1"}}}], {}, "https://a.test/1"),
    ],
)
def test_the_base_is_the_operators_or_the_first_usable_server(servers: Any, config: Any, base: str) -> None:
    manifest = imported(document({"/x": {"get": operation()}}, BASE, servers=servers), **config)
    assert manifest.tools[0].binding["base"] == base


def test_an_explicit_base_url_leaves_no_operation_elsewhere() -> None:
    described = document({"/x": {"get": operation(servers=[{"url": "https://evil.test"}])}}, BASE)
    assert [str(reach) for reach in imported(described).reach] == ["https://evil.test"]
    assert [str(reach) for reach in imported(described, base_url=BASE).reach] == [BASE]


@pytest.mark.parametrize(
    ("method", "path", "operation_id", "tags", "name"),
    [
        ("get", "/pet/findByStatus", "findPetsByStatus", ["pet"], "pet.findPetsByStatus"),
        ("get", "/repos/{o}/{r}/issues", "issues/list-for-repo", ["issues"], "issues.listForRepo"),
        ("get", "/users", "users.list", ["Users"], "users.list"),
        ("get", "/users", "users_list", ["Users"], "users.list"),
        ("get", "/users/{id}", None, [], "users.get"),
        ("get", "/users", None, ["People"], "users.list"),
        ("post", "/users/{id}/keys", None, [], "users.keys.create"),
        ("delete", "/users/{id}", None, [], "users.delete"),
        ("get", "/", None, [], "get"),
        ("get", "/v1/2fa", None, [], "v1._2fa.list"),
        ("get", "/x", "then", [], "then_"),
        ("get", "/x", "__proto__", ["a"], "a.__proto__"),
        ("get", "/x", "List all things!", ["My Tag"], "myTag.ListAllThings"),
        ("get", "/статус", "получить", [], "get_"),
        ("get", "/café", "café", [], "cafe"),
        ("get", "/a/b/c/d/e/f/g/h", None, [], "d.e.f.g.h.list"),
    ],
)
def test_a_name_is_readable(method: str, path: str, operation_id: str | None, tags: list[str], name: str) -> None:
    found = names.Namer().name(method, path, operation_id, tags)
    assert found == name or (name.endswith("_") and found.startswith(name)) or found == name + "_"


IDS = st.none() | st.text(max_size=12) | st.text("ab-_/. é", max_size=6) | st.text("x", min_size=150, max_size=170)


@given(st.lists(st.tuples(st.sampled_from(["get", "post"]), st.text("ab{}/é", max_size=8), IDS), unique=True))
def test_names_are_unique_stable_and_fit_an_address(operations: list[tuple[str, str, str | None]]) -> None:
    from catalog.address import is_tool

    def run() -> list[str]:
        namer = names.Namer()
        return [
            namer.name(method, f"/{index}{path}", operation_id, [])
            for index, (method, path, operation_id) in enumerate(operations)
        ]

    first = run()
    assert len(set(first)) == len(first)
    assert all(map(is_tool, first))
    assert run() == first


def test_colliding_ids_stay_four_tools_and_the_first_keeps_its_name() -> None:
    ids = {"/n/{a}": "getItem", "/m": "getitem", "/k": "get-item", "/l": "get_item", "/j": "getItem"}
    paths = {
        path: {"get": operation(*([parameter("a", "path")] if "{" in path else []), operationId=one)}
        for path, one in ids.items()
    }
    found = [spec.name for spec in imported(document(paths, BASE)).tools]
    assert found[:2] == ["getItem", "getitem"]
    assert found[3] == "get_item"
    assert len(set(found)) == 5


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=examples(200))
@given(JSON, JSON, JSON)
def test_whatever_stands_in_a_document_the_importer_answers_in_its_own_words(one: Any, two: Any, three: Any) -> None:
    described = document({"/x/{id}": {"get": one, "post": {"parameters": two, "requestBody": three}}}, BASE)
    for source in (described, described | {"components": one, "security": two, "servers": three}, one):
        try:
            imported(source if isinstance(source, dict) else json.dumps(source))
        except ImportFailed:
            continue
