"""What httpx2 is given and what leaves: our target and our headers byte for byte, and nothing of httpx2's own."""

from __future__ import annotations

import logging
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.client import Answer, Client
from bridge.dial import system_resolver, tls_context
from bridge.egress import Grant, parse_named
from bridge.own import Own
from bridge.transport import ORDER, TARGET, Order, Transport
from bridge.wire.errors import ToolError
from catalog.origin import BadUrl, Url, parse_host, parse_url, reach_of
from tests.unit.upstream import Upstream, call, redirect, response, toolbox, upstream

pytestmark = pytest.mark.anyio

MIB = 1 << 20


def _grant(url: Url) -> Grant:
    return Grant((reach_of(url),), (parse_named("127.0.0.1"),))


async def _exchange(server: Upstream, target: str, client: Client, *, method: str = "GET", **more: Any) -> Answer:
    url = parse_url(server.base).at(target)
    body = more.pop("body", None)
    return await client.exchange(method, url, more.pop("headers", []), body, grant=_grant(url), limit=MIB)


@pytest.mark.parametrize(
    "target",
    [
        "/a/../../b",
        "/./a/./b/..",
        "//a//b/",
        "/%2e%2e/%2E%2e%2fx",
        "/%7euser/~user/%zz",
        "/a;p=1/b,c:d@e!$&'()*+=",
        "/x?a=[1]&b='%27&c=%20+~&d=/../e",
        "/x?",
        "/x?q=http://other.test/a?b",
    ],
)
async def test_the_target_that_was_checked_is_the_target_that_is_sent(target: str) -> None:
    async with upstream() as server:
        client = Client()
        await _exchange(server, target, client)
        assert server.seen[0].target == target
        await client.close()


@given(st.text(alphabet="abxn-_09.é", min_size=1, max_size=20))
def test_the_host_that_was_checked_is_the_host_that_httpx2_reads(text: str) -> None:
    try:
        host = parse_host(text)
    except BadUrl:
        return
    for url in (Url("http", host, 80, "/"), Url("https", host, 8443, "/")):
        assert str(httpx2.URL(url.origin)) == url.origin


@pytest.mark.parametrize("literal", ["[::1]", "[2001:db8::1]", "[::ffff:127.0.0.1]", "127.0.0.1"])
def test_an_address_that_was_checked_is_the_address_that_httpx2_reads(literal: str) -> None:
    for url in (parse_url(f"http://{literal}"), parse_url(f"https://{literal}:444")):
        assert str(httpx2.URL(url.origin)) == url.origin


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("POST", None), ("POST", b"{}"), ("DELETE", b"")])
async def test_a_request_has_the_headers_that_it_was_given_and_four_of_ours(method: str, body: bytes | None) -> None:
    async with upstream() as server:
        client = Client()
        await _exchange(server, "/x", client, method=method, body=body, headers=[("x-one", "1"), ("accept", "a/b")])
        expected = [
            ("host", f"127.0.0.1:{server.port}"),
            ("user-agent", "executor"),
            ("accept-encoding", "identity"),
            ("x-one", "1"),
            ("accept", "a/b"),
        ]
        if method == "POST" or body is not None:
            expected.append(("content-length", str(len(body or b""))))
        assert server.seen[0].headers == expected
        assert server.seen[0].body == (body or b"")
        await client.close()


@pytest.mark.parametrize("changed", ["origin", "path", "query", "target", "no target", "host", "two hosts", "order"])
async def test_a_request_that_is_not_the_one_that_was_checked_reaches_nothing(changed: str) -> None:
    async with upstream() as server:
        url = parse_url(server.base + "/x")
        where, target, hosts = url.origin, b"/x", [url.netloc]
        extensions: dict[str, Any] = {ORDER: Order(url, _grant(url), MIB)}
        if changed == "origin":
            where = "http://127.0.0.1:1"
        elif changed in ("path", "query"):
            where += {"path": "/y", "query": "?y"}[changed]
        elif changed == "target":
            target = b"/y"
        elif changed == "host":
            hosts = ["other.test"]
        elif changed == "two hosts":
            hosts *= 2
        elif changed == "order":
            del extensions[ORDER]
        if changed != "no target":
            extensions[TARGET] = target
        request = httpx2.Request(
            "GET",
            where,
            headers=[("host", host) for host in hosts],
            stream=httpx2.ByteStream(b""),
            extensions=extensions,
        )
        transport = Transport(system_resolver, Own(), tls_context(), 1)
        with pytest.raises(ToolError, match="not the one that was checked") as caught:
            await transport.handle_async_request(request)
        assert caught.value.code == "egress_denied"
        assert server.connections == 0
        await transport.aclose()


async def test_no_log_of_the_client_holds_a_path_or_a_credential_of_the_query(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-17 SEC-32: httpx2 logs each URL at INFO, so it is told no more of it than the origin."""
    monkeypatch.setenv("WEB_KEY", "cnry_query_credential")
    async with upstream() as server, toolbox() as box:
        auth = {"type": "query", "name": "api_key"}
        await box.add_http("web", [server.base], auth=auth, secret="env:WEB_KEY", allow_private=["127.0.0.1"])
        with caplog.at_level(logging.DEBUG):
            await call(box, "web.org.main.http.get", {"path": "/private-path"})
        assert "cnry_query_credential" in server.seen[0].target
        assert [record.name for record in caplog.records if record.name == "httpx2"]
        assert "cnry_query_credential" not in caplog.text
        assert "private-path" not in caplog.text


@pytest.mark.parametrize(
    "location", ["http://[::bad", "http://h:99999999/", "/%zz/../", "x" * 60_000, "//axn--;", ":javascript:,{"]
)
async def test_where_a_redirect_points_is_not_read_by_the_client(location: str) -> None:
    """The last two make httpx2 2.16 fail with what is not an error of its own."""
    async with upstream() as server:
        server.answers["/x"] = redirect(location)
        client = Client()
        answer = await _exchange(server, "/x", client)
        assert (answer.status, dict(answer.headers)["location"]) == (302, location)
        assert len(server.seen) == 1
        await client.close()


async def test_a_cookie_is_not_even_read() -> None:
    async with upstream() as server:
        client = Client()
        server.answers["/set"] = response({}, headers={"set-cookie": "sid=1; Path=/; Max-Age=99999999999999999999"})
        answer = await _exchange(server, "/set", client)
        assert dict(answer.headers)["set-cookie"].startswith("sid=1")
        assert list(client.exchanges.http.cookies.jar) == []
        await _exchange(server, "/next", client)
        assert server.seen[1].header("cookie") is None
        await client.close()
