"""The SEC group on every door at once: canaries in each provider, an upstream that repeats them in every spelling, and
a search through whatever came out, was logged or was kept.

SEC-02 asks about a request that carries an environment for a package: no operation takes one, and a field `env` is
refused. SEC-29 (names under a wildcard that was allowed, timing between runs) is not prevented but told in SECURITY.md;
what is promised is that the clock stands still.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bridge.dial import tls_context
from tests.blackbox.command import cli
from tests.blackbox.server import Server, environment, serving
from tests.blackbox.test_worker_lockdown import attempt
from tests.threats.kit.canaries import leaks, leaks_in, spellings

ENV, LOCAL, FILE = (f"cnry_{digit * 8}0123456789abcdef01234567" for digit in "abc")
CANARIES = (ENV, LOCAL, FILE)


def found_in(data: bytes, where: str) -> list[str]:
    """Every spelling of every canary that shows in `data`."""
    return leaks(data, where, CANARIES)


class Parrot(BaseHTTPRequestHandler):
    """Repeats the credential of a request in every spelling that a scrubber promises to know."""

    def do_GET(self) -> None:
        said = " ".join(f"{name}={value}" for name, value in self.headers.items()) + self.path
        values = re.findall(r"cnry_[0-9a-f]+", said)
        for coded in re.findall(r"Basic (\S+)", said):
            values += re.findall(r"cnry_[0-9a-f]+", base64.b64decode(coded).decode())
        known = ("raw", "hex", "HEX", "url", "json")
        texts = [spellings(value)[name].decode() for value in values for name in known]
        texts += [base64.b64encode(b"xyz"[:shift] + value.encode()).decode() for value in values for shift in range(3)]
        texts += [html.escape(value) for value in values] + [quote(value) for value in values]
        body = json.dumps({"message": " ".join(texts), "headers": said, "credentialed": bool(values)}).encode()
        self.send_response(int(self.path.partition("?")[0].rpartition("/")[2]))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("x-echo", said[:2000])
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        return


@contextmanager
def parrot() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def described(base: str) -> dict[str, Any]:
    statuses = ("200", "401", "403", "500")
    answers = {"responses": {"200": {"description": "fine"}}}
    paths = {f"/{one}": {"get": {"operationId": f"s{one}"} | answers} for one in statuses}
    return {"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "servers": [{"url": base}], "paths": paths}


SCRIPT = """
const seen = [];
const walk = (value, depth) => {
  if (depth > 3 || value === null || (typeof value !== "object" && typeof value !== "function")) return;
  for (const key of Reflect.ownKeys(value)) {
    try { seen.push(String(key), String(value[key])); walk(value[key], depth + 1); } catch (e) { seen.push(String(e)); }
  }
};
walk(globalThis, 0);
for (const account of ["main", "basic", "query", "file", "gone"]) {
  for (const status of ["s200", "s401", "s403", "s500"]) {
    try {
      const got = await tools.call(`api.org.${account}.${status}`, {}, { meta: true });
      console.log(JSON.stringify(got)); emit(got); seen.push(JSON.stringify(got));
    } catch (e) {
      console.log(JSON.stringify(e), e.message, e.hint, e.stack); seen.push(JSON.stringify(e.details ?? null));
    }
  }
}
seen.push(JSON.stringify(await tools.describe("api.org.main.s200")), JSON.stringify(await tools.search("s200")));
({ seen: seen.join("\\n").slice(0, 500000) })
"""


def set_up(home: Path, base: str, env: dict[str, str]) -> bytes:
    """An API with accounts of every kind. What the commands said."""
    (home.parent / "token").write_text(FILE + "\n")
    spec = home.parent / "api.json"
    spec.write_text(json.dumps(described(base)))
    accounts = [
        ("basic", "--basic", "local:token=env:SEC_CANARY"),
        ("query", "--query", "key=env:SEC_CANARY", "--cookie", "sid=local:token"),
        ("file", "--header", f"X-Key=Token file:{home.parent / 'token'}"),
        ("gone", "--bearer", "env:SEC_NO_SUCH"),
    ]
    said = b""
    adding = ("--name", "api", "--bearer", "local:token", "--allow-private", "127.0.0.1")
    for arguments, given in (
        (("secret", "set", "token"), LOCAL),
        (("add", "openapi", str(spec), *adding), None),
        *((("connect", "api", "--connection", *one), None) for one in accounts),
        (("secret", "rotate-key"), None),
    ):
        done = cli(home, *arguments, input=given, env=env)
        assert done.returncode == 0, done.stderr
        said += (done.stdout + done.stderr).encode()
    return said


def asked(server: Server) -> bytes:
    """The answers of every operation that tells something, and of some that fail."""
    run = server.ask("POST", "/run", {"code": SCRIPT})
    answer = run.json
    assert answer["status"] == "completed", answer
    assert len(answer["calls"]) >= 20
    assert '"credentialed":true' in json.dumps(answer).replace("\\", "").replace(" ", "")
    path = f"/runs/{answer['run_id']}"
    gets = ["/openapi.json", "/metrics", "/health", "/tools?query=s200", "/tools/api.org.main.s200?schemas=true"]
    gets += ["/integrations", "/integrations/api", "/connections", "/connections/api/org/basic", "/secrets"]
    gets += ["/policies", "/runs", path, f"{path}/result", f"{path}/events", "/secrets/token", f"/runs?key={LOCAL}"]
    replies = [run, *(server.ask("GET", one) for one in gets)]
    for account in ("main", "basic", "query", "file", "gone"):
        replies.append(server.ask("POST", f"/connections/api/org/{account}/check"))
        for status in (200, 401, 403, 500):
            replies.append(server.ask("POST", f"/tools/api.org.{account}.s{status}/call", {"meta": True}))
    replies.append(server.ask("POST", "/connections", {"integration": "api", "secret": "env:SEC_CANARY"}))
    replies.append(server.ask("PUT", "/secrets/other", {"value": LOCAL, "no": 1}))
    assert {reply.status for reply in replies} >= {200, 400, 403, 405, 409, 502}
    return b"\n".join(repr(reply.headers).encode() + reply.body for reply in replies)


def test_no_door_log_record_or_file_shows_a_secret_in_any_spelling(tmp_path: Path) -> None:
    """SEC-01 SEC-03 SEC-04 SEC-17 SEC-18 SEC-20 SEC-23 SEC-24 SEC-26 SEC-32"""
    home, keys = tmp_path / "home", tmp_path / "tls-keys"
    home.mkdir(mode=0o700)
    env = {
        "SEC_CANARY": ENV,
        "SSLKEYLOGFILE": str(keys),
        "HTTPX_LOG_LEVEL": "trace",
        "PYTHONFAULTHANDLER": "1",
    }
    with parrot() as base:
        said = set_up(home, base, env)
        with serving(home, env=env) as server:
            answers = asked(server)
            workers = [
                (child / "environ").read_bytes()
                for child in Path("/proc").iterdir()
                if child.name.isdigit() and _parent(child) == server.process.pid
            ]
            assert workers
        shown = b""
        for command in (
            ("connections", "list", "--json"),
            ("connections", "show", "api.org.basic"),
            ("connections", "check", "api.org.query"),
            ("connections", "check", "api.org.gone"),
            ("call", "api.org.main.s401"),
            ("secret", "list"),
            ("integrations", "list", "--json"),
            ("tools", "describe", "api.org.file.s200"),
            ("runs", "list", "--json"),
        ):
            done = cli(home, *command, env=env)
            shown += (done.stdout + done.stderr).encode()
    assert b"credential_rejected" in answers
    assert b"connection_missing" in shown
    seen = found_in(said, "set up") + found_in(answers, "HTTP") + found_in(shown, "CLI")
    for number, environ in enumerate(workers):
        seen += found_in(environ, f"worker {number}")
    seen += leaks_in(home, CANARIES)
    assert seen == []
    assert not keys.exists()


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def test_a_locked_down_process_reads_nothing_of_its_parent() -> None:
    """SEC-19"""
    for place in ("environ", "mem", "maps", "fd"):
        done = attempt(f"""
            try:
                os.open(f"/proc/{{os.getppid()}}/{place}", os.O_RDONLY)
            except OSError:
                pass
            else:
                os.write(1, b"leaked")
        """)
        assert b"leaked" not in done.stdout
        assert b"locked" in done.stdout


def test_a_run_takes_no_environment_and_its_clock_stands_still(server: Server) -> None:
    """SEC-02 SEC-29"""
    reply = server.ask("POST", "/run", {"code": "1", "env": {"API_KEY": LOCAL}})
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert found_in(reply.body + server.logged().encode(), "refusal") == []
    still = "const a = Date.now(); let n = 0; for (let i = 0; i < 2e6; i++) n += i; Date.now() - a"
    assert server.run(still)["result"] == 0


def test_no_tls_key_is_logged(monkeypatch: Any, tmp_path: Path) -> None:
    """SEC-32"""
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    assert tls_context().keylog_filename is None


def test_the_environment_of_these_tests_has_no_key_of_ours() -> None:
    """The canaries above are the only ones: a test that finds none for want of any would prove nothing."""
    assert not found_in(repr(environment()).encode(), "environment")
    assert len(found_in(b" ".join(spellings(ENV).values()), "")) == 11
