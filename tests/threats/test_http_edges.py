"""The rest of the HTTP group: keys and time, answers in a browser, clocks that jump, the door on standard streams."""

from __future__ import annotations

import asyncio
import hmac
import json
import random
import statistics
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from executor import Config, Executor, keys
from executor.keys import Keyring
from runtime.store.keys import Keys
from runtime.store.sqlite import Database
from tests.blackbox.server import COMMAND, Server, environment, status_of


@pytest.fixture
async def keyring() -> Any:
    database = await Database.open(None)
    yield Keyring(Keys(database))
    await database.close()


def nearly(key: str, right: int) -> bytes:
    """A wrong key whose first `right` characters are those of `key`."""
    shape = "exk_" + "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghij", k=43))
    wrong = key[:right] + shape[right:]
    return (wrong if wrong != key else key[:-1] + ("A" if key[-1] != "A" else "B")).encode()


@pytest.mark.anyio
async def test_a_key_is_compared_by_its_digest_however_much_of_it_is_right(
    keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP-14: each wrong key takes the same steps, over values of the same length that share nothing with the key."""
    _, key = await keyring.create("one")
    compared: list[tuple[bytes, bytes]] = []

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return compare(one, other)

    compare = hmac.compare_digest
    monkeypatch.setattr(keys.hmac, "compare_digest", watched)
    for right in range(len(key)):
        compared.clear()
        assert await keyring.find(nearly(key, right)) is None
        assert [(len(one), len(other)) for one, other in compared] == [(32, 32)]
        assert compared[0][1] == bytes(32)
    assert await keyring.find(key.encode()) is not None


@pytest.mark.anyio
async def test_the_time_that_a_wrong_key_takes_tells_nothing(keyring: Keyring, long: bool) -> None:
    """HTTP-14: Welch's t between keys that are wholly and partly wrong. The long form is the measurement."""
    _, key = await keyring.create("one")
    groups = {right: [] for right in (0, 4, 8, 16, 32, 46)}  # type: dict[int, list[int]]
    order = [right for right in groups for _ in range(20_000 if long else 100)]
    random.shuffle(order)
    for right in order:
        wrong = nearly(key, right)
        began = time.process_time_ns()
        await keyring.find(wrong)
        groups[right].append(time.process_time_ns() - began)
    trimmed = {right: sorted(taken)[: int(len(taken) * 0.9)] for right, taken in groups.items()}
    worst = max(abs(welch(trimmed[0], taken)) for right, taken in trimmed.items() if right)
    assert worst < (4.5 if long else 12), worst


def welch(one: list[int], other: list[int]) -> float:
    spread = statistics.variance(one) / len(one) + statistics.variance(other) / len(other)
    return (statistics.fmean(one) - statistics.fmean(other)) / max(spread, 1e-9) ** 0.5


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def test_an_answer_is_inert_in_a_browser(server: Server) -> None:
    """HTTP-19: there is no page; whatever a script says comes as JSON that nobody sniffs, frames or runs."""
    code = f"console.log(input); emit(input); tools.call({HOSTILE!r}, {{}}).catch(() => {{}}); input"
    answers = [server.ask("POST", "/run", {"code": code, "input": HOSTILE, "labels": {"x": "<b>"}})]
    run = answers[0].json["run_id"]
    assert answers[0].json["result"] == HOSTILE
    paths = [
        f"/runs/{run}",
        f"/runs/{run}/result",
        "/runs",
        "/openapi.json",
        "/health",
        "/metrics",
        "/tools",
        "/tools?query=",
    ]
    answers += [server.ask("GET", path) for path in paths]
    answers += [server.ask("GET", f"/tools/{'%3Cscript%3E'}"), server.ask("GET", "/health", key=None)]
    answers += [
        server.ask("GET", "/nothing"),
        server.ask("POST", "/run", b"<html>"),
        server.ask("GET", "/runs", key=None),
    ]
    for answer in answers:
        kind = answer.headers.get("content-type", "")
        assert kind.partition(";")[0] in ("application/json", "text/plain", ""), kind
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


class Clock:
    """The system's wall clock, which somebody sets while a run goes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offset = 0.0
        real, real_ns = time.time, time.time_ns
        monkeypatch.setattr(time, "time", lambda: real() + self.offset)
        monkeypatch.setattr(time, "time_ns", lambda: real_ns() + int(self.offset * 1e9))


@pytest.mark.anyio
@pytest.mark.parametrize("jump", [3600.0, -3600.0], ids=["forward", "back"])
async def test_a_clock_that_jumps_moves_no_deadline(jump: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP-31"""
    clock = Clock(monkeypatch)
    async with Executor.open(config=Config(workers=1, tool_timeout_s=30)) as ex:

        async def set_clock(args: Any) -> int:
            clock.offset += jump
            return 1

        async def hang(args: Any) -> None:
            clock.offset += jump
            await asyncio.Event().wait()

        ex.tool("t.org.main.jump", set_clock, side_effect="read")
        ex.tool("t.org.main.jump_write", set_clock, side_effect="write", idempotent=False)
        ex.tool("t.org.main.hang", hang, side_effect="read")
        await ex.toolbox.add_policy("t", "*", "approve")
        with anyio.fail_after(20):
            script = """
              const began = Date.now();
              await tools.t.org.main.jump({}); await tools.t.org.main.jump_write({});
              await new Promise(done => setTimeout(done, 20));
              Date.now() - began"""
            passed = await ex.run(script, budgets={"wall_ms": 10_000})
            assert 0 <= passed.unwrap() < 10_000
            assert passed.usage["wall_ms"] < 10_000
            assert all(0 <= call["duration_ms"] < 10_000 for call in passed.calls), passed.calls
            ended = await ex.run("await tools.t.org.main.hang({})", budgets={"wall_ms": 300})
        assert ended.error is not None
        assert ended.error["code"] == "deadline_exceeded"
        assert 300 <= ended.usage["wall_ms"] < 10_000
        assert all(0 <= call["duration_ms"] < 10_000 for call in ended.calls), ended.calls


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
REFUSED: dict[str, Any] = {
    "HTTP-27 a tenant": {"code": "1", "tenant_id": "other"},
    "HTTP-27 a status": {"code": "1", "status": "completed"},
    "HTTP-27 trust": {"code": "1", "trusted": True, "egress": ["*"]},
    "HTTP-28 a language with a line": {"code": "1", "language": "python\n"},
    "HTTP-28 a path for a language": {"code": "1", "language": "../../x"},
    "HTTP-28 a list of languages": {"code": "1", "language": ["javascript"]},
    "BUD-29 a budget of text": {"code": "1", "budgets": {"fuel": "5s"}},
    "BUD-29 a negative budget": {"code": "1", "budgets": {"wall_ms": -1}},
    "no code": {},
    "code that is a number": {"code": 1},
}


def spoken(home: Path, *messages: bytes, last: int = 99) -> list[dict[str, Any]]:
    """What the command on standard streams answers to these lines, until the answer `last`; each line that it writes
    must be a message of the protocol."""
    opening = [json.dumps(INITIALIZE).encode(), b'{"jsonrpc":"2.0","method":"notifications/initialized"}']
    with subprocess.Popen(
        [*COMMAND, "mcp", "--home", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        guard = threading.Timer(100, process.kill)
        guard.start()
        stdin = process.stdin

        def write() -> None:
            stdin.write(b"\n".join([*opening, *messages]) + b"\n")
            stdin.flush()

        writer = threading.Thread(target=write)
        writer.start()
        answers = []
        for line in process.stdout:
            answers.append(json.loads(line))
            if answers[-1].get("id") == last:
                break
        writer.join(20)
        stdin.close()
        assert process.wait(30) == 0
        guard.cancel()
    return answers


def call(number: int, arguments: Any) -> bytes:
    params = {"name": "run_code", "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def test_what_is_refused_over_http_is_refused_on_standard_streams(server: Server, tmp_path: Path) -> None:
    """HTTP-35"""
    for body in REFUSED.values():
        assert server.ask("POST", "/run", body).status == 400
    messages = [call(number, body) for number, body in enumerate(REFUSED.values(), 1)]
    answers = {
        one["id"]: one for one in spoken(tmp_path / "home", *messages, call(99, {"code": "6 * 7"})) if "id" in one
    }
    for number, name in enumerate(REFUSED, 1):
        assert "error" in answers[number] or answers[number]["result"]["isError"], (name, answers[number])
    assert "42" in json.dumps(answers[99]["result"])
    assert not answers[99]["result"].get("isError")


def test_what_breaks_a_parser_over_http_breaks_none_on_standard_streams(server: Server, tmp_path: Path) -> None:
    """HTTP-35: HTTP-02's bodies, as messages."""
    head = b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "run_code", "arguments": '
    texts = [
        b'{"code": "1", "input": NaN}',
        b'{"code": "1", "input": 1e999}',
        b'{"code": "1", "input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"code": "1", "input": ' + b"9" * 4301 + b"}",
        b'{"code": "\\ud800"}',
        b'{"code": "\xff"}',
    ]
    for body in texts:
        raw = server.head("POST", "/run", "Content-Type: application/json", f"Content-Length: {len(body)}") + body
        assert status_of(server.raw(raw)) == 400
    answers = spoken(tmp_path / "home", *(head + body + b"}}" for body in texts), call(99, {"code": "6 * 7"}))
    assert all(one["jsonrpc"] == "2.0" for one in answers)
    (last,) = [one for one in answers if one.get("id") == 99]
    assert "42" in json.dumps(last["result"])
    wrong = [one for one in answers if one.get("id") == 5 and "result" in one and not one["result"].get("isError")]
    assert wrong == []
