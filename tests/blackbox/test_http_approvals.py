"""Approvals through the doors: HTTP, the command line, a terminal, a server that is killed meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.petstore import server as petstore
from tests.blackbox.command import cli
from tests.blackbox.server import COMMAND, Server, environment, serving
from tests.blackbox.upstream import petstore_running

ORDER = "(await tools.pets.org.main.store.placeOrder({body: {petId: 1, quantity: 1}})).petId"


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    with petstore_running() as url:
        yield url


def add_shop(server: Server, shop: str) -> None:
    document = json.loads(Path(petstore.DOCUMENT_PATH).read_text())
    body = {
        "kind": "openapi",
        "name": "pets",
        "source": document,
        "base_url": shop,
        "allow_private": ["127.0.0.1"],
    }
    added = server.ask("POST", "/integrations", body)
    assert added.status == 201, added.body


@pytest.fixture(scope="module")
def stocked(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the pet store added."""
    home = tmp_path_factory.mktemp("home")
    with serving(home) as server:
        add_shop(server, shop)
    return home


def test_a_run_waits_is_answered_and_goes_on_after_kill_9(shop: str, tmp_path: Path) -> None:
    """POL-29, PER-01"""
    with serving(tmp_path) as server:
        add_shop(server, shop)
        waiting = server.run(ORDER)
        (asked,) = waiting["interactions"]
        assert (waiting["status"], asked["arguments"]) == ("waiting", {"body": {"petId": 1, "quantity": 1}})
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    with serving(tmp_path) as server:
        run_id = waiting["run_id"]
        assert server.ask("GET", f"/runs/{run_id}").json["interactions"] == [asked]
        listed = server.ask("GET", "/runs?status=waiting").json["runs"]
        assert [run["run_id"] for run in listed] == [run_id]
        path = f"/runs/{run_id}/resume"
        answer = {"interaction": asked["id"], "action": "approve"}
        wrong = server.ask("POST", path, answer | {"interaction": "int_none"})
        assert (wrong.status, wrong.code) == (404, "not_found")
        assert server.ask("POST", path, answer | {"action": "yes"}).status == 400
        done = server.ask("POST", path, answer)
        assert (done.status, done.json["result"]) == (200, 1), done.body
        assert server.ask("POST", path, answer).json["result"] == 1
        refused = server.ask("POST", path, answer | {"action": "deny"})
        assert (refused.status, refused.code) == (409, "already_decided")


def test_the_command_line_answers_what_waits_in_a_home(stocked: Path, tmp_path: Path) -> None:
    script = tmp_path / "order.js"
    script.write_text(f"try {{ {ORDER} }} catch (e) {{ e.message }}")
    asked = cli(stocked, "run", str(script))
    assert (asked.returncode, "executor runs resume run_" in asked.stderr) == (3, True), asked.stderr
    listed = json.loads(cli(stocked, "runs", "list", "--status", "waiting", "--json").stdout)
    run_id = listed["runs"][0]["run_id"]
    nothing = cli(stocked, "runs", "resume", run_id)
    assert (nothing.returncode, "--approve" in nothing.stderr) == (2, True)
    denied = cli(stocked, "runs", "resume", run_id, "--deny", "--reason", "not today", "--json")
    assert denied.returncode == 0, denied.stderr
    assert json.loads(denied.stdout)["result"] == "A person denied this call: not today."
    watched = cli(stocked, "runs", "watch", run_id, "--json")
    events = [json.loads(line) for line in watched.stdout.splitlines()]
    assert (watched.returncode, events[-1]["type"], events[-1]["data"]["status"]) == (0, "result", "completed")
    replayed = cli(stocked, "runs", "replay", run_id)
    assert (replayed.returncode, "the same calls, fuel and result" in replayed.stderr) == (0, True), replayed.stderr
    assert "no answer" in cli(stocked, "runs", "resume", run_id, "--approve").stderr


def test_at_a_terminal_the_person_there_is_asked(stocked: Path, tmp_path: Path) -> None:
    """POL-16: what a terminal would obey is shown, not obeyed."""
    script = tmp_path / "order.js"
    script.write_text(ORDER.replace("petId: 1", "petId: 1, shipDate: '\\u001b[2J\\u202eevil'"))
    terminal, theirs = pty.openpty()
    command = [*COMMAND, "run", str(script), "--home", str(stocked)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment())
    os.close(theirs)
    said = b""
    while b"ancel the run: " not in said:
        said += os.read(terminal, 65536)
    os.write(terminal, b"what\ny\n")
    with contextlib.suppress(OSError):
        # An error when the other end is closed: the command has ended.
        while part := os.read(terminal, 65536):
            said += part
    os.close(terminal)
    assert process.wait() == 0, said.decode()
    assert b"pets.org.main.store.placeOrder needs your approval" in said
    assert b"\\u{202e}evil" in said
    assert "\u202e".encode() not in said
    assert b"\x1b[2J" not in said
    assert b"completed" in said


CALL = "pets.org.main.store.placeOrder"


def test_a_direct_call_asks_where_it_may(shop: str, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        add_shop(server, shop)
        path, body = f"/tools/{CALL}/call", {"args": {"body": {"petId": 3, "quantity": 1}}}
        refused = server.ask("POST", path, body)
        assert (refused.status, refused.code) == (403, "approval_required")
        asked = server.ask("POST", path, body | {"ask": True, "meta": True})
        assert (asked.status, asked.json["status"]) == (202, "waiting")
        (interaction,) = asked.json["interactions"]
        assert (interaction["path"], interaction["arguments"]) == (CALL, body["args"])
        answer = {"interaction": interaction["id"], "action": "approve"}
        done = server.ask("POST", asked.headers["location"] + "/resume", answer)
        assert (done.json["result"]["value"]["petId"], done.json["result"]["http"]["status"]) == (3, 200)
        order = {"orderId": done.json["result"]["value"]["id"]}
        read = server.ask("POST", "/tools/pets.org.main.store.getOrderById/call", {"args": order, "ask": True})
        assert (read.status, set(read.json)) == (200, {"value"})
        # The same through the command line, which goes through the server that holds the home.
        said = cli(tmp_path, "call", CALL, json.dumps(body["args"]), "--ask")
        assert (said.returncode, "executor runs resume run_" in said.stderr) == (3, True), said.stderr
        assert cli(tmp_path, "call", CALL, json.dumps(body["args"])).returncode == 1
