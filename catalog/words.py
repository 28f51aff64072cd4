"""Words of names and sentences: taken apart, folded and stemmed, the same for what is indexed and what is asked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VOWEL: Final = re.compile(r"[aeiouy]")
UNSPACED: Final = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
"""Scripts that put no space between words: Thai, kana, Han."""


def words_of(text: str) -> list[str]:
    """Lower-case words, camelCase and snake_case taken apart, diacritics left alone."""
    return [word.lower() for run in _WORD.findall(text) for word in _CAMEL.split(run) if word]


def stems_of(text: str) -> list[str]:
    """The stems of the words of `text`, in order; a run of an unspaced script gives its pairs of characters."""
    return [stem for word in words_of(text) for stem in stems(word)]


@lru_cache(maxsize=1 << 16)
def stems(word: str) -> tuple[str, ...]:
    """What one lower-case word is indexed as."""
    if word.isascii():
        return (_stem(word),)
    plain = "".join(one for one in unicodedata.normalize("NFKD", word) if not unicodedata.combining(one))
    if UNSPACED.search(plain) is None:
        return (_stem(plain),)
    return tuple(_pieces(unicodedata.normalize("NFKC", word)))


def _pieces(word: str) -> Iterator[str]:
    at = 0
    for run in UNSPACED.finditer(word):
        if at < run.start():
            yield _stem(word[at : run.start()])
        yield from pairs(run.group())
        at = run.end()
    if at < len(word):
        yield _stem(word[at:])


def pairs(run: str) -> list[str]:
    """Each two neighbouring characters of `run`, or the one that there is."""
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def _stem(word: str) -> str:
    """An English word without its inflection. Stems need not be words: `create` and `creation` are both `creat`."""
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= 3 and _VOWEL.search(rest):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    else:
        if word.endswith(("tion", "sion")) and len(word) > 6:
            word = word[:-3]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def one_slip(word: str, other: str) -> bool:
    """Whether one letter was left out, put in, changed, or swapped with its neighbour."""
    if abs(len(word) - len(other)) > 1 or word == other:
        return False
    shorter = min(len(word), len(other))
    at = next((i for i in range(shorter) if word[i] != other[i]), shorter)
    left, right = word[at:], other[at:]
    return (
        left[1:] == right[1:]
        or left[1:] == right
        or left == right[1:]
        or (left[:2] == right[1::-1] and left[2:] == right[2:])
    )
