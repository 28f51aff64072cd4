"""A small program that runs an MCP server and outlives it, but not the process that started both.

    python -I -S keeper.py CONTROL PROGRAM ARGUMENT…

It starts PROGRAM with this process's standard streams and environment, in a session of its own. When the pipe CONTROL
closes, however its other end died, or a signal says so, the program and whatever it started are asked to end, and
killed a moment later; so are those that the program leaves behind when it ends by itself. It imports nothing of ours.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

GRACE_S = 1.0
STEP_S = 0.02
NOT_FOUND = 127
_SUBREAPER, _DEATH_SIGNAL = 36, 1


def main() -> int:
    control, argv = int(sys.argv[1]), sys.argv[2:]
    # Python may have set it for itself (PEP 538); it was not given.
    environ = {key: value for key, value in os.environ.items() if key != "LC_CTYPE"}
    _prctl(_SUBREAPER, 1)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    stopping: list[int] = []
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: stopping.append(number))
    program = os.fork()
    if program == 0:
        _become(argv, environ, (control, woken, wake))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    code = None
    while code is None and not stopping:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
        if control in ready and not os.read(control, 4096):
            break
        code = _reaped(program)
    _end(program)
    return code or 0


def _become(argv: list[str], environ: dict[str, str], closing: tuple[int, ...]) -> None:
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        _prctl(_DEATH_SIGNAL, int(signal.SIGKILL))
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for descriptor in closing:
            os.close(descriptor)
        os.execve(argv[0], argv, environ)  # noqa: S606 - that there is no shell is the point
    except OSError as e:
        os.write(2, f"the program cannot be started: {e.strerror}\n".encode())
    finally:
        os._exit(NOT_FOUND)


def _reaped(program: int) -> int | None:
    """How the program ended, when it has; what else has ended is forgotten."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == program:
            code = os.waitstatus_to_exitcode(status)


def _end(program: int) -> None:
    _signalled(program, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while _left(program):
        late = time.monotonic() > deadline
        if late:
            _signalled(program, signal.SIGKILL)
        if time.monotonic() > deadline + GRACE_S:
            return
        time.sleep(STEP_S)


def _left(program: int) -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _signalled(program: int, number: int) -> None:
    for pid in _descendants(os.getpid()):
        _kill(os.kill, pid, number)
    _kill(os.killpg, program, number)


def _kill(how: object, pid: int, number: int) -> None:
    try:
        how(pid, number)  # type: ignore[operator]
    except (ProcessLookupError, PermissionError):
        return


def _descendants(pid: int) -> list[int]:
    """The processes below `pid`, where the system tells; what lost its parent is below this one."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        try:
            tasks = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for task in tasks:
            try:
                with open(f"/proc/{parent}/task/{task}/children") as file:
                    children = [int(child) for child in file.read().split()]
            except OSError:
                continue
            found += children
            waiting += children
    return found


def _prctl(option: int, value: int) -> None:
    """Linux alone has it; elsewhere the program's own group is what is ended."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return


if __name__ == "__main__":
    sys.exit(main())
