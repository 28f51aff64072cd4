"""Accounts over HTTP and by command, beside each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.blackbox.command import cli
from tests.blackbox.server import serving
from tests.blackbox.upstream import petstore_running

KEY = "special-key"


def document(base: str) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads((Path(__file__).parents[2] / "examples/petstore/openapi.json").read_text())
    return spec | {"servers": [{"url": base}]}


def test_an_account_is_the_same_on_every_door(home: Path, tmp_path: Path) -> None:
    spec = tmp_path / "petstore.json"
    with petstore_running() as base, serving(home, env={"SEC_PET": KEY}) as server:
        spec.write_text(json.dumps(document(base)))
        remote = {"EXECUTOR_URL": server.url, "EXECUTOR_KEY": server.key, "SEC_PET": KEY}
        adding = ("add", "openapi", str(spec), "--name", "pets", "--allow-private", "127.0.0.1")
        assert cli(home, *adding, env=remote).returncode == 0
        assert cli(home, "secret", "set", "pet", input=KEY, env=remote).returncode == 0
        connected = cli(home, "connect", "pets", "--connection", "a", "--header", "api_key=local:pet", env=remote)
        assert connected.returncode == 0, connected.stderr
        # What a reference names here is sent and kept there: the server's environment is not ours.
        carried = cli(home, "connect", "pets", "--connection", "b", "--header", "api_key=env:SEC_PET", env=remote)
        assert carried.returncode == 0, carried.stderr
        body = {"integration": "pets", "scope": "user", "connection": "c", "probe": "store.getInventory"}
        auth = [{"type": "header", "name": "api_key", "secret": "local:other"}]
        assert server.ask("PUT", "/secrets/other?scope=user", {"value": "wrong-key-value"}).status == 204
        assert server.ask("POST", "/connections", body | {"auth": auth}).status == 201

        listed = json.loads(cli(home, "connections", "list", "--json", env=remote).stdout)
        assert listed == server.ask("GET", "/connections").json
        assert [one["path"] for one in listed["connections"]] == [
            "pets.org.a",
            "pets.org.b",
            "pets.org.main",
            "pets.user.c",
        ]
        assert listed["connections"][1]["secrets"] == ["local:pets-b"]
        for name in ("pets.org.a", "pets.org.b"):
            checked = cli(home, "connections", "check", name, "--json", env=remote)
            assert (checked.returncode, json.loads(checked.stdout)["status"]) == (0, "ok"), checked.stdout
        checked = cli(home, "connections", "check", "pets.user.c", env=remote)
        assert (checked.returncode, "credential_rejected" in checked.stdout) == (1, True)
        assert server.ask("POST", "/connections/pets/user/c/check").json["status"] == "credential_rejected"
        assert json.loads(cli(home, "secret", "rotate-key", "--json", env=remote).stdout)["damaged"] == []
        assert server.ask("POST", "/connections/pets/org/a/check").json["status"] == "ok"
        removed = {name: cli(home, "connections", "remove", f"pets.{name}", env=remote) for name in ("user.c", "org.b")}
        assert [done.returncode for done in removed.values()] == [0, 0], removed
        assert "executor secret remove pets-b" in removed["org.b"].stderr
        assert server.ask("GET", "/connections/pets/user/c").status == 404
        missing = server.ask("POST", "/tools/pets.user.c.store.getInventory/call", {})
        assert (missing.status, missing.code) == (409, "connection_missing")


def test_a_key_names_local_secrets_and_what_the_operator_allows_and_nothing_else(home: Path) -> None:
    allowed = {"EXECUTOR_HTTP_REFERENCES": "env:SHARED_*,vault:agents/*"}
    with serving(home, env=allowed) as server:
        api = {"kind": "http", "name": "web", "allow": ["https://api.example.com"]}
        refused: list[dict[str, Any]] = [
            {"secret": "env:PATH"},
            {"secret": "file:/etc/passwd"},
            {"secret": "keychain:a/b"},
            {"secret": "vault:admin/x#f"},
            {"auth": {"type": "bearer", "secret": "env:PATH"}},
            {"auth": {"type": "basic", "username_secret": "env:PATH"}, "secret": "local:x"},
            {"auth": [{"type": "bearer", "secret": "local:x"}, {"type": "query", "name": "k", "secret": "env:PATH"}]},
        ]
        for options in refused:
            reply = server.ask("POST", "/integrations", api | options)
            assert (reply.status, reply.code) == (403, "forbidden"), options
        for secret in ("vault:agents/../admin/x#f", "env:", "nope:x", "ENV:PATH"):
            assert server.ask("POST", "/integrations", api | {"secret": secret}).status in (400, 403)
        assert server.ask("GET", "/integrations").json == {"integrations": []}
        for number, secret in enumerate(("local:x", "env:SHARED_TOKEN", "vault:agents/x#f")):
            added = server.ask("POST", "/integrations", api | {"name": f"web{number}", "secret": secret})
            assert added.status == 201, added.body


def test_a_token_in_the_place_of_its_reference_is_refused_and_not_repeated(home: Path) -> None:
    done = cli(home, "tools", "list", env={"EXECUTOR_VAULT_TOKEN": "hvs.cnry_0123456789abcdef"})
    assert done.returncode == 1
    assert "vault_token" in done.stderr
    assert "cnry" not in done.stderr
