"""The changes that can be made to a module: each turns one decision into another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


@dataclass(frozen=True)
class Change:
    """`text` in the place of what stands from `start` to `end`, counted in characters; `line` is where."""

    line: int
    start: int
    end: int
    text: str
    says: str

    def made(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


def changes(source: str) -> list[Change]:
    """Every change of a module that still compiles, in the order of the text."""
    found = [one for one in _Finder(source).found() if _compiles(one.made(source))]
    return sorted(set(found), key=lambda one: (one.start, one.text))


def _compiles(source: str) -> bool:
    try:
        compile(source, "changed", "exec")
    except SyntaxError:
        return False
    return True


class _Finder:
    def __init__(self, source: str) -> None:
        self._source = source
        self._tree = ast.parse(source)
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = source.splitlines()

    def found(self) -> Iterator[Change]:
        for body in ast.walk(self._tree):
            if isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
                for statement in body.body:
                    for node in ast.walk(statement):
                        yield from self._of(node)

    def _of(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                yield self._between(left, right, f" {_OPERATORS[type(operator)]} ", "a comparison turned")
            case ast.BoolOp(op=operator, values=[first, second, *_]):
                word, now = ("and", "or") if isinstance(operator, ast.And) else ("or", "and")
                yield self._between(first, second, f" {now} ", f"{word} is {now}")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._instead(node, f"({self._text(operand)})", "a not left out")
            case ast.If(test=test):
                yield self._instead(test, "(False)", "a condition never holds")
                yield self._instead(test, "(True)", "a condition always holds")
            case ast.Raise():
                yield self._instead(node, "pass", "an error not raised")
            case ast.Constant(value=bool(value)):
                yield self._instead(node, str(not value), "a flag turned")
            case ast.Constant(value=int(value)):
                yield self._instead(node, str(value + 1), "a number one larger")
            case ast.Return(value=ast.Constant(value=None | False)):
                # Nothing would be the same to whoever asks whether it is true; a flag is turned above.
                return
            case ast.Return(value=ast.expr() as value):
                yield self._instead(value, "None", "nothing returned")

    def _at(self, line: int, column: int) -> int:
        """Offset of a place that the parser counts in bytes of UTF-8."""
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end]

    def _instead(self, node: ast.expr | ast.stmt, text: str, says: str) -> Change:
        return Change(node.lineno, *self._span(node), text, says)

    def _between(self, left: ast.expr, right: ast.expr, text: str, says: str) -> Change:
        # Brackets around either side are kept: they stand between the two.
        start, end = self._span(left)[1], self._span(right)[0]
        between = self._source[start:end]
        opening = len(between) - len(between.lstrip(") \n")) if between.lstrip(" \n").startswith(")") else 0
        kept = between[len(between.rstrip("( \n")) :].strip() if between.rstrip().endswith("(") else ""
        return Change(left.lineno, start, end, between[:opening].rstrip() + text + kept, says)
