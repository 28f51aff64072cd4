"""Where a request may go: the table of addresses that are nobody's business, and the rules on top of it.

The table is explicit because `ipaddress.is_global` is not an answer to this question: it calls multicast, IPv4-mapped,
translated and relayed forms global (measured on Python 3.11 and 3.13).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bridge.wire.errors import ConfigError, InvalidRequest, ToolError
from catalog.origin import BadUrl, Host, Reach, Url, parse_host, parse_reach

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# IANA IPv4 and IPv6 special-purpose registries, multicast, and the addresses that clouds answer on.
DENIED: Final[tuple[Network, ...]] = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "2620:4f:8000::/48",
            "3fff::/20",
        ),
    )
)
UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""Global unicast, the only IPv6 space that is in use: whatever lies outside it is denied, known or not. That covers
::/96, IPv4-mapped and translated, NAT64, unique local, link-local, site-local, multicast and segment routing."""

METADATA: Final[frozenset[Address]] = frozenset(
    map(
        ipaddress.ip_address,
        ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254"),
    )
)
"""Addresses that hand out a machine's credentials: allowed only by naming the very address."""

NEVER: Final[tuple[Network, ...]] = tuple(
    map(ipaddress.ip_network, ("0.0.0.0/8", "224.0.0.0/4", "255.255.255.255/32", "::/128", "ff00::/8"))
)
"""Not the address of any one host: never dialled, whoever asks."""


def is_public(address: Address) -> bool:
    """Whether `address` belongs to the public internet. IPv4 in IPv6 clothes is never public."""
    if isinstance(address, ipaddress.IPv6Address) and address not in UNICAST:
        return False
    return not any(address.version == network.version and address in network for network in DENIED)


@dataclass(frozen=True, slots=True)
class Named:
    """A private place that the operator named: a host name, an address or a network, on one port or on all."""

    text: str
    host: str | None
    network: Network | None
    port: int | None

    def covers(self, host: Host, port: int, address: Address) -> bool:
        if self.port is not None and self.port != port:
            return False
        if any(address.version == network.version and address in network for network in NEVER):
            return False
        if self.network is None:
            return self.host == host.name and address not in METADATA
        if address in METADATA:
            return self.network.num_addresses == 1 and address == self.network.network_address
        return address.version == self.network.version and address in self.network


def parse_named(text: str) -> Named:
    """`localhost`, `db.internal:5432`, `127.0.0.1:8080`, `[::1]`, `10.0.0.0/8`. Raises InvalidRequest."""
    try:
        if "/" in text:
            return Named(text, None, _private(ipaddress.ip_network(text)), None)
        name, colon, digits = text.rpartition(":")
        if not colon or digits.endswith("]") or (text.count(":") > 1 and not text.startswith("[")):
            name, digits = text, ""
        if ":" in name and not name.startswith("["):
            name = f"[{name}]"
        port = int(digits) if digits.isascii() and digits.isdigit() and 0 < int(digits) < 65536 else None
        if digits and port is None:
            raise BadUrl("the port is not a number from 1 to 65535")
        host = parse_host(name)
        network = ipaddress.ip_network(host.address) if host.address is not None else None
    except ValueError as e:
        raise InvalidRequest(
            f"{text[:80]!r} does not name a private host: {e}.",
            hint="Name a host, an address or a network, such as localhost:8080, 127.0.0.1 or 10.0.0.0/8.",
        ) from None
    return Named(text, host.name, network, port)


def _private(network: Network) -> Network:
    """Raises ValueError for a network that covers more than a part of the private space."""
    if network.num_addresses == 1:
        return network
    within = any(type(one) is type(network) and network.subnet_of(one) for one in DENIED)  # type: ignore[arg-type]
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= 7:
        within = within or not network.overlaps(UNICAST)
    if not within:
        raise ValueError("it covers more than private addresses")
    return network


@dataclass(frozen=True, slots=True)
class Grant:
    """What one integration may reach: these places, and these private ones among them."""

    reach: tuple[Reach, ...]
    private: tuple[Named, ...] = ()

    def allows(self, host: Host, port: int, address: Address) -> bool:
        return is_public(address) or self.names(host, port, address)

    def names(self, host: Host, port: int, address: Address, *, by_port: bool = False) -> bool:
        """Whether the operator named this place; `by_port`: with its very port."""
        return any(one.covers(host, port, address) for one in self.private if one.port is not None or not by_port)


@dataclass(slots=True)
class Gate:
    """The operator's bounds around every grant. `allow` None: any public host; empty: none at all."""

    allow: tuple[Reach, ...] | None = None
    private: tuple[Named, ...] = ()
    reported: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def configured(cls, allow: Sequence[str] | None, private: Iterable[str]) -> Gate:
        """Raises ConfigError for a pattern that is not one: a mistake must not become a wider rule."""
        try:
            bounds = None if allow is None else tuple(parse_reach(entry) for entry in allow)
            return cls(bounds, tuple(parse_named(entry) for entry in private))
        except (BadUrl, InvalidRequest) as e:
            raise ConfigError(f"The egress settings cannot be used: {e}") from None

    def grant(self, reach: Iterable[Reach], private: Iterable[str]) -> Grant:
        """Raises InvalidRequest for a private name that is not one."""
        return Grant(tuple(reach), (*(parse_named(one) for one in private), *self.private))

    def check(self, method: str, url: Url, grant: Grant) -> None:
        """Raises ToolError(egress_denied) unless both the grant and the operator's bounds cover the request."""
        if not any(reach.covers(method, url) for reach in grant.reach):
            raise denied(
                f"{method} {url.origin} at this path is not among the places that this integration may reach.",
                hint="Its allowed origins are shown when it is added and by `executor tools list`.",
            )
        self.check_bounds(method, url)
        if url.host.address is not None and not grant.allows(url.host, url.port, url.host.address):
            raise private_address(url.host)

    def check_bounds(self, method: str, url: Url) -> None:
        """Raises ToolError(egress_denied) for a place outside the operator's own allowlist."""
        if self.allow is not None and not any(reach.covers(method, url) for reach in self.allow):
            raise denied(
                f"{url.origin} is outside the operator's egress allowlist.",
                hint="An operator can add it to egress_allow in the configuration.",
            )

    def as_dict(self) -> dict[str, Any]:
        return {
            "allow": None if self.allow is None else [str(reach) for reach in self.allow],
            "allow_private": [one.text for one in self.private],
        }


def denied(message: str, *, hint: str | None = None) -> ToolError:
    return ToolError("egress_denied", message, hint=hint)


def private_address(host: Host) -> ToolError:
    """The refusal of a host whose address is not public; it does not say which address that is."""
    what = "is an address" if host.address is not None else "resolves to an address"
    return denied(
        f"{host.authority} {what} that is not on the public internet.",
        hint="An operator can allow it by naming it as a private host when the integration is added (allow_private).",
    )


def own_address(host: Host, port: int, *, server: bool) -> ToolError:
    """The refusal of a place on this machine, or of this very `server`."""
    return denied(
        f"{host.authority} leads to {'this server itself' if server else 'the machine that this runs on'}.",
        hint=f"An operator can allow it by naming {host.authority}:{port} as a private host (allow_private).",
    )
