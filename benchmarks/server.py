"""A real server process on loopback, with a home of its own, for as long as a probe needs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[str, int, str]]:
    """Host, port and bearer key of a fresh `executor serve`; stopped and cleaned up on leaving."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "EXECUTOR_CONFIG_DIR": f"{home}/config"}
        command = [sys.executable, "-m", "executor.cli"]
        made = subprocess.run(
            [*command, "key", "create", "bench", "--home", home, "--json"],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        found = re.search(r"exk_[\w-]+", made.stdout)
        assert found, made.stdout
        server = subprocess.Popen(
            [*command, "serve", "--port", "0", "--home", home, *arguments],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield "127.0.0.1", _port(server), found.group()
        finally:
            server.terminate()
            server.wait(15)
            if server.stderr is not None:
                server.stderr.close()


def _port(server: subprocess.Popen[str]) -> int:
    assert server.stderr is not None
    for line in server.stderr:
        match = re.search(r"http://[\w.]+:(\d+)", line)
        if match:
            return int(match.group(1))
    raise RuntimeError("the server ended before it was ready")
