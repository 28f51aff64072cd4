"""The PYE group of the threat catalogue: Python that looks for a way out, through real workers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from executor import Executor
from guest import images

pytestmark = pytest.mark.anyio

CAUGHT = """
out = []
for attempt in attempts:
    try:
        out.append(repr(attempt()))
    except Exception as e:
        out.append(type(e).__name__)
out"""
"""What each of `attempts` gives or raises."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def ex() -> AsyncIterator[Executor]:
    images.build(sets=("javascript", "python"))
    async with Executor.open() as executor:
        executor.tool("demo.org.main.echo", lambda args: args, side_effect="read")
        yield executor


async def result(ex: Executor, code: str, **budgets: int) -> Any:
    run = await ex.run(code, language="python", budgets=budgets or None)
    assert run.status == "completed", run.error
    return run.result


async def attempts(ex: Executor, setup: str, *expressions: str) -> list[str]:
    listed = ", ".join(f"lambda: {expression}" for expression in expressions)
    outcome: list[str] = await result(ex, f"{setup}\nattempts = [{listed}]{CAUGHT}")
    return outcome


async def test_every_class_that_can_be_found_works_only_inside(ex: Executor) -> None:
    """PYE-01"""
    setup = "by = {c.__name__: c for c in ().__class__.__base__.__subclasses__()}\nimport io\nraw = io.FileIO"
    found = await attempts(
        ex,
        setup,
        "raw('/etc/passwd')",
        "by['Popen'](['ls'])",
        "by['socket']()",
        "by['FileLoader']('x', '/etc/passwd').get_data('/etc/passwd')",
    )
    assert set(found) <= {
        "FileNotFoundError",
        "PermissionError",
        "OSError",
        "AttributeError",
        "NameError",
        "KeyError",
        "TypeError",
        "RuntimeError",
    }


async def test_there_are_no_files_whichever_way_they_are_asked_for(ex: Executor) -> None:
    """PYE-02"""
    found = await attempts(
        ex,
        "import os, posix, pathlib, glob, io, _io",
        "open('/etc/passwd')",
        "_io.open('/proc/self/environ')",
        "_io.FileIO('/etc/passwd')",
        "posix.open('/etc/passwd', 0)",
        "posix.listdir('/')",
        "os.listdir('/')",
        "os.stat('/etc')",
        "pathlib.Path('/etc/passwd').read_text()",
        "list(pathlib.Path('/').iterdir())",
        "glob.glob('/*')",
        "open('/dev/tcp/127.0.0.1/80')",
        "posix.mkdir('/x')",
    )
    assert found.pop(9) == "[]"
    assert set(found) <= {"FileNotFoundError", "PermissionError", "OSError"}


async def test_there_is_no_network_whichever_way_it_is_asked_for(ex: Executor) -> None:
    """PYE-03"""
    found = await attempts(
        ex,
        "import asyncio\nsocket = asyncio.base_events.socket",
        "__import__('socket')",
        "__import__('ssl')",
        "__import__('urllib.request')",
        "__import__('http.client')",
        "socket.create_connection(('169.254.169.254', 80))",
        "socket.socket()",
        "socket.getaddrinfo('localhost', 80)",
        "asyncio.get_event_loop().create_connection(None, '127.0.0.1', 80)",
    )
    assert set(found) <= {"ModuleNotFoundError", "PermissionError", "OSError", "gaierror"}


async def test_processes_threads_and_native_code_are_refused(ex: Executor) -> None:
    """PYE-04"""
    absent = ["ctypes", "mmap", "multiprocessing", "subprocess", "signal", "resource", "pty"]
    found = await attempts(ex, "", *(f"__import__({name!r})" for name in absent))
    assert found == ["ModuleNotFoundError"] * len(absent)
    found = await attempts(
        ex,
        "import os, threading, _thread, posix",
        "threading.Thread(target=print).start()",
        "_thread.start_new_thread(print, ())",
        "os.fork()",
        "os.execv('/bin/sh', ['sh'])",
        "os.system('ls')",
        "os.kill(1, 9)",
        "posix.fork()",
    )
    assert set(found) <= {"RuntimeError", "PermissionError", "AttributeError", "NotImplementedError"}


async def test_no_host_of_another_sandbox_is_there(ex: Executor) -> None:
    """PYE-05"""
    names = ["js", "pyodide", "pyodide_js", "_pyodide_core", "micropip"]
    assert await attempts(ex, "", *(f"__import__({name!r})" for name in names)) == ["ModuleNotFoundError"] * 5


async def test_walking_attributes_from_tools_reaches_guest_objects_only(ex: Executor) -> None:
    """PYE-07"""
    found = await result(
        ex,
        "x = tools.demo\n"
        "[f'{x.__init__.__globals__}', '{0.__class__}'.format(tools), '{t.__class__}'.format_map(dict(t=tools))]",
    )
    assert "/home" not in str(found)
    assert "site-packages" not in str(found)
    assert "HMAC" not in str(found)


async def test_frames_and_tracebacks_hold_no_frame_and_no_path_of_the_host(ex: Executor) -> None:
    """PYE-08"""
    code = """
import sys, gc, inspect
seen = set()
try:
    tools.nobody.has.this()
except Exception as e:
    tb = e.__traceback__
    while tb:
        seen.add(tb.tb_frame.f_code.co_filename)
        tb = tb.tb_next
frame = sys._getframe()
while frame:
    seen.add(frame.f_code.co_filename)
    frame = frame.f_back
seen |= {info.filename for info in inspect.stack()}
seen |= {o.co_filename for o in gc.get_referents(*gc.get_objects()) if type(o).__name__ == "code"}
sorted(seen)
"""
    files = await result(ex, code)
    assert all(name.startswith(("<", "/python/", "wit_world", "app")) or "/" not in name for name in files), files


@pytest.mark.parametrize(
    "code",
    [
        "10 ** 10 ** 8",
        "import sys\nsys.set_int_max_str_digits(0)\nstr(1 << 10 ** 7)",
        "'a' * 10 ** 9",
        "[0] * 10 ** 9",
        "bytes(10 ** 10)",
        "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
        "class K:\n    __hash__ = lambda s: 1\n    __eq__ = lambda s, o: s is o\nd = {K(): i for i in range(100_000)}",
        "import json\njson.loads('[' * 10 ** 6)",
        "import zlib\nx = zlib.decompress(zlib.compress(bytes(10 ** 8)))\nlen(x)",
        "int('9' * 10 ** 6)",
        "import random\nclass A:\n    __lt__ = lambda s, o: random.random() < .5\nsorted(A() for _ in range(10 ** 5))",
    ],
)
async def test_a_bomb_stays_within_its_budgets(ex: Executor, code: str) -> None:
    """PYE-12"""
    run = await ex.run(code, language="python", budgets={"fuel": 10**9})
    assert run.status == "failed"
    assert run.error is not None
    assert run.error["code"] in {
        "fuel_exhausted", "memory_exhausted", "stack_exhausted", "script_error", "result_too_large", "unserializable"
    }  # fmt: skip


async def test_the_worker_serves_on_after_a_script_ended_the_interpreter(ex: Executor) -> None:
    for code in (
        "import posix\nposix._exit(3)",
        "import posix\nposix.abort()",
        "import threading\nl = threading.Lock()\nl.acquire()\nl.acquire()",
    ):
        run = await ex.run(code, language="python")
        assert run.error is not None
        assert run.error["code"] == "script_error"
        assert await result(ex, "1 + 1") == 2


async def test_waiting_ends_at_the_deadline_or_at_once_and_holds_no_thread(ex: Executor) -> None:
    """PYE-14"""
    for code in ("import time\ntime.sleep(3600)", "await asyncio.sleep(3600)"):
        run = await ex.run(code, language="python", budgets={"wall_ms": 300})
        assert run.error is not None
        assert run.error["code"] == "deadline_exceeded"
    found = await attempts(
        ex,
        "import builtins, sys",
        "builtins.input()",
        "sys.stdin.read()",
        "__import__('select')",
        "sys.stdin.readline()",
    )
    assert found == ["EOFError", "''", "ModuleNotFoundError", "''"]


async def test_the_environment_says_nothing_of_the_host(ex: Executor) -> None:
    """PYE-15"""
    code = """
import os, sys, platform, time, random
[dict(os.environ), sys.argv, sys.path, platform.uname().system, sys.executable, os.getcwd(), id(object()) < 2 ** 28,
 len(os.urandom(1000)), time.localtime(0).tm_year]
"""
    assert await result(ex, code) == [{}, [""], [], "wasi", "", "/", True, 1000, 1970]
    code = "import os, random\n[os.urandom(8), random.random()]"
    first, second = await result(ex, code), await result(ex, code)
    assert first != second


@pytest.mark.parametrize(
    "setup",
    [
        "import atexit\natexit.register(lambda: tools.demo.org.main.echo(late=1))",
        "import builtins\nclass A:\n    def __del__(self):\n        tools.demo.org.main.echo()\nbuiltins.keep = A()",
        "import weakref\nclass A:\n    pass\na = A()\nr = weakref.ref(a, lambda _: tools.demo.org.main.echo(late=1))",
        "import sys\nsys.settrace(lambda *a: None)",
    ],
)
async def test_nothing_is_called_after_the_result(ex: Executor, setup: str) -> None:
    """PYE-16"""
    run = await ex.run(f"{setup}\n5", language="python")
    assert (run.status, run.result, run.calls) == ("completed", 5, [])
