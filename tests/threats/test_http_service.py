"""The HTTP group of the threat catalogue: a server under load, short of descriptors, hung up on and stopped."""

from __future__ import annotations

import json
import resource
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from tests.blackbox.server import JSON, Server, body_of, serving, status_of, until_closed


def test_a_server_without_spare_descriptors_recovers(home: Path) -> None:
    """HTTP-32"""

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (192, 192))

    with serving(home, preexec=few) as server:
        crowd = []
        try:
            for _ in range(400):
                crowd.append(server.connect(5))
        except OSError:
            pass
        for sock in crowd:
            sock.close()
        assert server.run("1+1")["result"] == 2


def test_a_client_that_hangs_up_cancels_its_run(home: Path) -> None:
    """BUD-28"""
    with serving(home) as server:
        for hang_up in (_close, _reset):
            body = b'{"code":"await new Promise(r => setTimeout(r, 1e6)); for(;;);","labels":{"test":"%s"}}'
            body %= hang_up.__name__.encode()
            with server.connect() as sock:
                sock.sendall(server.head("POST", "/run", JSON, f"Content-Length: {len(body)}") + body)
                run_id = _running(server, hang_up.__name__)
                hang_up(sock)
            record = _ended(server, run_id)
            assert record["status"] == "cancelled"
            assert record["error"]["code"] == "cancelled"


def _close(sock: socket.socket) -> None:
    sock.close()


def _reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    sock.close()


def _running(server: Server, label: str) -> str:
    """The id of the run with that label, once it runs."""
    while True:
        found = server.ask("GET", f"/runs?label=test={label}").json["runs"]
        if found and found[0]["status"] in ("running", "waiting"):
            return str(found[0]["run_id"])


def _ended(server: Server, run_id: str) -> dict[str, object]:
    """The run's record once it has ended, waited for on its event stream."""
    assert server.ask("GET", f"/runs/{run_id}/events").status == 200
    record: dict[str, object] = server.ask("GET", f"/runs/{run_id}").json
    return record


def test_two_thousand_runs_at_once_are_run_or_told_to_come_back(home: Path) -> None:
    """HTTP-30: nobody is left without an answer, and whoever was refused is told when to come back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    body = b'{"code":"1+1"}'
    crowd = []
    try:
        with serving(home) as server:
            request = server.head("POST", "/run", JSON, f"Content-Length: {len(body)}") + body
            for _ in range(2000):
                crowd.append(server.connect(60))
                crowd[-1].sendall(request)
            replies = [until_closed(sock) for sock in crowd]
            statuses = [status_of(reply) for reply in replies]
            assert set(statuses) <= {200, 503}
            assert statuses.count(200) >= 100
            for reply in replies:
                if status_of(reply) == 503:
                    assert b"retry-after: " in reply.lower()
                    assert body_of(reply)["error"]["code"] == "overloaded"
            assert server.run("1+1")["result"] == 2
    finally:
        for sock in crowd:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_under_load_ends_the_server_in_order(home: Path, number: signal.Signals) -> None:
    """HTTP-30: every client is answered, every run is recorded, and the server is gone within 10 seconds."""
    with serving(home) as server:
        answers: list[dict[str, object]] = []

        def ask() -> None:
            answers.append(server.run("await new Promise(r => setTimeout(r, 1e6))", labels={"test": "load"}))

        clients = [threading.Thread(target=ask) for _ in range(6)]
        for client in clients:
            client.start()
        while len([r for r in server.ask("GET", "/runs?label=test=load").json["runs"] if r["status"] != "queued"]) < 6:
            pass
        server.process.send_signal(number)
        assert server.process.wait(10) == 0
        for client in clients:
            client.join(5)
        assert [answer["status"] for answer in answers] == ["cancelled"] * 6
    with serving(home) as again:
        runs = again.ask("GET", "/runs?label=test=load").json["runs"]
        assert sorted(str(answer["run_id"]) for answer in answers) == sorted(run["run_id"] for run in runs)
        assert {run["status"] for run in runs} == {"cancelled"}


def test_a_second_signal_ends_the_server_on_the_spot(home: Path) -> None:
    """HTTP-30"""
    with serving(home) as server:
        client = threading.Thread(target=lambda: server.raw(_endless(server)), daemon=True)
        client.start()
        _running(server, "endless")
        server.process.send_signal(signal.SIGTERM)
        # Again and again, since the first two may arrive as one; not so fast that the server has time for nothing else.
        while True:
            try:
                server.process.wait(0.01)
                break
            except subprocess.TimeoutExpired:
                server.process.send_signal(signal.SIGTERM)
        assert server.process.returncode in (128 + signal.SIGTERM, -signal.SIGTERM)
        client.join(5)


def _endless(server: Server) -> bytes:
    body = json.dumps({"code": "await new Promise(r => setTimeout(r, 1e6))", "labels": {"test": "endless"}}).encode()
    return server.head("POST", "/run", JSON, f"Content-Length: {len(body)}") + body
