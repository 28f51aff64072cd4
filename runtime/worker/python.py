"""Which text of a Python script runs: out of fences and prose, out of a common indentation; one attempt after another.

Lines stay where they were sent; a common indentation is taken away from every line and added back to columns.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from bridge.wire.errors import FrameError
from bridge.wire.frames import Failure
from runtime.worker import fences
from runtime.worker.fences import Block
from runtime.worker.source import Attempt, normal

_TAGS: Final = frozenset({"python", "py", "python3", "py3"})
_OTHERS: Final = frozenset({"pycon", "ipython", "repl"})


class PythonReading:
    """The ways to read one text, tried in order: what the interpreter refuses to compile did not run."""

    def __init__(self, text: str) -> None:
        self._sent = normal(text, shebang=False)
        self._rest = _texts(self._sent)
        self._indent = 0
        self._refusal: Failure | None = None
        self._fenced = self._refused_fenced = False
        self._empty = False

    def first(self) -> Attempt | None:
        """The first attempt; None when the text has code blocks, but none in Python. No code at all is a script that
        does nothing, as it is in JavaScript."""
        attempt = self._next()
        return Attempt("python", "") if attempt is None and self._empty else attempt

    def refused(self, failure: Failure) -> Attempt | None:
        """Say that the interpreter refused to compile the last attempt; what to try now, None for nothing."""
        if self._refusal is None or (self._fenced and not self._refused_fenced):
            self._refusal, self._refused_fenced = self.located(failure), self._fenced
        return self._next()

    def stripped(self, answer: Any) -> None:
        raise FrameError("Python has no types to strip")

    def failure(self) -> Failure:
        """The error to report when there is nothing left to try: that of the first fence, or else of the first text."""
        return self._refusal or _no_code(self._sent)

    def located(self, failure: Failure) -> Failure:
        """A failure with its column that of the text that was sent."""
        if failure.column is None or not self._indent:
            return failure
        return failure._replace(column=failure.column + self._indent)

    def _next(self) -> Attempt | None:
        for text, fenced in self._rest:
            self._fenced = fenced
            if not text.strip():
                self._empty = True
                continue
            plain = textwrap.dedent(text)
            self._indent = _indent(text) - _indent(plain)
            return Attempt("python", plain)
        return None


def _indent(text: str) -> int:
    line = next(line for line in text.split("\n") if line.strip())
    return len(line) - len(line.lstrip())


def _texts(text: str) -> Iterator[tuple[str, bool]]:
    """The texts to try, each with whether it is out of fences.

    What compiles as it stands is a script, whatever its strings hold: no fence is Python. What begins as code and does
    not compile is a script with a mistake, and nothing in its strings is to run instead.
    """
    found = fences.blocks(text) if "```" in text or "~~~" in text else []
    if not found or fences.may_be_code(text) or _in_string(text, found[0].start):
        yield text, False
    if found:
        chosen = [] if fences.opens_as_code(text) else _chosen(found)
        if chosen:
            yield fences.only(text, chosen), True
        if len(chosen) > 1:
            yield fences.only(text, chosen[:1]), True
        return
    if "```" in text and (late := fences.late_block(text)) and late.tag in _TAGS:
        yield fences.only(text, [late]), True
    if (code := fences.without_prose(text)) is not None:
        yield code, False


def _chosen(found: list[Block]) -> list[Block]:
    """The blocks to run: those tagged as Python, or else the first without a tag."""
    tagged = [block for block in found if block.tag in _TAGS]
    return tagged or [block for block in found if not block.tag or block.tag in _OTHERS][:1]


_TRIPLE: Final = re.compile(r"\"\"\"|'''")


def _in_string(text: str, at: int) -> bool:
    """Whether the line of `at` starts inside of a triple-quoted string, as far as counting can tell."""
    before = text[: text.rfind("\n", 0, max(at - 1, 0)) + 1]
    return len(_TRIPLE.findall(before)) % 2 == 1


def _no_code(text: str) -> Failure:
    tags = ", ".join(sorted({block.tag for block in fences.blocks(text) if block.tag}))
    message = f"There is no Python to run: the code blocks are tagged {tags}"
    return Failure("syntax_error", "SyntaxError", message, 1, 1, None, None)
