"""The command line, in processes of its own where the process is what matters."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.blackbox.command import cli, process, run_script
from tests.blackbox.server import COMMAND, Server, environment, serving
from tests.blackbox.upstream import petstore_running


def test_a_script_prints_its_result_on_standard_output_alone(home: Path) -> None:
    done = process(home, "run", "-", input="console.log('said'); ({ a: [1, 'ü'] })")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"a": [1, "ü"]}
    assert "said" in done.stderr
    assert "completed" in done.stderr
    assert "fuel" in done.stderr


def test_json_prints_the_whole_answer_and_nothing_else(home: Path) -> None:
    done = run_script(home, "console.log('said'); 7", "--json")
    answer = json.loads(done.stdout)
    assert answer["result"] == 7
    assert answer["logs"] == [{"level": "log", "text": "said"}]
    assert done.stderr == ""


def test_a_failed_script_exits_with_1_and_points_at_the_place(home: Path) -> None:
    done = run_script(home, "const a = { b: null }\n\tconst c = a.b.c\n")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "script_error" in done.stderr
    place = [line for line in done.stderr.splitlines() if "│" in line]
    assert place[-2].endswith("    const c = a.b.c")
    assert place[-1].rstrip().endswith("^")
    caret = place[-1].index("^")
    assert place[-2][caret:].startswith(("a.b.c", "c", "b.c", ".c"))
    assert "Traceback" not in done.stderr


def test_a_script_comes_from_standard_input_and_input_from_where_it_is_told(home: Path) -> None:
    done = cli(home, "run", "-", "--input", '{"x": 20}', input="input.x * 2 + 2")
    assert done.stdout.strip() == "42"
    file = home.parent / "input.json"
    file.write_text("[1, 2, 3]")
    assert run_script(home, "input.length", "--input", f"@{file}").stdout.strip() == "3"
    assert run_script(home, "input", "--input=-5").stdout.strip() == "-5"


def test_budgets_are_read_with_their_units(home: Path) -> None:
    done = run_script(home, "for(;;);", "--budget", "fuel=1e7", "--budget", "wall_ms=20_000", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["limit"]["limit"] == 10**7


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("nope",),
        ("run", "--jsn", "x"),
        ("run", "/does/not/exist.ts"),
        ("run", "-", "--input", "{"),
        ("run", "-", "--budget", "fuel"),
        ("run", "-", "--budget", "fuel=lots"),
        ("run", "-", "--language", "cobol"),
        ("call", "a.b.c.d", "[1]"),
        ("serve", "--port", "many"),
        ("add", "openapi", "/does/not/exist.json", "--name", "x"),
        ("add", "openapi", "x.json"),
        ("add", "http", "x", "--allow", "https://example.com", "--bearer", "the-token-itself"),
        ("policy", "set", "*", "*", "allow"),
    ],
)
def test_wrong_usage_exits_with_2_one_line_and_a_hint(home: Path, arguments: tuple[str, ...]) -> None:
    done = cli(home, *arguments, input="1")
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert lines[0].startswith("error: ")
    assert len(lines) <= 2
    assert done.stdout == ""


def test_help_names_every_command_and_loads_nothing_heavy(home: Path) -> None:
    done = cli(home, "--help")
    assert done.returncode == 0
    for name in ("serve", "run", "call", "tools", "add", "integrations", "secret", "policy", "key", "runs", "doctor"):
        assert f" {name} " in done.stdout
    heavy = {"httpx2", "starlette", "hypercorn", "pydantic", "wasmtime", "jsonschema", "cryptography", "structlog"}
    probe = "import sys; from executor.cli.app import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    loaded = subprocess.run([COMMAND[0], "-c", probe], capture_output=True, text=True, env=environment())
    assert not heavy & set(loaded.stderr.split())


def test_the_version_is_told(home: Path) -> None:
    assert cli(home, "--version").stdout.startswith("executor ")


def test_keys_are_made_listed_and_revoked(home: Path) -> None:
    made = cli(home, "key", "create", "laptop")
    key = made.stdout.strip()
    assert key.startswith("exk_")
    assert len(key) == 47
    assert key not in made.stderr
    assert cli(home, "key", "create", "laptop").returncode == 1
    listed = json.loads(cli(home, "key", "list", "--json").stdout)["keys"]
    assert [each["name"] for each in listed] == ["laptop"]
    assert "digest" not in listed[0]
    assert cli(home, "key", "revoke", "laptop").returncode == 0
    assert cli(home, "key", "revoke", "laptop").returncode == 1
    assert "revoked" in cli(home, "key", "list").stdout


@pytest.mark.parametrize("served", [False, True], ids=["in its own process", "through a server"])
def test_what_a_script_logs_and_emits_is_shown_while_it_runs(home: Path, served: bool) -> None:
    with serving(home) if served else nullcontext():
        process = subprocess.Popen(
            [*COMMAND, "run", "-"],
            env=environment() | {"EXECUTOR_HOME": str(home)},
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("console.warn('on', 'it'); emit({ n: 1 }); await new Promise(r => setTimeout(r, 1e6))")
        process.stdin.close()
        assert process.stderr.readline().split() == ["warn", "on", "it"]
        assert process.stderr.readline().split(maxsplit=1) == ["emit", '{"n": 1}\n']
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        process.stderr.close()
        assert process.wait() == 130
        assert json.loads(cli(home, "runs", "list", "--json").stdout)["runs"][0]["status"] == "cancelled"


def test_a_command_says_in_its_own_words_what_it_did_and_logs_it_when_asked(home: Path) -> None:
    adding = ("add", "http", "web", "--allow", "https://example.com")
    assert cli(home, *adding).returncode == 0
    assert cli(home, "remove", "web").stderr == "✔ removed web\n"
    assert cli(home, *adding).returncode == 0
    assert "integration_removed" in cli(home, "remove", "web", "--verbose").stderr


def test_control_characters_of_a_script_do_not_reach_the_terminal(home: Path) -> None:
    code = "console.log('\\x1b]0;title\\x07\\x9b2J\\ta'); throw new Error('\\x1b[2J')"
    done = run_script(home, code)
    assert not set(done.stderr) & set("\x1b\x07\x9b")
    assert "\\u{1b}]0;title\\u{7}\\u{9b}2J" in done.stderr
    assert "\\u{1b}[2J" in done.stderr


def test_the_name_of_a_run_is_shown_whole(home: Path) -> None:
    done = run_script(home, "1", "--label", "purpose=" + "x" * 100, "--json")
    assert json.loads(done.stdout)["run_id"] in cli(home, "runs", "list").stdout


def test_a_port_that_is_taken_is_explained(home: Path, server: Server) -> None:
    done = cli(home, "serve", "--port", str(server.port))
    assert done.returncode == 1
    assert "--port" in done.stderr


def test_ctrl_c_ends_a_run_cleanly_and_records_it(home: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", "-"],
        env=environment() | {"EXECUTOR_HOME": str(home)},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write("await new Promise(r => setTimeout(r, 1e6))")
    process.stdin.close()
    database = home / "executor.db"
    while not database.exists():
        assert process.poll() is None
    _until_running(home)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    said = process.stderr.read()
    assert process.wait(60) == 130
    process.stderr.close()
    assert "Traceback" not in said
    runs = json.loads(cli(home, "runs", "list", "--json").stdout)["runs"]
    assert [run["status"] for run in runs] == ["cancelled"]


def _until_running(home: Path) -> None:
    import sqlite3

    while True:
        try:
            connection = sqlite3.connect(f"file:{home}/executor.db?mode=ro", uri=True)
        except sqlite3.OperationalError:
            continue
        try:
            if connection.execute("SELECT count(*) FROM runs").fetchone()[0]:
                return
        except sqlite3.OperationalError:
            pass
        finally:
            connection.close()


def test_output_into_a_closed_pipe_is_no_defect(home: Path) -> None:
    script = home.parent / "big.ts"
    script.write_text("'x'.repeat(500_000)")
    done = subprocess.run(
        ["sh", "-c", f"{' '.join(COMMAND)} run {script} | head -c 10"],
        env=environment() | {"EXECUTOR_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    assert len(done.stdout) == 10


def test_the_doctor_finds_every_wall_or_says_which_is_missing(home: Path) -> None:
    done = cli(home, "doctor", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["ok"] else 1)
    names = {check["name"].strip() for check in report["checks"]}
    assert {"python", "engine", "worker", "isolation", "landlock", "seccomp", "home", "key files"} <= names
    assert all(check["status"] in ("ok", "warn", "fail") for check in report["checks"])
    assert report["ok"], report


def test_the_doctor_sees_a_key_file_that_others_can_read(home: Path) -> None:
    folder = home / "config"
    folder.mkdir(parents=True)
    (folder / "master.key").write_text("x")
    # The key that the images were compiled under: they are not compiled again.
    shutil.copy2(Path(environment()["EXECUTOR_CONFIG_DIR"]) / "cache.key", folder)
    os.chmod(folder / "master.key", 0o644)
    done = cli(home, "doctor", env={"EXECUTOR_CONFIG_DIR": str(folder)})
    assert done.returncode == 1
    assert "master.key" in done.stdout
    assert "chmod 600" in done.stdout


def test_images_are_listed_with_their_hashes(home: Path) -> None:
    manifest = json.loads(cli(home, "images", "list", "--json").stdout)
    assert {"javascript", "typescript"} <= set(manifest["images"])
    assert all(len(entry["sha256"]) == 64 for entry in manifest["images"].values())


def test_http_that_is_added_for_fetch_is_open_to_the_fetch_of_a_script(home: Path) -> None:
    with petstore_running() as shop:
        allowed = ("--allow", shop, "--allow-private", "127.0.0.1")
        assert cli(home, "add", "http", "web", *allowed).returncode == 0
        script = f"const r = await fetch('{shop}/pet/findByStatus?status=sold'); r.status"
        refused = run_script(home, script)
        assert "--fetch" in refused.stderr
        assert cli(home, "add", "http", "web", *allowed, "--fetch", "--replace").returncode == 0
        assert run_script(home, script).stdout.strip() in ("200", "401")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_the_caller_closed_is_no_file_of_ours(home: Path, closed: str) -> None:
    """What is printed must not go to the store, which would be the next file to get that number."""
    (home.parent / "script.ts").write_text("console.log('said'); 7")
    command = f'"$@" {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, "sh", *COMMAND, "run", str(home.parent / "script.ts")],
        env=environment() | {"EXECUTOR_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("" if ">&-" in closed.replace("2>&-", "") else "7\n")
    [run] = json.loads(cli(home, "runs", "list", "--json").stdout)["runs"]
    assert run["status"] == "completed"


def test_a_closed_standard_input_is_an_empty_script(home: Path) -> None:
    command = ["/bin/sh", "-c", '"$@" <&-', "sh", *COMMAND, "run", "-"]
    done = subprocess.run(command, env=environment() | {"EXECUTOR_HOME": str(home)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "null\n"), done.stderr


def test_an_output_that_knows_ascii_alone_gets_json_all_the_same(home: Path) -> None:
    ascii = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = process(home, "run", "-", input="console.log('✓'); ({ a: '\\u00e9𝒳' })", env=ascii)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert json.loads(done.stdout) == {"a": "é𝒳"}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ('"$@" >/dev/full', ["No space left", "make room"]),
        ('"$@" --home /etc/hostname/', ["is not a directory"]),
    ],
)
def test_what_the_system_refuses_is_said_in_its_words(home: Path, command: str, words: list[str]) -> None:
    (home.parent / "script.ts").write_text("7")
    done = subprocess.run(
        ["/bin/sh", "-c", command, "sh", *COMMAND, "run", str(home.parent / "script.ts")],
        env=environment() | {"EXECUTOR_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "executor itself failed" not in done.stderr
    assert all(word in done.stderr for word in words), done.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["serve", "--port", "99999"], "65535"),
        (["serve", "--allowed-origin", "https://console.test/", "--port", "0"], "is not an origin"),
        (["connect", "a", "--callback-port", "70000"], "65535"),
        (["tools", "list", "--limit", "0"], ">= 1"),
        (["tools", "search", "pets", "--limit", "0"], ">= 1"),
        (["tools", "search", "pets", "--cursor", "x"], "the `next` of an earlier answer"),
        (["add", "http", "web", "--allow", "ftp://a.test"], "the scheme ftp is not http or https"),
    ],
)
def test_an_option_that_cannot_be_meant_is_wrong_usage(home: Path, arguments: list[str], word: str) -> None:
    # A server that started all the same would have to be ended.
    done = (process if arguments[0] == "serve" else cli)(home, *arguments)
    assert done.returncode == 2
    assert word in done.stderr


def test_the_doctor_sees_a_key_file_that_others_can_read_wherever_it_is(home: Path, tmp_path: Path) -> None:
    key = tmp_path / "elsewhere.key"
    key.write_bytes(b"k" * 44)
    key.chmod(0o644)
    report = json.loads(cli(home, "doctor", "--json", env={"EXECUTOR_KEY_FILE": str(key)}).stdout)
    (found,) = [each for each in report["checks"] if each["name"] == "key files"]
    assert found["status"] == "fail"
    assert f"chmod 600 {key}" in found["hint"]


def test_a_run_whose_question_is_void_goes_on_with_that_and_is_not_left_in_the_middle(home: Path) -> None:
    assert cli(home, "add", "http", "web", "--allow", "POST https://example.com").returncode == 0
    script = "try { await tools.web.org.main.http.request({method: 'POST', path: '/x'}) } catch (e) { e.code }"
    waiting = json.loads(cli(home, "run", "-", "--json", input=script).stdout)
    assert waiting["status"] == "waiting"
    assert cli(home, "policy", "set", "web", "http.request", "block").returncode == 0
    answered = cli(home, "runs", "resume", waiting["run_id"], "--approve")
    assert answered.returncode == 1
    assert "nothing was sent" in answered.stderr
    shown = json.loads(cli(home, "runs", "show", waiting["run_id"], "--json").stdout)
    assert (shown["status"], shown["result"]) == ("completed", "blocked")
