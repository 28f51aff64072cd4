"""Group MCP of the threat catalogue: the door on standard input and output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.blackbox.server import COMMAND, environment
from tests.threats.mcp_door import (
    INITIALIZE,
)


def lines(home, sent: bytes) -> tuple[list[dict], int]:
    """What `executor mcp` writes for what it reads, until its input ends; and its exit status."""
    done = subprocess.run([*COMMAND, "mcp", "--home", str(home)], input=sent, capture_output=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


def test_standard_output_holds_the_protocol_alone_whatever_comes_in(home):
    """MCP-12"""
    good = json.dumps(INITIALIZE).encode()
    hostile = [b"{", b"\xff\xfe\xfd", b"x" * 1_000_000, b"", b"[1, 2", b'{"jsonrpc": "2.0"}']
    answers, status = lines(home, b"\n".join([*hostile, good]) + b"\n")
    assert status == 0
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    refused = [answer["error"]["code"] for answer in answers if answer.get("id", "none") is None]
    assert refused == [-32700, -32700, -32700, -32700, -32700, -32600]
    assert next(answer for answer in answers if answer.get("id") == 1)["result"]["serverInfo"]["name"] == "executor"


def test_it_ends_with_its_input_and_on_a_signal(home):
    """MCP-12"""
    for end in ("input", "signal"):
        with subprocess.Popen(
            [*COMMAND, "mcp", "--home", str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 1
            if end == "signal":
                os.kill(process.pid, signal.SIGTERM)
            else:
                process.stdin.close()
            assert process.wait(30) == 0


@pytest.mark.parametrize("size", [8 << 20])
def test_a_line_of_any_length_is_one_message_and_the_next_one_works(home, size, long):
    """MCP-12: 100 MiB in the long form."""
    line = b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"a": "' + b"x" * (100 << 20 if long else size)
    answers, status = lines(home, line + b"\n" + json.dumps(INITIALIZE).encode() + b"\n")
    assert status == 0
    assert [answer.get("id") for answer in answers] == [None, 1]


def test_a_client_that_reads_no_more_is_no_defect(home):
    """MCP-12"""
    with subprocess.Popen(
        [*COMMAND, "mcp", "--home", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.stdout.close()
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode() + b"\n")
        process.stdin.close()
        assert process.wait(60) == 0
        assert b"failed" not in process.stderr.read()


def test_it_ends_when_its_parent_is_killed(home):
    """MCP-12"""
    parent = (
        "import subprocess, sys; child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE);"
        "print(child.pid, flush=True); child.wait()"
    )
    command = [sys.executable, "-c", parent, *COMMAND, "mcp", "--home", str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.kill()
        process.wait(30)
        for _ in range(600):
            if not alive(child):
                return
            time.sleep(0.05)
    raise AssertionError("it outlived its parent")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
