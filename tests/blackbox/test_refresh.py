"""Refresh, review and removal over HTTP and on the command line, against a document that changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.blackbox.command import cli
from tests.blackbox.server import Server, serving

OPS: dict[str, Any] = {"/pets": {"get": {"operationId": "pets.list", "responses": {"200": {"description": "fine"}}}}}


def _document(**more: str) -> dict[str, Any]:
    new = {f"/{name}": {method: {"operationId": name, "responses": {}}} for name, method in more.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "https://93.184.216.34"}],
        "paths": OPS | new,
    }


def test_a_refresh_is_shown_reviewed_and_undone_over_http(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server:
        added = server.ask("POST", "/integrations", {"kind": "openapi", "name": "pets", "source": _document()})
        assert added.status == 201, added.body
        for nothing in ({}, None):
            said = server.ask("POST", "/integrations/pets/refresh", nothing)
            assert (said.code, "read it again" in said.json["error"]["message"]) == ("invalid_request", True), said.body
        report = server.ask("POST", "/integrations/pets/refresh", {"source": _document(erase="delete")}).json
        assert [one["tool"] for one in report["added"]] == report["awaiting"] == ["erase"]
        assert server.ask("GET", "/tools").json["total"] == 1
        assert server.ask("GET", "/tools/pets.org.main.erase").json["status"] == "awaits review"
        refused = server.ask("POST", "/tools/pets.org.main.erase/call", {"args": {}})
        assert (refused.status, refused.code) == (403, "blocked")
        told = server.ask("GET", "/integrations/pets/review").json
        assert told["tools"][0]["destination"] == "DELETE https://93.184.216.34/erase"
        assert server.ask("POST", "/integrations/pets/review", {"accept": ["nothing"]}).code == "not_found"
        for bad in ({"accept": "some"}, {"accept": []}, {}):
            assert server.ask("POST", "/integrations/pets/review", bad).code == "invalid_request"
        assert server.ask("POST", "/integrations/pets/review", {"accept": "all"}).json["accepted"] == ["erase"]
        assert server.ask("GET", "/tools").json["total"] == 2
        assert server.ask("POST", "/integrations/pets/refresh", {"source": {"openapi": "3.1.0"}}).status == 422
        assert server.ask("GET", "/tools").json["total"] == 2
        assert server.ask("POST", "/integrations/pets/refresh", {"source": _document()}).json["removed"]
        gone = server.ask("GET", "/tools/pets.org.main.erase")
        assert gone.code == "tool_not_found"
        assert "a refresh removed it" in gone.json["error"]["message"]
        assert server.ask("POST", "/integrations/other/refresh", {"source": _document()}).code == "not_found"
        _remove(server)


def _remove(server: Server) -> None:
    again = {"kind": "openapi", "name": "pets", "source": _document()}
    server.ask("PUT", "/secrets/pets", {"value": "a secret of mine"})
    mine = {"integration": "pets", "scope": "user", "connection": "mine", "secret": "local:pets", "auth": "bearer"}
    assert server.ask("POST", "/connections", mine).status == 201
    assert server.ask("DELETE", "/integrations/pets").status == 204
    assert server.ask("GET", "/connections").json["connections"] == []
    assert server.ask("POST", "/integrations", again).status == 201
    kept = [one["path"] for one in server.ask("GET", "/connections").json["connections"]]
    assert kept == ["pets.org.main", "pets.user.mine"]
    assert server.ask("DELETE", "/integrations/pets?connections=true").status == 204
    assert server.ask("POST", "/integrations", again).status == 201
    assert [one["path"] for one in server.ask("GET", "/connections").json["connections"]] == ["pets.org.main"]


def test_the_command_line_reads_the_file_again_and_says_what_changed(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "pets.json"
    file.write_text(json.dumps(_document(old="get")))
    assert cli(home, "add", "openapi", str(file), "--name", "pets").returncode == 0
    file.write_text(json.dumps(_document(erase="delete", make="post")))
    done = cli(home, "refresh", "pets")
    assert done.returncode == 0, done.stderr
    assert "2 added, 1 removed, 0 changed, 1 as before" in done.stderr
    assert "+ erase  delete  DELETE https://93.184.216.34/erase" in done.stdout
    assert "- old" in done.stdout
    assert "executor review pets" in done.stderr
    assert "? erase  added  delete" in cli(home, "review", "pets").stdout
    refused = cli(home, "call", "pets.org.main.erase")
    assert "awaits review" in refused.stderr
    accepted = cli(home, "review", "pets", "--accept", "pets.org.main.erase", "--json")
    assert json.loads(accepted.stdout)["accepted"] == ["erase"]
    assert "let in 1 tool of pets" in cli(home, "review", "pets", "--accept", "all").stderr
    file.write_text("{")
    failed = cli(home, "refresh", "pets")
    assert failed.returncode == 1
    assert json.loads(cli(home, "tools", "list", "--json").stdout)["total"] == 3
    assert cli(home, "remove", "pets", "--connections").returncode == 0
    assert json.loads(cli(home, "tools", "list", "--json").stdout)["total"] == 0
