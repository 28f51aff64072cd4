"""Raw HTTP: what a request may be, whose headers are whose, and what a script's fetch is granted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridge.granted import granted
from bridge.toolbox import Toolbox
from bridge.wire.errors import ToolError
from tests.unit.upstream import Journal, Upstream, call, redirect, response, toolbox, upstream

pytestmark = pytest.mark.anyio

WEB = "web.org.main.http."


@asynccontextmanager
async def web(*allow: str, **options: Any) -> AsyncIterator[tuple[Toolbox, Upstream]]:
    async with upstream() as server, toolbox() as box:
        places = [entry.replace("BASE", server.base) for entry in allow or ("BASE",)]
        await box.add_http("web", places, allow_private=["127.0.0.1"], **options)
        yield box, server


async def sent(box: Toolbox, **args: Any) -> dict[str, Any]:
    """What arrives at the server."""
    value: dict[str, Any] = (await call(box, WEB + "request", {"method": "POST", "path": "/x", **args})).value
    return value


async def refused(box: Toolbox, tool: str = WEB + "request", **args: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await call(box, tool, args)
    return caught.value


@pytest.mark.parametrize(
    ("args", "body", "media"),
    [
        ({"body": {"a": ["ä"]}}, '{"a":["Ã¤"]}', "application/json"),
        ({"body": [1]}, "[1]", "application/json"),
        ({"body": "text"}, "text", "text/plain; charset=utf-8"),
        ({"body": b"\x00\xff"}, "\x00\xff", "application/octet-stream"),
        ({"body": "<x/>", "headers": {"Content-Type": "application/xml"}}, "<x/>", "application/xml"),
        ({"form": {"a": "b c&d", "n": [1, True]}}, "a=b%20c%26d&n=1&n=true", "application/x-www-form-urlencoded"),
        (
            {"body": {"a": "é"}, "headers": {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}},
            "a=%C3%A9",
            "application/x-www-form-urlencoded; charset=utf-8",
        ),
        ({"body": 5}, "5", "application/json"),
    ],
)
async def test_a_body_is_sent_as_what_it_is(args: dict[str, Any], body: str, media: str) -> None:
    async with web() as (box, _):
        got = await sent(box, **args)
        assert (got["body"], got["headers"]["content-type"]) == (body, media)


async def test_a_body_and_a_form_at_once_are_refused() -> None:
    async with web() as (box, server):
        assert (await refused(box, path="/", method="POST", body="x", form={"a": 1})).code == "invalid_arguments"
        assert (await refused(box, path="/", method="POST", form={"a": {}})).code == "invalid_arguments"
        assert server.seen == []


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "Connection", "Transfer-Encoding", "Content-Length", "Proxy-Authorization", "Proxy-Connection", "TE"),
        *("Upgrade", "Trailer", "Expect", "Keep-Alive", "Accept-Encoding", "Cookie", "cookie", "Set-Cookie", "Cookie2"),
        *("X-Key", "x-key", "a b", "a:b", ""),
    ],
)
async def test_a_header_that_is_not_the_callers_is_refused(name: str) -> None:
    """SSRF-37"""
    auth = {"type": "header", "name": "X-Key"}
    async with web(auth=auth, secret="env:NOT_SET_ANYWHERE") as (box, server):
        error = await refused(box, path="/", method="GET", headers={name: "x"})
        assert error.code == "invalid_arguments"
        assert server.seen == []


async def test_the_header_of_basic_authentication_is_the_connections_and_without_one_it_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WEB_PASSWORD", "cnry_0123456789")
    async with web(auth="basic", secret="env:WEB_PASSWORD") as (box, server):
        error = await refused(box, path="/", method="GET", headers={"Authorization": "Bearer x"})
        assert "set by the connection web.org.main" in error.message
        assert server.seen == []
    async with web() as (box, _):
        assert (await sent(box, headers={"Authorization": "Bearer x"}))["headers"]["authorization"] == "Bearer x"


async def test_a_cookie_that_the_connection_places_is_sent_and_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_SID", "cnry_0123456789")
    async with web(auth={"type": "cookie", "name": "sid"}, secret="env:WEB_SID") as (box, server):
        assert (await sent(box))["headers"]["cookie"] == "sid=[secret]"
        assert server.seen[0].header("cookie") == "sid=cnry_0123456789"


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/v1/../admin",
            "/v1/%2e%2e/admin",
            "/v1/..%2fadmin",
            "/v1/%252e%252e/admin",
            "/v1/..;/admin",
            "/v1/./../admin",
        ),
        *("/v1/x/../../admin", "/v1%2f..%2fadmin", "/v1\\..\\admin", "/v10", "/v", "/", "/V1/x", "/v1.", "/%76%31/x"),
        *("/v1/\x00", "/v1/\r\nx", "/v1/\tx", "//evil.test/v1", "/v1/%5c..%5cadmin"),
    ],
)
async def test_a_path_outside_the_prefix_is_refused_in_every_spelling(path: str) -> None:
    """POL-26: the prefix is compared with the path as it will be sent."""
    async with web("BASE/v1") as (box, server):
        error = await refused(box, path=path, method="GET")
        assert error.code in ("egress_denied", "invalid_arguments")
        assert server.seen == []


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/a/../b", "/v1/a%20b", "/v1/a%2Fb", "/v1//x", "/v1?x=/../admin"])
async def test_a_path_within_the_prefix_is_sent_without_its_dot_segments(path: str) -> None:
    async with web("BASE/v1") as (box, server):
        await call(box, WEB + "get", {"path": path})
        assert server.seen[0].target == path.replace("a/../", "")


async def test_methods_are_part_of_a_place() -> None:
    async with web("GET,HEAD BASE/v1", "POST BASE/v1/things") as (box, server):
        await call(box, WEB + "get", {"path": "/v1/x"})
        await call(box, WEB + "get", {"path": "/v1/x", "method": "HEAD"})
        await call(box, WEB + "request", {"path": "/v1/things", "method": "POST"})
        assert (await refused(box, path="/v1/x", method="POST")).code == "egress_denied"
        assert (await refused(box, path="/v1/things", method="DELETE")).code == "invalid_arguments"
        assert (await refused(box, WEB + "get", path="/v1/things", method="POST")).code == "invalid_arguments"
        assert [one.method for one in server.seen] == ["GET", "HEAD", "POST"]


# What fetch is granted


async def fetched(box: Toolbox, url: str, **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = (await call(box, "$fetch", {"url": url, **more})).value
    return value


async def test_a_fetch_is_a_call_of_the_tool_that_it_is_granted_by() -> None:
    async with web("BASE/v1", fetch=True) as (box, server):
        server.answers["/v1/x"] = response(b"no", status=404, headers={"set-cookie": "a=b", "x-n": "1"})
        journal = Journal()
        outcome = await call(box, "$fetch", {"url": server.base + "/v1/x"}, journal=journal)
        assert outcome.value == {
            "status": 404,
            "reason": "Said",
            "headers": [["content-type", "application/json"], ["x-n", "1"], ["content-length", "2"]],
            "url": server.base + "/v1/x",
            "redirected": False,
            "body": b"no",
        } | {"headers": outcome.value["headers"]}
        assert ["x-n", "1"] in outcome.value["headers"]
        assert not any(name == "set-cookie" for name, _ in outcome.value["headers"])
        [record] = journal.records
        assert (record.path, record.side_effect, record.decision, record.status) == (
            WEB + "get",
            "read",
            "approve",
            404,
        )


async def test_the_policy_of_the_tool_decides_over_a_fetch() -> None:
    async with upstream() as server, Toolbox() as box:
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"], fetch=True)
        assert (await fetched(box, server.base + "/x"))["status"] == 200
        with pytest.raises(ToolError) as caught:
            await fetched(box, server.base + "/x", method="POST", body=b"x")
        assert (caught.value.code, caught.value.path) == ("approval_required", WEB + "request")
        await box.add_policy("web", "http.*", "block")
        with pytest.raises(ToolError) as caught:
            await fetched(box, server.base + "/x")
        assert caught.value.code == "blocked"
        assert len(server.seen) == 1


async def test_a_redirect_is_followed_unless_it_is_to_be_the_answer() -> None:
    async with web("BASE/v1", fetch=True) as (box, server):
        server.answers["/v1/r"] = redirect("/v1/x")
        answer = await fetched(box, server.base + "/v1/r")
        assert (answer["status"], answer["url"], answer["redirected"]) == (200, server.base + "/v1/x", True)
        answer = await fetched(box, server.base + "/v1/r", follow=False)
        assert (answer["status"], answer["redirected"]) == (302, False)
        server.answers["/v1/out"] = redirect("/admin")
        with pytest.raises(ToolError) as caught:
            await fetched(box, server.base + "/v1/out")
        assert caught.value.code == "egress_denied"


@pytest.mark.parametrize(
    "url",
    [
        *("BASE/v2", "BASE/v1/../v2", "BASE/v10", "http://127.0.0.1:1/v1", "https://api.test/v1", "BASE@evil.test/v1"),
        *("file:///etc/passwd", "data:text/plain,x", "", "/v1/x", "http://169.254.169.254/", "BASE/v1/%2e%2e/v2"),
        None,
    ],
)
async def test_a_fetch_that_was_not_granted_leaves_nothing_and_says_what_to_grant(url: str | None) -> None:
    async with web("BASE/v1", fetch=True) as (box, server):
        with pytest.raises(ToolError) as caught:
            await fetched(box, url and url.replace("BASE", server.base))
        assert caught.value.code in ("egress_denied", "invalid_arguments")
        if caught.value.code == "egress_denied":
            assert "executor add http NAME --allow" in str(caught.value.hint)
        assert server.seen == []


async def test_an_integration_grants_fetch_only_when_it_was_added_for_it() -> None:
    async with web() as (box, server):
        with pytest.raises(ToolError, match="fetch is not granted"):
            await fetched(box, server.base + "/x")
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"], fetch=True, replace=True)
        assert (await fetched(box, server.base + "/x"))["status"] == 200
        assert [one["fetch"] for one in box.integrations()] == [True]


async def test_of_several_grants_the_nearest_is_meant_and_a_tie_is_refused() -> None:
    async with toolbox() as box, upstream() as server:
        private = {"allow_private": ["127.0.0.1"], "fetch": True}
        await box.add_http("wide", [server.base], **private)
        await box.add_http("near", [server.base + "/v1/things"], **private)
        registry = box._registry
        assert granted(registry, {"url": server.base + "/v1/things/1"}).path == "near.org.main.http.get"
        assert granted(registry, {"url": server.base + "/v1/other"}).path == "wide.org.main.http.get"
        await box.add_http("same", [server.base], **private)
        with pytest.raises(ToolError, match="same and wide"):
            granted(registry, {"url": server.base + "/v1/other"})
        await box.connect("near", connection="second")
        with pytest.raises(ToolError, match="2 accounts"):
            granted(registry, {"url": server.base + "/v1/things/1"})


async def test_a_fetch_carries_the_credential_of_the_connection_and_never_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WEB_KEY", "cnry_0123456789abcdef")
    async with web(auth={"type": "query", "name": "key"}, secret="env:WEB_KEY", fetch=True) as (box, server):
        answer = await fetched(box, server.base + "/x?a=1")
        assert server.seen[0].target == "/x?a=1&key=cnry_0123456789abcdef"
        assert answer["url"] == server.base + "/x?a=1"
        assert b"[secret]" in answer["body"]
        assert b"cnry_" not in answer["body"]
