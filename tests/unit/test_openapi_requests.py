"""What an operation sends: paths, queries, headers, cookies, bodies, credentials, and arguments that it takes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.errors import ToolError
from catalog.kinds.openapi import request
from catalog.kinds.openapi.styles import in_path, in_query, primitive
from tests.unit.imported import BASE, imported
from tests.unit.upstream import call, document, operation, parameter, toolbox, upstream

pytestmark = pytest.mark.anyio


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
