"""A guarded toolbox in front of a server on loopback: what the tests of the SSRF group share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridge.toolbox import Toolbox
from tests.unit.upstream import (
    Resolver,
    Upstream,
    toolbox,
    upstream,
)

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


@asynccontextmanager
async def guarded(**names: list[list[str]]) -> AsyncIterator[tuple[Toolbox, Upstream, Resolver]]:
    """A toolbox whose one allowed private place is the hostile server that redirects from `/go`."""
    resolver = Resolver(**names)
    async with upstream() as server, toolbox(resolver, tool_timeout_s=15) as box:
        await box.add_http("web", [server.base], allow_private=[f"127.0.0.1:{server.port}"])
        yield box, server, resolver
