"""The OpenAPI importer and the requests that it makes, from documents as people write them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.wire import codec
from bridge.wire.errors import ImportFailed, ToolError
from catalog.kinds.openapi import OpenApi, names, request
from catalog.kinds.openapi.styles import in_path, in_query, primitive
from catalog.model import Manifest
from tests.unit.upstream import call, document, operation, parameter, toolbox, upstream

pytestmark = pytest.mark.anyio

LIBRARY = Path(__file__).parent.parent / "data" / "library.yaml"
BASE = "https://api.test"


def imported(source: Any, **config: Any) -> Manifest:
    return OpenApi("api").resolve_tools({"document": source} | config)


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
    ],
)
def test_a_malformed_document_says_what_is_wrong_and_where(source: Any, message: str) -> None:
    with pytest.raises(ImportFailed, match=message.replace("{", r"\{").replace("[", r"\[")):
        imported(source)


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


@given(st.text(max_size=30), st.sampled_from(["simple", "label", "matrix"]), st.booleans())
def test_a_path_value_never_leaves_its_segment(value: str, style: str, explode: bool) -> None:
    try:
        written = in_path("p", value, style, explode)
    except ValueError:
        return
    assert not set(written) & set("/?#\\ ")
    assert written.isascii()


@given(st.dictionaries(st.text(max_size=6), st.text(max_size=6), max_size=3), st.booleans())
def test_a_query_value_never_adds_a_pair(value: dict[str, str], explode: bool) -> None:
    try:
        pairs = in_query("q", value, "form", explode, reserved=True)
    except ValueError:
        return
    assert all("&" not in pair and "#" not in pair and pair.count("=") == 1 for pair in pairs)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (0, "0"),
        (5.0, "5"),
        (1e-7, "1e-7"),
        (1e21, "1e+21"),
        (1e20, "1" + "0" * 20),
        (-0.0, "0"),
        (-1.5e-9, "-1.5e-9"),
        (0.1, "0.1"),
        (2**63, "9223372036854775808"),
        ("é", "é"),
    ],
)
def test_a_scalar_is_written_as_javascript_would(value: Any, text: str) -> None:
    assert primitive(value) == text


def _bound(*parameters: dict[str, Any], path: str = "/x", **more: Any) -> request.Operation:
    manifest = imported(document({path: {"get": operation(*parameters, **more)}}, BASE))
    return request.Operation.from_dict(json.loads(json.dumps(manifest.tools[0].binding)))


@pytest.mark.parametrize(
    ("declared", "value", "target"),
    [
        ({}, ["a", "b"], "/x?q=a&q=b"),
        ({"explode": False}, ["a,b", "c"], "/x?q=a%2Cb,c"),
        ({"style": "spaceDelimited"}, ["a", "b"], "/x?q=a%20b"),
        ({"style": "pipeDelimited"}, ["a", "b"], "/x?q=a%7Cb"),
        (
            {"style": "deepObject"},
            {"a": {"b": 1}, "c": [1, 2]},
            "/x?q%5Ba%5D%5Bb%5D=1&q%5Bc%5D%5B%5D=1&q%5Bc%5D%5B%5D=2",
        ),
        ({"explode": True}, {"a": 1, "b": None}, "/x?a=1"),
        ({"explode": False}, {"a": 1, "b": 2}, "/x?q=a,1,b,2"),
        ({}, [], "/x"),
        ({}, None, "/x"),
        ({}, ["a", None], "/x?q=a"),
        ({"allowReserved": True}, "a/b?c=d&e#f", "/x?q=a/b?c%3Dd%26e%23f"),
        ({"content": {"application/json": {}}}, {"a": "é&"}, "/x?q=%7B%22a%22%3A%22%C3%A9%26%22%7D"),
        ({"style": "nonsense"}, ["a", "b"], "/x?q=a&q=b"),
        ({}, {"a": 1.5}, "/x?a=1.5"),
    ],
)
def test_query_parameters_are_written_in_their_style(declared: Any, value: Any, target: str) -> None:
    built = request.build(_bound(parameter("q", schema={}, **declared)), {"q": value}, None)
    assert built.url.target == target


@pytest.mark.parametrize(
    ("declared", "value", "target"),
    [
        ({}, ["a/b", "c"], "/p/a%2Fb,c/z"),
        ({"explode": True}, {"a": 1, "b": 2}, "/p/a=1,b=2/z"),
        ({}, {"a": 1, "b": 2}, "/p/a,1,b,2/z"),
        ({"style": "label"}, "a", "/p/.a/z"),
        ({"style": "label", "explode": True}, ["a", "b"], "/p/.a.b/z"),
        ({"style": "matrix"}, ["a", "b"], "/p/;q=a,b/z"),
        ({"style": "matrix", "explode": True}, ["a", "b"], "/p/;q=a;q=b/z"),
        ({}, "{q}", "/p/%7Bq%7D/z"),
    ],
)
def test_path_parameters_are_written_in_their_style(declared: Any, value: Any, target: str) -> None:
    bound = _bound(parameter("q", "path", schema={}, **declared), path="/p/{q}/z")
    assert request.build(bound, {"q": value}, None).url.target == target


@pytest.mark.parametrize(
    ("path", "args"),
    [
        ("/{a}", {"a": ""}),
        ("/{a}", {"a": ".."}),
        ("/x/{a}{b}/y", {"a": ".", "b": "."}),
        ("/{a}/y", {"a": []}),
    ],
)
def test_a_path_that_would_be_another_operations_is_refused(path: str, args: dict[str, Any]) -> None:
    bound = _bound(*(parameter(name, "path", schema={}) for name in args), path=path)
    with pytest.raises(ToolError, match="another operation"):
        request.build(bound, args, None)


def test_headers_and_cookies_are_written_and_null_ones_left_out() -> None:
    bound = _bound(
        parameter("X-List", "header", schema={"type": "array"}),
        parameter("X-None", "header"),
        parameter("ids", "cookie", schema={"type": "array"}, explode=False),
        parameter("a b", "cookie"),
    )
    built = request.build(bound, {"X-List": [1, True], "X-None": None, "ids": [1, 2], "a b": "c;d"}, None)
    assert dict(built.headers) == {
        "accept": "application/json, */*;q=0.5",
        "x-list": "1,true",
        "cookie": "ids=1,2; a%20b=c%3Bd",
    }


def test_a_path_with_a_query_or_a_fragment_of_its_own_keeps_what_is_sent() -> None:
    paths = {"/go?view=all": {"get": operation(parameter("q"))}, "/go#x=1": {"post": operation(operationId="b")}}
    first, second = imported(document(paths, BASE + "/v1?key=1")).tools
    built = request.build(request.Operation.from_dict(first.binding), {"q": "2"}, None)
    assert built.url.target == "/v1/go?key=1&view=all&q=2"
    assert request.build(request.Operation.from_dict(second.binding), {}, None).url.target == "/v1/go?key=1"


def _content(media: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media: {"schema": schema} | more}}}


@pytest.mark.parametrize(
    ("media", "value", "sent"),
    [
        ("application/json", {"a": [1, None, 2**63], "é": b"\xff"}, '{"a":[1,null,9223372036854775808],"é":"/w=="}'),
        ("application/vnd.x+json", [1], "[1]"),
        (
            "application/x-www-form-urlencoded",
            {"a": "x y", "b": [1, 2], "c": {"d": 1}},
            "a=x%20y&b=1&b=2&c=%7B%22d%22%3A1%7D",
        ),
        ("text/plain", 42, "42"),
        ("application/octet-stream", b"\x00\x01", "\x00\x01"),
    ],
)
async def test_bodies_are_sent_as_their_media_type_says(media: str, value: Any, sent: str) -> None:
    async with upstream() as server, toolbox() as box:
        described = document({"/b": {"post": operation(**_content(media, {}))}}, server.base)
        await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        await call(box, "api.org.main.op", {"body": value})
        (seen,) = server.seen
        assert seen.header("content-type") == media
        assert seen.body == sent.encode("latin-1" if media.endswith("stream") else "utf-8")


async def test_a_multipart_body_has_a_part_for_each_property_and_each_file() -> None:
    async with upstream() as server, toolbox() as box:
        schema = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}, "tag": {}}}
        described = document({"/b": {"post": operation(**_content("multipart/form-data", schema))}}, server.base)
        await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        upload = {"content": b"\x00\xff", "filename": 'a"\r\nX: 1.bin', "content_type": "image/png"}
        await call(box, "api.org.main.op", {"body": {"file": [upload, b"raw"], "tag": {"a": 1}}})
        (seen,) = server.seen
        boundary = str(seen.header("content-type")).partition("boundary=")[2].encode()
        parts = seen.body.split(b"--" + boundary)[1:-1]
        assert len(parts) == 3
        assert b'name="file"; filename="a%22%0D%0AX: 1.bin"\r\nContent-Type: image/png\r\n\r\n\x00\xff' in parts[0]
        assert parts[1].endswith(b"\r\n\r\nraw\r\n")
        assert parts[2].endswith(b'Content-Type: application/json\r\n\r\n{"a":1}\r\n')


async def test_the_properties_of_a_body_may_also_be_given_beside_the_parameters() -> None:
    async with upstream() as server, toolbox() as box:
        schema = {"type": "object", "properties": {"name": {"type": "string"}, "id": {"type": "string"}}}
        described = document({"/p/{id}": {"post": operation(parameter("id", "path"), body=schema)}}, server.base)
        await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        await call(box, "api.org.main.op", {"id": "1", "name": "rex"})
        assert (server.seen[0].target, server.seen[0].body) == ("/p/1", b'{"name":"rex"}')
        await call(box, "api.org.main.op", {"id": "1", "body": {"name": "rex", "id": "2"}})
        assert server.seen[1].body == b'{"name":"rex","id":"2"}'
        with pytest.raises(ToolError, match="Unknown argument 'nmae'"):
            await call(box, "api.org.main.op", {"id": "1", "nmae": "rex"})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "nullable": True}, [None, "x"], [1]),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, [1, 5.0], [0, "1", 1.5]),
        ({"enum": ["a", "b"], "nullable": True}, ["a", None], ["c"]),
        ({"type": ["integer", "null"], "exclusiveMinimum": 0}, [1, None], [0]),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, [1, 1.5], ["x"]),
        ({"type": "string", "pattern": "^(a+)+$"}, ["a" * 40 + "!"], [1]),
        ({"type": "number", "multipleOf": 0.01}, [19.99], ["x"]),
        ({"type": "object", "required": ["id"], "properties": {"id": {"readOnly": True}}}, [{}, {"id": 1}], [1]),
        ({"type": "string", "format": "binary"}, [b"x", "x"], []),
        ({"$ref": "#/components/schemas/Node"}, [{"kids": [{"kids": []}]}], [{"kids": [{"kids": 1}]}]),
        ({"$ref": "#/components/schemas/Pet"}, [{"kind": "cat"}], [{"kind": 1}]),
        ({"$ref": "#/components/schemas/a~1b"}, [{"k": 1}], [{"k": "x"}]),
        ({"type": "unheard-of"}, [1, "x"], []),
        (False, [], [1]),
    ],
)
async def test_arguments_are_checked_by_the_schema_that_the_document_means(
    schema: Any, good: list[Any], bad: list[Any]
) -> None:
    schemas = {
        "Node": {
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}},
        },
        "Pet": {"oneOf": [{"$ref": "#/components/schemas/Cat"}]},
        "Cat": {
            "allOf": [
                {"$ref": "#/components/schemas/Pet"},
                {"type": "object", "properties": {"kind": {"type": "string"}}},
            ]
        },
        "a/b": {"type": "object", "properties": {"k": {"type": "integer"}}},
    }
    async with upstream() as server, toolbox() as box:
        described = document({"/b": {"post": operation(body=schema)}}, server.base, components={"schemas": schemas})
        await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        for value in good:
            if value is not None:
                await call(box, "api.org.main.op", {"body": value})
        for value in bad:
            with pytest.raises(ToolError) as caught:
                await call(box, "api.org.main.op", {"body": value})
            assert caught.value.code == "invalid_arguments"


async def test_a_schema_that_would_run_away_is_cut_short() -> None:
    nested: Any = 1
    for _ in range(60):
        nested = {"x": nested}
    again = {"type": "object", "properties": {"x": {"$ref": "#/components/schemas/A"}}, "required": ["y"]}
    schemas = {"A": {"anyOf": [again, again, {"type": "string"}]}}
    async with upstream() as server, toolbox() as box:
        body = {"$ref": "#/components/schemas/A"}
        described = document({"/b": {"post": operation(body=body)}}, server.base, components={"schemas": schemas})
        await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        with pytest.raises(ToolError) as caught:
            await call(box, "api.org.main.op", {"body": nested})
        assert caught.value.code == "invalid_arguments"


@pytest.mark.parametrize(
    ("media", "body", "value"),
    [
        ("application/json", b'{"a":1}', {"a": 1}),
        ("application/json; charset=utf-8", b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        ("application/problem+json", b"0", 0),
        ("application/json", b"", None),
        ("application/json", b'{"n":18446744073709551615}', {"n": 18446744073709551615}),
        ("application/json", b'{"n":' + b"1" * 5000 + b"}", {"n": "1" * 5000}),
        ("application/json", b'{"n":1e999}', {"n": "1e999"}),
        ("application/json", b'{"a":1,"a":2}', {"a": 2}),
        ("application/json; charset=iso-8859-1", b'"\xe9"', "é"),
        ("text/plain", b"007", "007"),
        ("text/plain; charset=iso-8859-1", b"na\xefve", "naïve"),
        ("text/plain; charset=klingon", b"x", "x"),
        ("text/plain; charset=rot13", b"x", "x"),
        ("application/octet-stream", b"\xff\x00", b"\xff\x00"),
        ("image/png", b"\x89PNG", b"\x89PNG"),
        ("application/x-ndjson", b'{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
        ("", b'{"a":1}', {"a": 1}),
        ("", b"\xff\xfe", b"\xff\xfe"),
        ("nonsense", b"plain", "plain"),
    ],
)
async def test_an_answer_becomes_a_value(media: str, body: bytes, value: Any) -> None:
    async with upstream() as server, toolbox() as box:
        server.reply("/x", body, headers={"content-type": media})
        await box.add_openapi("api", document({"/x": {"get": operation()}}, server.base), allow_private=["127.0.0.1"])
        assert (await call(box, "api.org.main.op")).value == value


@pytest.mark.parametrize("body", [b'{"a":', b"{broken", b"NaN", b'{"a":-Infinity}', b"OK", b'"\xe9"', b"<html>"])
async def test_an_answer_that_says_json_and_is_not_is_an_error_that_shows_how_it_begins(body: bytes) -> None:
    async with upstream() as server, toolbox() as box:
        server.reply("/x", body)
        await box.add_openapi("api", document({"/x": {"get": operation()}}, server.base), allow_private=["127.0.0.1"])
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        for path, args in (("api.org.main.op", {}), ("web.org.main.http.get", {"path": "/x"})):
            with pytest.raises(ToolError, match="says that it is JSON") as caught:
                await call(box, path, args)
            assert (caught.value.code, caught.value.status) == ("upstream_error", 200)
            assert caught.value.details == {"body": body.decode(errors="replace")}


@pytest.mark.parametrize("levels", [101, 128, 200, 600, 20_000])
@pytest.mark.parametrize("media", ["application/json", ""])
async def test_an_answer_nested_too_deeply_is_too_large(levels: int, media: str) -> None:
    """MSG-16"""
    async with upstream() as server, toolbox() as box:
        server.reply("/x", b"[" * levels + b"]" * levels, headers={"content-type": media})
        server.reply("/fine", b"[" * 100 + b"]" * 100)
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        with pytest.raises(ToolError, match="nested deeper than 100 levels") as caught:
            await call(box, "web.org.main.http.get", {"path": "/x"})
        assert caught.value.code == "too_large"
        fine = await call(box, "web.org.main.http.get", {"path": "/fine"}, meta=True)
        assert codec.decode(fine.encoded)["value"] == fine.value


@pytest.mark.parametrize("body", [b"[" * 20_000, b"[" * 300 + b"]" * 300, b'{"a":'])
async def test_a_refusal_whose_body_cannot_be_a_value_shows_its_text(body: bytes) -> None:
    async with upstream() as server, toolbox() as box:
        server.reply("/x", body, status=500)
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.get", {"path": "/x"})
        assert (caught.value.code, caught.value.status) == ("upstream_error", 500)
        assert caught.value.details == {"body": body.decode()[: 16 * 1024]}


async def test_an_integer_beyond_64_bits_comes_as_its_digits() -> None:
    """MSG-16"""
    async with upstream() as server, toolbox() as box:
        server.reply("/x", b"[9007199254740993,18446744073709551616,-123456789012345678901234567890]")
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        outcome = await call(box, "web.org.main.http.get", {"path": "/x"})
        expected = [9007199254740993, "18446744073709551616", "-123456789012345678901234567890"]
        assert codec.decode(outcome.encoded) == expected


async def test_an_answer_to_head_and_one_without_content_are_null() -> None:
    async with upstream() as server, toolbox() as box:
        server.answers["/x"] = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\netag: 1\r\n\r\n"
        server.answers["/y"] = b"HTTP/1.1 204 No Content\r\n\r\n"
        paths = {"/x": {"head": operation()}, "/y": {"get": operation(operationId="none")}}
        await box.add_openapi("api", document(paths, server.base), allow_private=["127.0.0.1"])
        outcome = await call(box, "api.org.main.op", meta=True)
        assert (outcome.value, outcome.http["headers"]["etag"]) == (None, "1")
        assert (await call(box, "api.org.main.none")).value is None


SCHEMES = {
    "hk": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "qk": {"type": "apiKey", "in": "query", "name": "key"},
    "ck": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "ba": {"type": "http", "scheme": "basic"},
    "oa": {"type": "oauth2", "flows": {}},
    "odd": {"type": "mutualTLS"},
}


@pytest.mark.parametrize(
    ("security", "held", "sent"),
    [
        ([{"hk": []}], ["hk"], {"x-key"}),
        ([{"oa": []}], ["oa"], {"authorization"}),
        ([{"ba": []}], ["ba"], {"authorization"}),
        ([{"hk": [], "qk": []}], ["hk", "qk"], {"x-key", "?"}),
        ([{"hk": []}, {"qk": []}], ["qk"], {"?"}),
        ([{}, {"hk": []}], ["hk"], {"x-key"}),
        ([], ["hk"], set()),
        (None, ["hk", "ck"], {"x-key", "cookie"}),
        ([{"hk": []}], ["qk"], set()),
    ],
)
async def test_an_operation_carries_the_credentials_that_it_asks_for(
    security: Any, held: list[str], sent: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SCHEMES:
        monkeypatch.setenv(f"EXECUTOR_TEST_{name.upper()}", f"user:secret-of-{name}")
    async with upstream() as server, toolbox() as box:
        op = operation() if security is None else operation(security=security)
        described = document({"/x": {"get": op}}, server.base, components={"securitySchemes": SCHEMES})
        refs = {name: f"env:EXECUTOR_TEST_{name.upper()}" for name in held}
        await box.add_openapi("api", described, auth={"type": "schemes", "schemes": refs}, allow_private=["127.0.0.1"])
        await call(box, "api.org.main.op")
        (seen,) = server.seen
        carried = {name for name in ("x-key", "authorization", "cookie") if seen.header(name) is not None}
        assert carried | ({"?"} if "?key=" in seen.target else set()) == sent


async def test_half_of_the_credentials_is_a_missing_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTOR_TEST_HK", "secret-of-hk")
    async with upstream() as server, toolbox() as box:
        op = operation(security=[{"hk": [], "qk": []}])
        described = document({"/x": {"get": op}}, server.base, components={"securitySchemes": SCHEMES})
        auth = {"type": "scheme", "scheme": "hk"}
        await box.add_openapi("api", described, auth=auth, secret="env:EXECUTOR_TEST_HK", allow_private=["127.0.0.1"])
        with pytest.raises(ToolError, match="no credential for qk") as caught:
            await call(box, "api.org.main.op")
        assert caught.value.code == "connection_missing"
        assert server.seen == []


async def test_a_secret_without_a_scheme_goes_where_the_document_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTOR_TEST_KEY", "the-secret-value")
    async with upstream() as server, toolbox() as box:
        for more, header in (
            ({"components": {"securitySchemes": SCHEMES}, "security": [{"hk": []}]}, "x-key"),
            ({}, "authorization"),
        ):
            described = document({"/x": {"get": operation()}}, server.base, **more)
            await box.add_openapi(
                "api", described, secret="env:EXECUTOR_TEST_KEY", allow_private=["127.0.0.1"], replace=True
            )
            await call(box, "api.org.main.op")
            assert "the-secret-value" in str(server.seen[-1].header(header))


async def test_a_credential_that_cannot_stand_in_a_header_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with upstream() as server, toolbox() as box:
        await box.add_openapi(
            "api",
            document({"/x": {"get": operation()}}, server.base),
            secret="env:EXECUTOR_TEST_KEY",
            allow_private=["127.0.0.1"],
        )
        for value in ("one\r\nX-Evil: 1", "naïve-secret", " spaced-secret "):
            monkeypatch.setenv("EXECUTOR_TEST_KEY", value)
            with pytest.raises(ToolError) as caught:
                await call(box, "api.org.main.op")
            assert caught.value.code == "connection_missing"
            assert value not in str(caught.value.as_dict())
        assert server.seen == []


async def test_basic_credentials_are_utf_8_with_or_without_a_user_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTOR_TEST_KEY", "pä:ss")
    async with upstream() as server, toolbox() as box:
        for auth, pair in (({"type": "basic", "username": "ann"}, "ann:pä:ss"), ("basic", "pä:ss")):
            described = document({"/x": {"get": operation()}}, server.base)
            await box.add_openapi(
                "api", described, auth=auth, secret="env:EXECUTOR_TEST_KEY", allow_private=["127.0.0.1"], replace=True
            )
            await call(box, "api.org.main.op")
            expected = "Basic " + base64.b64encode(pair.encode()).decode()
            assert server.seen[-1].header("authorization") == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=200)
@given(JSON, JSON, JSON)
def test_whatever_stands_in_a_document_the_importer_answers_in_its_own_words(one: Any, two: Any, three: Any) -> None:
    described = document({"/x/{id}": {"get": one, "post": {"parameters": two, "requestBody": three}}}, BASE)
    for source in (described, described | {"components": one, "security": two, "servers": three}, one):
        try:
            imported(source if isinstance(source, dict) else json.dumps(source))
        except ImportFailed:
            continue
