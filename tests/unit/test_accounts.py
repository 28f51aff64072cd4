"""Accounts of integrations: where their credentials go, which one a call is made with, and whether it works."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from bridge.calls import CallContext
from bridge.toolbox import Toolbox
from bridge.wire.errors import InvalidRequest, NotFound, ToolError
from tests.unit.upstream import Upstream, call, document, operation, parameter, response, toolbox, upstream

pytestmark = pytest.mark.anyio

USER, KEY = "user-secret-value", "cnry_0123456789abcdef"
SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "k"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
}


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTOR_TEST_USER", USER)
    monkeypatch.setenv("EXECUTOR_TEST_KEY", KEY)


def described(server: Upstream, security: Any = None) -> dict[str, Any]:
    """A document with every kind of scheme."""
    more = {"components": {"securitySchemes": SCHEMES}} | ({} if security is None else {"security": security})
    return document({"/x": {"get": operation()}}, server.base, **more)


def basic(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()


REF, USER_REF = "env:EXECUTOR_TEST_KEY", "env:EXECUTOR_TEST_USER"
PLACES: list[tuple[Any, str | None, str, dict[str, str | None]]] = [
    ("bearer", REF, "/x", {"authorization": f"Bearer {KEY}"}),
    ({"type": "header", "name": "X-Api-Key"}, REF, "/x", {"x-api-key": KEY}),
    ({"type": "header", "name": "Authorization", "prefix": "Token "}, REF, "/x", {"authorization": f"Token {KEY}"}),
    ({"type": "query", "name": "a[key]"}, REF, f"/x?a%5Bkey%5D={KEY}", {}),
    ({"type": "cookie", "name": "sid"}, REF, "/x", {"cookie": f"sid={KEY}"}),
    ({"type": "basic", "username": "ann"}, REF, "/x", {"authorization": basic(f"ann:{KEY}")}),
    ({"type": "basic", "username_secret": USER_REF}, REF, "/x", {"authorization": basic(f"{USER}:{KEY}")}),
    ({"type": "basic", "username_secret": REF}, None, "/x", {"authorization": basic(f"{KEY}:")}),
    ({"type": "basic", "username_secret": REF, "password": "x"}, None, "/x", {"authorization": basic(f"{KEY}:x")}),
    ({"type": "basic", "username": "ann", "password": "pw"}, None, "/x", {"authorization": basic("ann:pw")}),
    ("basic", REF, "/x", {"authorization": basic(KEY)}),
    ("none", None, "/x", {"authorization": None}),
    ({"type": "header", "name": "X-Version", "value": "7"}, None, "/x", {"x-version": "7"}),
    (
        [
            {"type": "header", "name": "X-Auth-Email", "secret": USER_REF},
            {"type": "header", "name": "X-Auth-Key"},
            {"type": "query", "name": "k", "value": "plain"},
            {"type": "cookie", "name": "sid", "secret": REF},
            {"type": "cookie", "name": "v", "value": "1"},
        ],
        REF,
        "/x?k=plain",
        {"x-auth-email": USER, "x-auth-key": KEY, "cookie": f"sid={KEY}; v=1"},
    ),
    ({"type": "scheme", "scheme": "key"}, REF, "/x", {"x-key": KEY}),
    ({"type": "scheme", "scheme": "query"}, REF, f"/x?k={KEY}", {}),
    ({"type": "scheme", "scheme": "cookie"}, REF, "/x", {"cookie": f"sid={KEY}"}),
    ({"type": "scheme", "scheme": "basic", "username": "ann"}, REF, "/x", {"authorization": basic(f"ann:{KEY}")}),
    ({"type": "scheme", "scheme": "oauth"}, REF, "/x", {"authorization": f"Bearer {KEY}"}),
]


@pytest.mark.parametrize(("auth", "secret", "target", "headers"), PLACES, ids=lambda value: str(value)[:60])
async def test_a_credential_goes_exactly_where_it_is_placed(
    auth: Any, secret: str | None, target: str, headers: dict[str, str | None]
) -> None:
    async with upstream() as server, toolbox() as box:
        await box.add_openapi("api", described(server), auth=auth, secret=secret, allow_private=["127.0.0.1"])
        outcome = await call(box, "api.org.main.op", meta=True)
        (seen,) = server.seen
        assert seen.target == target
        assert {name: seen.header(name) for name in headers} == headers
        assert not any(one in repr(outcome) for one in (KEY, USER, basic(f"ann:{KEY}")))
        assert KEY not in json.dumps([box.connections.all(), box.integrations()])


@pytest.mark.parametrize(
    ("security", "header"),
    [([{"key": []}], "x-key"), ([{"basic": []}], "authorization"), ([{"cookie": []}], "cookie"), (None, "x-key")],
)
async def test_the_document_says_where_a_secret_goes_when_nobody_else_does(security: Any, header: str) -> None:
    async with upstream() as server, toolbox() as box:
        await box.add_openapi("api", described(server, security), secret=REF, allow_private=["127.0.0.1"])
        await call(box, "api.org.main.op")
        assert server.seen[0].header(header)


async def test_an_operation_that_asks_for_two_credentials_gets_both() -> None:
    async with upstream() as server, toolbox() as box:
        auth = [{"type": "scheme", "scheme": "key"}, {"type": "scheme", "scheme": "query", "secret": USER_REF}]
        spec = described(server, [{"key": [], "query": []}])
        await box.add_openapi("api", spec, auth=auth, secret=REF, allow_private=["127.0.0.1"])
        await call(box, "api.org.main.op")
        assert (server.seen[0].header("x-key"), server.seen[0].target) == (KEY, f"/x?k={USER}")


@pytest.mark.parametrize(
    ("auth", "secret"),
    [
        ({"name": "X-Key"}, REF),
        ({}, REF),
        ({"type": None}, REF),
        ({"type": ["header"]}, REF),
        ({"type": "digest"}, REF),
        ([], REF),
        ([[]], REF),
        (7, REF),
        ({"type": "bearer", "name": "X"}, REF),
        ({"type": "query", "name": "k", "prefix": "x"}, REF),
        ({"type": "header", "name": "Host"}, REF),
        ({"type": "header", "name": "Transfer-Encoding"}, REF),
        ({"type": "header", "name": "X-K", "prefix": "a\r\nX-Evil: 1"}, REF),
        ({"type": "header", "name": "X-K", "value": "a", "secret": REF}, None),
        ({"type": "header", "name": "X-K", "value": ""}, None),
        ({"type": "header", "name": "X-K", "value": "a"}, REF),
        ({"type": "header", "name": "X-K" * 200}, REF),
        ({"type": "basic", "username": "a:b"}, REF),
        ({"type": "basic", "username": "a", "username_secret": REF}, REF),
        ({"type": "basic", "password": "x"}, None),
        ({"type": "basic", "username": "a", "password": "x", "secret": REF}, None),
        ({"type": "basic", "username": 7}, REF),
        ({"type": "scheme", "scheme": "key", "username": "ann"}, REF),
        ({"type": "schemes", "schemes": {"key": "not-a-reference"}}, None),
        ([{"type": "bearer"}, {"type": "basic"}], REF),
        ([{"type": "header", "name": "X-K"}, {"type": "header", "name": "x-k"}], REF),
        ([{"type": "query", "name": f"k{n}"} for n in range(17)], REF),
        ("none", REF),
        ("bearer", None),
        ("bearer", "sk_live_0123456789"),
    ],
    ids=str,
)
async def test_what_says_no_place_for_a_credential_is_refused_and_not_guessed(auth: Any, secret: str | None) -> None:
    async with upstream() as server, Toolbox() as box:
        with pytest.raises(InvalidRequest) as caught:
            await box.add_openapi("api", described(server), auth=auth, secret=secret, allow_private=["127.0.0.1"])
        assert "sk_live" not in str(caught.value.as_dict())
        assert box.integrations() == []


async def test_each_account_calls_with_its_own_credential_and_one_that_is_missing_says_how_to_make_it() -> None:
    async with upstream() as server, toolbox() as box:
        await box.add_openapi("api", described(server), auth="bearer", secret=REF, allow_private=["127.0.0.1"])
        await box.connect("api", connection="work", auth="bearer", secret=USER_REF)
        await box.connect("api", scope="user", connection="mine", auth="none")
        for label in ("org.main", "org.work", "user.mine"):
            await call(box, f"api.{label}.op")
        assert [one.header("authorization") for one in server.seen] == [f"Bearer {KEY}", f"Bearer {USER}", None]
        with pytest.raises(ToolError) as caught:
            await call(box, "api.org.home.op")
        assert caught.value.code == "connection_missing"
        assert caught.value.message == "There is no connection api.org.home."
        assert "api.org.main, api.org.work, api.user.mine" in (caught.value.hint or "")
        assert "executor connect api --scope org --connection home" in (caught.value.hint or "")
        for path in ("api.org.home.none", "none.org.home.op", "api.team.home.op", "api.org.op"):
            with pytest.raises(ToolError) as caught:
                await call(box, path)
            assert caught.value.code == "tool_not_found"
        await box.add_policy("api", "op", "block")
        with pytest.raises(ToolError) as caught:
            await call(box, "api.org.home.op")
        assert caught.value.code == "tool_not_found"


async def test_accounts_are_listed_shown_and_removed() -> None:
    async with upstream() as server, toolbox() as box:
        spec = described(server)
        await box.add_openapi("api", spec, auth="bearer", secret=REF, probe="op", allow_private=["127.0.0.1"])
        await box.connect("api", scope="user", connection="mine", auth={"type": "basic", "username": "ann"}, secret=REF)
        assert [one["path"] for one in box.connections.all()] == ["api.org.main", "api.user.mine"]
        assert [one["path"] for one in box.connections.all("api", "user")] == ["api.user.mine"]
        assert box.connections.described(box.connections.get("api", "org", "main")) == {
            "path": "api.org.main",
            "integration": "api",
            "scope": "org",
            "name": "main",
            "secrets": [REF],
            "placements": [{"type": "header", "name": "Authorization", "prefix": "Bearer ", "secret": REF}],
            "probe": "op",
            "tools": 1,
        }
        await box.disconnect("api", scope="user", connection="mine")
        with pytest.raises(NotFound, match=r"no connection user\.mine") as caught:
            box.connections.get("api", "user", "mine")
        assert caught.value.hint == "It has api.org.main."
        with pytest.raises(NotFound):
            box.connections.get("none", "org", "main")


PATHS = {
    "/items": {"get": operation(operationId="listItems")},
    "/me": {"get": operation(operationId="users.me")},
    "/logout": {"get": operation(operationId="user.logout")},
    "/open/status": {"get": operation(operationId="status") | {"security": []}},
    "/one/{id}": {"get": operation(parameter("id", "path"), operationId="getUser")},
    "/new": {"post": operation(operationId="createMe")},
}


def probed(server: Upstream, paths: Any = PATHS) -> dict[str, Any]:
    return document(paths, server.base, components={"securitySchemes": SCHEMES}, security=[{"key": []}])


async def test_the_probe_reads_needs_no_argument_and_carries_the_credential() -> None:
    async with upstream() as server, toolbox() as box:
        await box.add_openapi("api", probed(server), secret=REF, allow_private=["127.0.0.1"])
        checked = await box.check_connection("api")
        assert (checked["status"], checked["probe"], checked["http_status"]) == ("ok", "users.me", 200)
        assert [(one.method, one.target, one.header("x-key")) for one in server.seen] == [("GET", "/me", KEY)]
        await box.connect("api", secret=REF, probe="listItems", replace=True)
        assert (await box.check_connection("api"))["probe"] == "listItems"
        for bad in ("createMe", "getUser", "nope"):
            with pytest.raises(InvalidRequest, match="probe"):
                await box.connect("api", connection="other", secret=REF, probe=bad)
        without = {path: node for path, node in PATHS.items() if path not in ("/items", "/me")}
        await box.add_openapi("bare", probed(server, without), secret=REF, allow_private=["127.0.0.1"])
        with pytest.raises(InvalidRequest, match="no tool that could be a probe"):
            await box.check_connection("bare")


async def hang_up(seen: Any, reader: Any, writer: Any) -> None:
    writer.close()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (response({}), "ok"),
        (response(b"{not json", headers={"content-type": "application/json"}), "ok"),
        (response({"message": f"bad key {KEY}"}, status=401), "credential_rejected"),
        (response({"message": f"bad key {KEY}"}, status=403), "credential_rejected"),
        (response({}, status=500), "unreachable"),
        (response({}, status=404), "failed"),
        (hang_up, "unreachable"),
    ],
)
async def test_a_check_says_what_is_wrong_and_shows_no_secret(answer: Any, status: str) -> None:
    async with upstream() as server, toolbox() as box:
        await box.add_openapi("api", probed(server), secret=REF, allow_private=["127.0.0.1"])
        server.answers["/me"] = answer
        checked = await box.check_connection("api")
        assert (checked["connection"], checked["status"]) == ("api.org.main", status)
        assert KEY not in json.dumps(checked)
        assert status == "ok" or checked["message"]


async def test_a_check_whose_secret_is_missing_sends_nothing_and_one_that_a_policy_forbids_is_refused() -> None:
    async with upstream() as server, toolbox() as box:
        await box.add_openapi("api", probed(server), secret="local:nope", allow_private=["127.0.0.1"])
        checked = await box.check_connection("api")
        assert checked["status"] == "connection_missing"
        assert checked["hint"] == "executor secret set nope --scope org"
        await box.set_secret("nope", KEY)
        await box.add_policy("api", "users.me", "require_approval")
        with pytest.raises(ToolError) as caught:
            await box.check_connection("api", ctx=CallContext(door="http"))
        assert caught.value.code == "approval_required"
        assert server.seen == []


async def test_accounts_survive_a_restart_with_their_probe_and_every_placement(tmp_path: Any) -> None:
    from executor import Executor

    async with upstream() as server:
        auth = [
            {"type": "basic", "username_secret": REF, "password": "x"},
            {"type": "query", "name": "v", "value": "1"},
        ]
        async with Executor.open(tmp_path / "home") as ex:
            await ex.add_openapi("api", described(server), allow_private=["127.0.0.1"])
            await ex.connect("api", connection="work", auth=auth, probe="op")
            kept = ex.connections()
        async with Executor.open(tmp_path / "home") as ex:
            assert ex.connections() == kept
            assert (await ex.check_connection("api", connection="work"))["status"] == "ok"
        assert (server.seen[0].target, server.seen[0].header("authorization")) == ("/x?v=1", basic(f"{KEY}:x"))
