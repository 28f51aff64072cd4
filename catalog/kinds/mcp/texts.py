"""Texts of a stranger's server that a model will read: short enough, and with nothing in them that a person cannot see.

A description is read by a model and shown to whoever approves. Tag characters (U+E0000…), zero-width and bidirectional
marks, variation selectors and control characters can say something to the one that the other does not see.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final

MAX_TITLE: Final = 200
MAX_DESCRIPTION: Final = 4000
MAX_NOTE: Final = 1000
"""Characters of a description within a schema."""
MAX_DEPTH: Final = 64

_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
_KEPT: Final = frozenset("\n\t")
_SELECTORS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0), range(0x115F, 0x1161))
_BLANK: Final = frozenset({0x034F, 0x3164, 0xFFA0, 0x2800})
"""Letters and symbols that are drawn as nothing."""
_NOTES: Final = {"description": MAX_NOTE, "title": MAX_TITLE, "$comment": 0}
_DATA: Final = frozenset({"enum", "const", "default", "examples"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def cleaned(text: Any, limit: int) -> str:
    """`text` without what cannot be seen, at most `limit` characters; "" for what is no text."""
    if not isinstance(text, str):
        return ""
    # A multiple of the limit is enough to look at: what is hidden in between is not worth more.
    seen = "".join(each for each in text[: limit * 4] if not _hidden(each)).strip()
    return seen if len(seen) <= limit else seen[: limit - 1].rstrip() + "…"


def _hidden(character: str) -> bool:
    if character.isascii() and character.isprintable():
        return False
    code = ord(character)
    if code in _BLANK or any(code in each for each in _SELECTORS):
        return True
    return unicodedata.category(character) in _HIDDEN and character not in _KEPT


def hides(text: str) -> bool:
    """Whether there is something in `text` that a person would not see."""
    return any(_hidden(each) for each in text if each != "\r")


def noted(schema: Any, depth: int = 0) -> Any:
    """`schema` with its descriptions and titles cleaned; names and values stay as they are."""
    if isinstance(schema, list):
        return [noted(part, depth + 1) for part in schema] if depth < MAX_DEPTH else []
    if not isinstance(schema, dict):
        return schema
    if depth >= MAX_DEPTH:
        return {}
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NOTES and isinstance(value, str):
            if text := cleaned(value, _NOTES[key]):
                out[key] = text
        elif key in _DATA:
            out[key] = value
        elif key in _NAMED and isinstance(value, dict):
            out[key] = {name: noted(part, depth + 1) for name, part in value.items()}
        else:
            out[key] = noted(value, depth + 1)
    return out
