"""Asking the person at the terminal about calls that wait for one."""

from __future__ import annotations

import sys
from typing import Any, Final

import anyio.to_thread

from executor.cli import output
from executor.cli.session import Session

_ANSWERS: Final = {"y": "approve", "yes": "approve", "n": "deny", "no": "deny", "c": "cancel", "cancel": "cancel"}


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


async def settle(session: Session, run: dict[str, Any]) -> dict[str, Any]:
    """Ask about everything that `run` waits for, until it has ended or nobody answers; the run as it is then."""
    while run["status"] == "waiting" and run.get("interactions"):
        asked = run["interactions"][0]
        show(asked)
        action = await _ask()
        if action is None:
            return run
        run = await session.resume(run["run_id"], asked["id"], action, None)
    return run


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
