"""The HTTP group of the threat catalogue, sent as raw bytes to a real server: messages and how they are framed."""

from __future__ import annotations

import resource
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.blackbox.server import JSON, Server, body_of, status_of, until_closed
from tests.examples import examples


def post(server: Server, body: bytes, *lines: str, path: str = "/run", key: bool = True) -> bytes:
    """The raw answer to a POST whose length is declared truly."""
    return server.raw(server.head("POST", path, *lines, f"Content-Length: {len(body)}", key=key) + body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"code": NaN}',
        b'{"code": "1", "input": Infinity}',
        b'{"code": "1", "input": -Infinity}',
        b'{"code": "1", "input": 1e999}',
        b'{"code": "1", "input": ' + b"9" * 4301 + b"}",
        b'{"code": "1", "input": 18446744073709551616}',
        b'{"code": "1", "code": "2"}',
        b'{"code": "1", "input": {"a": 1, "a": 2}}',
        b'{"code": "\\ud800"}',
        b'{"code": "1", "input": ' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"code": "1", "input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"code": "1", "input": ' + b'{"a":' * 101 + b"1" + b"}" * 101 + b"}",
        b'{"code": "1"} {}',
        b'\xef\xbb\xbf{"code": "1"}',
        b'{"code": "\xff"}',
        b'{"code": "1",}',
        b"",
        b"null",
        b'["1"]',
    ],
)
def test_only_one_strict_json_object_is_a_request(server: Server, body: bytes) -> None:
    """HTTP-02"""
    reply = post(server, body, JSON)
    assert status_of(reply) == 400
    assert body_of(reply)["error"]["code"] in ("invalid_json", "invalid_request")
    assert server.alive()


def test_a_body_of_a_declared_gigabyte_is_refused_before_it_is_sent(server: Server) -> None:
    """HTTP-03"""
    reply = server.raw(server.head("POST", "/run", JSON, f"Content-Length: {2**30}"))
    assert status_of(reply) == 413
    assert body_of(reply)["error"]["code"] == "too_large"
    assert b"connection: close" in reply.lower()


def test_a_chunked_body_without_end_is_refused_once_it_is_too_large(server: Server) -> None:
    """HTTP-03"""
    chunk = b"%x\r\n" % 65536 + b" " * 65536 + b"\r\n"
    with server.connect() as sock:
        sock.sendall(server.head("POST", "/run", JSON, "Transfer-Encoding: chunked"))
        sent = 0
        try:
            while sent < 10 * 2**30:
                sock.sendall(chunk)
                sent += len(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        reply = until_closed(sock)
    assert sent < 64 * 2**20
    assert status_of(reply) in (413, 0)
    assert server.alive()


def test_a_source_over_its_budget_is_too_large(server: Server) -> None:
    """HTTP-03"""
    reply = server.ask("POST", "/run", {"code": "1//" + "x" * 2**20})
    assert reply.status == 413
    assert reply.code == "too_large"


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("Content-Type: text/plain",),
        ("Content-Type: application/x-www-form-urlencoded",),
        ("Content-Type: multipart/form-data; boundary=x",),
        ("Content-Type: application/json; charset=utf-16",),
        ("Content-Type: application/json+evil",),
        ("Content-Type: application/json", "Content-Type: application/json"),
        ("Content-Type: application/json, text/plain",),
    ],
)
def test_a_body_of_another_type_is_refused(server: Server, lines: tuple[str, ...]) -> None:
    """HTTP-04, HTTP-18: nothing that a page can send without a preflight is JSON."""
    reply = post(server, b'{"code":"1+1"}', *lines)
    assert status_of(reply) == 415
    assert body_of(reply)["error"]["code"] == "unsupported_media_type"
    assert server.ask("POST", "/run", b"x", key=None, headers={"Content-Type": "text/plain"}).status == 401


@pytest.mark.parametrize(
    "line", ["Content-Type: application/json; charset=UTF-8", 'content-type:APPLICATION/json;charset="utf-8"']
)
def test_json_in_utf8_is_accepted_however_it_is_spelled(server: Server, line: str) -> None:
    """HTTP-04"""
    assert status_of(post(server, b'{"code":"1+1"}', line)) == 200


def test_a_compressed_body_is_refused(server: Server) -> None:
    """HTTP-05"""
    assert status_of(post(server, b"\x1f\x8b\x08", JSON, "Content-Encoding: gzip")) == 415


def test_a_head_that_never_ends_is_dropped_and_a_body_that_never_ends_is_answered(server: Server) -> None:
    """HTTP-06: headers within 5 s, a body within 10 s, and others are served meanwhile."""
    with server.connect(30) as slow_head, server.connect(30) as slow_body:
        slow_head.sendall(b"POST /run HTTP/1.1\r\nHost: x")
        slow_body.sendall(server.head("POST", "/run", JSON, "Content-Length: 100") + b'{"code"')
        assert server.run("1+1")["result"] == 2
        assert until_closed(slow_head) == b""
        reply = until_closed(slow_body)
    assert status_of(reply) == 408
    assert body_of(reply)["error"]["code"] == "request_timeout"


def test_two_thousand_idle_connections_do_not_keep_others_out(server: Server) -> None:
    """HTTP-06"""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    idle = [server.connect() for _ in range(2100)]
    try:
        assert server.run("1+1")["result"] == 2
    finally:
        for sock in idle:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_length_and_chunked_together_are_refused_and_nothing_after_them_is_served(server: Server) -> None:
    smuggled = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    request = (
        f"POST /run HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.key}\r\n{JSON}\r\n"
        f"Content-Length: {len(smuggled) + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ).encode()
    reply = server.raw(request + smuggled)
    assert status_of(reply) == 400
    assert reply.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\nHost: 127.0.0.1\n\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\nX: y\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\r\n b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX : y\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET /health HTTP/2.0\r\nHost: 127.0.0.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET  /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n",
        b"GET /health\r\n\r\n",
    ],
)
def test_a_head_that_could_be_read_in_two_ways_is_refused(server: Server, head: bytes) -> None:
    """HTTP-09, HTTP-33"""
    reply = server.raw(head)
    assert 400 <= status_of(reply) <= 505
    assert body_of(reply)["error"]["code"]
    assert b"hypercorn" not in reply.lower()
    assert server.alive()


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("GET http://internal/x", 400),
        ("CONNECT internal:443", 405),
        ("TRACE /health", 405),
        ("OPTIONS *", 400),
        ("BREW /run", 405),
        ("get /health", 405),
        ("PATCH /run", 405),
        ("DELETE /run", 405),
    ],
)
def test_other_methods_and_targets_are_refused(server: Server, target: str, status: int) -> None:
    """HTTP-09"""
    method, _, path = target.partition(" ")
    reply = server.raw(server.head(method, path))
    assert status_of(reply) == status
    assert body_of(reply)["error"]["code"]


def test_a_body_where_none_is_taken_is_refused_and_its_connection_closed(server: Server) -> None:
    """HTTP-09"""
    reply = server.raw(server.head("GET", "/health", JSON, "Content-Length: 2") + b"{}")
    assert status_of(reply) == 400
    assert status_of(server.raw(server.head("GET", "/run", JSON, "Content-Length: 2") + b"{}")) == 405


@pytest.mark.parametrize(
    "lines",
    [
        ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
        (
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZQ==",
            "Sec-WebSocket-Version: 13",
        ),
    ],
)
def test_no_upgrade_is_ever_agreed_to(server: Server, lines: tuple[str, ...]) -> None:
    """HTTP-09, HTTP-18"""
    request = "\r\n".join(
        ["GET /health HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Authorization: Bearer {server.key}", *lines]
    )
    with server.connect() as sock:
        sock.sendall(request.encode() + b"\r\n\r\n")
        assert status_of(sock.recv(65536)) == 200
        sock.sendall(server.head("GET", "/health"))
        reply = until_closed(sock)
    assert b"101" not in reply.split(b"\r\n")[0]
    assert status_of(reply) == 200


@pytest.mark.parametrize(
    "host",
    [
        "attacker.example",
        "127.0.0.1.attacker.example",
        "localhost:1234@evil",
        "localhost.",
        "",
        "[::2]",
        "127.0.0.1:abc",
        "127.1",
        "2130706433",
    ],
)
def test_a_request_for_another_host_is_misdirected(server: Server, host: str) -> None:
    """HTTP-10"""
    reply = server.raw(server.head("GET", "/health", host=host))
    assert status_of(reply) in (421, 400)
    assert body_of(reply)["error"]["code"] in ("misdirected_request", "invalid_request")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.0.0.1:1", "[::1]:8321"])
def test_loopback_names_are_ours_in_any_case_and_with_any_port(server: Server, host: str) -> None:
    """HTTP-10"""
    assert status_of(server.raw(server.head("GET", "/health", host=host))) == 200


@pytest.mark.parametrize(
    "path",
    [
        "/a/../run",
        "/%2e%2e%2frun",
        "//run",
        "/run/",
        "/RUN",
        "/run%00",
        "/run;x",
        "/./run",
        "/%2Frun",
        "/r%75n",
        "/run%20",
        "/run%",
        "/run%zz",
        "/run\\x",
        "/runs/../run",
        "/runs/..%2f..%2fetc%2fpasswd",
        "/run#x",
    ],
)
def test_a_path_has_one_spelling(server: Server, path: str) -> None:
    """HTTP-11"""
    reply = post(server, b'{"code":"1+1"}', JSON, path=path)
    assert status_of(reply) == 404
    assert body_of(reply)["error"]["code"] == "not_found"


def test_headers_that_are_too_many_or_too_large_are_refused(server: Server) -> None:
    """HTTP-12"""
    assert status_of(server.raw(server.head("GET", "/health", *[f"X-{n}: 1" for n in range(1000)]))) == 431
    assert status_of(server.raw(server.head("GET", "/health", "X: " + "a" * 20_000))) == 431
    assert status_of(server.raw(b"GET /" + b"a" * 17_000 + b" HTTP/1.1\r\n")) == 414


@pytest.mark.parametrize(
    "query", ["&".join(f"a{n}=1" for n in range(1000)), "a[b][c]=1", "limit=1&limit=2", "status=%ff"]
)
def test_a_query_that_is_not_ours_is_refused_by_name(server: Server, query: str) -> None:
    """HTTP-12"""
    reply = server.ask("GET", f"/runs?{query}")
    assert reply.status == 400
    assert reply.code == "invalid_request"


def test_text_of_a_client_never_becomes_a_header(server: Server) -> None:
    """HTTP-20"""
    reply = server.raw(server.head("GET", "/tools/a%0d%0aSet-Cookie:%20x=1"))
    assert status_of(reply) == 404
    assert b"\r\nset-cookie" not in reply.lower()


def test_a_client_that_waits_for_100_gets_it(server: Server) -> None:
    """HTTP-23"""
    body = b'{"code":"1+1"}'
    with server.connect() as sock:
        sock.sendall(server.head("POST", "/run", JSON, f"Content-Length: {len(body)}", "Expect: 100-continue"))
        assert sock.recv(1024).startswith(b"HTTP/1.1 100")
        sock.sendall(body)
        assert status_of(until_closed(sock)) == 200


def test_a_client_that_waits_for_100_with_too_large_a_body_is_told_at_once(server: Server) -> None:
    """HTTP-23"""
    reply = server.raw(server.head("POST", "/run", JSON, f"Content-Length: {2**30}", "Expect: 100-continue"))
    assert status_of(reply) == 413


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=600))
def test_garbage_never_ends_the_server(server: Server, data: bytes) -> None:
    """HTTP-33"""
    with server.connect() as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        reply = until_closed(sock)
    assert reply == b"" or 400 <= status_of(reply) <= 505
    assert server.process.poll() is None


_PIECES = st.sampled_from(
    b"GET |POST |/run|/runs/|%2e| HTTP/1.1|\r\n|\r\n\r\n|\n|Host: 127.0.0.1|Content-Length: |"
    b"Transfer-Encoding: chunked|5|0|{}|\0|: |Expect: 100-continue|Connection: close|Upgrade: h2c".split(b"|")
)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_PIECES, max_size=25))
def test_nearly_http_never_ends_the_server(server: Server, pieces: list[bytes]) -> None:
    """HTTP-33"""
    with server.connect() as sock:
        sock.sendall(b"".join(pieces))
        sock.shutdown(socket.SHUT_WR)
        reply = until_closed(sock)
    assert b" 500 " not in reply
    assert b" 101 " not in reply
    assert server.process.poll() is None
