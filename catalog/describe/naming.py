"""Names that both TypeScript and Python take as identifiers."""

from __future__ import annotations

import builtins
import keyword
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

_OTHER: Final = re.compile(r"[^\w]+")
_RESERVED: Final = (
    "any as async await bigint boolean break case catch class const continue debugger declare default delete do "
    "else enum export extends false finally for from function get if implements import in infer instanceof "
    "interface is keyof let module namespace never new null number object of package private protected public "
    "readonly return require set static string super switch symbol this throw true try type typeof undefined "
    "unique unknown var void while with yield arguments eval Promise Record Uint8Array Array Args Result "
    "TypedDict NotRequired Literal Any Never Input tools "
)
"""Words of TypeScript, and names that a signature uses."""
_STATEMENTS: Final = (
    "await break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if implements import in instanceof interface let new null package private protected public return static "
    "super switch this throw true try typeof var void while with yield arguments eval "
)
"""Words that no function of a TypeScript module can have as its name."""
_KEPT: Final = 4
_TAKEN: Final = frozenset(_RESERVED.split()) | frozenset(keyword.kwlist) | frozenset(dir(builtins))


_NO_FUNCTION: Final = frozenset(_STATEMENTS.split()) | frozenset(keyword.kwlist)


def type_name(name: str) -> str:
    """A definition's name as an identifier that means nothing else."""
    cleaned = _identifier(name)
    return cleaned + "_" if cleaned in _TAKEN else cleaned


def _identifier(name: str) -> str:
    cleaned = name if name.isidentifier() else _OTHER.sub("_", name).strip("_")[:80] or "Type"
    if cleaned.isascii() and cleaned.isidentifier():
        return cleaned
    if not cleaned.isidentifier():
        cleaned = "_" + cleaned
    if not cleaned.isidentifier() or not _spelled(cleaned):
        cleaned = "Type_" + re.sub(r"[^A-Za-z0-9_]", "", cleaned).strip("_")
    return cleaned


class Names:
    """The identifiers of a catalog's definitions, no two of them alike, and back."""

    def __init__(self, definitions: Iterable[str]) -> None:
        self._shown: dict[str, str] = {}
        self._meant: dict[str, str] = {}
        for name in definitions:
            shown = base = type_name(name)
            count = 2
            while shown in self._meant:
                shown, count = f"{base}{count}", count + 1
            self._shown[name], self._meant[shown] = shown, name

    def shown(self, name: str) -> str:
        return self._shown[name]

    def all(self) -> list[str]:
        return list(self._meant)

    def meant(self, name: str) -> str | None:
        """The definition that is called `name`, by its own name or the one that is shown."""
        return name if name in self._shown else self._meant.get(name)


_recent: OrderedDict[int, tuple[Mapping[str, Any], Names]] = OrderedDict()


def names_of(definitions: Mapping[str, Any]) -> Names:
    """The names of `definitions`, kept for the few that were asked for last: there may be thousands of them."""
    known = _recent.get(id(definitions))
    if known is None or known[0] is not definitions:
        known = _recent[id(definitions)] = (definitions, Names(definitions))
    _recent.move_to_end(id(definitions))
    while len(_recent) > _KEPT:
        _recent.popitem(last=False)
    return known[1]


def function_name(name: str) -> str:
    """The last part of a tool's name as the name of a function."""
    cleaned = _identifier(name.rpartition(".")[2])
    return cleaned + "_" if cleaned in _NO_FUNCTION else cleaned


def _spelled(name: str) -> bool:
    """Whether its letters are such as every parser takes: no marks that Python alone folds away."""
    return all(character == "_" or character.isalnum() for character in name) and name.isprintable()
