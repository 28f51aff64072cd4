"""The machine's own addresses and the server's own port are refused, unless the operator named them."""

from __future__ import annotations

import ipaddress
import socket
from ipaddress import ip_address

import pytest

from bridge.client import Client
from bridge.egress import Grant, parse_named
from bridge.own import Own
from bridge.wire.errors import ToolError
from catalog.origin import parse_url, reach_of
from tests.unit.upstream import Resolver, call, toolbox, upstream

pytestmark = pytest.mark.anyio

PUBLIC = "93.184.216.34"


def interface_addresses() -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """What the machine's own name service says that it is called, loopback left out."""
    found = {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(socket.gethostname(), 0)}
    return [address for address in map(ip_address, found) if not address.is_loopback]


def test_the_addresses_of_the_interfaces_are_the_machines_own() -> None:
    own = Own()
    assert own.has(ip_address("127.0.0.1"))
    assert all(own.has(address) for address in interface_addresses())
    assert not own.has(ip_address("192.0.2.77"))
    assert not own.has(ip_address("2001:db8::77"))


def test_a_server_is_met_where_it_listens_and_at_every_own_address_when_it_listens_everywhere() -> None:
    own = Own()
    assert not own.serves(ip_address("127.0.0.1"), 8321)
    own.listens("127.0.0.1", 8321)
    assert own.serves(ip_address("127.0.0.1"), 8321)
    assert not own.serves(ip_address("127.0.0.1"), 8322)
    assert not own.serves(ip_address("127.0.0.2"), 8321)
    own.listens("0.0.0.0", 9000)
    assert own.serves(ip_address("127.0.0.9"), 9000)
    assert own.serves(ip_address("::1"), 9000)
    assert not own.serves(ip_address("192.0.2.77"), 9000)


async def test_the_servers_own_port_is_reached_only_when_it_was_named_with_its_port() -> None:
    """BUD-26: naming the whole of 127.0.0.1 does not let a script start scripts."""
    async with upstream() as server, toolbox() as box:
        box.own.listens("127.0.0.1", server.port)
        await box.add_http("named", [server.base], allow_private=[f"127.0.0.1:{server.port}"])
        assert (await call(box, "named.org.main.http.get", {"path": "/x"})).value["target"] == "/x"
    async with upstream() as server, toolbox() as box:
        await box.add_http("wide", [server.base], allow_private=["127.0.0.0/8"])
        box.own.listens("127.0.0.1", server.port)
        with pytest.raises(ToolError, match="this server itself") as caught:
            await call(box, "wide.org.main.http.get", {"path": "/x"})
        assert caught.value.code == "egress_denied"
        assert server.seen == []


@pytest.mark.parametrize("named", [False, True])
async def test_a_public_address_of_this_machine_is_dialled_only_when_it_was_named(
    named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Own, "has", lambda self, address: address == ip_address(PUBLIC))
    dialled: list[str] = []

    async def connect(host: str, port: int) -> None:
        dialled.append(host)
        raise OSError

    monkeypatch.setattr("bridge.dial.anyio.connect_tcp", connect)
    client = Client(resolver=Resolver(here_test=[[PUBLIC]]))
    url = parse_url("http://here.test/")
    grant = Grant((reach_of(url),), (parse_named(PUBLIC),) if named else ())
    with pytest.raises(ToolError) as caught:
        await client.exchange("GET", url, [], None, grant=grant, limit=1000)
    assert (caught.value.code, dialled) == (("upstream_unreachable", [PUBLIC]) if named else ("egress_denied", []))
    await client.close()
