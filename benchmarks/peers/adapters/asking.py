"""What every Python adapter is asked, on the command line: PROBE SAMPLES LANGUAGE.

A line says that it is ready, the last line is the answer, both in JSON.

An adapter gives a `Sandbox` with the calls below and hands it to `main`. This file imports nothing but the standard
library: it runs in the environments of the peers.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

WALL_S, MEMORY, CALLS = 1.0, 64 << 20, 50
ENOUGH_S = 2.0
SPEED = ("one", "loop", "bridge")

SCRIPTS = {
    "javascript": {
        "one": "1+1",
        "loop": "(function () { let s = 0; for (let i = 0; i < 1000000; i++) s += i; return s })()",
        "endless": "for (;;) {}",
        "swallowing": "for (;;) { try { for (;;) {} } catch (e) {} }",
        "allocating": "const kept = []; for (;;) kept.push(new Array(10000).fill(1.5))",
        "doubling": "let s = 'x'; for (;;) s += s",
        "backtracking": "/(a+)+$/.test('a'.repeat(40) + '!')",
        "recursing": "const f = () => f(); f()",
    },
    "python": {
        "one": "1 + 1",
        "loop": "s = 0\nfor i in range(1000000):\n    s += i\ns",
        "endless": "while True:\n    pass",
        "swallowing": "while True:\n  try:\n    while True: pass\n  except BaseException: pass",
        "allocating": "kept = []\nwhile True:\n    kept.append([1.5] * 10000)",
        "doubling": "s = 'x'\nwhile True:\n    s += s",
        "backtracking": "import re\nre.match('(a+)+$', 'a' * 40 + '!')",
        "recursing": "def f():\n    return f()\nf()",
    },
}


class Sandbox(Protocol):
    def evaluate(self, source: str) -> Any:
        """The value of `source` in a new sandbox with the limits above, which is dropped; raises what the peer does."""

    def called(self, count: int) -> float:
        """Seconds that a script in a new sandbox takes for `count` calls, one after another, of a host function that
        gives its argument back."""


def main(make: Callable[[str], Sandbox]) -> None:
    probe, samples, language = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    sandbox = make(language)
    if probe not in SPEED:
        # What is compiled or started once is not in the time that a limit takes.
        _outcome(lambda: sandbox.evaluate(SCRIPTS[language]["one"]))
    print("\n" + json.dumps({"ready": True}), flush=True)
    try:
        answer = _asked(sandbox, probe, samples, SCRIPTS[language])
    except Exception as e:
        answer = {"ended": _said(e)}
    print("\n" + json.dumps(answer), flush=True)


def _asked(sandbox: Sandbox, probe: str, samples: int, scripts: dict[str, str]) -> dict[str, Any]:
    if probe in ("one", "loop"):
        sandbox.evaluate(scripts[probe])
        return {"ms": _times(samples, lambda: _timed(lambda: sandbox.evaluate(scripts[probe])) * 1e3)}
    if probe == "bridge":
        return {"us": _bridge(sandbox, samples)}
    if probe == "calls":
        return _outcome(lambda: sandbox.called(2000))
    return _outcome(lambda: sandbox.evaluate(scripts[probe]))


def _timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _times(samples: int, call: Callable[[], float]) -> list[float]:
    """As many as were asked for, or three and as many as there is time for."""
    taken: list[float] = []
    until = time.perf_counter() + ENOUGH_S
    while len(taken) < samples and (len(taken) < 3 or time.perf_counter() < until):
        taken.append(call())
    return taken


def _bridge(sandbox: Sandbox, samples: int) -> list[float]:
    """Microseconds a call: the slope between few calls and more, so that making the sandbox is not in it."""
    sandbox.called(45)
    return _times(samples, lambda: (sandbox.called(45) - sandbox.called(5)) / 40 * 1e6)


def _outcome(call: Callable[[], Any]) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        call()
        ended = "completed"
    except BaseException as e:
        ended = _said(e)
    return {"ended": ended, "seconds": time.perf_counter() - start}


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
