"""How a run ended without a result: code, name, message, the place in the text that was sent, the guest's frames."""

from __future__ import annotations

import opcode
import traceback
from types import TracebackType
from typing import Any

from . import loop, script, state, values, wire

_MAX_MESSAGE = 8192
_MAX_STACK = 16384
_MAX_FRAMES = 20
_HANDED_ON = frozenset(opcode.opmap[name] for name in ("RAISE_VARARGS", "RERAISE", "YIELD_VALUE", "SEND", "RESUME"))
"""Where an exception enters a frame that somebody made: a raise, or a value thrown into what waits."""
_TOO_DEEP = ("maximum recursion depth exceeded", "Stack overflow")
_NEVER = "the script waits for something that nothing can bring about any more"
_EXHAUSTED = "the script has used up its budget bridge_calls"
_OURS = "<executor>"

Outcome = tuple[int, str, str | None, str, int | None, int | None, str | None, str | None]


def describe(error: BaseException) -> Outcome:
    """The outcome for `error`, as the shim packs it."""
    if isinstance(error, loop.NeverSettles):
        return (
            2,
            "never_settles",
            None,
            "the script waits for something that nothing can bring about any more",
            None,
            None,
            None,
            None,
        )
    if isinstance(error, state.Exhausted):
        return (2, "calls_exhausted", None, _EXHAUSTED, None, None, None, None)
    line, column = place(error)
    if type(error) is values.Unserializable:
        return (2, "unserializable", None, error.message, line, column, stack(error), error.path)
    return (2, _code(error), _name(error), message(error), line, column, stack(error), None)


def refused(error: BaseException) -> Outcome:
    """The outcome for a text that does not compile: nothing of it ran."""
    if isinstance(error, SyntaxError):
        line = error.lineno if error.lineno and error.lineno > 0 else 1
        column = error.offset if error.offset and error.offset > 0 else 1
        return (2, "syntax_error", type(error).__name__, error.msg or "invalid syntax", line, column, None, None)
    text = str(error) or "the script is nested too deep to compile"
    return (2, "syntax_error", "SyntaxError", text, 1, 1, None, None)


def _code(error: BaseException) -> str:
    """Limits are known by what happened, never by a type that a script could raise as well."""
    if type(error) is RecursionError and str(error).startswith(_TOO_DEEP) and not _was_raised_by_script(error):
        return "stack_exhausted"
    if type(error) is TypeError and "''" in str(error) and wire.memory_refused():
        # CPython 3.14.0 loses the MemoryError of `text += more` in a function and goes on with a null object, whose
        # type has no name
        return "memory_exhausted"
    # the interpreter says nothing when memory is short; the parser says that a text is too deep for it
    if type(error) is MemoryError and not error.args and (wire.memory_refused() or not _was_raised_by_script(error)):
        return "memory_exhausted"
    return "script_error"


def _was_raised_by_script(error: BaseException) -> bool:
    """Whether the script made it and raised it or threw it: the last frame stands at such an instruction."""
    at = error.__traceback__
    if at is None:
        return True
    while at.tb_next is not None:
        at = at.tb_next
    code = at.tb_frame.f_code.co_code
    return at.tb_lasti < len(code) and code[at.tb_lasti] in _HANDED_ON


def _name(error: BaseException) -> str:
    return type(error).__name__[:256]


def message(error: BaseException) -> str:
    """What the exception says, cut to a length that is fit to show."""
    try:
        text = str(error)
    except BaseException:
        return "(its message cannot be shown)"
    if not text and isinstance(error, MemoryError):
        return "no memory is left within the budget"
    if isinstance(error, BaseExceptionGroup):
        parts = "; ".join(f"{type(e).__name__}: {e}"[:500] for e in error.exceptions[:5])
        text = f"{text}: {parts}"
    return text[:_MAX_MESSAGE]


def place(error: BaseException) -> tuple[int | None, int | None]:
    """Line and column, counted from 1, of the innermost frame of the script that the exception came through."""
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            if (found := place(part)) != (None, None):
                return found
    line, column = _own_place(error)
    if line is None and isinstance(error, SyntaxError) and error.filename == script.FILE:
        return error.lineno, error.offset
    if line is None and error.__cause__ is not None and error.__cause__ is not error:
        return _own_place(error.__cause__)
    return line, column


def _own_place(error: BaseException) -> tuple[int | None, int | None]:
    line: int | None = None
    column: int | None = None
    at = error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        if code.co_filename == script.FILE:
            line, column = at.tb_lineno, _column(at)
        at = at.tb_next
    return line, column


def _column(at: TracebackType) -> int | None:
    positions = list(at.tb_frame.f_code.co_positions())
    index = at.tb_lasti // 2
    if index >= len(positions):
        return None
    line, _, column, _ = positions[index]
    if line is None or column is None:
        return None
    lines = state.source.splitlines()
    text = lines[line - 1] if line <= len(lines) else ""
    return len(text.encode()[:column].decode(errors="ignore")) + 1


def stack(error: BaseException) -> str:
    """The traceback as Python writes it, of the script's frames and of those of the library it called."""
    try:
        shown = traceback.TracebackException(type(error), error, error.__traceback__, limit=-_MAX_FRAMES, compact=True)
        _strip(shown, 0)
        text = "".join(shown.format())
    except BaseException:
        return ""
    return text.strip()[:_MAX_STACK]


def _strip(shown: Any, depth: int) -> None:
    """Take our own frames out; the script never called them by name."""
    if shown is None or depth > 20:
        return
    first = next((at for at, frame in enumerate(shown.stack) if frame.filename == script.FILE), 0)
    kept = [frame for frame in shown.stack[first:] if not frame.filename.startswith(_OURS)]
    shown.stack[:] = kept
    for inner in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        _strip(inner, depth + 1)
