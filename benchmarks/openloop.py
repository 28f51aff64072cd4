"""An open-loop load generator in its own process: requests leave when they are due, back or not.

Run as `python -m benchmarks.openloop HOST PORT KEY RATE SECONDS HOSTILE`; prints one JSON line. A closed loop
waits with a slow server and so hides how slow it was; here each latency counts from the moment the request was due.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time

BENIGN = {"code": "1+1", "language": "javascript"}
HOSTILE = (
    {"code": "for (;;);", "language": "javascript", "budgets": {"fuel": 100_000_000}},
    {"code": "let s = 'a'; for (;;) s += s", "language": "javascript"},
    {"code": "const f = () => f(); f()", "language": "javascript"},
    {
        "code": "for (let i = 0; ; i++) tools.a.org.b.c({ i })",
        "language": "javascript",
        "budgets": {"fuel": 100_000_000},
    },
)


async def main(host: str, port: int, key: str, rate: float, seconds: float, hostile: float) -> dict[str, object]:
    """Requests arrive at random, `rate` a second in the mean; the share `hostile` of them is. Latencies of the others
    in milliseconds, and how many of them were refused or answered wrongly."""
    chance = random.Random(7)
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    latencies: list[float] = []
    counts = {"refused": 0, "wrong": 0, "hostile": 0}

    async def one(due: float, body: dict[str, object], counted: bool) -> None:
        reader, writer = idle.pop() if idle else await asyncio.open_connection(host, port)
        content = json.dumps(body).encode()
        head = (
            f"POST /run HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        )
        writer.write(head.encode() + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        size = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        content = await reader.readexactly(size)
        idle.append((reader, writer))
        if not counted:
            return
        if answer.startswith((b"HTTP/1.1 429", b"HTTP/1.1 503")):
            counts["refused"] += 1
        elif b'"completed"' not in content:
            counts["wrong"] += 1
        else:
            latencies.append((time.perf_counter() - due) * 1000)

    began = time.perf_counter()
    due = began
    async with asyncio.TaskGroup() as tasks:
        while True:
            due += chance.expovariate(rate)
            if due - began > seconds:
                break
            bad = chance.random() < hostile
            counts["hostile"] += bad
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.create_task(one(due, HOSTILE[counts["hostile"] % len(HOSTILE)] if bad else BENIGN, not bad))
    for _, writer in idle:
        writer.close()
    return {"latencies_ms": latencies, **counts}


if __name__ == "__main__":
    where = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    print(json.dumps(asyncio.run(main(*where, *map(float, sys.argv[4:7])))))
