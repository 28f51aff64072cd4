"""The SSRF group of the threat catalogue: nothing reaches a place that was not allowed, by any way in."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import random
import resource
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.client import Client
from bridge.egress import Gate, Grant, parse_named
from bridge.toolbox import Toolbox
from bridge.wire.errors import ConfigError, ExecutorError, ImportFailed, ToolError
from catalog.origin import BadUrl, parse_reach, parse_url, reach_of
from tests.unit.upstream import (
    Resolver,
    Seen,
    Upstream,
    bomb,
    call,
    document,
    operation,
    parameter,
    redirect,
    response,
    toolbox,
    upstream,
)

pytestmark = pytest.mark.anyio

PUBLIC = "93.184.216.34"
MIB = 1 << 20

LITERALS = {
    "SSRF-02": ["2130706433", "0x7f000001", "0x7F.1"],
    "SSRF-04": ["0177.0.0.1", "017700000001", "00000177.0.0.1", "127.0.0.01"],
    "SSRF-05": ["127.1", "127.0.1", "0", "0.0.0.0", "0.1.2.3"],
    "SSRF-06": ["①②⑦.⓪.⓪.①", "127。0。0。1", "127．0．0．1", "ⓛocalhost"],
    "SSRF-08": ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0:127.0.0.1]", "[::127.0.0.1]", "[::1]", "[::]"],
    "SSRF-09": ["[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a00:1]"],
    "SSRF-10": [
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::1]",
        "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
        "[fe80::5efe:a00:1]",
    ],
    "SSRF-12": [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.170.2",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "[fd00:ec2::254]",
    ],
    "SSRF-13": [
        "10.0.0.5",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "192.0.0.8",
        "198.18.0.1",
        "203.0.113.9",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.88.99.1",
    ],
    "SSRF-28": ["good.test%00.evil.test", "evil.test\0.good.test", "good.test%0d%0aX:1", "good\t.test", "good\n.test"],
    "SSRF-31": [
        "good.test:0",
        "good.test:65536",
        "good.test:99999",
        "good.test:80:80",
        "good.test:٨٠",
        "good.test:+80",
    ],
    "SSRF-59": ["☃.test", "xn--a", "a\u200db.test", "a" * 300 + ".test", "xn--.test", "good.test."],
}
CASES = [(threat, host) for threat, hosts in LITERALS.items() for host in hosts]


@asynccontextmanager
async def guarded(**names: list[list[str]]) -> AsyncIterator[tuple[Toolbox, Upstream, Resolver]]:
    """A toolbox whose one allowed private place is the hostile server that redirects from `/go`."""
    resolver = Resolver(**names)
    async with upstream() as server, toolbox(resolver, tool_timeout_s=15) as box:
        await box.add_http("web", [server.base], allow_private=[f"127.0.0.1:{server.port}"])
        yield box, server, resolver


async def every_way_in(box: Toolbox, server: Upstream, url: str) -> list[str]:
    """Try `url` as base URL, server, document, tool argument, redirect target; the code of each refusal."""
    codes: list[str] = []
    allowed = [f"127.0.0.1:{server.port}"]
    described = {"/x": {"get": operation()}}
    attempts: list[Any] = [
        lambda: box.add_openapi("a", document(described, "https://api.test"), base_url=url, replace=True),
        lambda: box.add_openapi("a", document(described, url), replace=True),
        lambda: box.add_openapi("a", document({"/x": {"get": operation(servers=[{"url": url}])}}, url), replace=True),
        lambda: box.add_openapi("a", url, allow_private=allowed, replace=True),
        lambda: box.add_http("b", [url], replace=True),
        lambda: call(box, "web.org.main.http.get", {"path": url}),
        lambda: call(box, "web.org.main.http.get", {"path": "/go"}),
        lambda: box.add_openapi("a", server.base + "/go", allow_private=allowed, replace=True),
    ]
    server.answers["/go"] = redirect(url.encode("utf-8").decode("latin-1"))
    for attempt in attempts:
        with anyio.fail_after(20):
            try:
                await attempt()
            except (ToolError, ImportFailed) as e:
                codes.append(e.code)
            else:
                codes.append("passed")
    return codes


@pytest.mark.parametrize(("threat", "host"), CASES)
async def test_no_spelling_of_a_private_host_gets_through_by_any_way_in(threat: str, host: str) -> None:
    """SSRF-02 SSRF-04 SSRF-05 SSRF-06 SSRF-08 SSRF-09 SSRF-10 SSRF-12 SSRF-13 SSRF-28 SSRF-31 SSRF-59"""
    async with guarded() as (box, server, resolver):
        codes = await every_way_in(box, server, f"http://{host}/")
        # A Location that is not even a header value is refused as a malformed answer.
        malformed = set() if host.isprintable() else {"upstream_error"}
        assert set(codes) <= {"import_failed", "egress_denied", "invalid_arguments"} | malformed, codes
        assert [one.target for one in server.seen] == ["/go", "/go"]
        assert not any(name.isdigit() or name.startswith("0x") for name in resolver.asked)


@pytest.mark.parametrize("port", [22, 25, 3306, 6379, 2375, 11211])
async def test_another_port_of_an_allowed_host_is_another_place(port: int) -> None:
    """SSRF-31"""
    async with guarded() as (box, _, _):
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.get", {"path": f"http://127.0.0.1:{port}/"})
        assert caught.value.code == "egress_denied"


@pytest.mark.parametrize(
    "answers",
    [["127.0.0.1"], ["10.0.0.5"], ["169.254.169.254"], ["::1"], ["::ffff:a9fe:a9fe"], ["fe80::1%eth0"]],
)
async def test_a_name_that_resolves_to_a_private_address_is_refused(answers: list[str]) -> None:
    """SSRF-12 SSRF-14"""
    async with guarded(lvh_test=[answers], metadata_google_internal=[answers]) as (box, _, _):
        for name in ("lvh.test", "metadata.google.internal"):
            with pytest.raises(ImportFailed, match="not on the public internet") as caught:
                await box.add_http("b", [f"http://{name}"])
            assert not any(answer in str(caught.value) for answer in answers)


@pytest.mark.parametrize("answers", [[PUBLIC, "10.0.0.5"], [PUBLIC, "::1"], ["127.0.0.1", PUBLIC]])
async def test_one_private_address_among_the_answers_spoils_them_all(answers: list[str]) -> None:
    """SSRF-16"""
    async with guarded(mixed_test=[answers]) as (box, _, _):
        with pytest.raises(ImportFailed, match="not on the public internet"):
            await box.add_http("b", ["http://mixed.test"])


@pytest.mark.parametrize("flip", [0, 1, 2, 5])
async def test_a_name_that_changes_its_address_never_leads_inside(flip: int) -> None:
    """SSRF-17: each connection asks once and dials what it was told. 127.0.0.2 counts as public here."""
    async with upstream() as inside:
        resolver = Resolver(flip_test=[["127.0.0.2"]] * flip + [["127.0.0.1"]])
        url = parse_url(f"http://flip.test:{inside.port}/")
        grant = Grant((reach_of(url),), (parse_named("127.0.0.2"),))
        client = Client(resolver=resolver)
        codes = []
        for _ in range(flip + 2):
            with pytest.raises(ToolError) as caught:
                await client.exchange("GET", url, [], None, grant=grant, limit=MIB)
            codes.append(caught.value.code)
        assert codes == ["upstream_unreachable"] * flip + ["egress_denied"] * 2
        assert len(resolver.asked) == flip + 2
        assert inside.connections == 0
        await client.close()


async def test_ten_thousand_rebindings_reach_nothing() -> None:
    """SSRF-17"""
    asked = 0

    async def resolver(name: str, port: int) -> list[str]:
        nonlocal asked
        asked += 1
        return [["127.0.0.1"], ["10.0.0.1", PUBLIC], ["::1"], ["::ffff:7f00:1"]][asked % 4]

    async with upstream() as inside:
        client = Client(resolver=resolver)
        url = parse_url(f"http://flip.test:{inside.port}/")
        grant = Grant((reach_of(url),))
        refused = 0
        for _ in range(10_000):
            try:
                await client.exchange("GET", url, [], None, grant=grant, limit=MIB)
            except ToolError as e:
                refused += e.code == "egress_denied"
        assert (refused, asked, inside.connections) == (10_000, 10_000, 0)
        await client.close()


async def test_a_kept_connection_is_the_vetted_one_and_a_new_one_is_vetted_again() -> None:
    """SSRF-18"""
    async with upstream() as server:
        resolver = Resolver(flip_test=[["127.0.0.1"], ["10.0.0.1"]])
        url = parse_url(f"http://flip.test:{server.port}/")
        grant = Grant((reach_of(url),), (parse_named("127.0.0.1"),))
        client = Client(resolver=resolver)
        for _ in range(3):
            await client.exchange("GET", url, [], None, grant=grant, limit=MIB)
        assert (server.connections, resolver.asked) == (1, ["flip.test"])
        await client.close()
        with pytest.raises(ToolError) as caught:
            await client.exchange("GET", url, [], None, grant=grant, limit=MIB)
        assert caught.value.code == "egress_denied"


async def test_a_connection_that_leads_elsewhere_than_it_was_dialled_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SSRF-17: what the socket says of its peer is compared with the address that was checked."""
    monkeypatch.setattr("bridge.dial._peer", lambda stream: ipaddress.ip_address("10.0.0.1"))
    async with upstream() as server:
        url = parse_url(server.base + "/")
        client = Client()
        grant = Grant((reach_of(url),), (parse_named("127.0.0.1"),))
        with pytest.raises(ToolError) as caught:
            await client.exchange("GET", url, [], None, grant=grant, limit=MIB)
        assert caught.value.code == "egress_denied"
        assert server.seen == []
        await client.close()


@pytest.mark.parametrize("failure", ["nxdomain", "timeout", "servfail", "garbage", "empty"])
async def test_a_resolution_that_fails_fails_closed(failure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SSRF-15 SSRF-19"""
    monkeypatch.setattr("bridge.dial.RESOLVE_S", 0.05)

    async def resolver(name: str, port: int) -> list[str]:
        if failure == "timeout":
            await anyio.sleep_forever()
        if failure in ("nxdomain", "servfail"):
            raise OSError(failure)
        return ["not an address"] if failure == "garbage" else []

    url = parse_url("http://api.test/")
    client = Client(resolver=resolver)
    with pytest.raises(ToolError) as caught:
        await client.exchange("GET", url, [], None, grant=Grant((reach_of(url),)), limit=MIB)
    assert caught.value.code == "upstream_unreachable"
    await client.close()


async def test_of_two_hundred_answers_every_one_is_checked() -> None:
    """SSRF-19"""
    answers = [f"93.184.{one}.34" for one in range(199)] + ["10.0.0.1"]
    async with guarded(many_test=[answers]) as (box, _, _):
        with pytest.raises(ImportFailed, match="not on the public internet"):
            await box.add_http("b", ["http://many.test"])


@pytest.mark.parametrize("name", ["a\0b.test", "a" * 64 + ".test", ".".join(["a" * 60] * 5)])
def test_a_name_that_no_dns_can_hold_is_refused_before_it_is_asked_for(name: str) -> None:
    """SSRF-19"""
    with pytest.raises(BadUrl):
        parse_url(f"http://{name}/")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/",
        "http://10.0.0.5/",
        "//127.0.0.1/",
        "http:127.0.0.1",
        "\\\\127.0.0.1\\x",
        "file:///etc",
    ],
)
async def test_a_redirect_to_the_inside_is_not_followed(status: int, target: str) -> None:
    """SSRF-20"""
    async with guarded() as (box, server, _):
        server.answers["/r"] = redirect(target, status)
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.get", {"path": "/r"})
        assert caught.value.code == "egress_denied"
        assert len(server.seen) == 1


async def test_a_chain_of_redirects_ends_after_three_and_a_loop_at_once() -> None:
    """SSRF-22"""
    async with guarded() as (box, server, _):
        for one in range(20):
            server.answers[f"/{one}"] = redirect(f"/{one + 1}")
        server.answers["/a"], server.answers["/b"] = redirect("/b"), redirect("/a")

        async def growing(seen: Seen, reader: Any, writer: Any) -> None:
            writer.write(redirect(f"{seen.target}{'&' if '?' in seen.target else '?'}x"))

        server.answers["/self"] = growing
        for path, requests in (("/0", 4), ("/a", 2), ("/self", 4)):
            server.seen.clear()
            with pytest.raises(ToolError) as caught:
                await call(box, "web.org.main.http.get", {"path": path})
            assert (caught.value.code, len(server.seen)) == ("upstream_error", requests)


async def test_the_host_that_was_checked_is_the_host_that_is_dialled() -> None:
    """SSRF-27"""
    for text in ("http://good.test#@127.0.0.1/", "http://good.test?@127.0.0.1/"):
        assert parse_url(text).host.name == "good.test"
    for text in ("http://good.test;127.0.0.1/", "http://good.test@127.0.0.1/", "http://127.0.0.1\\@good.test/"):
        with pytest.raises(BadUrl):
            parse_url(text)


@pytest.mark.parametrize(
    "host",
    [
        "evilgood.test",
        "good.test.evil.test",
        ".good.test",
        "xn--god-0na.test",
        "go\u00add.good.test",
        "a\u200d.good.test",
    ],
)
def test_a_lookalike_is_not_covered_by_a_wildcard(host: str) -> None:
    """SSRF-29"""
    reach = parse_reach("*.good.test")
    try:
        url = parse_url(f"https://{host}/")
    except BadUrl:
        return
    assert not reach.covers("GET", url)


def test_the_unicode_kelvin_sign_and_long_s_are_not_letters_of_a_host() -> None:
    """SSRF-29"""
    for host in ("\u212aube.test", "\u017fafe.test", "good.test."):
        with pytest.raises(BadUrl):
            parse_url(f"https://{host}/")
    assert parse_url("https://GOOD.test/").host.name == "good.test"
    assert parse_reach("*.good.test").covers("GET", parse_url("https://A.Good.Test/"))


@pytest.mark.parametrize(
    "pattern", ["", "*", "*.", "*.test", "**", "good.*", "good.[a-z]+", "(good|evil).test", "a b c"]
)
def test_a_pattern_that_is_not_one_stops_the_start(pattern: str) -> None:
    """SSRF-30"""
    with pytest.raises(ConfigError):
        Gate.configured([pattern], ())


def test_port_and_scheme_are_part_of_a_rule() -> None:
    """SSRF-30"""
    reach = parse_reach("good.test")
    assert reach == parse_reach("https://good.test:443")
    assert not reach.covers("GET", parse_url("http://good.test/"))
    assert not reach.covers("GET", parse_url("https://good.test:444/"))


async def test_proxies_certificates_and_key_logs_of_the_environment_are_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SSRF-34 SEC-32"""
    async with upstream() as proxy, upstream() as server:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.base)
        monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        (tmp_path / "netrc").write_text("default login a password cnry_netrc")
        async with toolbox() as box:
            await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
            answer = await call(box, "web.org.main.http.get", {"path": "/x"})
            assert "authorization" not in answer.value["headers"]
        assert (len(server.seen), proxy.connections) == (1, 0)
        assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize(
    "headers",
    [
        {"X": "a\r\nInjected: 1"},
        {"X": "a\nb"},
        {"X": "a\0"},
        {"X": "ünï"},
        {"X": "a" * 65_536},
        {"X Y": "1"},
        {"X:Y": "1"},
        {"": "1"},
        {"Transfer-Encoding": "chunked"},
        {"Content-Length": "5"},
        {"Host": "evil.test"},
        {"Connection": "upgrade"},
        {"Proxy-Authorization": "x"},
        {"Expect": "100-continue"},
    ],
)
async def test_a_header_that_could_be_read_two_ways_is_an_argument_error(headers: dict[str, str]) -> None:
    """SSRF-36 SSRF-37"""
    async with guarded() as (box, server, _):
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.get", {"path": "/x", "headers": headers})
        assert caught.value.code == "invalid_arguments"
        assert server.seen == []


async def _answer(raw: Any, *, limit: int = 5 * MIB) -> ToolError:
    async with upstream() as server:
        server.answers["/"] = raw
        client = Client()
        url = parse_url(server.base + "/")
        grant = Grant((reach_of(url),), (parse_named("127.0.0.1"),))
        with pytest.raises(ToolError) as caught, anyio.fail_after(30):
            await client.exchange("GET", url, [], None, grant=grant, limit=limit)
        assert client._transport._idle.get((grant, url.origin), []) == []
        await client.close()
        return caught.value


@pytest.mark.parametrize(
    ("coding", "body", "code"),
    [
        ("gzip", bomb(256), "too_large"),
        ("gzip, gzip", bomb(1), "upstream_error"),
        ("br", b"\x00" * 10, "upstream_error"),
        ("zstd", b"\x00" * 10, "upstream_error"),
        ("sundry", b"\x00" * 10, "upstream_error"),
        ("gzip", b"this is not gzip at all", "upstream_error"),
        ("gzip", bomb(1)[:100], "upstream_error"),
        ("deflate", b"\xff\xff\xff\xff", "upstream_error"),
    ],
)
async def test_a_compressed_answer_cannot_grow_over_its_limit(coding: str, body: bytes, code: str) -> None:
    """SSRF-40"""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = await _answer(response(body, headers={"content-encoding": coding}))
    assert error.code == code
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024


async def test_a_compressed_answer_within_its_limit_is_read() -> None:
    """SSRF-40: `identity` is asked for, and what comes compressed all the same is borne."""
    import gzip
    import zlib

    async with guarded() as (box, server, _):
        squeezed = zlib.compressobj(wbits=-15)
        for coding, body in (
            ("gzip", gzip.compress(b'{"a":1}', mtime=0)),
            ("deflate", zlib.compress(b'{"a":1}')),
            ("deflate", squeezed.compress(b'{"a":1}') + squeezed.flush()),
        ):
            server.reply("/z", body, headers={"content-encoding": coding})
            assert (await call(box, "web.org.main.http.get", {"path": "/z"})).value == {"a": 1}
        assert server.seen[0].header("accept-encoding") == "identity"


async def _endless(seen: Seen, reader: Any, writer: Any) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        await writer.drain()


async def test_an_endless_answer_stops_at_its_limit() -> None:
    """SSRF-41"""
    assert (await _answer(_endless)).code == "too_large"


def _drip(prefix: bytes) -> Any:
    async def drip(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(prefix)
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    return drip


async def _silence(seen: Seen, reader: Any, writer: Any) -> None:
    await reader.read()


@pytest.mark.parametrize(
    "script",
    [_drip(b"HTTP/1.1 200 OK\r\n\r\n"), _drip(b"HTTP/1.1 200 OK\r\nx-slow: "), _silence],
    ids=["body", "headers", "silence"],
)
async def test_a_dripping_or_silent_server_is_left_at_the_total_deadline(script: Any) -> None:
    """SSRF-41 SSRF-42"""
    async with upstream() as server, toolbox(tool_timeout_s=0.4) as box:
        await box.add_http("web", [server.base], allow_private=["127.0.0.1"])
        server.answers["/"] = script
        with pytest.raises(ToolError) as caught, anyio.fail_after(10):
            await call(box, "web.org.main.http.get", {"path": "/"})
        assert caught.value.code == "upstream_timeout"


async def test_a_tls_handshake_that_stalls_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSRF-42"""
    monkeypatch.setattr("bridge.dial.CONNECT_S", 0.2)
    async with upstream() as server, toolbox() as box:
        origin = f"https://127.0.0.1:{server.port}"
        await box.add_http("web", [origin], allow_private=["127.0.0.1"])
        with pytest.raises(ToolError) as caught, anyio.fail_after(10):
            await call(box, "web.org.main.http.get", {"path": "/"})
        assert caught.value.code == "upstream_unreachable"


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: 1\r\n" % one for one in range(10_000)),
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * MIB + b"\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"set-cookie: a=1\r\n" * 101,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 1000 + b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n",
        b"ICY 200 OK\r\n",
    ],
    ids=["many", "huge", "cookies", "continue", "hints", "switch", "not-http"],
)
async def test_a_flood_of_headers_is_an_upstream_error(head: bytes) -> None:
    """SSRF-43"""
    assert (await _answer(head + b"content-length: 0\r\n\r\n")).code == "upstream_error"


async def _short(seen: Seen, reader: Any, writer: Any) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello")
    writer.close()


@pytest.mark.parametrize(
    "raw",
    [
        _short,
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"f" * 18 + b"\r\nhello",
    ],
    ids=["short", "negative", "two", "chunk", "endless chunk"],
)
async def test_a_wrong_length_is_an_upstream_error(raw: Any) -> None:
    """SSRF-44"""
    assert (await _answer(raw)).code == "upstream_error"


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    """SSRF-44"""

    async def old(seen: Seen, reader: Any, writer: Any) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\nhello")
        writer.close()

    async with guarded() as (box, server, _):
        server.answers["/old"] = old
        assert (await call(box, "web.org.main.http.get", {"path": "/old"})).value == "hello"


async def test_bytes_behind_an_answer_never_reach_the_next_caller() -> None:
    """SSRF-44 SSRF-45"""
    async with guarded() as (box, server, _):
        server.answers["/extra"] = response("mine") + response("smuggled")
        server.answers["/twenty"] = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n" + b"x" * 20
        for path in ("/extra", "/twenty"):
            before = server.connections
            await call(box, "web.org.main.http.get", {"path": path})
            answer = await call(box, "web.org.main.http.get", {"path": "/next"})
            assert answer.value["target"] == "/next"
            assert server.connections > before


def _certificate(folder: Path, *, name: str, expired: bool = False) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now - timedelta(days=1) if expired else now + timedelta(days=10))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}-{expired}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@asynccontextmanager
async def _secure(certificate: Path, names: list[str], one: Upstream | None = None) -> AsyncIterator[int]:
    """A TLS server; the server names that clients ask for are appended to `names`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _, name, __: names.append(str(name))
    one = one or Upstream()
    tasks: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(one.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accepted, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_tls_checks_the_name_that_was_asked_for_though_an_address_is_dialled(tmp_path: Path) -> None:
    """SSRF-46"""
    good, expired = _certificate(tmp_path, name="good.test"), _certificate(tmp_path, name="good.test", expired=True)
    other = _certificate(tmp_path, name="other.test")
    for certificate, authority, accepted in (
        (good, good, True),
        (good, None, False),
        (expired, expired, False),
        (other, other, False),
    ):
        names: list[str] = []
        async with _secure(certificate, names) as port:
            client = Client(resolver=Resolver(good_test=[["127.0.0.1"]]), ca_file=authority)
            url = parse_url(f"https://good.test:{port}/")
            grant = Grant((reach_of(url),), (parse_named("good.test"),))
            if accepted:
                assert (await client.exchange("GET", url, [], None, grant=grant, limit=MIB)).status == 200
            else:
                with pytest.raises(ToolError, match="certificate") as caught:
                    await client.exchange("GET", url, [], None, grant=grant, limit=MIB)
                assert caught.value.code == "upstream_unreachable"
            await client.close()
        assert names == ["good.test"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_port_or_without_tls_carries_no_credential(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSRF-23"""
    monkeypatch.setenv("WEB_KEY", "cnry_0123456789abcdef")
    certificate, one = _certificate(tmp_path, name="good.test"), Upstream()
    resolver = Resolver(good_test=[["127.0.0.1"]])
    async with upstream() as plain, upstream() as other, _secure(certificate, [], one) as port:
        places = [f"https://good.test:{port}", f"http://good.test:{plain.port}", f"http://good.test:{other.port}"]
        async with toolbox(resolver, ca_file=certificate) as box:
            auth = {"type": "header", "name": "x-key"}
            await box.add_http("web", places, allow_private=["127.0.0.1"], auth=auth, secret="env:WEB_KEY")
            one.answers["/go"] = redirect(places[1] + "/x", status)
            plain.answers["/go"] = redirect(places[2] + "/x", status)
            for place in places[:2]:
                args = {"path": place + "/go", "headers": {"x-mine": "1"}}
                assert (await call(box, "web.org.main.http.get", args)).value["target"] == "/x"
                args |= {"method": "POST", "body": "secret body"}
                with pytest.raises(ToolError) as caught:
                    await call(box, "web.org.main.http.request", args)
                assert caught.value.status == status
        assert [seen.header("x-key") for seen in one.seen] == ["cnry_0123456789abcdef"] * 2
        for seen in (plain.seen[0], *other.seen):
            assert (seen.target, seen.header("x-key"), seen.header("x-mine"), seen.body) == ("/x", None, None, b"")
        assert [len(plain.seen), len(other.seen)] == [3, 1]


async def test_challenges_links_and_alternative_services_are_not_followed() -> None:
    """SSRF-48"""
    async with guarded() as (box, server, _):
        pointing = {
            "www-authenticate": "Negotiate",
            "link": "<http://169.254.169.254/>; rel=next",
            "alt-svc": 'h2="10.0.0.5:443"',
            "refresh": "0; url=http://10.0.0.5/",
        }
        server.reply("/c", {}, headers=pointing)
        await call(box, "web.org.main.http.get", {"path": "/c"})
        for status in (401, 407):
            server.reply("/c", {}, status=status, headers=pointing)
            with pytest.raises(ToolError) as caught:
                await call(box, "web.org.main.http.get", {"path": "/c"})
            assert (caught.value.code, caught.value.status) == ("upstream_error", status)
        assert len(server.seen) == 3


async def test_cookies_are_neither_kept_nor_sent() -> None:
    """SSRF-49"""
    async with guarded() as (box, server, _):
        server.reply("/set", {}, headers={"set-cookie": "sid=cnry_cookie; Path=/"})
        outcome = await call(box, "web.org.main.http.get", {"path": "/set"}, meta=True)
        assert "set-cookie" not in outcome.http["headers"]
        assert "cookie" not in (await call(box, "web.org.main.http.get", {"path": "/next"})).value["headers"]


def test_a_wildcard_is_only_a_filter_and_never_an_address() -> None:
    """SSRF-50: a grant with a wildcard resolves only hosts that a call names, one by one, under the call budget."""
    reach = parse_reach("*.good.test")
    assert not reach.covers("GET", parse_url("https://1.2.3.4/"))
    with pytest.raises(BadUrl):
        parse_url("https://*.good.test/")


@pytest.mark.parametrize(
    "ref",
    [
        "http://10.0.0.5/x.yaml#/a",
        "file:///etc/passwd",
        "../../etc/passwd",
        "//evil.test./x",
        "#/components/schemas/Loop",
    ],
)
async def test_a_reference_leads_only_into_its_own_document(ref: str) -> None:
    """SSRF-53"""
    async with upstream() as server, toolbox() as box:
        described = document(
            {"/x": {"get": operation({"$ref": ref}, parameter("q", schema={"$ref": ref}))}},
            server.base,
            components={"schemas": {"Loop": {"$ref": "#/components/schemas/Loop"}}},
        )
        report = await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        assert report.diagnostics
        assert (await call(box, "api.org.main.op", {"q": "1"})).value["target"] == "/x?q=1"
        assert len(server.seen) == 1


async def test_yaml_anchors_cannot_blow_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSRF-53"""
    monkeypatch.setattr("catalog.kinds.openapi.reader.MAX_YAML_NODES", 50_000)
    levels = "".join(f"l{one}: &l{one} [{', '.join([f'*l{one - 1}'] * 9)}]\n" for one in range(1, 12))
    async with toolbox() as box:
        with pytest.raises(ImportFailed, match="aliases"):
            await box.add_openapi("api", "openapi: 3.0.0\nl0: &l0 [x, x]\n" + levels)


async def test_a_document_over_its_limit_is_refused() -> None:
    """SSRF-53"""
    async with upstream() as server, toolbox(document_bytes=MIB) as box:
        server.answers["/big"] = response(b"{" + b" " * 2 * MIB + b"}")
        with pytest.raises(ImportFailed, match="larger than"):
            await box.add_openapi("api", server.base + "/big", allow_private=["127.0.0.1"])


async def test_many_thousand_operations_are_imported_in_one_piece() -> None:
    """SSRF-53"""
    async with toolbox(Resolver(api_test=[[PUBLIC]])) as box:
        paths = {f"/p{one}": {"get": operation(operationId=f"o{one}")} for one in range(10_000)}
        report = await box.add_openapi("api", document(paths, "https://api.test"))
        assert len(report.tools) == len(set(report.tools)) == 10_000


async def test_an_error_names_no_internal_address() -> None:
    """SSRF-14 with invariant G8: what a caller reads holds neither the address nor a path of this machine."""
    async with guarded(inner_test=[["10.1.2.3"]]) as (box, _, _):
        with pytest.raises(ExecutorError) as caught:
            await box.add_http("b", ["http://inner.test"])
        shown = str(caught.value.as_dict())
        assert "10.1.2.3" not in shown
        assert os.getcwd() not in shown


async def test_an_introspection_of_fifty_mebibytes_stops_at_its_limit() -> None:
    """SSRF-54: over raw HTTP, which is how a GraphQL endpoint is reached without a description of its own."""
    async with guarded() as (box, server, _):
        written = 0

        async def huge(seen: Seen, reader: Any, writer: Any) -> None:
            nonlocal written
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + b'{"data":{"__schema":"')
            for _ in range(50):
                writer.write(b"x" * MIB)
                await writer.drain()
                written += MIB

        server.answers["/graphql"] = huge
        for head in (huge, b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 52428800\r\n\r\n"):
            server.answers["/graphql"] = head
            with pytest.raises(ToolError) as caught:
                await call(
                    box, "web.org.main.http.request", {"method": "POST", "path": "/graphql", "body": {"query": "{}"}}
                )
            assert caught.value.code == "too_large"
        assert written < 40 * MIB


async def test_what_a_graphql_endpoint_answers_and_is_asked_is_data_within_limits() -> None:
    """SSRF-54: a field named __proto__, types that point at themselves, a flood of aliases, a query of depth 1000."""
    async with guarded() as (box, server, _):
        cyclic = {"data": {"__proto__": {"isAdmin": True}, "a": {"ofType": {"name": "A", "fields": [{"type": "A"}]}}}}
        server.reply("/graphql", cyclic)
        request = {"method": "POST", "path": "/graphql"}
        flood = "{" + " ".join(f"a{n}: me {{ id }}" for n in range(10_000)) + "}"
        batch = [{"query": "{ me { id } }"}] * 1000
        for body in ({"query": flood}, {"query": "{a" * 1000 + "}" * 1000}, batch):
            outcome = await call(box, "web.org.main.http.request", request | {"body": body})
            assert outcome.value == cyclic
        assert json.loads(server.seen[0].body) == {"query": flood}
        server.answers["/graphql"] = response(b'{"data":' * 5000 + b"1" + b"}" * 5000)
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.request", request | {"body": {}})
        assert caught.value.code == "too_large"
        with pytest.raises(ToolError) as caught:
            await call(box, "web.org.main.http.request", request | {"body": {"query": "x" * 2 * MIB}})
        assert caught.value.code == "too_large"


async def test_five_hundred_calls_to_a_slow_host_keep_nobody_else_waiting() -> None:
    """SSRF-58"""
    async with upstream() as slow, upstream() as quick, toolbox(connections_per_host=8) as box:
        await box.add_http("slow", [slow.base], allow_private=["127.0.0.1"])
        await box.add_http("quick", [quick.base], allow_private=["127.0.0.1"])
        full = asyncio.Event()

        async def waiting(seen: Seen, reader: Any, writer: Any) -> None:
            if len(slow.seen) >= 8:
                full.set()
            await slow.released.wait()
            writer.write(response({}))

        slow.answers["/"] = waiting
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(500):
                    group.start_soon(call, box, "slow.org.main.http.get", {"path": "/"})
                await full.wait()
                for _ in range(20):
                    assert (await call(box, "quick.org.main.http.get", {"path": "/x"})).value["target"] == "/x"
                assert (slow.connections, len(slow.seen)) == (8, 8)
                slow.released.set()
        assert len(slow.seen) == 500
        assert slow.connections == 8


def _corpus() -> list[str]:
    """Some thousand URLs of the kinds that parsers disagree about, each part in every combination with one other.

    Hosts that are loopback in disguise, users and ports, slashes and backslashes of every number, characters that some
    drop and others fold, schemes with one slash too few or too many, and lists of allowed names with something behind.
    """
    good, bad = "good.test", "10.0.0.5"
    hosts = [host for hosts in LITERALS.values() for host in hosts]
    hosts += [
        *(
            f"{good}{mark}{bad}"
            for mark in "@#?/\\;,:&%\t\n\r\0 '\"`{}|^~$!*()+=[]<>\u3002\uff0e\uff61\uff0f\uff03\uff20\u2025\u00ad"
        ),
        *(f"{good}{mark}@{bad}" for mark in (":80", "%40", "%00", "%0d%0a", "\\", "#", "?", "&", " ", "%20", "%09")),
        *(
            f"{bad}{mark}{good}"
            for mark in ("#@", "?@", "\\@", "%23@", "%2f@", "%5c@", "/.", ";", "%00.", ":80#@", ".", "%2e")
        ),
        *(f"{good}.{bad}", f"{bad}.{good}", f"{good}:80@{bad}", f"a:b@{good}@{bad}", f"@{bad}", f":@{bad}", f"@@{bad}"),
        *(
            "localhost",
            "LOCALHOST",
            "localhost.",
            "lOcAlHoSt:80",
            "loc\u00adalhost",
            "localhost%00",
            "ip6-localhost",
            "[::1%lo]",
        ),
        *(
            "127.0.0.1.",
            "127.0.0.1:",
            "127.0.0.1:80:80",
            "127.0.0.1%20",
            "127.0.0.1\u200b",
            "127.0.0.1\u0000",
            "0x7f.0.0x1",
        ),
        *(
            "[::127.0.0.1]:80",
            "[0:0:0:0:0:ffff:127.0.0.1]",
            "[::ffff:7f00:0001]",
            "[::1]:x",
            "[::1",
            "::1",
            "[]",
            "",
            ".",
            "..",
        ),
    ]
    forms = [
        *(
            "http://{}/",
            "http://{}",
            "http:{}/",
            "http:/{}/",
            "http:///{}/",
            "http:////{}",
            "http:\\\\{}\\",
            "http:/\\{}",
        ),
        *(
            "//{}/",
            "///{}",
            "\\\\{}\\x",
            "/\\{}",
            "\\/{}",
            "https://{}:80/",
            "HTTP://{}/",
            "ht\ttp://{}/",
            " http://{}/ ",
        ),
        *(
            "http://{}/..//x",
            "http://{}/%2e%2e/x",
            "http://{}?x",
            "http://{}#x",
            "file://{}/x",
            "ftp://{}/",
            "gopher://{}:70/_x",
        ),
        *("javascript://{}/", "data://{}/,x", "ws://{}/", "http+unix://{}/", "http://good.test//{}", "/{}", "{}"),
    ]
    return [form.replace("{}", host) for form in forms for host in hosts]


async def test_no_url_of_any_spelling_is_dialled_at_another_host_than_the_one_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SSRF-60: whatever is dialled is the granted host and port, as the URL that was checked has it."""
    dialled: list[tuple[str, int]] = []
    answered: dict[str, str] = {"good.test": PUBLIC}

    async def connect(host: str, port: int) -> Any:
        dialled.append((host, port))
        raise OSError

    async def resolver(name: str, port: int) -> list[str]:
        return [answered.get(name, "10.0.0.5")]

    monkeypatch.setattr("bridge.dial.anyio.connect_tcp", connect)
    corpus = _corpus()
    assert len(corpus) > 4000
    async with toolbox(resolver) as box:
        await box.add_http("web", ["http://good.test", "https://good.test:80"])
        checked: list[str] = []
        check = Gate.check

        def noting(self: Gate, method: str, url: Any, grant: Grant) -> None:
            check(self, method, url, grant)
            checked.append(url.host.name)

        monkeypatch.setattr(Gate, "check", noting)
        codes: dict[str, int] = {}
        for text in corpus:
            before = len(dialled)
            with pytest.raises(ToolError) as caught:
                await call(box, "web.org.main.http.get", {"path": text})
            codes[caught.value.code] = codes.get(caught.value.code, 0) + 1
            if len(dialled) > before:
                assert (checked[-1], dialled[before:]) == ("good.test", [(PUBLIC, 80)]), text
        assert set(codes) == {"invalid_arguments", "egress_denied", "upstream_unreachable"}
        assert all(codes[code] > 3 for code in codes)


async def test_random_urls_are_dialled_where_they_were_checked_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSRF-60: pieces of URLs in any order; the target that is sent is the target that was checked."""
    pieces = [
        *(
            "http://",
            "https://",
            "//",
            "/",
            "\\",
            "@",
            ":",
            "80",
            "#",
            "?",
            "%2f",
            "%2e",
            "..",
            ".",
            "good.test",
            "10.0.0.5",
        ),
        *("[::1]", "127.1", "\u3002", "\t", "\0", "%00", "a", ";", "[", "]", "localhost", "x=y", "&", "%25", "ſ", "ﬀ"),
    ]
    dialled: list[str] = []

    async def connect(host: str, port: int) -> Any:
        dialled.append(host)
        raise OSError

    async def resolver(name: str, port: int) -> list[str]:
        return [PUBLIC if name == "good.test" else "10.0.0.5"]

    monkeypatch.setattr("bridge.dial.anyio.connect_tcp", connect)
    chance = random.Random(60)
    async with toolbox(resolver) as box:
        await box.add_http("web", ["http://good.test/a"])
        for _ in range(3000):
            text = chance.choice(["http://good.test", "http://", "/a/", ""]) + "".join(
                chance.choices(pieces, k=chance.randint(1, 7))
            )
            with pytest.raises(ToolError):
                await call(box, "web.org.main.http.get", {"path": text})
    assert set(dialled) == {PUBLIC}
