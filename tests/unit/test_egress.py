"""Where requests may go: hosts in one form, addresses by an explicit table, connections to what was checked."""

from __future__ import annotations

import ipaddress
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.client import Client
from bridge.egress import Gate, Grant, is_public, parse_named, private_address
from bridge.wire.errors import ConfigError, ImportFailed, InvalidRequest, ToolError
from catalog.origin import BadUrl, Reach, join_url, parse_host, parse_reach, parse_url, reach_of
from tests.unit.upstream import (
    Resolver,
    Seen,
    Upstream,
    call,
    document,
    operation,
    redirect,
    response,
    toolbox,
    upstream,
)

pytestmark = pytest.mark.anyio

PUBLIC = "93.184.216.34"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("EXAMPLE.com", "example.com"),
        ("faß.test", "xn--fa-hia.test"),
        ("my_service", "my_service"),
        ("1.2.3.4", "1.2.3.4"),
        ("[2001:DB8::1]", "2001:db8::1"),
        ("[::ffff:127.0.0.1]", "::ffff:7f00:1"),
    ],
)
def test_a_host_has_one_spelling(text: str, name: str) -> None:
    assert parse_host(text).name == name


@given(st.text(max_size=40))
def test_a_host_that_is_accepted_reads_as_itself(text: str) -> None:
    try:
        host = parse_host(text)
    except BadUrl:
        return
    assert parse_host(host.authority) == host
    assert host.name.isascii()
    assert host.name == host.name.lower()


@given(st.text(alphabet="htps:/@.#?[]%\\127a0x①。 \t\n\x00", max_size=30))
def test_a_url_that_is_accepted_reads_as_itself(text: str) -> None:
    try:
        url = parse_url("http://" + text)
    except BadUrl:
        return
    assert parse_url(str(url)) == url


@pytest.mark.parametrize(
    ("reference", "joined"),
    [
        ("../api", "http://h/docs/api"),
        ("/x/./y/../z", "http://h/x/z"),
        ("//other/p", "http://other/p"),
        ("?q=1", "http://h/docs/v1/openapi.json?q=1"),
        ("https://other:8443/a/../b", "https://other:8443/b"),
        ("../../../../etc", "http://h/etc"),
    ],
)
def test_a_reference_is_resolved_with_its_dot_segments_removed(reference: str, joined: str) -> None:
    assert str(join_url(parse_url("http://h/docs/v1/openapi.json"), reference)) == joined


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "2a00:1450::1"])
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_becomes_public_in_ipv6_clothes(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    for prefix in ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::"):
        assert not is_public(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) + number))
    assert not is_public(ipaddress.IPv6Address((0x2002 << 112) + (number << 80)))


@pytest.mark.parametrize(
    ("entry", "host", "port", "address", "covered"),
    [
        ("localhost", "localhost", 80, "127.0.0.1", True),
        ("localhost", "other.test", 80, "127.0.0.1", False),
        ("127.0.0.1:8080", "any.test", 8080, "127.0.0.1", True),
        ("127.0.0.1:8080", "any.test", 80, "127.0.0.1", False),
        ("10.0.0.0/8", "any.test", 80, "10.9.9.9", True),
        ("[::1]:81", "any.test", 81, "::1", True),
        ("::1", "any.test", 81, "::1", True),
        ("169.254.0.0/16", "any.test", 80, "169.254.169.254", False),
        ("169.254.169.254", "any.test", 80, "169.254.169.254", True),
        ("meta.test", "meta.test", 80, "169.254.169.254", False),
        ("0.0.0.0", "any.test", 80, "0.0.0.0", False),
    ],
)
def test_a_named_private_place_covers_what_it_names_and_no_more(
    entry: str, host: str, port: int, address: str, covered: bool
) -> None:
    assert parse_named(entry).covers(parse_host(host), port, ipaddress.ip_address(address)) is covered


@pytest.mark.parametrize("entry", ["", "10.0.0.1/8", "host:0", "host:x", "ho st", "1.2.3", "[::1"])
def test_a_private_place_that_is_not_one_is_refused(entry: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_named(entry)


@pytest.mark.parametrize(
    ("entry", "method", "url", "covered"),
    [
        ("api.test", "GET", "https://api.test/", True),
        ("api.test", "GET", "http://api.test/", False),
        ("api.test", "GET", "https://api.test:444/", False),
        ("https://api.test/v1", "GET", "https://api.test/v1", True),
        ("https://api.test/v1", "GET", "https://api.test/v1/x", True),
        ("https://api.test/v1", "GET", "https://api.test/v10", False),
        ("https://api.test/v1/", "GET", "https://api.test/v1/x", True),
        ("GET,HEAD https://api.test", "POST", "https://api.test/", False),
        ("*.api.test", "GET", "https://a.b.api.test/", True),
        ("*.api.test", "GET", "https://api.test/", False),
        ("*.api.test", "GET", "https://evilapi.test/", False),
    ],
)
def test_an_allowlist_entry_covers_scheme_host_port_prefix_and_method(
    entry: str, method: str, url: str, covered: bool
) -> None:
    assert parse_reach(entry).covers(method, parse_url(url)) is covered


async def test_an_empty_operator_allowlist_lets_nothing_through_and_none_lets_the_grant_decide() -> None:
    url = parse_url("https://api.test/")
    grant = Grant((reach_of(url),))
    Gate.configured(None, ()).check("GET", url, grant)
    with pytest.raises(ToolError, match="allowlist"):
        Gate.configured([], ()).check("GET", url, grant)


async def test_egress_settings_that_are_not_rules_are_a_configuration_error() -> None:
    for allow, private in ((["*"], []), (["good.[a-z]"], []), (None, ["10.0.0.1/8"])):
        with pytest.raises(ConfigError):
            Gate.configured(allow, private)


async def _get(client: Client, url: str, *private: str, **more: Any) -> Any:
    target = parse_url(url)
    grant = Grant((reach_of(target),), tuple(parse_named(one) for one in private))
    with anyio.fail_after(20):
        return await client.exchange("GET", target, [], None, grant=grant, limit=more.pop("limit", 1 << 20), **more)


async def test_the_address_that_was_checked_is_the_one_that_is_dialled_after_a_single_resolution() -> None:
    resolver = Resolver(api_test=[["127.0.0.1"], ["10.0.0.1"]])
    async with upstream() as server:
        client = Client(resolver=resolver)
        answer = await _get(client, f"http://api.test:{server.port}/x", "127.0.0.1")
        assert answer.status == 200
        assert resolver.asked == ["api.test"]
        assert server.seen[0].header("host") == f"api.test:{server.port}"
        await client.close()


async def test_a_kept_connection_is_used_again_for_the_same_grant_and_never_for_another() -> None:
    async with upstream() as server:
        client = Client(resolver=Resolver(api_test=[["127.0.0.1"]]))
        url = f"http://api.test:{server.port}/"
        for _ in range(3):
            await _get(client, url, "api.test")
        assert server.connections == 1
        await _get(client, url, "127.0.0.1")
        assert server.connections == 2
        await client.close()


async def test_a_kept_connection_that_the_server_closed_is_replaced_without_the_caller_noticing() -> None:
    async with upstream() as server:

        async def last(seen: Seen, reader: Any, writer: Any) -> None:
            writer.write(response("bye"))
            writer.close()

        server.answers["/last"] = last
        client = Client(resolver=Resolver(api_test=[["127.0.0.1"]]))
        for _ in range(3):
            assert (await _get(client, f"http://api.test:{server.port}/last", "api.test")).body == b'"bye"'
        await client.close()


async def test_a_base_url_at_a_private_address_is_refused_until_it_is_named() -> None:
    async with upstream() as server, toolbox() as box:
        described = document({"/x": {"get": operation()}}, server.base)
        with pytest.raises(ImportFailed, match="not on the public internet"):
            await box.add_openapi("api", described)
        assert box.integrations() == []
        report = await box.add_openapi("api", described, allow_private=["127.0.0.1"])
        assert report.private == ["127.0.0.1"]
        assert box.egress()["integrations"] == {"api": ["127.0.0.1"]}
        assert (await call(box, "api.org.main.op")).value["target"] == "/x"


async def test_a_base_url_whose_name_resolves_to_a_private_address_is_refused_when_it_is_added() -> None:
    async with toolbox(Resolver(inner_test=[["10.0.0.5"]])) as box:
        with pytest.raises(ImportFailed, match="not on the public internet") as caught:
            await box.add_openapi("api", document({"/x": {"get": operation()}}, "http://inner.test"))
        assert "10.0.0.5" not in str(caught.value)


async def test_a_base_url_outside_the_operators_allowlist_is_refused() -> None:
    async with toolbox(Resolver(api_test=[[PUBLIC]]), egress_allow=["https://other.test"]) as box:
        with pytest.raises(ImportFailed, match="egress allowlist"):
            await box.add_openapi("api", document({"/x": {"get": operation()}}, "https://api.test"))
        assert box.integrations() == []


async def test_a_document_is_fetched_through_the_gate_and_each_of_its_redirects_is_checked() -> None:
    async with upstream() as server, toolbox() as box:
        server.answers["/moved"] = redirect("/openapi.json")
        server.answers["/inside"] = redirect("http://169.254.169.254/openapi.json")
        server.reply("/openapi.json", document({"/x": {"get": operation()}}, "/api"))
        for url in (server.base + "/inside", "http://10.0.0.5/openapi.json", "http://0x7f000001/", "ftp://a.test/"):
            with pytest.raises(ImportFailed):
                await box.add_openapi("api", url, allow_private=["127.0.0.1"])
        report = await box.add_openapi("api", server.base + "/moved", allow_private=["127.0.0.1"])
        assert report.origins == [server.base]
        assert (await call(box, "api.org.main.op")).value["target"] == "/api/x"


async def test_a_redirect_of_a_read_is_followed_within_the_grant_and_refused_outside_it() -> None:
    async with upstream() as server, upstream() as other, toolbox() as box:
        server.answers["/x"] = redirect("/y?z=1")
        await box.add_openapi("api", document({"/x": {"get": operation()}}, server.base), allow_private=["127.0.0.1"])
        assert (await call(box, "api.org.main.op")).value["target"] == "/y?z=1"
        server.answers["/x"] = redirect(other.base + "/y")
        with pytest.raises(ToolError) as caught:
            await call(box, "api.org.main.op")
        assert caught.value.code == "egress_denied"
        assert other.seen == []


async def test_a_redirect_of_a_write_is_not_followed_and_its_body_not_sent_again() -> None:
    async with upstream() as server, toolbox() as box:
        for status in (301, 302, 303, 307, 308):
            server.answers["/x"] = redirect("/y", status)
            described = document({"/x": {"post": operation(body={"type": "object"})}}, server.base)
            await box.add_openapi("api", described, allow_private=["127.0.0.1"], replace=True)
            server.seen.clear()
            with pytest.raises(ToolError) as caught:
                await call(box, "api.org.main.op", {"body": {"a": 1}})
            assert (caught.value.code, caught.value.status) == ("upstream_error", status)
            assert caught.value.details == {"body": None, "location": "/y"}
            assert [one.target for one in server.seen] == ["/x"]


async def test_a_slow_host_keeps_only_its_own_callers_waiting() -> None:
    async with upstream() as slow, upstream() as quick:

        async def hold(seen: Seen, reader: Any, writer: Any) -> None:
            await slow.released.wait()
            writer.write(response("late"))

        slow.answers["/"] = hold
        client = Client(connections_per_host=2)
        done: list[str] = []

        async def ask(server: Upstream, name: str) -> None:
            await _get(client, server.base + "/", "127.0.0.1")
            done.append(name)

        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(ask, slow, "slow")
            await slow.reached.wait()
            await ask(quick, "quick")
            assert done == ["quick"]
            assert len(slow.seen) <= 2
            slow.released.set()
        assert done.count("slow") == 6
        await client.close()


def test_a_reach_reads_as_it_was_written() -> None:
    for text in ("https://api.test", "GET,POST http://api.test:8080/v1", "https://*.api.test", "http://[::1]:81"):
        assert str(parse_reach(text)) == text
    assert str(Reach("https", "a.test", 443)) == "https://a.test"


@pytest.mark.parametrize("network", ["8.0.0.0/8", "0.0.0.0/0", "10.0.0.0/7", "2000::/3", "::/0", "2a00::/16"])
async def test_a_network_that_holds_public_addresses_is_not_named_as_private(network: str) -> None:
    """SSRF-30"""
    async with toolbox() as box:
        with pytest.raises(InvalidRequest, match="more than private"):
            await box.add_http("web", ["http://a.test"], allow_private=[network])


@pytest.mark.parametrize(
    "text", ["fc00::/7", "fd00::/8", "4000::/16", "fe80::/10", "10.0.0.0/8", "8.8.8.8/32", "::1/128"]
)
def test_a_network_that_is_no_part_of_the_internet_can_be_named(text: str) -> None:
    assert parse_named(text).network == ipaddress.ip_network(text)


@pytest.mark.parametrize(
    "text", ["0.0.0.0/0", "8.0.0.0/8", "::/0", "2000::/3", "2001:db8:1::/40", "c000::/2", "4000::/6"]
)
def test_a_network_of_the_internet_cannot(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_named(text)


def test_a_place_is_checked_against_the_grant_the_operator_and_its_address() -> None:
    gate = Gate.configured(["https://a.test", "http://10.0.0.1", "http://93.184.216.34"], [])
    urls = [
        parse_url(text) for text in ("https://a.test/x", "http://10.0.0.1/", "http://93.184.216.34/", "https://b.test/")
    ]
    grant = Grant(tuple(reach_of(url) for url in urls))
    gate.check("GET", urls[0], grant)
    gate.check("GET", urls[2], grant)
    said = []
    for url in (urls[1], urls[3], parse_url("https://c.test/")):
        with pytest.raises(ToolError) as caught:
            gate.check("GET", url, grant)
        assert caught.value.code == "egress_denied"
        said.append(str(caught.value))
    assert "is an address" in said[0]
    gate.check("GET", urls[1], Grant(grant.reach, (parse_named("10.0.0.1"),)))


def test_a_refusal_says_whether_an_address_was_written_or_found() -> None:
    assert "10.0.0.1 is an address" in str(private_address(parse_host("10.0.0.1")))
    assert "a.test resolves to an address" in str(private_address(parse_host("a.test")))
