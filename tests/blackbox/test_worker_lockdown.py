"""What a worker can still do, asked of the kernel and tried from within."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from runtime.dispatcher import Dispatcher, DispatcherSettings
from runtime.worker import lockdown
from tests.blackbox.rogue import CompiledHere, guest
from tests.blackbox.runs import run

pytestmark = pytest.mark.anyio


@pytest.fixture
async def dispatcher() -> AsyncIterator[Dispatcher]:
    settings = DispatcherSettings(workers=1, images={"quick": guest()}, require="process")
    async with Dispatcher(settings, cache=CompiledHere()) as running:
        assert (await run(running, "", language="quick")).result == b"\x02"
        yield running


def only_for_root() -> AbstractContextManager[object]:
    """A worker is not dumpable, so that even its own user may not read what it has."""
    return nullcontext() if os.geteuid() == 0 else pytest.raises(PermissionError)


def proc(dispatcher: Dispatcher, name: str) -> Path:
    [link] = dispatcher._links
    return Path(f"/proc/{link.pid}/{name}")


def status(dispatcher: Dispatcher) -> dict[str, str]:
    lines = proc(dispatcher, "status").read_text().splitlines()
    return {key: value.strip() for key, value in (line.split(":", 1) for line in lines)}


async def test_the_kernel_says_that_every_layer_stands(dispatcher: Dispatcher) -> None:
    """WRK-03."""
    facts = status(dispatcher)
    assert (facts["Seccomp"], facts["NoNewPrivs"], int(facts["CapEff"], 16)) == ("2", "1", 0)
    assert {"process", "rlimits", "no_new_privs", "seccomp"} <= set(dispatcher.level()["layers"])
    if os.geteuid() == 0:
        assert facts["Uid"].split() == facts["Gid"].split() == [str(lockdown.NOBODY)] * 4
        assert facts["Groups"] == ""
        assert "uid" in dispatcher.level()["layers"]


async def test_every_thread_of_it_is_filtered(dispatcher: Dispatcher) -> None:
    threads = list(proc(dispatcher, "task").iterdir())
    assert len(threads) >= 3
    for thread in threads:
        assert "Seccomp:\t2" in (thread / "status").read_text()


async def test_its_environment_is_empty_and_its_folder_the_root(dispatcher: Dispatcher) -> None:
    """WRK-03."""
    with only_for_root():
        assert proc(dispatcher, "environ").read_bytes() == b""
        assert proc(dispatcher, "cwd").readlink() == Path("/")


async def test_it_has_its_socket_and_the_images_memory_and_no_other_descriptor(dispatcher: Dispatcher) -> None:
    """WRK-09."""
    with only_for_root():
        links = [str(each.readlink()) for each in proc(dispatcher, "fd").iterdir()]
        assert sorted(link.split(":")[0] for link in links) == ["/dev/null"] * 3 + ["/memfd", "socket"]


async def test_its_limits_leave_no_file_no_core_and_no_process(dispatcher: Dispatcher) -> None:
    """WRK-04, SEC-18."""
    limits = proc(dispatcher, "limits").read_text()
    for name, soft in (("Max core file size", "0"), ("Max file size", "0"), ("Max processes", "0")):
        [line] = [line for line in limits.splitlines() if line.startswith(name)]
        assert line[len(name) :].split()[:2] == [soft, soft]


LOCKED = """
import ctypes, mmap, os, socket, sys, threading, time
from runtime.worker import lockdown
before = open("/dev/null", "rb")
released = threading.Event()
thread = threading.Thread(target=released.wait, daemon=True)
layers = lockdown.before_threads(os.getppid())
thread.start()
layers += lockdown.after_threads()
os.write(1, b"locked\\n")
{attempt}
os.write(1, b"done\\n")
os._exit(0)
"""


def attempt(code: str) -> subprocess.CompletedProcess[bytes]:
    """Run `code` in a process of its own that has locked itself down as a worker does."""
    script = LOCKED.format(attempt=textwrap.dedent(code))
    return subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)


REFUSED = {
    "open a file": 'os.open("/etc/passwd", os.O_RDONLY)',
    "open /proc": 'os.open("/proc/self/environ", os.O_RDONLY)',
    "make a file": 'os.open("/tmp/x", os.O_CREAT | os.O_WRONLY)',
    "list a folder": 'os.listdir("/")',
    "look at a file": 'os.stat("/etc/passwd")',
    "duplicate a descriptor": "os.dup(1)",
    "open a pipe": "os.pipe()",
    "change its uid": "os.setresuid(0, 0, 0)",
    "rename a file": 'os.rename("/tmp/a", "/tmp/b")',
    "change its name": "assert ctypes.CDLL(None, use_errno=True).prctl(15, b'x', 0, 0, 0) == -1; raise PermissionError",
    "raise a limit": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))",
}
FATAL = {
    "start a program": 'os.execv("/bin/true", ["true"])',
    "fork": "os.fork()",
    "start a thread": "threading.Thread(target=print).start()",
    "open a socket": "socket.socket()",
    "open a socket pair": "socket.socketpair()",
    "signal its parent": "os.kill(os.getppid(), 0)",
    "trace a process": "ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)",
    "make memory that runs": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    "let memory run": (
        "m = mmap.mmap(-1, 4096); c = ctypes.CDLL(None)\n"
        "a = ctypes.addressof(ctypes.c_char.from_buffer(m)); c.mprotect(ctypes.c_void_p(a), 4096, 5)"
    ),
    "make an anonymous file": "os.memfd_create('x')",
    "read another's memory": "ctypes.CDLL(None).process_vm_readv(os.getppid(), 0, 0, 0, 0, 0)",
    "make a namespace": "ctypes.CDLL(None).unshare(0x10000000)",
    "use io_uring": "ctypes.CDLL(None).syscall(425, 1, 0)",
    "use an x32 call": "ctypes.CDLL(None).syscall(0x40000000, 0, 0, 0)",
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_locked_worker_is_refused_to(what: str) -> None:
    code = f"""
try:
    {REFUSED[what]}
except (PermissionError, ValueError) as e:
    os.write(1, b"refused\\n")
"""
    done = attempt(code)
    assert done.stdout == b"locked\nrefused\ndone\n", (done.stdout, done.stderr[-500:], done.returncode)


@pytest.mark.parametrize("what", FATAL)
def test_a_worker_dies_when_it_tries_to(what: str) -> None:
    done = attempt(FATAL[what])
    assert (done.stdout, done.returncode) == (b"locked\n", -signal.SIGSYS), done.stderr[-500:]


def test_a_locked_worker_can_still_compute_allocate_collect_and_wait() -> None:
    done = attempt(
        """
import gc
blocks = [bytearray(10_000_000) for _ in range(20)]
del blocks
gc.collect()
loops = [[] for _ in range(100_000)]
for loop in loops: loop.append(loop)
del loops
gc.collect()
released.set()
thread.join()
time.sleep(0.001)
time.thread_time_ns()
hash("text")
"""
    )
    assert (done.stdout, done.returncode) == (b"locked\ndone\n", 0), done.stderr[-500:]


@pytest.mark.parametrize(
    ("layers", "level"),
    [
        (["process"], "process"),
        (["process", "rlimits", "no_new_privs", "landlock"], "process"),
        (["process", "rlimits", "no_new_privs", "seccomp"], "syscalls"),
        (["process", "rlimits", "no_new_privs", "landlock", "seccomp"], "full"),
    ],
)
def test_a_level_is_reached_by_its_layers(layers: list[str], level: lockdown.Level) -> None:
    """WRK-02."""
    assert lockdown.level(layers) == level
    order = ["process", "syscalls", "full"]
    for required in order:
        assert lockdown.suffices(level, required) == (order.index(level) >= order.index(required))
    assert not lockdown.suffices(level, "more")
