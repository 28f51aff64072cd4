"""Real packages of the TPMJS kind, installed from the registry that npm is set up for, with what Node gave for each.

What they fetch goes through the gate to a server on loopback that answers as the services behind them do: by its
address where a package's environment names it, and by the service's own name where the package knows no other.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream

from bridge import dial, transport
from bridge.egress import Grant
from bridge.own import Own
from catalog.origin import Url
from executor import Executor
from executor.config import Config
from tests.unit.upstream import Seen, Upstream, response, upstream

pytestmark = pytest.mark.anyio

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "tpmjs_cases.json").read_text())
MORE = [Path(name) for name in os.environ.get("EXECUTOR_TPMJS_CASES", "").split(os.pathsep) if name]
STAND_IN = "http://127.0.0.1:18999"
"""What the cases call the server that stands in for the services."""
SERVICES = ("api.exa.ai", "api.valyu.ai", "trytako.com", "api.unsandbox.com")
QUICK = ("@tpmjs/tools-hllm", "@thomasdavis/unsandbox", "@tpmjs/tools-html-to-markdown")
FOUND = {
    "results": {
        "tools": [
            {
                "name": "diffTextUnified",
                "description": "d",
                "executionHealth": "HEALTHY",
                "qualityScore": 0.9,
                "package": {
                    "npmPackageName": "@tpmjs/tools-diff-text-unified",
                    "npmVersion": "0.2.0",
                    "category": "engineering",
                    "env": [{"name": "K", "required": True}, {"name": "L", "required": False}],
                },
            }
        ]
    }
}


def echo(seen: Seen) -> dict[str, Any]:
    path, mark, query = seen.target.partition("?")
    facts = {"method": seen.method, "path": path, "query": mark + query, "auth": seen.header("authorization")}
    return facts | {"body": json.loads(seen.body) if seen.body else None}


async def services(seen: Seen, reader: Any, writer: Any) -> None:
    """The answers of all of them, told apart by the paths."""
    path, facts, key = seen.target.partition("?")[0], echo(seen), seen.header("x-api-key")
    if path == "/api/tools/search":
        writer.write(response(FOUND))
    elif path == "/execute-tool":
        writer.write(response({"success": True, "output": {"echo": facts["body"]}, "executionTimeMs": 7}))
    elif path == "/hllm/execute":
        await streamed(writer)
    elif path == "/hllm/models":
        writer.write(response(b"overloaded", status=503, headers={"content-type": "text/plain"}))
    elif path.startswith("/hllm/"):
        status = 401 if facts["auth"] == "Bearer wrong" else 200
        writer.write(response(facts | {"ct": seen.header("content-type")}, status=status))
    elif path == "/search":
        found = [{"title": "T", "url": "https://example.com/"}]
        writer.write(response({"requestId": "r1", "results": found, "echo": facts["body"], "key": key}))
    else:
        writer.write(response({"error": "nf"} | facts | {"key": key}))


async def streamed(writer: Any) -> None:
    """Whole lines, one chunk each, with a letter that is two bytes long."""
    done = {"id": "e1", "status": "completed", "output": "Hello world é", "tokens": 12, "duration": 34}
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    for line in ("text:Hello \n", "text:world é\n", f"event:{json.dumps(done, ensure_ascii=False)}\n"):
        data = line.encode()
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()
    writer.write(b"0\r\n\r\n")


@asynccontextmanager
async def house(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Executor, Upstream]]:
    """An executor whose packages may fetch from the services, and the server that is dialled for them."""
    async with upstream() as server:
        server.answers["*"] = services

        async def found(name: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        async def dialled(url: Url, grant: Grant, resolver: Any, own: Own, context: ssl.SSLContext) -> ByteStream:
            if url.host.name in SERVICES:
                assert (url.scheme, url.port) == ("https", 443)
                await dial.resolve(url.host, url.port, grant, found, own)
                return await anyio.connect_tcp("127.0.0.1", server.port)
            return await dial.dial(url, grant, resolver, own, context)

        monkeypatch.setattr(transport, "dial", dialled)
        async with Executor.open(config=Config(workers=1, allow_private=("127.0.0.1",))) as executor:
            origins = [server.base, *(f"https://{name}" for name in SERVICES)]
            await executor.add_http("web", origins, fetch=True)
            await executor.toolbox.add_policy("web", "*", "approve")
            yield executor, server


def placed(row: dict[str, Any], server: Upstream) -> dict[str, Any]:
    """The case with the server where it is."""
    found: dict[str, Any] = json.loads(json.dumps(row).replace(STAND_IN, server.base))
    return found


async def test_real_packages_give_what_node_gives(monkeypatch: pytest.MonkeyPatch, long: bool) -> None:
    """Those of `tests/data/tpmjs_cases.json`, all of them in the long form, and those in the files that
    EXECUTOR_TPMJS_CASES names."""
    extra = [row for path in MORE for row in json.loads(path.read_text()) if row.get("installable_here", True)]
    rows = extra + [row for row in ROWS if long or row["packageName"] in QUICK]
    failures = []
    async with house(monkeypatch) as (executor, server):
        for row in (placed(row, server) for row in rows):
            given = {"version": row["version"], "params": row["params"], "env": row.get("env")}
            answer = await executor.execute_tool(row["packageName"], row["name"], **given)
            if (problem := unlike(row, answer.as_dict())) is not None:
                failures.append(f"{row['packageName']} {row['name']}: {problem}")
    assert failures == []
    assert len(server.seen) >= sum(row["kind"] == "fetch" for row in rows)


def unlike(row: dict[str, Any], answer: dict[str, Any]) -> str | None:
    """What is wrong with `answer`. Where a name fits no export, `TOOL_NOT_FOUND` is as right as running the default."""
    if row.get("fallback_sensitive") and answer.get("error", {}).get("code") == "TOOL_NOT_FOUND":
        return None
    if answer["success"] is not row["expected_success"]:
        return json.dumps(answer)[:500]
    ignored = [path.split(".") for path in row.get("ignore_paths", ())]
    if "expected_output" in row and without(answer["output"], ignored) != without(row["expected_output"], ignored):
        return json.dumps(answer["output"])[:500]
    expected = row.get("expected_error")
    if expected is not None:
        error = answer["error"]
        if error["code"] != expected["code"] or (expected["message"] or "") not in error["message"]:
            return json.dumps(error)[:500]
    return None if holds(row.get("expected_properties", {}), answer.get("output")) else json.dumps(answer)[:500]


def without(value: Any, ignored: list[list[str]]) -> Any:
    """`value` less what differs from call to call, given as paths of names."""
    if not ignored or not isinstance(value, dict):
        return value
    gone = {path[0] for path in ignored if len(path) == 1}
    under = {name: [path[1:] for path in ignored if len(path) > 1 and path[0] == name] for name in value}
    return {name: without(item, under[name]) for name, item in value.items() if name not in gone}


def holds(properties: dict[str, Any], output: Any) -> bool:
    """Whether an output that is random has what can be said of it."""
    for name, expected in properties.items():
        if name == "keys":
            found = set(output) == set(expected)
        elif name == "constraints":
            found = all(_within(text, output) for text in expected)
        elif name.endswith(".length"):
            found = len(output[name.removesuffix(".length")]) == expected
        else:
            found = output[name] == expected
        if not found:
            return False
    return True


def _within(text: str, output: dict[str, Any]) -> bool:
    low, name, high = text.split(" < ")
    return float(low) < output[name] < float(high)
