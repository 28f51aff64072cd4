"""The MCP doors: `1+1` through `run_code` by the official client, over a pipe and over HTTP; a server made ready."""

from __future__ import annotations

import sys
import tempfile
import time

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from benchmarks.measure import Figure, latency, timed_async
from benchmarks.server import serving

PROBE = "mcp"


def run(scale: float) -> list[Figure]:
    return anyio.run(_stdio, scale) + anyio.run(_http, scale)


async def _ask(client: Client) -> None:
    answer = await client.call_tool("run_code", {"code": "1+1"})
    assert (answer.structured_content or {}).get("result") == 2, answer


async def _many(client: Client, scale: float) -> list[float]:
    return await timed_async(lambda: _ask(client), samples=int(300 * scale), warmup=5)


async def _stdio(scale: float) -> list[Figure]:
    ready: list[float] = []
    answers: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "executor.cli", "mcp", "--home", home], env={"PATH": ""}
        )
        for _ in range(max(3, int(9 * scale))):
            start = time.perf_counter()
            async with Client(command) as client:
                ready.append(time.perf_counter() - start)
                answers = answers or await _many(client, scale)
    return [
        latency(PROBE, "a stdio server, from its start to initialized", ready, target=2_000.0),
        latency(PROBE, "run_code 1+1 over stdio", answers),
    ]


async def _http(scale: float) -> list[Figure]:
    with serving() as (host, port, key):
        headers = {"authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(f"http://{host}:{port}/mcp", http_client=http)) as client,
        ):
            answers = await _many(client, scale)
    return [latency(PROBE, "run_code 1+1 over HTTP", answers)]
