"""A real `executor serve` in a process of its own, and a client that sends exactly the bytes it is told to."""

from __future__ import annotations

import asyncio
import atexit
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from executor.cli.commands.key import open_keyring
from runtime.engine.modules import config_dir

JSON = "Content-Type: application/json"
COMMAND = [sys.executable, "-m", "executor.cli"]


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a typed error; fails when the answer is none."""
        error = self.json["error"]
        assert set(error) <= {"code", "message", "hint", "details", "path", "retryable", "status"}, error
        assert error["code"]
        assert error["message"]
        return str(error["code"])


class Server:
    """A running server. `key` is a valid key of its home."""

    def __init__(self, process: subprocess.Popen[str], home: Path, port: int, key: str, log: Path) -> None:
        self.process = process
        self.home = home
        self.port = port
        self.key = key
        self.log = log
        self.url = f"http://127.0.0.1:{port}"

    def alive(self) -> bool:
        """Whether the process that was started still serves."""
        return self.process.poll() is None and self.ask("GET", "/health", key=None).status == 200

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        key: str | None = "own",
        timeout: float = 60,
    ) -> Reply:
        """One request on a connection of its own. `body` is JSON data, or bytes as they are."""
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if key is not None:
            sent["Authorization"] = f"Bearer {self.key if key == 'own' else key}"
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, data, sent | dict(headers or {}))
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, named, answer.read())
        finally:
            connection.close()

    def run(self, code: str, **options: Any) -> dict[str, Any]:
        """The answer to a script."""
        reply = self.ask("POST", "/run", {"code": code} | options)
        assert reply.status in (200, 202), reply.body
        answer: dict[str, Any] = reply.json
        return answer

    def connect(self, timeout: float = 20) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def raw(self, data: bytes, timeout: float = 20) -> bytes:
        """Everything that comes back for `data` until the server closes; fails when it does not."""
        with self.connect(timeout) as sock:
            with suppress(BrokenPipeError, ConnectionResetError):
                sock.sendall(data)
            return until_closed(sock)

    def head(self, method: str, path: str, *lines: str, key: bool = True, host: str | None = None) -> bytes:
        """A request's head, to be sent raw; it asks for the connection to be closed."""
        named = host if host is not None else f"127.0.0.1:{self.port}"
        all_lines = [f"{method} {path} HTTP/1.1", f"Host: {named}", "Connection: close", *lines]
        if key:
            all_lines.append(f"Authorization: Bearer {self.key}")
        return ("\r\n".join(all_lines) + "\r\n\r\n").encode("latin-1")

    def logged(self) -> str:
        return self.log.read_text()


def until_closed(sock: socket.socket) -> bytes:
    received = bytearray()
    while True:
        try:
            data = sock.recv(65536)
        except ConnectionResetError:
            return bytes(received)
        if not data:
            return bytes(received)
        received += data


def status_of(reply: bytes) -> int:
    """The status of a raw answer, 0 when there was none."""
    match = re.match(rb"HTTP/1\.1 (\d{3})", reply)
    return int(match[1]) if match else 0


def body_of(reply: bytes) -> Any:
    return json.loads(reply.partition(b"\r\n\r\n")[2])


@cache
def _config_dir() -> str:
    """A fresh folder with the key that the set-up compiled the images under: compiling takes half a minute."""
    folder = tempfile.mkdtemp(prefix="executor-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    key = config_dir() / "cache.key"
    if key.exists():
        shutil.copy2(key, folder)
    return folder


def environment() -> dict[str, str]:
    """An environment whose keys and settings are the tests' own. One folder of keys serves all of them: compiled
    images are bound to it, and compiling takes seconds. Output is buffered there as it is for a user."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EXECUTOR_", "PYTHONUNBUFFERED"))}
    cache = {"EXECUTOR_CACHE_DIR": os.environ["EXECUTOR_CACHE_DIR"]} if "EXECUTOR_CACHE_DIR" in os.environ else {}
    # The model that search has by default takes seconds to load, in every process that a test starts.
    return kept | cache | {"EXECUTOR_CONFIG_DIR": _config_dir(), "EXECUTOR_SEARCH": "words", "COLUMNS": "100"}


async def _new_key(home: Path) -> str:
    async with open_keyring(home) as keyring:
        return (await keyring.create(f"test-{os.urandom(4).hex()}"))[1]


@contextmanager
def serving(home: Path, *arguments: str, preexec: Any = None, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A server on a free port with one key, stopped on leaving."""
    key = asyncio.run(_new_key(home))
    log = home / f"server-{os.urandom(4).hex()}.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", "--home", str(home), "--json", *arguments],
            env=environment() | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stderr=stderr,
            text=True,
            preexec_fn=preexec,
        )
    try:
        yield Server(process, home, _ready_port(process, log), key, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(20)


def _ready_port(process: subprocess.Popen[str], log: Path) -> int:
    """The port that the server says it is ready on. Waits for it by following the log."""
    while True:
        ended = process.poll() is not None
        for line in log.read_text().splitlines():
            if line.startswith("{") and line.endswith("}") and (said := json.loads(line)).get("event") == "ready":
                return int(said["url"].rpartition(":")[2])
        assert not ended, f"the server ended before it was ready:\n{log.read_text()}"
        time.sleep(0.01)
