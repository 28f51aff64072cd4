"""How much a document that somebody wrote may be and ask for, counted before anything costly is done with it."""

from __future__ import annotations

from typing import Any, Final

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLSyntaxError,
    InlineFragmentNode,
    SelectionSetNode,
    Source,
)
from graphql.language import Lexer, TokenKind

MAX_BYTES: Final = 64 * 1024
MAX_TOKENS: Final = 5000
MAX_NESTING: Final = 64
"""Brackets within brackets, of any kind."""
MAX_DEPTH: Final = 20
"""Fields within fields, fragments written out."""
MAX_SELECTIONS: Final = 500
"""Fields and fragments, fragments written out as often as they are spread."""
MAX_ROOTS: Final = 20
"""Root fields of one operation, aliases counted."""
MAX_ALIASES: Final = 50
MAX_OVERLAPS: Final = 5000
"""Pairs of fields that stand at the same place of the answer: checking that they agree takes so many steps."""

_OPEN: Final = frozenset({TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L})
_CLOSE: Final = frozenset({TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R})
_DEFERRING: Final = frozenset({"defer", "stream"})


class TooMuch(Exception):
    """Raised for a document over one of the limits; the text says which."""


def scan(text: str) -> TokenKind:
    """Look at the tokens alone: what is parsed afterwards is neither long nor deep. Returns the kind of the first.

    Raises TooMuch, and GraphQLSyntaxError for what is no token.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise TooMuch(f"it is longer than {MAX_BYTES // 1024} KiB")
    lexer = Lexer(Source(text))
    first: TokenKind | None = None
    depth = count = 0
    while (kind := lexer.advance().kind) is not TokenKind.EOF:
        first = first or kind
        count += 1
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if count > MAX_TOKENS:
            raise TooMuch(f"it has more than {MAX_TOKENS} tokens")
        if depth > MAX_NESTING:
            raise TooMuch(f"its brackets are nested deeper than {MAX_NESTING} levels")
    return first or TokenKind.EOF


class Meter:
    """Counts what a selection asks for. `fragments` are those of its document, by name."""

    def __init__(self, fragments: dict[str, FragmentDefinitionNode] | None = None) -> None:
        self._fragments = fragments or {}
        self._selections = 0
        self._aliases = 0
        self._overlaps = 0

    def measure(self, selected: SelectionSetNode) -> None:
        """Raises TooMuch, also for fragments that spread themselves and for a selection with nothing in it."""
        self._level([selected], 1)

    def _level(self, sets: list[SelectionSetNode], depth: int) -> None:
        """The selections that together make one object of the answer."""
        if depth > MAX_DEPTH:
            raise TooMuch(f"it goes deeper than {MAX_DEPTH} fields")
        places: dict[str, list[FieldNode]] = {}
        for one in sets:
            self._gather(one, places, ())
        for fields in places.values():
            self._overlaps += len(fields) ** 2
            if self._overlaps > MAX_OVERLAPS:
                raise TooMuch("it selects the same fields too many times")
        for fields in places.values():
            inner = [one.selection_set for one in fields if one.selection_set is not None]
            if inner:
                self._level(inner, depth + 1)

    def _gather(self, selected: SelectionSetNode, places: dict[str, list[FieldNode]], spread: tuple[str, ...]) -> None:
        if not selected.selections:
            raise TooMuch("a selection in it is empty")
        for one in selected.selections:
            self._selections += 1
            if self._selections > MAX_SELECTIONS:
                raise TooMuch(f"it selects more than {MAX_SELECTIONS} fields")
            self._directives(one)
            if isinstance(one, FieldNode):
                self._aliases += one.alias is not None
                if self._aliases > MAX_ALIASES:
                    raise TooMuch(f"it has more than {MAX_ALIASES} aliases")
                places.setdefault((one.alias or one.name).value, []).append(one)
            elif isinstance(one, InlineFragmentNode):
                self._gather(one.selection_set, places, spread)
            elif isinstance(one, FragmentSpreadNode):
                name = one.name.value
                if name in spread:
                    raise TooMuch(f"the fragment {name[:80]} spreads itself")
                if name in self._fragments:
                    self._gather(self._fragments[name].selection_set, places, (*spread, name))

    def _directives(self, node: Any) -> None:
        if any(one.name.value in _DEFERRING for one in node.directives or ()):
            raise TooMuch("it asks for an answer in parts (@defer, @stream), which are not put together")


def syntax(error: GraphQLSyntaxError) -> str:
    """What is wrong, with its place where there is one."""
    at = f" at line {error.locations[0].line} column {error.locations[0].column}" if error.locations else ""
    return error.message.removeprefix("Syntax Error: ").rstrip(".")[:300] + at
