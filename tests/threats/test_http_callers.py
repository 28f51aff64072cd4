"""The HTTP group of the threat catalogue: who is answered, keys, origins, and what a request may ask for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.blackbox.command import process
from tests.blackbox.server import Server, serving, status_of
from tests.threats.kit.invariants import settled


def test_every_failed_login_looks_the_same(home: Path) -> None:
    """HTTP-13"""
    with serving(home) as server:
        good = server.key
        replies = set()
        for lines in (
            (),
            ("Authorization:",),
            ("Authorization: Bearer",),
            ("Authorization: Bearer x",),
            ("Authorization: Basic dXNlcjpwYXNz",),
            (f"Authorization: Bearer {good}", f"Authorization: Bearer {good}"),
            (f"Authorization: Bearer {good} x",),
            (f"Authorization: Bearer {good[:-1]}",),
            (f"Authorization: Bearer {good}\u00e9",),
            (f"Authorization: {good}",),
            ("Authorization: Bearer exk_" + "a" * 10_000,),
        ):
            replies.add(_without_date(server.raw(server.head("GET", "/runs", *lines, key=False))))
        replies.add(_without_date(server.raw(server.head("GET", f"/runs?key={good}"))))
        replies.add(_without_date(server.raw(server.head("GET", "/nowhere", key=False))))
        assert len(replies) == 1
        assert status_of(replies.pop()) == 401


def _without_date(reply: bytes) -> bytes:
    return re.sub(rb"date: [^\r]*\r\n", b"", reply)


def test_wrong_keys_run_out_of_patience_and_right_ones_do_not(home: Path) -> None:
    """HTTP-16"""
    with serving(home) as server:
        wrong = [server.ask("GET", "/runs", key="exk_" + "A" * 43).status for _ in range(200)]
        assert wrong[0] == 401
        assert wrong.count(429) > 100
        reply = server.ask("GET", "/runs", key="exk_" + "A" * 43)
        assert reply.status == 429
        assert int(reply.headers["retry-after"]) >= 1
        assert server.ask("GET", "/runs").status == 200


@pytest.mark.parametrize("origin", ["https://evil.test", "null", "http://localhost.evil.test", "http://127.0.0.1:1"])
def test_another_origin_is_refused_and_never_reflected(server: Server, origin: str) -> None:
    """HTTP-17, HTTP-18"""
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    for method in ("OPTIONS", "GET"):
        reply = server.ask(method, "/runs", headers=asked)
        assert reply.status == 403
        assert not any(name.startswith("access-control") for name in reply.headers)


def test_our_own_origin_is_accepted(server: Server) -> None:
    """HTTP-17"""
    assert server.ask("GET", "/runs", headers={"Origin": server.url}).status == 200


def test_no_state_changes_by_get(server: Server) -> None:
    """HTTP-18"""
    for path in ("/run", "/runs/x/cancel", "/tools/a.b.c.d/call", "/policies/explain"):
        assert server.ask("GET", path).status == 405


@pytest.mark.parametrize(
    "run_id", ["1%20OR%201=1", "..", "%00", "a" * 4000, "%D9%A1%D9%A2", "'--", "run_0000", "%F0%9F%98%80"]
)
def test_a_run_id_that_is_none_is_not_found(server: Server, run_id: str) -> None:
    """HTTP-25"""
    for path in (f"/runs/{run_id}", f"/runs/{run_id}/events", f"/runs/{run_id}/result"):
        reply = server.ask("GET", path)
        assert reply.status == 404
        assert reply.code == "not_found"


@pytest.mark.parametrize("field", ["tenant_id", "status", "trusted", "egress", "limits", "principal", "run_id"])
def test_fields_that_are_not_ours_are_refused_by_name(server: Server, field: str) -> None:
    """HTTP-27"""
    reply = server.ask("POST", "/run", {"code": "1", field: ["*"]})
    assert reply.status == 400
    assert field in reply.json["error"]["message"]


@pytest.mark.parametrize("language", ["python\n", "../../x", "JS", None, ["javascript"], 1, ""])
def test_a_language_is_one_of_three_words(server: Server, language: object) -> None:
    """HTTP-28"""
    assert server.ask("POST", "/run", {"code": "1", "language": language}).status == 400


@pytest.mark.parametrize("path", ["/docs", "/.env", "/debug", "/metrics", "/openapi.json", "/run", "/"])
def test_nothing_but_health_is_said_without_a_key(server: Server, path: str) -> None:
    """HTTP-33"""
    reply = server.ask("GET", path, key=None)
    assert reply.status in (401, 429)
    assert "server" not in reply.headers


def test_health_without_a_key_is_brief(server: Server) -> None:
    """HTTP-33"""
    reply = server.ask("GET", "/health", key=None)
    assert set(reply.json) == {"status", "isolation", "protocolVersion", "implementationVersion"}
    assert set(reply.json["isolation"]) == {"level"}
    assert set(server.ask("GET", "/health").json) > {"status", "isolation"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_without_keys_only_loopback_is_bound(home: Path, host: str) -> None:
    """HTTP-34"""

    done = process(home, "serve", "--port", "0", "--host", host, "--no-auth")
    assert done.returncode == 2
    assert "loopback" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "budgets", [{"fuel": -1}, {"wall_ms": "5s"}, {"fuel": None}, {"wall_ms": 0}, {"nope": 1}, [1], "x"]
)
def test_a_budget_that_is_no_amount_is_refused(server: Server, budgets: object) -> None:
    """BUD-29"""
    assert server.ask("POST", "/run", {"code": "1", "budgets": budgets}).status == 400


def test_a_budget_above_the_ceiling_becomes_the_ceiling(server: Server) -> None:
    """BUD-29"""
    answer = server.run("1+1", budgets={"fuel": 10**18})
    record = server.ask("GET", f"/runs/{answer['run_id']}").json
    assert record["budgets"]["fuel"] == 10**12


def test_what_belongs_to_nobody_is_not_found(server: Server) -> None:
    """POL-27"""
    for method, path in (
        ("GET", "/runs/run_0"),
        ("GET", "/tools/a.org.main.b"),
        ("GET", "/integrations/nope"),
        ("DELETE", "/integrations/nope"),
        ("DELETE", "/policies/pol_0000000000000000"),
        ("DELETE", "/secrets/nope"),
    ):
        reply = server.ask(method, path)
        assert reply.status == 404, (method, path, reply.body)
        assert reply.json["error"]["code"] in ("not_found", "tool_not_found")


def test_no_key_is_ever_logged(home: Path) -> None:
    """SEC-26"""
    with serving(home) as server:
        server.run("1+1")
        server.ask("GET", f"/runs?key={server.key}")
        server.ask("GET", f"/nowhere?access_token={server.key}")
        server.ask("POST", "/run", b"{")
        assert server.key not in server.ask("GET", "/metrics").body.decode()
    assert server.key not in server.logged()
    for file in home.rglob("*"):
        if file.is_file():
            assert server.key.encode() not in file.read_bytes(), file


HOGS = (
    "for (;;) {}",
    "const kept = []; for (;;) { kept.push(new Array(1000)); if (kept.length > 500) kept.length = 0 }",
    "for (;;) { try { (function f() { f() })() } catch {} }",
    "for (;;) await tools.call('no.such.one.tool', {}).catch(() => {})",
    "for (;;) console.log('x'.repeat(1000))",
    "for (;;) await Promise.resolve()",
    "await new Promise(() => setTimeout(() => {}, 1e9))",
)


def test_benign_runs_end_while_hostile_ones_still_run(server: Server) -> None:
    """G9 of the catalogue, by the order of what ends and not by a clock: nobody waits for another run to end."""

    def status(run: str) -> str:
        found: str = server.ask("GET", f"/runs/{run}").json["status"]
        return found

    budgets = {"fuel": 10**13, "wall_ms": 120_000, "bridge_calls": 1000}
    started = [server.run(code, budgets=budgets, wait=False)["run_id"] for code in HOGS]
    try:
        settled(lambda: {status(one) for one in started} <= {"running", "failed"}, "a run has not begun")
        for number in range(3):
            assert server.run("input * 2", input=number)["result"] == number * 2
        # The others may have come to a budget of theirs meanwhile; these have none that is near.
        assert [status(started[at]) for at in (0, 5, 6)] == ["running"] * 3
    finally:
        for one in started:
            server.ask("POST", f"/runs/{one}/cancel", {})
