"""The MCP group, as far as Executor is the server: hostile pages, strangers, malformed messages, clients that vanish.

MCP-01 is the conformance suite, tests/blackbox/test_mcp_conformance.py; what a state that a client carries is good for
(MCP-10) is tried out in full in tests/blackbox/test_mcp_approvals.py.
"""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.blackbox.command import cli
from tests.blackbox.server import COMMAND, Server, environment

pytestmark = pytest.mark.anyio

CANARY = "cnry_mcp_0123456789abcdef01234567"
PLACE = "shop.org.main.http.request"
"""A call that needs approval: it writes."""
ORDER = {"code": f"await tools.{PLACE}({{method: 'POST', path: '/orders', body: {{id: 1}}}})"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Upstream:
    """An API on loopback that answers what writes, and lets what reads hang until the caller goes away."""

    def __init__(self) -> None:
        self.posts: list[bytes] = []
        self.hanging = asyncio.Event()
        self.aborted = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"POST"):
                self.posts.append(head)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
                await writer.drain()
            else:
                self.hanging.set()
                await reader.read()
                self.aborted.set()
        writer.close()


@pytest.fixture(scope="module")
async def upstream(server: Server):
    made = Upstream()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    kept = await asyncio.to_thread(server.ask, "PUT", "/secrets/shop", {"value": CANARY})
    assert kept.status < 300, kept.body
    added = await asyncio.to_thread(
        server.ask,
        "POST",
        "/integrations",
        {
            "kind": "http",
            "name": "shop",
            "allow": [f"GET http://127.0.0.1:{port}", f"POST http://127.0.0.1:{port}"],
            "allow_private": ["127.0.0.1"],
            "auth": "bearer",
            "secret": "local:shop",
        },
    )
    assert added.status == 201, added.body
    yield made
    listening.close()


@asynccontextmanager
async def connected(server: Server, era: str = "auto", path: str = "/mcp", key: str | None = None, person=None):
    headers = {"authorization": f"Bearer {key or server.key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http_client,
        Client(
            streamable_http_client(f"{server.url}{path}", http_client=http_client),
            mode=era,
            elicitation_callback=person,
        ) as client,
    ):
        yield client


def post(server: Server, body: bytes, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    sent = {
        "Authorization": f"Bearer {server.key}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    } | {name.replace("_", "-"): value for name, value in headers.items() if value}
    for name, value in headers.items():
        if not value:
            sent.pop(name.replace("_", "-"), None)
    connection.request("POST", "/mcp", body=body, headers=sent)
    reply = connection.getresponse()
    answer = reply.status, reply.read()
    connection.close()
    return answer


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.test"}, 421),
        ({"Host": "evil.test", "Origin": "https://evil.test"}, 421),
        ({}, 200),
    ],
)
def test_a_page_of_another_origin_gets_nowhere(server: Server, headers, status):
    """MCP-02, MCP-03"""
    assert post(server, json.dumps(INITIALIZE).encode(), **headers)[0] == status


def test_without_a_key_there_is_nothing(server: Server):
    """MCP-04"""
    assert post(server, json.dumps(INITIALIZE).encode(), Authorization="")[0] == 401
    assert post(server, json.dumps(INITIALIZE).encode(), Authorization="Bearer exk_wrong")[0] == 401


def message(**parts) -> bytes:
    return json.dumps(INITIALIZE | parts).encode()


MALFORMED = [
    (b"nonsense", -32700),
    (b"\xff\xfe", -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": NaN}}', -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\\ud800"}}', -32700),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", -32700),
    (b"", -32700),
    (b"[]", -32600),
    (b"{}", -32600),
    (b"null", -32600),
    (json.dumps([INITIALIZE]).encode(), -32600),
    (message(id=None), -32600),
    (message(id=1.5), -32600),
    (message(id=True), -32600),
    (message(id={"a": 1}), -32600),
    (message(id=2**64), -32600),
    (message(jsonrpc="1.0"), -32600),
    (message(params=[1, 2]), -32600),
    (message(method="m" * 10_240), -32600),
    (message(method=7), -32600),
    (b'{"jsonrpc": "2.0", "id": 1}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": ' + b"[" * 600 + b"]" * 600 + b"}}", -32600),
]


@pytest.mark.parametrize("version", ["", "2025-11-25", "2026-07-28"])
def test_what_is_no_message_is_a_json_rpc_error_in_our_words(server: Server, version):
    """MCP-06"""
    for body, code in MALFORMED:
        status, answer = post(server, body, MCP_Protocol_Version=version)
        told = json.loads(answer)
        assert (status, told["jsonrpc"], told["error"]["code"]) == (400, "2.0", code), body[:80]
        assert told["id"] in (None, 1)
        assert "pydantic" not in answer.decode()
        assert "input_value" not in answer.decode()


async def test_malformed_requests_leave_the_server_well(server: Server):
    """MCP-06, MCP-07"""
    stray = [
        b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
        b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "run_code"}}',
    ]
    for _ in range(20):
        for body in [*(body for body, _ in MALFORMED), *stray]:
            status, _ = post(server, body)
            assert 400 <= status < 500, (status, body[:80])
    async with connected(server) as client:
        assert (await client.call_tool("run_code", {"code": "1"})).structured_content["result"] == 1


def test_a_session_belongs_to_the_key_that_opened_it(server: Server):
    """MCP-09"""
    stranger = key_of(server, "other")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    head = {
        "Authorization": f"Bearer {server.key}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    connection.request("POST", "/mcp", body=json.dumps(INITIALIZE), headers=head)
    reply = connection.getresponse()
    session = reply.getheader("mcp-session-id")
    reply.read()
    connection.close()
    assert session
    ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
    version = {"Mcp_Session_Id": session, "MCP_Protocol_Version": "2025-11-25"}
    assert post(server, ping, **version)[0] == 200
    assert post(server, ping, **version, Authorization=f"Bearer {stranger}")[0] == 404
    assert post(server, ping, Mcp_Session_Id="0" * 32, MCP_Protocol_Version="2025-11-25")[0] == 404


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_client_that_leaves_cancels_its_run(server: Server, era):
    """MCP-11"""
    async with connected(server, era) as client:
        code = {"code": "await new Promise(r => setTimeout(r, 50000))"}
        call = asyncio.create_task(client.call_tool("run_code", code))
        run_id = await newest(server, "running")
        call.cancel()
        await asyncio.wait([call])
        assert await newest(server, "cancelled") == run_id


async def newest(server: Server, status: str) -> str:
    """The id of the newest run once it has this status."""
    for _ in range(300):
        reply = await asyncio.to_thread(server.ask, "GET", "/runs?limit=1")
        runs = reply.json["runs"]
        if runs and runs[0]["status"] == status:
            return str(runs[0]["run_id"])
        await asyncio.sleep(0.1)
    raise AssertionError(runs)


def lines(home, sent: bytes) -> tuple[list[dict], int]:
    """What `executor mcp` writes for what it reads, until its input ends; and its exit status."""
    done = subprocess.run([*COMMAND, "mcp", "--home", str(home)], input=sent, capture_output=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


def test_standard_output_holds_the_protocol_alone_whatever_comes_in(home):
    """MCP-12"""
    good = json.dumps(INITIALIZE).encode()
    hostile = [b"{", b"\xff\xfe\xfd", b"x" * 1_000_000, b"", b"[1, 2", b'{"jsonrpc": "2.0"}']
    answers, status = lines(home, b"\n".join([*hostile, good]) + b"\n")
    assert status == 0
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    refused = [answer["error"]["code"] for answer in answers if answer.get("id", "none") is None]
    assert refused == [-32700, -32700, -32700, -32700, -32700, -32600]
    assert next(answer for answer in answers if answer.get("id") == 1)["result"]["serverInfo"]["name"] == "executor"


def test_it_ends_with_its_input_and_on_a_signal(home):
    """MCP-12"""
    for end in ("input", "signal"):
        with subprocess.Popen(
            [*COMMAND, "mcp", "--home", str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 1
            if end == "signal":
                os.kill(process.pid, signal.SIGTERM)
            else:
                process.stdin.close()
            assert process.wait(30) == 0


# Sessions and streams as bytes: what the official client would not send


HEAD = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    # So that an answer that was read to its end has closed its connection.
    "Connection": "close",
}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


class Session:
    """A session of the protocol of 2025-11-25, opened by `key`, whose client can ask its user."""

    def __init__(self, server: Server, key: str) -> None:
        self.server = server
        self.key = key
        opening = INITIALIZE | {"params": INITIALIZE["params"] | {"capabilities": {"elicitation": {"form": {}}}}}
        reply = self.post(opening, session=None)
        self.id = reply.getheader("mcp-session-id")
        reply.read()
        self.status({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message: dict, key: str | None = None, session: str | None = "own") -> http.client.HTTPResponse:
        headers = HEAD | {"Authorization": f"Bearer {key or self.key}", "MCP-Protocol-Version": "2025-11-25"}
        if session is not None:
            headers["Mcp-Session-Id"] = self.id if session == "own" else session
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request("POST", "/mcp", body=json.dumps(message).encode(), headers=headers)
        return connection.getresponse()

    def status(self, message: dict, key: str | None = None, session: str | None = "own") -> int:
        with self.post(message, key, session) as reply:
            reply.read()
            return reply.status

    def delete(self) -> int:
        headers = {"Mcp-Session-Id": self.id}
        return self.server.ask("DELETE", "/mcp", headers=headers, key=self.key).status


def events(reply: http.client.HTTPResponse):
    """The messages of a stream as they come."""
    while line := reply.readline():
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])


def first(messages, wanted):
    """The first message that is wanted."""
    seen = []
    for message in messages:
        if wanted(message):
            return message
        seen.append(message)
    raise AssertionError(seen)


def call(id: int | str, name: str, arguments: dict, **params) -> dict:
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments} | params,
    }


def key_of(server: Server, name: str, **options: str) -> str:
    """A new key, once the server knows it: a second later at the latest."""
    extra = [part for option, value in options.items() for part in (f"--{option}", value)]
    made = cli(server.home, "key", "create", name, "--json", *extra)
    key = json.loads(made.stdout)["key"]
    for _ in range(100):
        if server.ask("GET", "/runs?limit=1", key=key).status == 200:
            return key
        time.sleep(0.05)
    raise AssertionError("the key is not known")


def count(server: Server) -> int:
    """Every run there is."""
    return len(server.ask("GET", "/runs?limit=500").json["runs"])


def test_a_rebound_name_is_refused_before_anything_is_read(server: Server):
    """MCP-03"""
    for host in (f"rebind.test:{server.port}", "rebind.test", "127.0.0.1.rebind.test", "localhost.rebind.test"):
        status, answer = post(server, b"{ not json", Host=host)
        assert status == 421
        assert b"jsonrpc" not in answer


def test_nothing_is_executed_by_a_get(server: Server):
    """MCP-04: what a page can do with a script tag or an image."""
    before = count(server)
    for path in ("/mcp", "/mcp/any", "/mcp?direct=true"):
        assert server.ask("GET", path, key=None).status == 401
    for version in ({}, {"MCP-Protocol-Version": "2026-07-28"}):
        assert 400 <= server.ask("GET", "/mcp", headers=HEAD | version).status < 500
    assert count(server) == before


def test_a_notification_and_a_stray_response_have_no_effect(server: Server):
    """MCP-06"""
    session, before = Session(server, server.key), count(server)
    quiet = call(1, "run_code", {"code": "1"})
    del quiet["id"]
    assert session.status(quiet) == 202
    assert session.status({"jsonrpc": "2.0", "id": 77, "result": {"action": "accept", "content": {}}}) == 202
    alive = session.post(call(2, "run_code", {"code": "40 + 2"}))
    assert [message["id"] for message in events(alive)] == [2]
    assert count(server) == before + 1


async def test_equal_ids_of_two_clients_never_cross(server: Server, long: bool):
    """MCP-08: 10 000 calls in the long form."""
    rounds = 5000 if long else 100
    keys = [server.key, await asyncio.to_thread(key_of, server, "second")]
    limits = httpx2.Limits(max_connections=8)

    async def modern(number: int, who: int) -> None:
        asked = call(number % 7, "search", {"query": f"nothing{who}{number}x", "limit": 1})
        asked["params"]["_meta"] = MODERN_META
        asked["params"]["name"], asked["params"]["arguments"] = "describe", {"path": f"is.org.not.there{who}_{number}"}
        headers = HEAD | {
            "Authorization": f"Bearer {keys[who]}",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "describe",
        }
        answer = (await clients[who].post(f"{server.url}/mcp", json=asked, headers=headers)).json()
        assert answer["id"] == number % 7
        assert f"there{who}_{number}'" in answer["result"]["content"][0]["text"], answer

    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(httpx2.AsyncClient(timeout=60, limits=limits)) for _ in keys]
        for start in range(0, rounds, 25):
            numbers = range(start, min(start + 25, rounds))
            await asyncio.gather(*(modern(number, who) for number in numbers for who in (0, 1)))

    sessions = [await asyncio.to_thread(Session, server, key) for key in keys]

    def legacy(number: int, who: int) -> None:
        reply = sessions[who].post(call(number, "run_code", {"code": "input", "input": [who, number]}))
        (message,) = events(reply)
        assert message["id"] == number
        assert message["result"]["structuredContent"]["result"] == [who, number]

    for start in range(0, rounds // 5, 5):
        numbers = range(start, start + 5)
        await asyncio.gather(*(asyncio.to_thread(legacy, number, who) for number in numbers for who in (0, 1)))


def test_a_session_that_was_ended_guessed_or_made_up_is_not_there(server: Server):
    """MCP-09"""
    session = Session(server, server.key)
    ping = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
    assert session.status(ping) == 200
    for made_up in ("0" * 32, "mine", session.id[:-1], f"{session.id}0", "../../x"):
        assert session.status(ping, session=made_up) == 404
    assert session.delete() == 200
    assert session.status(ping) == 404


async def test_an_answer_to_a_question_counts_from_the_one_who_was_asked_alone(server: Server, upstream: Upstream):
    """MCP-24, SEC-25"""
    before = len(upstream.posts)
    stranger = await asyncio.to_thread(key_of, server, "stranger24")

    def drive() -> dict:
        session = Session(server, server.key)
        told = events(session.post(call(9, "run_code", ORDER)))
        question = first(told, lambda message: message.get("method") == "elicitation/create")
        assert CANARY not in json.dumps(question)
        assert "needs your approval" in question["params"]["message"]
        yes = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}}
        assert session.status(yes, key=stranger) == 404
        assert Session(server, stranger).status(yes) == 202
        assert Session(server, server.key).status(yes) == 202
        assert len(upstream.posts) == before
        assert session.status(yes) == 202
        return first(told, lambda message: message.get("id") == 9)

    answer = await asyncio.to_thread(drive)
    assert answer["result"]["structuredContent"]["status"] == "completed"
    assert len(upstream.posts) == before + 1
    assert CANARY.encode() in upstream.posts[-1]
    assert CANARY not in json.dumps(answer)


async def test_a_state_of_one_key_is_nothing_to_another_and_to_another_endpoint(server: Server, upstream: Upstream):
    """MCP-10, MCP-24"""
    before = len(upstream.posts)
    stranger = await asyncio.to_thread(key_of, server, "stranger10")
    made = await asyncio.to_thread(server.ask, "POST", "/toolkits", {"name": "all", "tools": ["*"]})
    assert made.status in (200, 201), made.body

    def send(asked: dict, key: str = server.key, path: str = "/mcp") -> dict:
        headers = HEAD | {
            "Authorization": f"Bearer {key}",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "run_code",
        }
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", path, body=json.dumps(asked).encode(), headers=headers)
        with connection.getresponse() as reply:
            return json.loads(reply.read())

    def drive() -> None:
        first = send(call(1, "run_code", ORDER, _meta=MODERN_META))["result"]
        assert first["resultType"] == "input_required"
        assert CANARY not in json.dumps(first)
        answers = {id: {"action": "accept", "content": {}} for id in first["inputRequests"]}
        state = first["requestState"]
        again = call(2, "run_code", ORDER, _meta=MODERN_META, inputResponses=answers, requestState=state)
        for refused in (send(again, key=stranger), send(again, path="/mcp/all")):
            assert refused["error"]["code"] == -32602
        assert len(upstream.posts) == before
        assert send(again)["result"]["structuredContent"]["status"] == "completed"
        assert send(again)["error"]["code"] == -32602

    await asyncio.to_thread(drive)
    assert len(upstream.posts) == before + 1


async def test_a_key_that_may_only_run_approves_nothing_through_its_client(server: Server, upstream: Upstream):
    """MCP-24: what takes another access over HTTP takes it here."""
    before, asked = len(upstream.posts), []

    async def person(context, params):
        asked.append(params)
        return types.ElicitResult(action="accept", content={})

    runner = await asyncio.to_thread(key_of, server, "runner", access="run")
    for era in ("legacy", "2026-07-28"):
        async with connected(server, era, key=runner, person=person) as client:
            answer = await client.call_tool("run_code", ORDER)
            look = await client.call_tool("resume", {"run_id": answer.structured_content["run_id"], "wait_s": 0})
        assert answer.structured_content["status"] == look.structured_content["status"] == "waiting"
    assert asked == []
    assert len(upstream.posts) == before


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_stream_that_is_closed_takes_its_run_and_the_upstream_call_along(server: Server, upstream, era):
    """MCP-11"""
    upstream.hanging.clear()
    upstream.aborted.clear()
    asked = call(3, "run_code", {"code": "await tools.shop.org.main.http.get({path: '/slow'})"})
    headers = HEAD | {"Authorization": f"Bearer {server.key}", "Host": f"127.0.0.1:{server.port}"}
    if era == "legacy":
        session = await asyncio.to_thread(Session, server, server.key)
        headers |= {"Mcp-Session-Id": session.id, "MCP-Protocol-Version": "2025-11-25"}
    else:
        asked["params"]["_meta"] = MODERN_META
        headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "run_code"}
    body = json.dumps(asked).encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | {"Content-Length": len(body)}).items())
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body)
    await asyncio.wait_for(upstream.hanging.wait(), 60)
    run_id = await newest(server, "running")
    writer.close()
    await asyncio.wait_for(upstream.aborted.wait(), 60)
    assert await newest(server, "cancelled") == run_id


async def test_sessions_that_come_and_go_leave_nothing_open(server: Server, long: bool):
    """1 000 sessions in the long form: ended, abandoned in a call, cut off in the middle of a message."""

    def used() -> int:
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    def visit(number: int) -> None:
        session = Session(server, server.key)
        reply = session.post(call(1, "run_code", {"code": "1"}))
        if number % 3:
            list(events(reply))
        reply.close()
        if number % 3 == 2:
            with server.connect() as cut:
                cut.sendall(b"POST /mcp HTTP/1.1\r\nContent-Length: 500\r\n\r\n{")
        assert session.delete() == 200

    await asyncio.to_thread(visit, 1)
    before = used()
    for start in range(0, 1000 if long else 40, 10):
        await asyncio.gather(*(asyncio.to_thread(visit, start + number) for number in range(10)))
    for _ in range(300):
        if used() <= before + 2:
            break
        await asyncio.sleep(0.1)
    assert used() <= before + 2
    assert server.alive()


# Standard input


@pytest.mark.parametrize("size", [8 << 20])
def test_a_line_of_any_length_is_one_message_and_the_next_one_works(home, size, long):
    """MCP-12: 100 MiB in the long form."""
    line = b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"a": "' + b"x" * (100 << 20 if long else size)
    answers, status = lines(home, line + b"\n" + json.dumps(INITIALIZE).encode() + b"\n")
    assert status == 0
    assert [answer.get("id") for answer in answers] == [None, 1]


def test_a_client_that_reads_no_more_is_no_defect(home):
    """MCP-12"""
    with subprocess.Popen(
        [*COMMAND, "mcp", "--home", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.stdout.close()
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode() + b"\n")
        process.stdin.close()
        assert process.wait(60) == 0
        assert b"failed" not in process.stderr.read()


def test_it_ends_when_its_parent_is_killed(home):
    """MCP-12"""
    parent = (
        "import subprocess, sys; child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE);"
        "print(child.pid, flush=True); child.wait()"
    )
    command = [sys.executable, "-c", parent, *COMMAND, "mcp", "--home", str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.kill()
        process.wait(30)
        for _ in range(600):
            if not alive(child):
                return
            time.sleep(0.05)
    raise AssertionError("it outlived its parent")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
