"""A network of its own with a sink on every address that is nobody's business, run as a process of its own.

`python -m tests.threats.namespace namespace` expects to be in a new network and mount namespace: it puts the addresses
on `lo`, listens on port 80 of each, and answers DNS on 127.0.0.1. `… loopback` does without: one sink on 127.0.0.2, the
names answered by a resolver in the process. Either prints JSON: what came of each call, and the bytes of each sink.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from typing import Any

import anyio

from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import ToolError
from tests.unit.upstream import call

PUBLIC, OTHER = "93.184.216.34", "93.184.216.35"
ADDRESSES = [
    *("127.0.0.1", "10.0.0.5", "192.168.1.1", "172.16.0.1", "100.64.0.1", "169.254.169.254", "169.254.170.2"),
    *(
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "198.18.0.1",
        PUBLIC,
        OTHER,
        "::1",
        "fd00:ec2::254",
        "fe80::5",
    ),
]
ANSWERS: dict[str, list[list[str]]] = {
    "public": [[PUBLIC]],
    "own": [[OTHER]],
    "meta": [["169.254.169.254"]],
    "private": [["10.0.0.5"]],
    "loop": [["127.0.0.1"]],
    "shared": [["100.64.0.1"]],
    "mixed": [[PUBLIC, "10.0.0.5"]],
    "mixed-six": [[PUBLIC, "fd00:ec2::254"]],
    "six": [["::1"]],
    "mapped": [["::ffff:169.254.169.254"]],
    "nat": [["64:ff9b::a9fe:a9fe"]],
    "relayed": [["2002:a9fe:a9fe::1"]],
    "alias": [["=private.good.test"]],
    "circle": [["=circle.good.test"]],
    "nothing": [[]],
    "many": [[f"93.184.216.{n}" for n in range(34, 60)] + ["10.0.0.5"]],
    "flip": [[PUBLIC], ["10.0.0.5"]],
}
SPELLINGS = [
    *("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "0.0.0.0", "10.0.0.5", "169.254.169.254"),
    *(
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "168.63.129.16",
        "100.100.100.200",
        "192.168.1.1",
        "172.16.0.1",
    ),
    *(
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "localhost",
    ),
    *("[2002:7f00:1::]", "[fd00:ec2::254]", "[fe80::5]", "①②⑦.⓪.⓪.①", "127。0。0。1", "good.test@10.0.0.5"),
    *(
        "public.good.test%00.10.0.0.5",
        "10.0.0.5#public.good.test",
        "10.0.0.5?.good.test",
        "public.good.test\\@10.0.0.5",
    ),
]


class Names:
    """The answers by name, in turn; the last is repeated."""

    def __init__(self) -> None:
        self.answers = {f"{name}.good.test": [list(one) for one in answers] for name, answers in ANSWERS.items()}
        self.asked: list[str] = []

    def turn(self, name: str) -> list[str] | None:
        answers = self.answers.get(name)
        if answers is None:
            return None
        self.asked.append(name)
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def __call__(self, name: str, port: int) -> list[str]:
        """As a resolver within the process."""
        for _ in range(8):
            found = self.turn(name) or []
            if not found or not found[0].startswith("="):
                break
            name = found[0][1:]
        if not found or found[0].startswith("="):
            raise OSError("no such name")
        return found


class Dns(asyncio.DatagramProtocol):
    """Answers over UDP, to be kept for no time. A name is turned over by its question for IPv4, the first of two."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.current: dict[str, list[str] | None] = {}

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, peer: Any) -> None:
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += 1 + data[at]
        name, question = ".".join(labels).lower(), data[12 : at + 5]
        (kind,) = struct.unpack_from("!H", data, at + 1)
        if kind == 1 or name not in self.current:
            self.current[name] = self.names.turn(name)
        found = self.current[name]
        records = self._records(name, found or [], kind)
        flags = 0x8183 if found is None else 0x8180
        head = data[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0)
        self.transport.sendto(head + question + b"".join(records), peer)

    def _records(self, name: str, answers: list[str], kind: int) -> list[bytes]:
        """Those of one kind, and of a name that stands for another the whole chain, as a recursive server has it."""
        found = []
        for answer in answers:
            if answer.startswith("="):
                target = answer[1:]
                found.append(encoded(name) + struct.pack("!HHIH", 5, 1, 0, len(encoded(target))) + encoded(target))
                found += self._records(target, ANSWERS[target.partition(".")[0]][0], kind) if target != name else []
            elif kind == {4: 1, 6: 28}[(address := ipaddress.ip_address(answer)).version]:
                packed = address.packed
                found.append(encoded(name) + struct.pack("!HHIH", kind, 1, 0, len(packed)) + packed)
        return found


def encoded(name: str) -> bytes:
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


class Sinks:
    def __init__(self) -> None:
        self.bytes: dict[str, int] = {}
        self.location = ""

    async def open(self, address: str, port: int) -> int:
        self.bytes[address] = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            data = await reader.read(65536)
            self.bytes[address] += len(data)
            if data.startswith(b"GET /go"):
                writer.write(f"HTTP/1.1 302 Go\r\nlocation: {self.location}\r\ncontent-length: 0\r\n\r\n".encode())
            else:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
            await writer.drain()
            writer.close()

        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        scope = "%lo" if address.startswith("fe80") else ""
        server = await asyncio.start_server(serve, address + scope, port, family=family)
        found: int = server.sockets[0].getsockname()[1]
        return found


def prepare() -> None:
    """Addresses on `lo`, and a name server of our own in the place of the machine's."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in ADDRESSES:
        if address not in ("127.0.0.1", "::1"):
            flags = ["nodad"] if ":" in address else []
            subprocess.run(["ip", "addr", "add", address, "dev", "lo", *flags], check=True)
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        file.flush()
        subprocess.run(["mount", "--bind", file.name, "/etc/resolv.conf"], check=True)


async def attempt(box: Toolbox, url: str) -> str:
    try:
        with anyio.fail_after(20):
            await call(box, "web.org.main.http.get", {"path": url})
    except ToolError as e:
        return e.code
    return "done"


async def scenario(mode: str) -> dict[str, Any]:
    sinks, names, resolver = Sinks(), Names(), None
    if mode == "namespace":
        for address in ADDRESSES:
            await sinks.open(address, 80)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: Dns(names), local_addr=("127.0.0.1", 53))
        named, port = [PUBLIC], ""
    else:
        resolver = names
        found = await sinks.open("127.0.0.2", 0)
        # An address that can be bound anywhere stands for the public one.
        names.answers["public.good.test"] = [["127.0.0.2"]]
        names.answers["flip.good.test"] = [["127.0.0.2"], ["10.0.0.5"]]
        named, port = [f"127.0.0.2:{found}"], f":{found}"
    os.environ |= {"HTTP_PROXY": "http://10.0.0.5", "http_proxy": "http://10.0.0.5", "ALL_PROXY": "http://10.0.0.5"}
    results: dict[str, Any] = {"mode": mode}
    async with Toolbox(ToolboxSettings(tool_timeout_s=15), resolver=resolver) as box:
        await box.add_policy("*", "*", "approve")
        place = f"http://*.good.test{port}"
        await box.add_http("web", [place], allow_private=named)
        results["names"] = {
            name: await attempt(box, f"http://{name}.good.test{port}/") for name in ANSWERS if name != "flip"
        }
        results["flip"] = [await attempt(box, f"http://flip.good.test{port}/") for _ in range(2)]
        results["asked"] = names.asked.count("flip.good.test")
        results["spellings"] = {one: await attempt(box, f"http://{one}{port}/") for one in SPELLINGS}
        results["redirects"] = {}
        targets = [f"http://{one}{port}/" for one in SPELLINGS if one.isascii()]
        for target in [
            *targets,
            *(f"http://{name}.good.test{port}/" for name in ("meta", "private", "mixed", "alias", "six")),
        ]:
            sinks.location = target
            results["redirects"][target] = await attempt(box, f"http://public.good.test{port}/go")
    results["bytes"] = sinks.bytes
    return results


if __name__ == "__main__":
    if sys.argv[1] == "namespace":
        prepare()
    print(json.dumps(asyncio.run(scenario(sys.argv[1]))))
