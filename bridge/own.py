"""The addresses of this machine: what is public elsewhere is a way inside from here."""

from __future__ import annotations

import ipaddress
import socket

from bridge.egress import Address


class Own:
    """Knows the machine's addresses, and where the server of this process listens."""

    def __init__(self) -> None:
        self._listening: set[tuple[Address, int]] = set()

    def listens(self, host: str, port: int) -> None:
        """Say that this process serves on `host`, an address, and `port`."""
        self._listening.add((ipaddress.ip_address(host), port))

    def serves(self, address: Address, port: int) -> bool:
        """Whether whoever dials `address` and `port` meets the server of this process."""
        return any(
            port == own and (bound == address or (bound.is_unspecified and (address.is_loopback or self.has(address))))
            for bound, own in self._listening
        )

    def has(self, address: Address) -> bool:
        """Whether `address` is on an interface of this machine. Asks the kernel's routes; nothing is sent.

        A datagram socket that is connected to an address of its own machine gets that very address as its source.
        """
        family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((str(address), 9))
                return ipaddress.ip_address(str(probe.getsockname()[0]).partition("%")[0]) == address
        except OSError:
            return False
