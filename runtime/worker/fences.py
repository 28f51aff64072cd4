"""Code fences and prose around code, found without moving a character: what is not code becomes blank, lines stay.

Everything here works on text whose line ends are `\\n`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_OPEN: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)([^\n]*)$", re.MULTILINE)
_LATE: Final = re.compile(r"^[^\n`]*[^\s`][ \t]*(`{3,})[ \t]*([A-Za-z]+)[ \t]*$", re.MULTILINE)
_WORD: Final = r"[A-Za-z][\w'’-]*"
_SENTENCE: Final = re.compile(
    rf"""[ \t]*(?:
        \#{{1,6}}[ \t]+\S                                     # a heading
      | (?:(?:[-*>]|\d+[.)])[ \t]+)?(?:\*\*|__)?(?:           # a list item, a quote, emphasis
            [A-Z][\w'’-]*[,:]?(?:\*\*|__)?[,:]?[ \t]+(?!(?:instanceof|in|of|as|satisfies|extends)\b)[\w`"'(*]  # Two
          | [A-Z]{_WORD}(?:\*\*|__)?[ \t]*[:.!?…]+[ \t]*$      # Sure!
          | (?!(?:await|case|delete|else|new|return|throw|typeof|void|yield)\b)
            {_WORD}[ \t]+{_WORD}[^\n]*[:.!?…][ \t]*$           # here is the code:
      ))""",
    re.VERBOSE,
)
_CODE: Final = re.compile(r"[;{}=<>\[\]\\|&$+^~@]|\w\(|/[/*]|\*/")
_HEAD: Final = re.compile(r"(?:async|class|def|elif|else|except|finally|for|if|match|case|try|while|with)\b")
_HEAD_PREFIX: Final = re.compile(r"\A(?:elif|while|case|match|except)\b ?")
_LINE_SEARCH: Final = 400
_MOST_BLOCKS: Final = 256


class Block(NamedTuple):
    """A fenced block: its tag in lower case (`ts`, or empty), and where its content starts and ends in the text."""

    tag: str
    start: int
    end: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of `text` in order: at line starts, of backticks or tildes, closed or running to the end.

    A fence may open and close on one line. A closing fence without an opening one makes what is above it a block.
    """
    found: list[Block] = []
    at = 0
    while len(found) < _MOST_BLOCKS and (match := _OPEN.search(text, at)):
        fence, tag, rest = match.groups()
        closed = rest.rstrip()
        if fence[0] == "`" and "`" in rest:
            if not closed.endswith(fence) or (closed == fence and not tag):
                at = match.end()
                continue
            found.append(_inline(match, fence, tag, rest))
            at = match.end()
            continue
        start = min(match.end() + 1, len(text))
        close = re.compile(rf"(?:^[ \t]*|(?<=[^\s{fence[0]}])){fence[0]}{{{len(fence)},}}[ \t]*$", re.MULTILINE)
        end = close.search(text, start)
        if end is None and not found and not tag and not text[start:].strip():
            above = text[: match.start()]
            return [Block("", 0, match.start())] if above.strip() and fence not in above else []
        found.append(Block(tag.lower(), start, end.start() if end else len(text)))
        at = end.end() if end else len(text)
    return found


def _inline(match: re.Match[str], fence: str, tag: str, rest: str) -> Block:
    end = match.start(3) + len(rest.rstrip()) - len(fence)
    if tag.lower() in TAGS and rest[:1].isspace():
        return Block(tag.lower(), match.start(3), end)
    return Block("", match.start(2), end)


def opens_with_tildes(text: str) -> bool:
    """Whether the first fence is one of tildes, which may stand in a template literal as they are."""
    found = _OPEN.search(text)
    return found is not None and found[1][0] == "~"


TAGS: Final = frozenset({"js", "javascript", "mjs", "cjs", "node", "ts", "typescript", "mts", "cts", "py", "python"})
"""Tags that say in which language a block is, among those that run here."""


def late_block(text: str) -> Block | None:
    """The block whose fence opens at the end of a line of prose: `Here it is: ```ts`."""
    opening = _LATE.search(text)
    if opening is None or opening.group(2).lower() not in TAGS:
        return None
    start = min(opening.end() + 1, len(text))
    end = text.find(opening.group(1), start)
    return Block(opening.group(2).lower(), start, end if end >= 0 else len(text))


def opens_as_prose(text: str) -> bool:
    """Whether the first line that is not blank reads as a sentence, and not as code."""
    return is_prose(_first_line(text))


def _first_line(text: str) -> str:
    head = text.lstrip()
    return head[: head.find("\n")] if "\n" in head else head


def opens_as_code(text: str) -> bool:
    """Whether the first line that is not blank has something that only code has, and is no fence."""
    line = _first_line(text)
    return not is_prose(line) and _OPEN.match(line) is None and _CODE.search(line[:_LINE_SEARCH]) is not None


def may_be_code(text: str) -> bool:
    """Whether the first line that is not blank is neither a fence nor a sentence; a heading may be a comment."""
    line = _first_line(text)
    return _OPEN.match(line) is None and (line.startswith("#") or not is_prose(line))


def is_prose(line: str) -> bool:
    """Whether a line is a sentence: words side by side or a closing mark, and nothing that only code has."""
    line = line[:_LINE_SEARCH]
    if _SENTENCE.match(line) is None or _CODE.search(re.sub(r"`[^`]*`", "", line)) is not None:
        return False
    return not _begins_a_block(line.strip())


def _begins_a_block(line: str) -> bool:
    """Whether a line is the head of a statement of Python, such as `if ready:`, whose body may have lost its indent.

    Taken for a sentence it would be left out, and what it guards would run whatever it says.
    """
    if not line.endswith(":") or _HEAD.match(line) is None:
        return False
    try:
        ast.parse(_HEAD_PREFIX.sub("if ", line) + " pass")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def without_prose(text: str) -> str | None:
    """`text` with the sentences before and after the code blanked; None when there are none, or nothing else."""
    lines = text.split("\n")
    first, last = 0, len(lines)
    while first < last and (not lines[first].strip() or is_prose(lines[first])):
        first += 1
    while last > first and (not lines[last - 1].strip() or is_prose(lines[last - 1])):
        last -= 1
    dropped = lines[:first] + lines[last:]
    if first == last or not any(line.strip() for line in dropped):
        return None
    return "\n" * first + "\n".join(lines[first:last])


def only(text: str, kept: Iterable[Block]) -> str:
    """The kept blocks at their own lines and columns, everything before, between and after them blank."""
    out: list[str] = []
    at = 0
    for block in kept:
        gap = text[at : block.start]
        line = gap.rfind("\n") + 1
        out.append("\n" * gap.count("\n") + re.sub(r"[^\t]", " ", gap[line:]))
        out.append(text[block.start : block.end])
        at = block.end
    return "".join(out)
