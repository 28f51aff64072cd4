"""How a text that was sent becomes a program: fences, prose and types, with every position that of the text itself.

`Reading` is a state machine without I/O. The worker asks for an attempt, makes it in an isolate, and says how it went:

    reading = Reading(text, language)
    attempt = reading.first()
    while attempt is not None:
        if attempt.kind == "strip":                     # TypeScript image: strip(attempt.text)
            attempt = reading.stripped(answer)          # its decoded output, whatever it says
        else:                                           # JavaScript image: start(attempt.text, …)
            if the guest's failure is `syntax_error`:   # nothing ran
                attempt = reading.refused(failure)
            else: the program runs; pass its last failure through reading.located(failure)
    otherwise end the run with reading.failure()

The texts that are tried, in order; each keeps its lines and columns, since what is not code is blanked, not cut:

1. Where a line opens a code fence outside a comment and outside a template literal: the fenced code. Blocks tagged
   js or ts come first, then blocks without a tag; blocks in other languages (json, bash, …) are never code. Of several
   blocks the first one; joined with the later ones of its kind where those use a name that it declares, since then
   they go on from it.
   Where there is no such fence: the text as it is.
2. A fence that opens at the end of a line of prose, or a fence below prose that step 1 did not trust.
3. The text without the sentences in front of it and behind it.

Each is compiled as JavaScript first, so plain JavaScript never pays for TypeScript, and stripped of types when that
fails. A text that JavaScript would accept and misread, such as the call `f<string>(x)`, is stripped at once, unless the
language, or the tag of its block, says JavaScript.

When nothing compiles, the last text that was tried gives the error, because each is tried only where there is a sign of
what surrounds the code. Of its two parsers the one that got further is believed, JavaScript's at a tie: types stop
JavaScript's parser at the first annotation, while the real mistake stops both at the same place. A construct that the
TypeScript parser names as unsupported is always reported. Errors after stripping are JavaScript's.

Columns count UTF-16 units from 1, as every JavaScript tool does; `located` makes them those of the text that was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from bridge.wire.errors import FrameError
from bridge.wire.frames import Failure
from runtime.worker import fences
from runtime.worker.fences import Block

Language = Literal["javascript", "typescript"]

_LINE_END: Final = re.compile(r"\r\n?")
_JAVASCRIPT: Final = frozenset({"js", "javascript", "mjs", "cjs", "node"})
_TYPESCRIPT: Final = frozenset({"ts", "typescript", "mts", "cts"})
_DECLARED: Final = re.compile(r"\b(?:const|let|var|class|enum|function\s*\*?)\s+([A-Za-z_$][\w$]*)")
_FRAME: Final = re.compile(r"script:(\d+):(\d+)")


class Attempt(NamedTuple):
    """What to do next: start `text` in the JavaScript or Python image, or strip it in the TypeScript image."""

    kind: Literal["javascript", "strip", "python"]
    text: str


class Reading:
    """The ways to read one text, tried in the order that the module's docstring gives."""

    def __init__(self, text: str, language: str) -> None:
        self._sent = normal(text)
        self._rest = _texts(self._sent, "javascript" if language == "javascript" else "typescript")
        self._text = ""
        self._columns = Columns(())
        self._was_stripped = False
        self._javascript: Failure | None = None
        self._typescript: Failure | None = None
        self._limit: Failure | None = None
        self._named = False

    def first(self) -> Attempt | None:
        """The first attempt; None when the text has code blocks, but none in a language that runs here."""
        return self._next_text()

    def refused(self, failure: Failure) -> Attempt | None:
        """Say that the JavaScript image refused to compile the last attempt; what to try now, None for nothing."""
        self._javascript = self.located(failure)
        if self._was_stripped:
            return self._next_text()
        self._was_stripped = True
        return Attempt("strip", self._text)

    def stripped(self, answer: Any) -> Attempt | None:
        """Say what `strip` answered: `[True, code, columns]`, `[False, [message, line, column, named]]`, or `[None]`.

        The last of these means that there was not enough memory. Raises FrameError when the answer has another shape.
        """
        match answer:
            case [True, str(code), list(columns)] if all(_is_row(row) for row in columns):
                if code == self._text and self._javascript is not None:
                    return self._next_text()
                return self._compile(code, Columns(columns))
            case [False, [str(message), int(line), int(column), bool(named)]]:
                self._typescript = _failure("syntax_error", message, line, column)
                self._named = named
                return self._next_text() if self._javascript is not None else self._compile(self._text, Columns(()))
            case [None]:
                self._limit = _failure("memory_exhausted", "Stripping the types took more memory than a run may use")
                return None
        raise FrameError("the TypeScript image answered in another shape")

    def failure(self) -> Failure:
        """The error to report when there is nothing left to try."""
        javascript, typescript = self._javascript, self._typescript
        if self._limit is not None:
            return self._limit
        if typescript is None:
            return javascript or _no_code(self._sent)
        if javascript is None or self._named or _place(typescript) > _place(javascript):
            return typescript
        return javascript

    def located(self, failure: Failure) -> Failure:
        """A failure of the program that runs, its line, column and stack those of the text that was sent."""
        line, column, stack = failure.line, failure.column, failure.stack
        if line is not None and column is not None:
            column = self._columns.original(line, column)
        if stack is not None and not self._columns.empty:
            stack = _FRAME.sub(lambda found: self._frame(int(found[1]), int(found[2])), stack)
        return failure._replace(line=line, column=column, stack=stack)

    def _frame(self, line: int, column: int) -> str:
        return f"script:{line}:{self._columns.original(line, column)}"

    def _next_text(self) -> Attempt | None:
        found = next(self._rest, None)
        if found is None:
            return None
        self._text, strip_at_once = found
        self._javascript = self._typescript = None
        self._named = False
        self._was_stripped = strip_at_once
        return Attempt("strip", self._text) if strip_at_once else self._compile(self._text, Columns(()))

    def _compile(self, code: str, columns: Columns) -> Attempt:
        self._columns = columns
        return Attempt("javascript", code)


class Columns:
    """Where the characters of stripped code came from, for the lines on which stripping inserted text.

    `lines` is `[[line, generated, original, generated, original, …], …]`, all 1-based: from a generated column on,
    characters are those from the original column on, up to the next pair. Lines that are not listed did not move.
    """

    def __init__(self, lines: Sequence[Sequence[int]]) -> None:
        self._lines = {line[0]: line for line in lines if len(line) > 2}

    @property
    def empty(self) -> bool:
        """Whether nothing moved."""
        return not self._lines

    def original(self, line: int, column: int) -> int:
        """The column in the text that was sent of a column in the stripped code."""
        pairs = self._lines.get(line)
        if pairs is None:
            return column
        place = column
        for at in range(1, len(pairs) - 1, 2):
            if pairs[at] > column:
                return min(place, pairs[at + 1])
            place = pairs[at + 1] + column - pairs[at]
        return place


def normal(text: str, *, shebang: bool = True) -> str:
    """`text` without a byte order mark, line ends as `\\n`; with `shebang`, a `#!` line as a comment; columns stay."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = _LINE_END.sub("\n", text)
    return f"//{text[2:]}" if shebang and text.startswith("#!") else text


def _texts(text: str, language: Language) -> Iterator[tuple[str, bool]]:
    """The texts to try, each with whether it goes to the TypeScript image at once."""
    found = fences.blocks(text) if "```" in text or "~~~" in text else []
    # Counting can be led astray, by a regular expression for instance; what compiles as it stands is no fence.
    doubted = bool(found) and fences.opens_with_tildes(text) and fences.may_be_code(text)
    trusted = bool(found) and not doubted and not _in_literal(text, found[0].start)
    if trusted:
        chosen = _chosen(text, found)
        if chosen:
            yield _text(text, chosen, language)
            if len(chosen) > 1:
                yield _text(text, chosen[:1], language)
        return
    yield text, language == "typescript" and looks_generic(text)
    late = fences.late_block(text) if "```" in text else None
    if late is not None and late.tag in _JAVASCRIPT | _TYPESCRIPT:
        yield _text(text, [late], language)
    elif (
        found
        and (fences.opens_as_prose(text) or (doubted and not fences.opens_as_code(text)))
        and (chosen := _chosen(text, found))
    ):
        yield _text(text, chosen, language)
    elif (code := fences.without_prose(text)) is not None:
        yield code, language == "typescript" and looks_generic(code)


def _text(text: str, chosen: list[Block], language: Language) -> tuple[str, bool]:
    code = fences.only(text, chosen)
    tag = chosen[0].tag
    typed = tag in _TYPESCRIPT or (language == "typescript" and tag not in _JAVASCRIPT)
    return code, typed and looks_generic(code)


def _chosen(text: str, found: list[Block]) -> list[Block]:
    """The blocks to run: the first tagged as ours, or else the first without a tag, and those that go on from it."""
    tagged = [block for block in found if block.tag in _JAVASCRIPT | _TYPESCRIPT]
    kind = tagged or [block for block in found if not block.tag]
    chosen = kind[:1]
    names = _declared(text, chosen)
    for block in kind[1:]:
        mine = _declared(text, [block])
        if names & mine or not names & set(re.findall(r"[A-Za-z_$][\w$]*", text[block.start : block.end])):
            break
        chosen.append(block)
        names |= mine
    return chosen


def _declared(text: str, parts: list[Block]) -> set[str]:
    return {name for part in parts for name in _DECLARED.findall(text, part.start, part.end)}


def _in_literal(text: str, at: int) -> bool:
    """Whether the line of `at` starts in a block comment or a template literal, as far as counting can tell."""
    before = text[: text.rfind("\n", 0, max(at - 1, 0)) + 1]
    if before.rfind("/*") > before.rfind("*/"):
        return True
    return (before.count("`") - before.count("\\`")) % 2 == 1


_CLOSES: Final = re.compile(r"[\w$)\]}>\"'`]\s*>\s*[(`]")
_PARTS: Final = re.compile(r"[\w$)\]]\s*<(?![<=])|=>|&&|\|\||[<>(){}\[\],:;=+*/%^~!?@#\\-]")
_CALL: Final = re.compile(r"\s*[(`]")
_CLOSER: Final = {")": "(", "]": "[", "}": "{"}


def looks_generic(text: str) -> bool:
    """Whether `text` may hold a call with type arguments that JavaScript would read as comparisons.

    True for `f<string>(x)`, `new Map<string, Row[]>(rows)`, ``sql<Row>`…` ``. In TypeScript every such text *is* a call
    with type arguments, also `i<n>(x)`, so being wrong costs the time to strip and changes no meaning. One pass.
    """
    if "<" not in text or _CLOSES.search(text) is None:
        return False
    stack: list[tuple[str, int]] = []
    broken = 0
    for match in _PARTS.finditer(text):
        part = match.group()
        last = part[-1]
        if last == "<" and len(part) > 1:
            if part[0] in ")]":
                _close(stack, part[0])
            stack.append(("<", broken))
        elif last == ">" and len(part) == 1:
            if stack and stack[-1][0] == "<" and stack.pop()[1] == broken and _CALL.match(text, match.end()):
                return True
        elif last in "([{" and len(part) == 1:
            stack.append((last, broken))
        elif last in ")]}":
            _close(stack, last)
        elif last != "," and not (last == ":" and stack and stack[-1][0] == "{"):
            broken += 1
    return False


def _close(stack: list[tuple[str, int]], bracket: str) -> None:
    opener = _CLOSER[bracket]
    while stack and stack.pop()[0] != opener:
        pass


def _place(failure: Failure) -> tuple[int, int]:
    return failure.line or 0, failure.column or 0


def _no_code(text: str) -> Failure:
    tags = ", ".join(sorted({block.tag for block in fences.blocks(text) if block.tag}))
    what = f"the code blocks are tagged {tags}" if tags else "the code blocks are empty"
    return _failure("syntax_error", f"There is no JavaScript or TypeScript to run: {what}", 1, 1)


def _failure(code: str, message: str, line: int | None = None, column: int | None = None) -> Failure:
    name = "SyntaxError" if code == "syntax_error" else None
    return Failure(code, name, message, line, column, None, None)


def _is_row(row: Any) -> bool:
    return isinstance(row, list) and len(row) % 2 == 1 and all(type(part) is int for part in row)
