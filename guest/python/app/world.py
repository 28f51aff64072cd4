"""What a script finds where an operating system would be: output that is logged, a clock, and plain refusals."""

from __future__ import annotations

import asyncio
import asyncio.runners
import builtins
import importlib.abc
import io
import json
import os
import random
import sys
import threading
import time
import types
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from . import state, tools, wire


class Stream(io.TextIOBase):
    """sys.stdout and sys.stderr: what is written is logged as it is written."""

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, error: bool) -> None:
        self._error = error

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            wire.log(self._error, text)
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False


class NoInput(io.TextIOBase):
    """sys.stdin: at its end from the start."""

    encoding = "utf-8"

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> str:
        return ""

    def readline(self, size: int = -1) -> str:
        return ""


class Absent(importlib.abc.MetaPathFinder):
    """Says of a module that is not in the image why it is not."""

    def __init__(self, hidden: Mapping[str, str]) -> None:
        self._hidden = dict(hidden)

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> None:
        reason = self._hidden.get(name)
        if reason is None and name.partition(".")[0] in sys.stdlib_module_names:
            reason = "this module of the standard library is not in the image"
        if reason is None:
            reason = "only the standard library is here, without what needs an operating system"
        raise ModuleNotFoundError(f"No module named {name!r}: {reason}", name=name)


def install(hidden: Mapping[str, str], zones: Mapping[str, bytes]) -> None:
    """Put everything in place, once, when the image is built."""
    zoneinfo._common.load_tzdata = _zone_from(zones)
    zoneinfo.available_timezones = zoneinfo._tzpath.available_timezones = lambda: set(zones)
    for name in [name for name in sys.modules if name in hidden]:
        del sys.modules[name]
        parent, _, child = name.rpartition(".")
        if parent in sys.modules and hasattr(sys.modules[parent], child):
            delattr(sys.modules[parent], child)
    sys.meta_path[:] = [Absent(hidden)]
    sys.path[:] = []
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()
    sys.argv[:] = [""]
    sys.stdin = sys.__stdin__ = NoInput()
    sys.stdout = sys.__stdout__ = Stream(False)
    sys.stderr = sys.__stderr__ = Stream(True)
    builtins.open = io.open = _refusing(FileNotFoundError, "there are no files here")
    builtins.input = _refusing(EOFError, "nobody is there to answer; the run's input is in the variable `input`")
    time.sleep = sleep
    # the C library's would count from the moment the image was begun
    time.process_time, time.process_time_ns = time.perf_counter, time.perf_counter_ns
    for name in _NO_PROCESS:
        if hasattr(os, name):
            setattr(os, name, _refusing(PermissionError, f"os.{name} is not possible here"))
    os.environ.clear()
    threading.Thread.start = _refusing(RuntimeError, _NO_THREADS)
    threading.Condition.wait = _condition_wait
    sys.breakpointhook = sys.__breakpointhook__ = _refusing(
        RuntimeError, "there is no debugger here; print what you need"
    )
    json.JSONEncoder.default = _json_default
    asyncio.run = asyncio.runners.run = _run
    asyncio.Runner = asyncio.runners.Runner = Runner
    asyncio.new_event_loop = asyncio.events.new_event_loop = lambda: state.loop
    asyncio.get_event_loop = asyncio.events.get_event_loop = lambda: state.loop
    asyncio.set_event_loop = asyncio.events.set_event_loop = lambda loop: None


_NO_THREADS = "there are no threads here; await asyncio.gather(…) makes several tool calls at once"


def _condition_wait(condition: threading.Condition, timeout: float | None = None) -> bool:
    """Nobody else is there to notify: the time passes, or the wait would never end."""
    if timeout is None:
        raise RuntimeError(f"this wait would never end: {_NO_THREADS}")
    sleep(max(timeout, 0))
    return False


_NO_PROCESS = [
    "_exit",
    "abort",
    "kill",
    "killpg",
    "write",
    "read",
    "open",
    "listdir",
    "scandir",
    "walk",
    "pipe",
    "popen",
    "system",
    "execv",
    "execve",
    "spawnv",
    "fork",
    "putenv",
    "unsetenv",
    "remove",
    "unlink",
    "mkdir",
    "rmdir",
    "rename",
    "chdir",
]


def _refusing(kind: type[Exception], reason: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **options: Any) -> NoReturn:
        raise kind(reason)

    return refuse


def sleep(seconds: float, /) -> None:
    """time.sleep on the clock of the run: the isolate pauses."""
    if not seconds >= 0:
        raise ValueError("sleep length must be non-negative")
    due = wire.now() + round(min(seconds, 1e9) * 1_000_000)
    while wire.now() < due:
        wire.wait(due)


def _run(main: Any, **options: Any) -> Any:
    """asyncio.run: the loop is there already."""
    if not asyncio.iscoroutine(main) and not hasattr(main, "__await__"):
        raise ValueError(f"a coroutine was expected, got {main!r}")
    return state.loop.run_until_complete(main)


def _zone_from(zones: Mapping[str, bytes]) -> Callable[[str], io.BytesIO]:
    def load(key: str) -> io.BytesIO:
        if key not in zones:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return io.BytesIO(zones[key])

    return load


class Runner:
    """asyncio.Runner: the loop is there already."""

    def __init__(self, **options: Any) -> None:
        pass

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def close(self) -> None:
        """Nothing to do."""

    def get_loop(self) -> Any:
        return state.loop

    def run(self, main: Any, **options: Any) -> Any:
        return _run(main)


def _json_default(encoder: json.JSONEncoder, value: Any) -> Any:
    """What json.dumps makes of what it does not know: the value of a tool's call, and nothing else."""
    if isinstance(value, tools.ToolCall):
        return value.wait()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def reseed(seed: int) -> None:
    """Start the run's randomness: the random module's own generator is part of the image."""
    random.seed(seed)
