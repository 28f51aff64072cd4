"""What a person sees. Results go to standard output, everything said about them to standard error."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from bridge.wire.errors import ExecutorError
from executor.cli import streams

_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
"""Unicode categories of characters that a terminal obeys or does not show."""
_THEME: Final = Theme(
    {
        "good": "green",
        "bad": "bold red",
        "odd": "yellow",
        "name": "cyan",
        "quiet": "bright_black",
        "strong": "bold",
    }
)
_MARKS: Final[dict[str, tuple[str, str]]] = {
    "completed": ("✔", "good"),
    "failed": ("✘", "bad"),
    "cancelled": ("■", "odd"),
    "expired": ("■", "odd"),
    "queued": ("…", "quiet"),
    "running": ("…", "name"),
    "waiting": ("…", "odd"),
}
_LEVELS: Final[dict[str, str]] = {"error": "bad", "warn": "odd", "debug": "quiet", "info": "name"}

# Into a pipe or a file, ids and commands stay whole, however wide that makes a table.
_WIDE: Final = 240


class _Console(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        """As rich does it, but without the blanks that fill up a table's last column where no terminal shows them."""
        if self.is_terminal or not any(isinstance(one, Table) for one in objects):
            super().print(*objects, **options)
            return
        with self.capture() as lines:
            super().print(*objects, **options)
        self.file.write("".join(f"{line.rstrip()}\n" for line in lines.get().splitlines()))
        self.file.flush()


out = _Console(theme=_THEME, highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _WIDE)
notes = _Console(theme=_THEME, highlight=False, stderr=True, width=None if sys.stderr.isatty() else _WIDE)


def print_json(value: Any) -> None:
    """Machine output: one JSON document on standard output."""
    text = json.dumps(value, ensure_ascii=not streams.is_utf8(), indent=2 if sys.stdout.isatty() else None)
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
    sys.stdout.flush()


def print_value(value: Any) -> None:
    """A result: coloured on a terminal, plain JSON into a pipe, a bare string as it is."""
    if not sys.stdout.isatty():
        print_json(value)
    elif isinstance(value, str):
        out.print(Text(printable(value)))
    else:
        out.print(JSONHighlighter()(Text(pretty(value, min(out.width, 100)))))


def pretty(value: Any, width: int, indent: int = 0, before: int = 0) -> str:
    """JSON as a person would lay it out: on one line what fits in `width`, else a part a line.

    `before` is what the line already holds beside its indent.
    """
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or indent + before + len(flat) <= width:
        return flat
    inner = indent + 2
    if isinstance(value, dict):
        names = [json.dumps(name, ensure_ascii=False) + ": " for name in value]
        parts = [
            name + pretty(part, width, inner, len(name) + 1) for name, part in zip(names, value.values(), strict=True)
        ]
        start, end = "{", "}"
    else:
        parts = [pretty(part, width, inner, 1) for part in value]
        start, end = "[", "]"
    lines = ",\n".join(f"{' ' * inner}{part}" for part in parts)
    return f"{start}\n{lines}\n{' ' * indent}{end}"


def visible(text: str, *, keep: str = "") -> str:
    """`text` with each character escaped that could hide, move or rewrite others on a terminal, but for `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\\u{{{ord(one):x}}}" if unicodedata.category(one) in _HIDDEN and one not in keep else one for one in text
    )


def printable(text: str) -> str:
    """Text that a script or a server chose, for a terminal; lines, tabs and joined emoji are as they were."""
    return visible(text, keep="\n\t\u200d")


def say(text: str, style: str = "") -> None:
    notes.print(Text(text, style=style))


def say_unrevoked(account: str, why: str) -> None:
    """Say that tokens of an account that is gone may still be good; `why` is empty where its server cannot revoke."""
    if why:
        said = f"the tokens of {account} were not taken back ({visible(why)})"
    else:
        said = f"the server of {account} takes no tokens back"
    say(f"! {said}: revoke them there, or wait until they expire", "odd")


_IN_COMMANDS: Final = (
    (re.compile(r"tools\.describe\('([^']*)'\)"), r"executor tools describe \1"),
    (re.compile(r'tools\.search\("…"\)'), "executor tools search WORDS"),
    (re.compile(r"`GET /runs`"), "`executor runs list`"),
    (re.compile(r"`GET /runs/\{id\}`"), "`executor runs show RUN`"),
    (re.compile(r"`GET /policies`"), "`executor policy list`"),
    (re.compile(r"\(allow_private\)"), "(--allow-private)"),
    (re.compile(r"`GET /integrations`"), "`executor integrations list`"),
    (re.compile(r"^Name it otherwise, or replace it\.$"), "give it another name, or `--replace` the one that is there"),
    (re.compile(r"^Remove it first, or replace it\.$"), "`--replace` replaces it, `executor remove` removes it."),
)
"""What scripts and HTTP clients are told to do, as commands."""


def say_error(error: ExecutorError) -> None:
    """One line, and what to do about it, in words of the command line."""
    hint = error.hint or ""
    for said, command in _IN_COMMANDS:
        hint = said.sub(command, hint)
    notes.print(Text.assemble(("error", "bad"), ": ", printable(error.message)), soft_wrap=True)
    if hint:
        notes.print(Text.assemble(("  hint", "quiet"), ": ", hint), soft_wrap=True)


def table(*columns: str, right: tuple[str, ...] = (), whole: tuple[str, ...] = ()) -> Table:
    """`whole` columns are never broken: what is in them gets copied."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="quiet")
    for column in columns:
        made.add_column(
            column, justify="right" if column in right else "left", overflow="fold", no_wrap=column in whole
        )
    return made


class Progress:
    """What a run says while it goes on: what it logs and emits."""

    def __init__(self) -> None:
        self.said = False

    def seen(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "log":
            style = _LEVELS.get(data["level"], "quiet")
            self._say(Text.assemble((f"{data['level']:<6}", style), (printable(data["text"]), "dim")))
        elif kind == "emit":
            self._say(Text.assemble(("emit  ", "name"), printable(json.dumps(data["value"], ensure_ascii=False))))

    def waits(self) -> None:
        """Say why nothing happens yet."""
        say("· not started yet: every place is taken, or the image of its language is being built, once", "quiet")

    def _say(self, text: Text) -> None:
        self.said = True
        notes.print(text, soft_wrap=True)


def show_run(run: dict[str, Any], code: str | None = None, progress: Progress | None = None) -> None:
    """A run's answer: logs and emitted values where nobody saw them, calls, result or error, and what it used."""
    if progress is None:
        progress = Progress()
        for line in run.get("logs") or []:
            progress.seen("log", line)
        for value in run.get("emitted") or []:
            progress.seen("emit", {"value": value})
    if progress.said:
        notes.print()
    _show_calls(run.get("calls") or [])
    if "result" in run:
        print_value(run["result"])
    elif run.get("result_ref"):
        _show_stored(run["result_ref"])
    if run.get("error"):
        _show_error(run["error"], code)
    show_waiting(run)
    notes.print()
    _show_summary(run)


def show_waiting(run: dict[str, Any]) -> None:
    """What the run waits for, and how to answer."""
    for each in run.get("interactions") or []:
        arguments = json.dumps(each["arguments"], ensure_ascii=True)
        notes.print(Text.assemble(("waits ", "odd"), (each["path"], "name"), f" {arguments}"), soft_wrap=True)
        if question := each.get("question"):
            say(f"      {visible(question['server'])} asks: {visible(question['message'])}")
            say(f"      {question['note']}", "quiet")
            fields = ", ".join(f'"{name}": …' for name in question["schema"]["properties"])
            say(f"      executor runs resume {run['run_id']} {each['id']} --answer '{{{visible(fields)}}}'", "quiet")
            say("      or --deny, or --dismiss", "quiet")
            if not question["lasting"]:
                say("      only while the Executor that made the call runs: executor serve, or a terminal", "odd")
            continue
        say(f"      executor runs resume {run['run_id']} {each['id']} --approve | --deny", "quiet")
        if each.get("approver") == "another":
            say("      by somebody else than the one who ran it", "quiet")


def print_line(value: Any) -> None:
    """Machine output as it comes: a JSON document on a line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=not streams.is_utf8()).encode("utf-8", "replace").decode() + "\n")
    sys.stdout.flush()


def show_event(event: dict[str, Any]) -> None:
    """One thing that happened in a run."""
    kind, data = event["type"], event["data"]
    if kind in ("log", "emit"):
        Progress().seen(kind, data)
    elif kind == "call":
        say(f"call  {_as_called(data['path'])}  {data.get('code') or data['state']}", "quiet")
    elif kind == "status":
        say(f"      {data['status']}", _MARKS.get(data["status"], ("", "odd"))[1])
    else:
        notes.print()
        if "result" in data:
            print_value(data["result"])
        elif data.get("result_ref"):
            _show_stored(data["result_ref"])
        if data.get("error"):
            _show_error(data["error"], None)


def show_replay(report: dict[str, Any]) -> None:
    """What a replay found."""
    calls, steps, fuel = report["calls"], report["steps"], report["fuel"]
    if report["same"]:
        what = "the same calls, fuel and result" if report["complete"] else "the same calls, up to where it was ended"
        if not report["same_image"]:
            what = f"{what.replace(', fuel', '')} (the guest image is another one now: fuel is not compared)"
        say(f"✔ {what}: {calls} calls in {steps} steps, {fuel['replayed']} units of fuel", "good")
        return
    found = report["divergence"]
    say(f"✘ the replay differs at step {found['step']}: {found['what']}", "bad")
    for name in ("recorded", "replayed"):
        say(f"  {name}  {json.dumps(found[name], ensure_ascii=False)[:2000]}")
    if not report["same_image"]:
        say("  the guest image is another one now", "odd")


def _as_called(path: str) -> str:
    """The path of a tool; that of a built-in call as a script writes it."""
    return f"tools.{path[1:]}" if path.startswith("$") else path


def _show_calls(calls: list[dict[str, Any]]) -> None:
    if not calls:
        return
    rows = table("", "call", "outcome", "time", "sent", "got", right=("time", "sent", "got"))
    for each in calls:
        outcome = each.get("outcome") or each.get("state") or "done"
        mark, style = {"done": ("✔", "good"), "failed": ("✘", "bad")}.get(outcome, ("?", "odd"))
        status = each.get("http_status") or each.get("status")
        what = str(each.get("code") or (status if status is not None else outcome))
        rows.add_row(
            Text(mark, style=style),
            Text(_as_called(each["path"]), style="name"),
            Text(what, style="" if outcome == "done" else style),
            duration(each.get("duration_ms")) if outcome != "waiting" else "",
            size(each.get("args_bytes")),
            size(each.get("value_bytes")),
        )
    notes.print(rows)
    notes.print()


def _show_stored(ref: dict[str, Any]) -> None:
    notes.print(Text.assemble("a result of ", (size(ref["bytes"]), "strong"), ", kept; it begins with"))
    notes.print(Text(printable(str(ref.get("preview", ""))[:500]), style="dim"), soft_wrap=True)


def _show_error(error: dict[str, Any], code: str | None) -> None:
    name = f"{error['name']}: " if error.get("name") and not error["message"].startswith(error["name"]) else ""
    notes.print(Text.assemble((error["code"], "bad"), "  ", name, printable(error["message"])), soft_wrap=True)
    placed = code is not None and bool(error.get("line"))
    if placed:
        _show_place(code or "", error["line"], error.get("column"))
    for line in _stack(error, placed=placed)[:5]:
        notes.print(Text(f"    {printable(line)}", style="quiet"), soft_wrap=True)
    if error.get("hint"):
        notes.print(Text.assemble(("  hint", "quiet"), ": ", printable(error["hint"])), soft_wrap=True)


def _stack(error: dict[str, Any], *, placed: bool) -> list[str]:
    """The lines of the stack that say more than the message and, where the source was shown, the place in it."""
    lines = [line.strip() for line in str(error.get("stack") or "").splitlines() if line.strip()][1:]
    # Python ends a traceback with the message, and begins each of its frames like this.
    if lines and lines[-1] in (error["message"], f"{error.get('name')}: {error['message']}"):
        lines.pop()
    frames = sum(line.startswith('File "') for line in lines)
    return [] if placed and frames == 1 else lines


def _show_place(code: str, line: int, column: int | None) -> None:
    """The source line and the one before it, with a caret under the column (both count from 1)."""
    lines = code.splitlines()
    if not 1 <= line <= len(lines):
        return
    width = len(str(line))
    notes.print()
    for number in range(max(1, line - 1), line + 1):
        here = number == line
        margin = (f"  {'❯' if here else ' '} {number:>{width}} │ ", "bad" if here else "quiet")
        notes.print(Text.assemble(margin, (_shown(lines[number - 1]), "" if here else "dim")), soft_wrap=True)
    if column is not None and 1 <= column <= len(lines[line - 1]) + 1:
        before = _shown(lines[line - 1][: column - 1])
        notes.print(Text(f"    {' ' * width} │ {' ' * Text(before).cell_len}^", style="bad"), soft_wrap=True)


def _shown(line: str) -> str:
    return printable(line.replace("\t", "    "))[:2000]


def _show_summary(run: dict[str, Any]) -> None:
    usage = run.get("usage") or {}
    mark, style = _MARKS.get(run["status"], ("?", "odd"))
    head = Text.assemble((f"{mark} {run['status']}", style))
    if usage.get("wall_ms") is not None:
        head.append(f" in {duration(usage['wall_ms'])}")
    head.append(f"  {run['run_id']}", style="quiet")
    notes.print(head)
    limit = run.get("limit")
    if limit:
        notes.print(
            Text.assemble(
                "  ", (f"the budget {limit['name']} ended it: {limit['used']:,} of {limit['limit']:,}", "odd")
            )
        )
    if usage:
        notes.print(Text(f"  {usage_line(usage)}", style="quiet"), soft_wrap=True)


def usage_line(usage: dict[str, Any]) -> str:
    """The figures that a person asks for, in one line."""
    parts = [f"fuel {count(usage.get('fuel', 0))}"]
    if usage.get("cpu_ms") is not None:
        parts.append(f"cpu {duration(usage['cpu_ms'])}")
    if usage.get("waited_ms", 0) >= 1:
        parts.append(f"waited {duration(usage['waited_ms'])}")
    if usage.get("memory_bytes"):
        parts.append(f"memory {size(usage['memory_bytes'])}")
    if usage.get("bridge_calls"):
        calls = usage["bridge_calls"]
        parts.append(f"{calls} call{'s' if calls != 1 else ''}")
    if usage.get("result_bytes"):
        parts.append(f"result {size(usage['result_bytes'])}")
    return " · ".join(parts)


def count(number: float) -> str:
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number:g}"


def size(number: int | None) -> str:
    if number is None:
        return ""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number >= factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number} B"


def duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    if milliseconds < 10:
        return f"{milliseconds:.2g} ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.3g} s" if milliseconds < 999_500 else f"{milliseconds / 1000:.0f} s"


def moment(seconds: float | None) -> str:
    """A Unix time in the local zone, to the second."""
    if seconds is None:
        return ""
    from datetime import datetime

    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
