"""A command line of Executor, run to its end: in this process, or in one of its own where that is what matters."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

import structlog

from executor import logs
from executor.cli import app
from tests.blackbox.server import COMMAND, environment


def cli(
    home: Path, *arguments: str, input: str | None = None, env: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Run one command against `home`. A process of its own would take most of its time to import what is imported here
    already; nothing but the process is another. Not for a test that is a coroutine."""
    out, err = _stream(), _stream()
    told = io.TextIOWrapper(io.BytesIO((input or "").encode()), encoding="utf-8")
    own = environment() | {"EXECUTOR_HOME": str(home)} | dict(env or {})
    with (
        patch.dict(os.environ, own, clear=True),
        patch.multiple(sys, stdin=told, stdout=out, stderr=err),
        patch.object(logs, "configure", partial(logs.configure, for_good=False)),
        patch.object(logs, "configure_for_command", partial(logs.configure_for_command, for_good=False)),
        _logging_as_it_was(),
    ):
        status = app.run(list(arguments))
    return CompletedProcess([*COMMAND, *arguments], status, _text(out), _text(err))


def process(
    home: Path, *arguments: str, input: str | None = None, env: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Run one command against `home` in a process of its own."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment() | {"EXECUTOR_HOME": str(home)} | dict(env or {}),
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        text=True,
        timeout=120,
    )


def run_script(home: Path, code: str, *arguments: str, input: str | None = None) -> CompletedProcess[str]:
    script = home.parent / "script.ts"
    script.write_text(code)
    return cli(home, "run", str(script), *arguments, input=input)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    data = stream.buffer
    assert isinstance(data, io.BytesIO)
    return data.getvalue().decode()


@contextmanager
def _logging_as_it_was() -> Iterator[None]:
    before = structlog.get_config() if structlog.is_configured() else None
    try:
        yield
    finally:
        if before is None:
            structlog.reset_defaults()
        else:
            structlog.configure(**before)
