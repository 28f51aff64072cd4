"""Keys that may do less: what each access permits, what a toolkit leaves; a refusal is typed and does nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.command import cli
from tests.blackbox.server import Server, serving


class Keys(dict[str, str]):
    """The keys of the tests by name. They are made before the server starts: a running one takes a second to know."""

    def make(self, home: Path, name: str, *options: str) -> None:
        done = cli(home, "key", "create", name, *options, "--json")
        assert done.returncode == 0, done.stderr
        self[name] = json.loads(done.stdout)["key"]


KEYS = Keys()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("access")
    for toolkit, pattern in (("none", "nothing.*"), ("passing", "*")):
        assert cli(home, "toolkit", "create", toolkit, "--tools", pattern).returncode == 0
        KEYS.make(home, f"tied-{toolkit}", "--toolkit", toolkit)
    for access in PERMITTED:
        KEYS.make(home, access, "--access", access)
    with serving(home) as running:
        added = {"kind": "http", "name": "web", "allow": ["GET https://93.184.216.34"]}
        assert running.ask("POST", "/integrations", added).status == 201
        yield running


REQUESTS = {
    "POST /run": ("run", {"code": "1"}),
    "POST /tools/web.org.main.http.get/call": ("run", {"args": {}}),
    "GET /tools": ("", None),
    "GET /runs": ("", None),
    "GET /openapi.json": ("", None),
    "GET /health": ("", None),
    "GET /info": ("", None),
    "GET /integrations": ("read", None),
    "GET /secrets": ("read", None),
    "GET /connections": ("read", None),
    "GET /connections/web/org/main": ("read", None),
    "POST /connections/web/org/main/check": ("admin", None),
    "POST /runs/run_0/replay": ("run|admin", None),
    "POST /mcp": ("run", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    "GET /policies": ("read", None),
    "GET /toolkits": ("read", None),
    "GET /metrics": ("read", None),
    "POST /policies/explain": ("read", {"path": "web.org.main.http.get"}),
    "POST /policies": ("admin", {"target": "*", "effect": "perhaps"}),
    "POST /integrations": ("admin", {}),
    "POST /connections": ("admin", {}),
    "POST /toolkits": ("admin", {}),
    "PUT /toolkits/none": ("admin", {"tools": []}),
    "DELETE /toolkits/gone": ("admin", None),
    "DELETE /integrations/gone": ("admin", None),
    "PUT /secrets/new": ("admin", {"value": "short"}),
    "DELETE /policies/gone": ("admin", None),
}
PERMITTED = {
    "full": {"", "run", "read", "admin"},
    "run": {"", "run"},
    "read": {"", "read"},
    "admin": {"", "read", "admin"},
}


@pytest.mark.parametrize("access", list(PERMITTED))
def test_a_key_may_do_what_its_access_permits_and_nothing_else(server: Server, access: str) -> None:
    key = KEYS[access]
    for request, (need, body) in REQUESTS.items():
        reply = server.ask(*request.split(), body, key=key)
        if set(need.split("|")) & PERMITTED[access]:
            assert reply.status != 403 or reply.code != "forbidden", request
        else:
            assert (reply.status, reply.code) == (403, "forbidden"), request
            assert access in reply.json["error"]["message"]


def test_a_key_that_only_runs_sees_its_own_runs_alone(server: Server) -> None:
    key = KEYS["run"]
    theirs = server.run("1")["run_id"]
    mine = server.ask("POST", "/run", {"code": "2"}, key=key).json["run_id"]
    seen = [run["run_id"] for run in server.ask("GET", "/runs", key=key).json["runs"]]
    assert seen[0] == mine
    assert theirs not in seen
    unknown = server.ask("GET", "/runs/run_" + "0" * 32, key=key)
    for method, suffix in (("GET", ""), ("GET", "/events"), ("GET", "/result"), ("POST", "/cancel")):
        reply = server.ask(method, f"/runs/{theirs}{suffix}", key=key)
        assert (reply.status, reply.body) == (404, unknown.body), suffix
        assert server.ask(method, f"/runs/{mine}{suffix}", key=key).status == 200
    assert server.ask("GET", f"/runs/{mine}").status == 200
    assert "runs" not in server.ask("GET", "/health", key=key).json


def test_a_key_tied_to_a_toolkit_finds_and_calls_what_that_holds(server: Server) -> None:
    key = KEYS["tied-none"]
    assert server.ask("GET", "/tools").json["total"] > 0
    assert server.ask("GET", "/tools", key=key).json["total"] == 0
    assert server.ask("GET", "/tools?query=http", key=key).json["total"] == 0
    path = "/tools/web.org.main.http.get"
    assert server.ask("GET", path).status == 200
    assert server.ask("GET", path, key=key).code == "tool_not_found"
    assert server.ask("POST", path + "/call", {"args": {}}, key=key).code == "tool_not_found"
    answer = server.ask("POST", "/run", {"code": "(await tools.search('http')).total"}, key=key).json
    assert answer["result"] == 0
    server.ask("POST", "/toolkits", {"name": "all", "tools": ["*"]})
    wide = {"code": "(await tools.search('http')).total", "toolkit": "all"}
    assert server.ask("POST", "/run", wide).json["result"] > 0
    assert server.ask("POST", "/run", wide, key=key).json["result"] == 0


def test_a_key_whose_toolkit_is_gone_can_do_nothing(server: Server) -> None:
    key = KEYS["tied-passing"]
    assert server.ask("POST", "/run", {"code": "1"}, key=key).json["result"] == 1
    assert server.ask("DELETE", "/toolkits/passing").status == 204
    for reply in (server.ask("POST", "/run", {"code": "1"}, key=key), server.ask("GET", "/tools", key=key)):
        assert (reply.status, reply.code) == (400, "invalid_request")


def test_a_toolkit_that_does_not_exist_is_refused_and_nothing_runs(server: Server) -> None:
    before = server.ask("GET", "/runs").json["runs"][0]["run_id"]
    for method, path, body in (
        ("POST", "/run", {"code": "1", "toolkit": "nope"}),
        ("POST", "/run", {"code": "1", "toolkit": "nope", "wait": False}),
        ("GET", "/tools?toolkit=nope", None),
        ("POST", "/policies/explain", {"path": "web.org.main.http.get", "toolkit": "nope"}),
    ):
        reply = server.ask(method, path, body)
        assert (reply.status, reply.code) == (400, "invalid_request"), path
        assert "no toolkit 'nope'" in reply.json["error"]["message"]
    assert server.ask("GET", "/runs").json["runs"][0]["run_id"] == before


def test_a_key_with_an_access_or_toolkit_that_makes_no_sense_is_not_made(server: Server) -> None:
    for options in (("--toolkit", "nope"), ("--toolkit", "none", "--access", "full"), ("--access", "root")):
        done = cli(server.home, "key", "create", "odd", *options)
        assert done.returncode != 0
        assert done.stdout == ""


def test_toolkits_are_made_shown_changed_and_removed_over_http(server: Server) -> None:
    body = {"name": "web", "tools": ["web.*"], "description": "d", "rules": [{"pattern": "*", "effect": "block"}]}
    assert server.ask("POST", "/toolkits", body).status == 201
    assert server.ask("POST", "/toolkits", body).status == 409
    assert server.ask("GET", "/toolkits/web").json["holds"] > 0
    assert server.ask("PUT", "/toolkits/web", {"rules": []}).json["rules"] == []
    bad = {"rules": [{"pattern": "*", "effect": "approve"}]}
    assert server.ask("PUT", "/toolkits/web", bad).status == 400
    assert server.ask("PUT", "/toolkits/web", {"tools": ["web.[a]"]}).status == 400
    assert "web" in [each["name"] for each in server.ask("GET", "/toolkits").json["toolkits"]]
    assert server.ask("DELETE", "/toolkits/web").status == 204
    assert server.ask("GET", "/toolkits/web").status == 404


def test_the_command_line_does_the_same(server: Server) -> None:
    where = ("--url", server.url, "--key", server.key)
    made = cli(server.home, "toolkit", "create", "cli", "--tools", "web.*", "a.*", "--rule", "web.*=block", *where)
    assert "it holds" in made.stdout, made.stderr
    assert "web.*=block" in cli(server.home, "toolkit", "list", *where).stdout
    told = cli(server.home, "policy", "explain", "web.org.main.http.get", "--toolkit", "cli", *where)
    assert "toolkit cli  block" in told.stdout, told.stderr
    listed = cli(server.home, "tools", "list", "--toolkit", "cli", "--json", *where)
    assert json.loads(listed.stdout)["total"] == 0
    shown = cli(server.home, "toolkit", "update", "cli", "--no-rules", "--json", *where)
    assert json.loads(shown.stdout)["rules"] == []
    assert cli(server.home, "toolkit", "remove", "cli", *where).returncode == 0
