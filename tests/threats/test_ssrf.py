"""The SSRF group of the threat catalogue: no spelling of a host, no name and no rule leads where it was not allowed."""

from __future__ import annotations

import ipaddress
from typing import Any

import anyio
import pytest

from bridge.client import Client
from bridge.egress import Gate, Grant, parse_named
from bridge.toolbox import Toolbox
from bridge.wire.errors import ConfigError, ImportFailed, ToolError
from catalog.origin import BadUrl, parse_reach, parse_url, reach_of
from tests.threats.guarded import LITERALS, MIB, PUBLIC, guarded
from tests.unit.upstream import (
    Resolver,
    Upstream,
    call,
    document,
    operation,
    redirect,
    upstream,
)

pytestmark = pytest.mark.anyio
CASES = [(threat, host) for threat, hosts in LITERALS.items() for host in hosts]


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
