"""What people call things and what APIs call them, in English and in other languages; read from two small files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from catalog.words import stems

HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Lexicon:
    """`senses` and `phrases` lead from the stem of a word, or the words of a phrase, to other words' stems. `actions`
    names what a verb does. `tongues` translates words of other languages; `stops` are words of any language that tell
    nothing about which tool is meant."""

    senses: dict[str, tuple[str, ...]]
    phrases: dict[tuple[str, ...], tuple[str, ...]]
    actions: dict[str, str]
    tongues: dict[str, tuple[str, ...]]
    stops: frozenset[str]
    vague: frozenset[str]
    """Stems that tell little by themselves."""
    unspaced: int
    """The length of the longest word in a script without spaces."""


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    senses: dict[str, dict[str, None]] = {}
    phrases: dict[tuple[str, ...], dict[str, None]] = {}
    actions: dict[str, str] = {}
    vague: set[str] = set()
    silent: set[str] = set()
    for line in _lines("lexicon.txt"):
        if line.startswith("verb "):
            name, _, verbs = line[5:].partition(":")
            for verb in verbs.split():
                actions.setdefault(_one(verb), name)
        elif line.startswith("nothing:"):
            silent.update(line[8:].split())
        elif line.startswith("vague:"):
            vague.update(_one(word) for word in line[6:].split())
        elif line.startswith("="):
            ring = [_one(word) for word in line[1:].split()]
            for word in ring:
                senses.setdefault(word, {}).update(dict.fromkeys(other for other in ring if other != word))
        else:
            left, _, right = line.partition(">")
            means = dict.fromkeys(_one(word) for word in right.split())
            for said in left.split("|") if "|" in left else left.split():
                words = tuple(said.split())
                if len(words) > 1:
                    phrases.setdefault(words, {}).update(means)
                else:
                    own = _one(words[0])
                    senses.setdefault(own, {}).update({word: None for word in means if word != own})
    tongues, stops = _tongues()
    return Lexicon(
        senses={word: tuple(others) for word, others in senses.items()},
        phrases={words: tuple(others) for words, others in phrases.items()},
        actions=actions,
        tongues=tongues,
        stops=stops | silent,
        vague=frozenset(vague),
        unspaced=max((len(word) for word in tongues if not word.isascii()), default=1),
    )


def _tongues() -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
    words: dict[str, dict[str, None]] = {}
    stops: set[str] = set()
    for line in _lines("tongues.txt"):
        english, _, said = line.partition(":")
        if english == "nothing":
            stops.update(said.split())
            continue
        for word in said.split():
            words.setdefault(word, {})[english] = None
    return {word: tuple(others) for word, others in words.items()}, frozenset(stops)


def _lines(name: str) -> list[str]:
    text = (HERE / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _one(word: str) -> str:
    return stems(word)[0]
