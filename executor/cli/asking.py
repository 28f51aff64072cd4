"""Asking the person at the terminal about calls that wait for one."""

from __future__ import annotations

import sys
from typing import Any, Final

import anyio.to_thread

from bridge.wire.errors import ExecutorError
from executor.cli import output
from executor.cli.session import Session

_ANSWERS: Final = {"y": "approve", "yes": "approve", "n": "deny", "no": "deny", "c": "cancel", "cancel": "cancel"}


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


async def settle(session: Session, run: dict[str, Any]) -> dict[str, Any]:
    """Ask about everything that `run` waits for, until it has ended or nobody answers; the run as it is then."""
    others: set[str] = set()
    while asked := next((one for one in _open(run) if one["id"] not in others), None):
        show(asked)
        action = await _ask()
        if action is None:
            return run
        try:
            run = await session.resume(run["run_id"], asked["id"], action, None)
        except ExecutorError as e:
            if e.code != "own_approval":
                raise
            output.say_error(e)
            others.add(asked["id"])
    return run


def _open(run: dict[str, Any]) -> list[dict[str, Any]]:
    return run.get("interactions") or [] if run["status"] == "waiting" else []


def show(asked: dict[str, Any]) -> None:
    """What is asked, with every argument in full and nothing in it that a terminal would obey."""
    import json

    output.say(f"\n{asked['path']} needs your approval ({asked['side_effect']})", "strong")
    output.say(f"  {output.visible(asked['reason'])}", "quiet")
    output.say(output.visible(json.dumps(asked["arguments"], ensure_ascii=False, indent=2), keep="\n"))


async def _ask() -> str | None:
    while True:
        sys.stderr.write("approve? [y]es, [n]o, [c]ancel the run: ")
        sys.stderr.flush()
        line = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        if not line:
            sys.stderr.write("\n")
            return None
        if action := _ANSWERS.get(line.strip().lower()):
            return action
