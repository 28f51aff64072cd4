"""Asking the person at the terminal about calls that wait for one."""

from __future__ import annotations

import sys
from typing import Any, Final

import anyio.to_thread

from bridge.wire.errors import ExecutorError
from executor.cli import output
from executor.cli.session import Session

_REPLIES: Final = {
    "y": "approve",
    "yes": "approve",
    "n": "deny",
    "no": "deny",
    "d": "dismiss",
    "dismiss": "dismiss",
    "c": "cancel",
    "cancel": "cancel",
}
_ANSWERS: Final = {"y": "approve", "yes": "approve", "n": "deny", "no": "deny", "c": "cancel", "cancel": "cancel"}


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


async def settle(session: Session, run: dict[str, Any]) -> dict[str, Any]:
    """Ask about everything that `run` waits for, until it has ended or nobody answers; the run as it is then."""
    others: set[str] = set()
    while asked := next((one for one in _open(run) if one["id"] not in others), None):
        show(asked)
        answer = await (_ask() if asked["kind"] == "approval" else fill_in(asked["question"]["schema"]))
        if answer is None:
            return run
        try:
            run = await session.resume(run["run_id"], asked["id"], *answer)
        except ExecutorError as e:
            if e.code not in ("own_approval", "invalid_request"):
                raise
            output.say_error(e)
            if e.code == "own_approval":
                others.add(asked["id"])
    return run


def _open(run: dict[str, Any]) -> list[dict[str, Any]]:
    return run.get("interactions") or [] if run["status"] == "waiting" else []


def show(asked: dict[str, Any]) -> None:
    """What is asked, with every argument in full and nothing in it that a terminal would obey."""
    import json

    if asked["kind"] == "input":
        _show_question(asked)
        return
    output.say(f"\n{asked['path']} needs your approval ({asked['side_effect']})", "strong")
    output.say(f"  {output.visible(asked['reason'])}", "quiet")
    output.say(output.visible(json.dumps(asked["arguments"], ensure_ascii=False, indent=2), keep="\n"))


def _show_question(asked: dict[str, Any]) -> None:
    """A server's words, marked as such."""
    question = asked["question"]
    output.say(f"\n{asked['path']}: {output.visible(question['server'])} asks", "strong")
    for line in str(question["message"]).splitlines():
        output.say(f"  | {output.visible(line)}")
    output.say(f"  {question['note']}", "quiet")


async def _ask() -> tuple[str, None] | None:
    while True:
        line = await _line("approve? [y]es, [n]o, [c]ancel the run: ")
        if line is None:
            return None
        if action := _ANSWERS.get(line.strip().lower()):
            return action, None


async def fill_in(form: dict[str, Any]) -> tuple[str, dict[str, Any] | None] | None:
    """A person's answer to a form; None where nobody answers."""
    while True:
        line = await _line("answer? [y]es, [n]o, [d]ismiss it, [c]ancel the run: ")
        if line is None:
            return None
        action = _REPLIES.get(line.strip().lower())
        if action is not None and action != "approve":
            return action, None
        if action == "approve":
            break
    content: dict[str, Any] = {}
    for name, field in form["properties"].items():
        line = await _line(f"  {_described(name, field, name in form['required'])}: ")
        if line is None:
            return None
        if text := line.rstrip("\r\n"):
            content[name] = typed(field, text)
    return "approve", content


def _described(name: str, field: dict[str, Any], required: bool) -> str:
    said = [output.visible(field.get("title") or name)]
    if field.get("description"):
        said.append(f"({output.visible(field['description'])})")
    options = field.get("oneOf") or field.get("items", {}).get("anyOf") or []
    choices = field.get("enum") or field.get("items", {}).get("enum") or [one["const"] for one in options]
    if choices:
        said.append("[" + ", ".join(output.visible(one) for one in choices) + "]")
    elif field["type"] == "boolean":
        said.append("[true, false]")
    if "default" in field:
        said.append(f"default {output.visible(str(field['default']))}")
    return " ".join(said) + ("" if required else ", may be left out")


def typed(field: dict[str, Any], text: str) -> Any:
    """What was typed as a value of the field; what is none is left as it is, to be refused by name."""
    kind, word = field["type"], text.strip()
    if kind == "boolean":
        return {"true": True, "yes": True, "y": True, "false": False, "no": False, "n": False}.get(word.lower(), word)
    if kind == "array":
        return [each.strip() for each in text.split(",") if each.strip()]
    if kind in ("integer", "number"):
        try:
            return int(word) if kind == "integer" or word.lstrip("+-").isdigit() else float(word)
        except ValueError:
            return word
    return text


async def _line(prompt: str) -> str | None:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line: str = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    if not line:
        sys.stderr.write("\n")
        return None
    return line
