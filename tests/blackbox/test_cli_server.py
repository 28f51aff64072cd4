"""The command line beside a server, and through the one that holds the home."""

from __future__ import annotations

import json
from pathlib import Path

from examples.petstore import server as petstore
from tests.blackbox.command import cli, run_script
from tests.blackbox.server import Server, serving
from tests.blackbox.upstream import petstore_running


def test_a_key_made_beside_a_running_server_works_and_a_revoked_one_stops(home: Path) -> None:
    with serving(home) as server:
        key = cli(home, "key", "create", "late").stdout.strip()
        while server.ask("GET", "/runs", key=key).status == 401:
            pass
        assert server.ask("GET", "/runs", key=key).status == 200
        assert cli(home, "key", "revoke", "late").returncode == 0
        while server.ask("GET", "/runs", key=key).status == 200:
            pass
        assert server.ask("GET", "/runs").status == 200


def test_an_api_is_added_found_described_called_and_removed(home: Path) -> None:
    with petstore_running() as url:
        home.mkdir()
        kept = cli(home, "secret", "set", "shop", input="special-key\n")
        assert kept.returncode == 0, kept.stderr
        assert "special-key" not in kept.stderr + kept.stdout
        document = str(petstore.DOCUMENT_PATH)
        added = cli(
            home, "add", "openapi", document, "--name", "pets", "--base-url", url,
            "--header", "api_key=local:shop", "--allow-private", "127.0.0.1",
        )  # fmt: skip
        assert added.returncode == 0, added.stderr
        assert "added pets" in added.stdout
        found = json.loads(cli(home, "tools", "search", "find pets by status", "--json").stdout)
        path = found["items"][0]["path"]
        assert path in cli(home, "tools", "list").stdout
        assert "status" in cli(home, "tools", "describe", path).stdout
        called = cli(home, "call", path, '{"status": ["available"]}')
        assert isinstance(json.loads(called.stdout), list)
        done = run_script(home, f"(await tools[{path!r}]({{ status: ['available'] }})).length")
        assert done.returncode == 0, done.stderr
        assert path in done.stderr
        assert "pets" in cli(home, "integrations", "list").stdout
        assert cli(home, "integrations", "remove", "pets").returncode == 0
        gone = cli(home, "call", path)
        assert gone.returncode == 1
        assert gone.stderr.startswith("error: ")


def test_the_same_commands_work_against_a_server(home: Path) -> None:
    with serving(home) as server, petstore_running() as url:
        there = {"EXECUTOR_URL": server.url, "EXECUTOR_KEY": server.key, "PET_KEY": "special-key"}
        other = home.parent / "nobody"
        done = cli(other, "run", "-", "--json", input="1 + 1", env=there)
        assert json.loads(done.stdout)["result"] == 2
        run_id = json.loads(done.stdout)["run_id"]
        assert run_id in cli(other, "runs", "list", env=there).stdout
        assert "completed" in cli(other, "runs", "show", run_id, env=there).stderr
        added = cli(
            other, "add", "openapi", str(petstore.DOCUMENT_PATH), "--name", "pets", "--base-url", url,
            "--header", "api_key=env:PET_KEY", "--allow-private", "127.0.0.1", env=there,
        )  # fmt: skip
        assert added.returncode == 0, added.stderr
        assert cli(other, "secret", "list", env=there).stdout.split() == ["pets-main"]
        found = json.loads(cli(other, "tools", "search", "find pets by status", "--json", env=there).stdout)
        called = cli(other, "call", found["items"][0]["path"], '{"status": ["available"]}', env=there)
        assert isinstance(json.loads(called.stdout), list)
        rule = json.loads(cli(other, "policy", "set", "pets", "*", "block", "--json", env=there).stdout)
        assert rule["id"] in cli(other, "policy", "list", env=there).stdout
        assert cli(other, "policy", "remove", rule["id"], env=there).returncode == 0
        assert not other.exists()


def test_errors_of_a_server_are_one_line_and_a_hint(home: Path, server: Server) -> None:
    refused = cli(home, "runs", "list", "--url", server.url, "--key", "exk_wrong")
    assert refused.returncode == 1
    assert "EXECUTOR_KEY" in refused.stderr
    nobody = cli(home, "runs", "list", "--url", "http://127.0.0.1:1")
    assert nobody.returncode == 1
    assert "cannot be reached" in nobody.stderr
    assert cli(home, "runs", "list", "--url", "nonsense").returncode == 2


def test_commands_go_through_the_server_that_holds_their_home(home: Path) -> None:
    with serving(home) as server:
        shown = home / "server.json"
        mine = json.loads(cli(home, "key", "list", "--json").stdout)["keys"][0]["name"]
        assert shown.stat().st_mode & 0o777 == 0o600
        done = cli(home, "run", "-", "--json", input="1 + 1")
        assert json.loads(done.stdout)["result"] == 2
        run_id = json.loads(done.stdout)["run_id"]
        assert server.ask("GET", f"/runs/{run_id}").json["principal"] == "cli"
        assert run_id in cli(home, "runs", "list").stdout
        assert cli(home, "secret", "set", "a", input="a secret value").returncode == 0
        assert [key["name"] for key in json.loads(cli(home, "key", "list", "--json").stdout)["keys"]] == [mine]
        assert cli(home, "add", "openapi", _with_dates(home), "--name", "rail").returncode == 0
        assert '"NO" | "SE"' in cli(home, "tools", "describe", "rail.org.main.trains").stdout
        second = cli(home, "serve", "--port", "0")
        assert second.returncode == 1
        assert "open in another process" in second.stderr
        assert "Traceback" not in second.stderr
    assert not shown.exists()
    assert cli(home, "runs", "list").returncode == 0


def _with_dates(home: Path) -> str:
    """A document in YAML whose plain text an older YAML takes for a date, and for false."""
    country = "{name: country, in: query, schema: {type: string, enum: [NO, SE]}}"
    day = "{name: day, in: query, schema: {type: string, example: 2026-01-31}}"
    path = home.parent / "rail.yaml"
    path.write_text(
        "openapi: 3.0.0\ninfo: {title: Rail, version: 1.0}\nservers: [{url: https://rail.example}]\n"
        "paths: {/trains: {get: {operationId: trains, responses: {200: {}}, parameters: ["
        + f"{country}, {day}"
        + "]}}}\n"
    )
    return str(path)


def test_a_server_that_says_where_it_is_to_others_too_is_not_believed(home: Path) -> None:
    with serving(home):
        (home / "server.json").chmod(0o644)
        done = cli(home, "runs", "list")
        assert done.returncode == 1
        assert "--url" in done.stderr


def test_what_a_killed_server_left_in_its_home_is_not_used(home: Path) -> None:
    with serving(home) as server:
        left = (home / "server.json").read_bytes()
        server.process.kill()
        server.process.wait()
    (home / "server.json").write_bytes(left)
    (home / "server.json").chmod(0o600)
    assert cli(home, "runs", "list").returncode == 0
    assert not (home / "server.json").exists()
