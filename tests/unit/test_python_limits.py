"""Budgets, determinism and what stands where an operating system would be."""

from __future__ import annotations

import pytest
from python_host import run, value

from runtime.engine.instance import Trapped, Unusable

DEEP = "x = []\nfor i in range(30_000):\n    x = [x]\n"


@pytest.mark.parametrize(
    "source",
    [
        "while True:\n    pass",
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
        "10 ** (10 ** 8)",
        "sum(range(10 ** 12))",
        "async def spin():\n    while True:\n        await asyncio.sleep(0)\nawait spin()",
        "class K:\n    __hash__ = lambda s: 1\n    __eq__ = lambda s, o: s is o\n{K(): i for i in range(100_000)}\n1",
        "import zlib\nzlib.compress(bytes(10 ** 8), 9)\n1",
    ],
)
def test_what_computes_too_much_runs_out_of_fuel(source: str) -> None:
    """BUD-01, BUD-02, BUD-03, BUD-22, PYE-12"""
    with pytest.raises(Trapped, match="out_of_fuel"):
        run(source, fuel=3 * 10**8)


@pytest.mark.parametrize(
    "source",
    [
        "x = 'a'\nwhile True:\n    x += x",
        "bytearray(2 ** 30)",
        "[0] * 10 ** 9",
        "bytes(2 ** 31 - 20)",
        "x = []\nwhile True:\n    x.append('a' * 100_000 + str(len(x)))",
        "import os\nos.urandom(10 ** 9)",
        "kept = []\nwhile True:\n    kept.append(asyncio.get_running_loop().create_future())",
    ],
)
def test_what_needs_too_much_memory_ends_as_memory_exhausted(source: str) -> None:
    """BUD-04, BUD-05, BUD-08, PYE-12"""
    assert run(source).failed.code == "memory_exhausted"


@pytest.mark.parametrize(
    "source",
    [
        "for _ in range(60):\n    emit('x' * 10**6)",
        "for _ in range(60):\n    emit('x' * 10**6)\ntools.a.b()",
        "for _ in range(60):\n    emit('x' * 10**6)\nawait tools.a.b()",
        "emit('x' * 45_000_000)",
        "'x' * 60_000_000",
    ],
)
def test_what_leaves_no_memory_for_handing_it_out_ends_as_memory_exhausted(source: str) -> None:
    """BUD-04"""
    assert run(source, result_bytes=64 << 20).failed.code == "memory_exhausted"


def test_a_memory_error_can_be_caught_and_the_script_goes_on() -> None:
    source = "try:\n    x = bytearray(2 ** 30)\nexcept MemoryError:\n    x = None\nlen([0] * 100_000)"
    assert value(source) == 100_000


def test_a_limits_code_cannot_be_forged_by_raising_its_exception() -> None:
    for name in ("MemoryError", "RecursionError"):
        failure = run(f"raise {name}('mine')").failed
        assert (failure.code, failure.name, failure.message) == ("script_error", name, "mine")


@pytest.mark.parametrize(
    "source",
    [
        "def f(n):\n    return f(n + 1)\nf(0)",
        "class A:\n    def __lt__(self, other):\n        return self < other\nA() < A()",
        "class A:\n    def __repr__(self):\n        return repr(self)\nrepr(A())",
        "class A:\n    def __getattr__(self, name):\n        return getattr(self, name + 'x')\nA().a",
        "import json\njson.loads('[' * 100_000)",
        f"import json\n{DEEP}json.dumps(x)",
        f"import copy\n{DEEP}copy.deepcopy(x)",
        f"import pickle\n{DEEP}pickle.dumps(x)",
        "x = []\nx.append(x)\ny = []\ny.append(y)\nx == y",
    ],
)
def test_recursion_that_is_too_deep_is_a_recursion_error_that_can_be_caught(source: str) -> None:
    failure = run(source).failed
    assert (failure.code, failure.name) == ("stack_exhausted", "RecursionError")
    setup, _, last = source.rpartition("\n")
    assert value(f"{setup}\ntry:\n    {last}\nexcept RecursionError:\n    'caught'") == "caught"


def test_a_raised_recursion_limit_lets_plain_functions_go_deeper() -> None:
    source = (
        "import sys\nsys.setrecursionlimit(50_000)\ndef depth(n):\n    return n and 1 + depth(n - 1)\ndepth(20_000)"
    )
    assert value(source) == 20_000


def test_the_same_script_uses_the_same_fuel_and_gives_the_same_result() -> None:
    source = (
        "import random, uuid, os, secrets, time\n"
        "[random.random(), str(uuid.uuid4()), os.urandom(4), secrets.token_hex(4), list({'a', 'b', 'c'}), hash('x'),"
        " time.time(), time.perf_counter(), id(object()) % 16, tools.a.b(x=1)]"
    )
    first, second = run(source), run(source)
    assert first.value == second.value
    assert first.fuel == second.fuel
    other = run(source, seed=2).value
    assert other[:4] != first.value[:4]
    assert other[4:6] == first.value[4:6]


def test_a_memory_budget_below_what_the_interpreter_needs_is_refused() -> None:
    with pytest.raises(Unusable):
        run("1", memory=8 << 20)


@pytest.mark.parametrize(
    ("source", "name", "words"),
    [
        ("import socket", "ModuleNotFoundError", "no network"),
        ("import ssl", "ModuleNotFoundError", "no network"),
        ("import urllib.request", "ModuleNotFoundError", "no network"),
        ("import subprocess", "ModuleNotFoundError", "no other processes"),
        ("import multiprocessing", "ModuleNotFoundError", "no other processes"),
        ("import signal", "ModuleNotFoundError", "no other processes"),
        ("import ctypes", "ModuleNotFoundError", "no native code"),
        ("import mmap", "ModuleNotFoundError", "no native code"),
        ("import curses", "ModuleNotFoundError", "no terminal"),
        ("import resource", "ModuleNotFoundError", "no operating system"),
        ("import lzma", "ModuleNotFoundError", "not in the image"),
        ("import numpy", "ModuleNotFoundError", "only the standard library"),
        ("open('/etc/passwd')", "FileNotFoundError", "no files"),
        ("import os\nos.listdir('/')", "PermissionError", "os.listdir"),
        ("import threading\nthreading.Thread(target=print).start()", "RuntimeError", "no threads"),
        ("import queue\nqueue.Queue().get()", "RuntimeError", "never end"),
        ("import os\nos._exit(0)", "PermissionError", "os._exit"),
        ("await asyncio.open_connection('127.0.0.1', 80)", "PermissionError", "no network"),
        ("import builtins\nbuiltins.input()", "EOFError", "`input`"),
        ("import sys\nsys.exit(3)", "SystemExit", "3"),
    ],
)
def test_what_needs_an_operating_system_fails_with_an_exception_that_says_so(
    source: str, name: str, words: str
) -> None:
    failure = run(source).failed
    assert (failure.code, failure.name) == ("script_error", name)
    assert words in failure.message
