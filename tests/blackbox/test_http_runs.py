"""Runs over HTTP: start, look, follow, cancel, read back."""

from __future__ import annotations

import base64
import json
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.server import Server, serving, until_closed


def test_a_script_comes_back_with_result_and_usage(server: Server) -> None:
    answer = server.run("console.log('hi'); emit({ n: 1 }); input.a + 1", input={"a": 41})
    assert answer["status"] == "completed"
    assert answer["result"] == 42
    assert answer["logs"] == [{"level": "log", "text": "hi"}]
    assert answer["emitted"] == [{"n": 1}]
    assert answer["calls"] == []
    assert answer["usage"]["fuel"] > 0
    assert "error" not in answer


def test_a_script_that_fails_is_an_answer_not_an_http_error(server: Server) -> None:
    answer = server.run("const a = 1\nnull.x")
    assert answer["status"] == "failed"
    assert answer["error"]["code"] == "script_error"
    assert answer["error"]["line"] == 2
    assert "result" not in answer


def test_typescript_is_the_default_and_may_be_named(server: Server) -> None:
    assert server.run("const n: number = 2; n")["result"] == 2
    assert server.run("const n: number = 2; n", language="typescript")["result"] == 2
    assert server.run("1 + 1", language="javascript")["result"] == 2


def test_bytes_cross_the_json_door_both_ways(server: Server) -> None:
    sent = {"$bytes": base64.b64encode(bytes(range(256))).decode()}
    assert server.run("input", input=sent)["result"] == sent
    reply = server.ask("POST", "/run", {"code": "1", "input": {"$bytes": "%%%"}})
    assert (reply.status, reply.code) == (400, "invalid_request")


@pytest.mark.parametrize("value", [2**53 + 1, -(2**63), 2**64 - 1, 0.1, 1e300, "\u0000é😀", [], {"": None}, True])
def test_a_value_comes_back_exactly(server: Server, value: object) -> None:
    assert server.run("input", input=value)["result"] == value


def test_null_and_absent_input_are_null(server: Server) -> None:
    assert server.run("input === null || input === undefined")["result"] is True
    assert server.run("input === null", input=None)["result"] is True


def test_a_budget_that_ends_a_run_is_named_with_its_figures(server: Server) -> None:
    answer = server.run("for (;;);", budgets={"fuel": 10**7})
    assert answer["error"]["code"] == "fuel_exhausted"
    assert answer["limit"]["name"] == "fuel"
    assert answer["limit"]["used"] >= answer["limit"]["limit"] == 10**7


def test_a_run_that_is_not_waited_for_is_accepted_and_followed(server: Server) -> None:
    reply = server.ask("POST", "/run", {"code": "console.log('a'); 7", "wait": False})
    assert reply.status == 202
    run_id = reply.json["run_id"]
    assert reply.headers["location"] == f"/runs/{run_id}"
    events = list(_events(server, run_id))
    assert events[-1]["event"] == "result"
    assert events[-1]["data"]["result"] == 7
    assert server.ask("GET", f"/runs/{run_id}").json["result"] == 7


def test_events_have_ids_without_gaps_and_resume_after_one(server: Server) -> None:
    run_id = server.run("console.log(1); console.log(2); emit(3); 4")["run_id"]
    events = list(_events(server, run_id))
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert {"log", "emit", "status", "result"} <= {event["event"] for event in events}
    rest = list(_events(server, run_id, **{"Last-Event-ID": "2"}))
    assert rest == events[2:]
    assert list(_events(server, run_id, query="?after=2")) == rest
    after_the_end = list(_events(server, run_id, **{"Last-Event-ID": str(len(events))}))
    assert after_the_end == []


@pytest.mark.parametrize("last_id", ["x", "-1", "1e3", "", "9" * 400])
def test_an_event_id_that_is_none_is_refused(server: Server, last_id: str) -> None:
    run_id = server.run("1")["run_id"]
    reply = server.ask("GET", f"/runs/{run_id}/events", headers={"Last-Event-ID": last_id})
    assert (reply.status, reply.code) == (400, "invalid_request")


def test_head_of_events_ends(server: Server) -> None:
    run_id = server.run("1")["run_id"]
    reply = server.ask("HEAD", f"/runs/{run_id}/events")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/event-stream")


def _events(server: Server, run_id: str, query: str = "", **headers: str) -> Iterator[dict[str, object]]:
    reply = server.ask("GET", f"/runs/{run_id}/events{query}", headers=headers)
    assert reply.status == 200, reply.body
    for block in reply.body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            yield {"id": int(fields["id"]), "event": fields["event"], "data": json.loads(fields["data"])}


def test_a_run_is_cancelled_from_outside(server: Server) -> None:
    started = server.ask("POST", "/run", {"code": "await new Promise(r => setTimeout(r, 1e6))", "wait": False}).json
    cancelled = server.ask("POST", f"/runs/{started['run_id']}/cancel")
    assert cancelled.status == 200
    assert cancelled.json["status"] == "cancelled"
    assert cancelled.json["error"]["code"] == "cancelled"
    again = server.ask("POST", f"/runs/{started['run_id']}/cancel", {})
    assert again.json["status"] == "cancelled"


def test_a_follower_sees_the_cancellation(server: Server) -> None:
    started = server.ask("POST", "/run", {"code": "await new Promise(r => setTimeout(r, 1e6))", "wait": False}).json
    seen: list[dict[str, object]] = []
    follower = threading.Thread(target=lambda: seen.extend(_events(server, started["run_id"])))
    follower.start()
    server.ask("POST", f"/runs/{started['run_id']}/cancel")
    follower.join(20)
    assert seen[-1]["event"] == "result"


def test_a_follower_that_leaves_does_not_end_the_run(server: Server) -> None:
    code = "await new Promise(r => setTimeout(r, 1e6))"
    started = server.ask("POST", "/run", {"code": code, "wait": False}).json
    with server.connect() as sock:
        sock.sendall(server.head("GET", f"/runs/{started['run_id']}/events"))
        assert b"text/event-stream" in sock.recv(4096)
    assert server.ask("GET", f"/runs/{started['run_id']}").json["status"] in ("queued", "running", "waiting")
    server.ask("POST", f"/runs/{started['run_id']}/cancel")


def test_runs_are_listed_newest_first_by_page_status_and_label(server: Server) -> None:
    ids = [server.run(f"{n}", labels={"list": "me"})["run_id"] for n in range(5)]
    failed = server.run("throw 1", labels={"list": "me"})["run_id"]
    first = server.ask("GET", "/runs?label=list=me&limit=4").json
    rest = server.ask("GET", f"/runs?label=list=me&limit=4&cursor={first['next']}").json
    assert [run["run_id"] for run in first["runs"] + rest["runs"]] == [failed, *reversed(ids)]
    assert rest["next"] is None
    only = server.ask("GET", "/runs?label=list&status=failed").json["runs"]
    assert failed in [run["run_id"] for run in only]
    assert {run["status"] for run in only} == {"failed"}


def test_a_record_holds_what_was_asked(server: Server) -> None:
    answer = server.run("input.x", input={"x": 1}, labels={"a": "b"}, budgets={"wall_ms": 5000})
    record = server.ask("GET", f"/runs/{answer['run_id']}").json
    assert record["code"] == "input.x"
    assert record["input"] == {"x": 1}
    assert record["labels"] == {"a": "b"}
    assert record["budgets"]["wall_ms"] == 5000
    assert record["principal"].startswith("key_")
    assert record["created_at"] <= record["ended_at"]


def test_a_large_result_is_kept_and_read_in_parts(server: Server) -> None:
    answer = server.run("'x'.repeat(3_000_000)")
    assert answer["status"] == "completed"
    assert "result" not in answer
    path = f"/runs/{answer['run_id']}/result"
    whole = server.ask("GET", path)
    assert whole.status == 200
    assert whole.json == "x" * 3_000_000
    part = server.ask("GET", f"{path}?offset=1&length=2000000")
    assert part.status == 206
    assert part.body == b"x" * 2_000_000
    assert part.headers["content-range"] == "bytes 1-2000000/3000002"
    assert server.ask("GET", f"{path}?offset=3000001").body == b'"'
    for wrong in ("offset=-1", "length=0"):
        assert server.ask("GET", f"{path}?{wrong}").status == 400
    for beyond in ("offset=3000002", "offset=99999999999999"):
        assert server.ask("GET", f"{path}?{beyond}").status == 416
    assert server.ask("HEAD", path).headers["content-length"] == "3000002"


def test_the_result_of_a_failed_run_is_a_conflict(server: Server) -> None:
    run_id = server.run("throw 1")["run_id"]
    reply = server.ask("GET", f"/runs/{run_id}/result")
    assert (reply.status, reply.code) == (409, "conflict")


def test_an_idempotency_key_gives_the_same_run(server: Server) -> None:
    """POL-31"""
    key = {"Idempotency-Key": "once-" + "a" * 20}
    first = server.ask("POST", "/run", {"code": "Math.random()"}, headers=key)
    second = server.ask("POST", "/run", {"code": "Math.random()"}, headers=key)
    assert first.json["run_id"] == second.json["run_id"]
    assert first.json["result"] == second.json["result"]
    other = server.ask("POST", "/run", {"code": "2"}, headers=key)
    assert (other.status, other.code) == (409, "conflict")
    assert server.ask("POST", "/run", {"code": "2"}, headers={"Idempotency-Key": "a b"}).status == 400


def test_a_run_may_have_a_worker_of_its_own(server: Server) -> None:
    assert server.run("1 + 1", isolation="run")["result"] == 2


def test_keep_alive_serves_many_requests_on_one_connection(server: Server) -> None:
    body = b'{"code":"1+1"}'
    request = (
        f"POST /run HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    last = request.replace(b"Host:", b"Connection: close\r\nHost:")
    with server.connect() as sock:
        sock.sendall(request * 3 + last)
        replies = until_closed(sock)
    assert replies.count(b"HTTP/1.1 200") == 4
    assert replies.count(b'"result":2') == 4


def test_when_every_place_is_taken_the_next_is_told_when_to_come_back(home: Path) -> None:
    crowd = {"EXECUTOR_MAX_RUNNING": "1", "EXECUTOR_MAX_QUEUED": "1"}
    with serving(home, env=crowd) as server:
        slow = {"code": "await new Promise(r => setTimeout(r, 1e6))", "wait": False}
        taken = [server.ask("POST", "/run", slow) for _ in range(2)]
        assert [reply.status for reply in taken] == [202, 202]
        refused = server.ask("POST", "/run", {"code": "1"})
        assert (refused.status, refused.code) == (503, "overloaded")
        assert int(refused.headers["retry-after"]) >= 1
        assert len(server.ask("GET", "/runs").json["runs"]) == 2
        for reply in taken:
            server.ask("POST", f"/runs/{reply.json['run_id']}/cancel")
        assert server.run("1+1")["result"] == 2


def test_kill_9_loses_no_acknowledged_run(home: Path) -> None:
    with serving(home) as server:
        done = [server.run(f"{n}")["run_id"] for n in range(20)]
        slow = {"code": "await new Promise(r => setTimeout(r, 1e6))", "wait": False}
        going = [server.ask("POST", "/run", slow).json["run_id"] for _ in range(3)]
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(10)
    with serving(home) as again:
        for number, run_id in enumerate(done):
            record = again.ask("GET", f"/runs/{run_id}").json
            assert record["status"] == "completed"
            assert record["result"] == number
        for run_id in going:
            assert again.ask("GET", f"/runs/{run_id}").status == 200
        assert again.run("1+1")["result"] == 2


def test_a_client_that_reads_nothing_does_not_stop_others(server: Server) -> None:
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", server.port))
        run_id = server.run("'x'.repeat(5_000_000)")["run_id"]
        deaf.sendall(server.head("GET", f"/runs/{run_id}/result"))
        assert server.run("1+1")["result"] == 2


def test_a_run_is_replayed_from_its_journal(server: Server) -> None:
    answer = server.run("await tools.search('x'); console.log(1); Math.random()")
    reply = server.ask("POST", f"/runs/{answer['run_id']}/replay")
    assert reply.status == 200
    report = reply.json
    assert (report["same"], report["steps"], report["calls"]) == (True, 1, 1)
    assert report["fuel"] == {"recorded": answer["usage"]["fuel"], "replayed": answer["usage"]["fuel"]}
    assert server.ask("POST", "/runs/run_none/replay").status == 404


def test_a_range_beyond_the_end_is_not_satisfiable(server: Server) -> None:
    run_id = server.run("7")["run_id"]
    for offset in (1, 2, 10**9):
        reply = server.ask("GET", f"/runs/{run_id}/result?offset={offset}")
        assert (reply.status, reply.code) == (416, "range_not_satisfiable")
        assert reply.headers["content-range"] == "bytes */1"
    assert server.ask("GET", f"/runs/{run_id}/result?offset=0&length=5").body == b"7"


def test_a_handle_is_read_in_ranges_by_its_maker(server: Server) -> None:
    answer = server.run("'x'.repeat(5000)", budgets={"result_bytes": 1000})
    path = f"/results/{answer['result_ref']['id']}"
    assert server.ask("GET", path).body == b'"' + b"x" * 5000 + b'"'
    part = server.ask("GET", f"{path}?offset=1&length=3")
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"xxx", "bytes 1-3/5002")
    assert server.ask("GET", f"{path}?offset=5002").status == 416
    assert server.ask("GET", "/results/res_none").status == 404
