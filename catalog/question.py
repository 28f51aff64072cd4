"""What a query asks for: the things it names, each with the other words for it, and what is to be done to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from catalog.lexicon import Lexicon, lexicon
from catalog.vocabulary import Vocabulary
from catalog.words import UNSPACED, pairs, stems

MAX_QUERY: Final = 500
"""Characters of a query that are read."""
MAX_WORDS: Final = 24

_SENSE: Final = 0.7
"""What another word for the same counts, where the word itself counts 1."""
_FURTHER: Final = 0.04
"""What each further word counts less."""
_KIN: Final = 0.8
"""What a longer word with the same beginning counts."""
_SLIP: Final = 0.85
_TRANSLATED: Final = 0.9


_ASKING: Final = frozenset({"what", "which", "who", "whose", "when", "where", "is", "are"})


@dataclass(slots=True)
class Concept:
    """One thing that is asked for: stems and how well each speaks of it, 0 to 1."""

    stems: dict[str, float]
    verb: bool = False
    vague: bool = False

    def may(self, stem: str, weight: float) -> None:
        self.stems[stem] = max(weight, self.stems.get(stem, 0.0))


@dataclass(slots=True)
class Question:
    concepts: list[Concept] = field(default_factory=list)
    action: str | None = None
    """`read`, `list`, `search`, `create`, `update`, `delete`, or `act` for any other doing."""


def question(words: Sequence[str], held: Vocabulary) -> Question:
    """The question that `words` put to tools that hold the stems of `held`."""
    lore = lexicon()
    words = [piece for word in words for piece in _pieces(word, lore)]
    asked = Question()
    if words and (words[0] in _ASKING or words[:2] in (["how", "much"], ["how", "many"])):
        asked.action = "read"
    told = [word for word in words if word not in lore.stops]
    at = 0
    while at < len(words):
        size, means = _phrase(words, at, lore)
        if size:
            own = [stem for word in words[at : at + size] if word not in lore.stops for stem in stems(word)]
            asked.concepts.append(Concept(dict.fromkeys(means, _TRANSLATED) | dict.fromkeys(own, 1.0)))
            at += size
            continue
        word = words[at]
        at += 1
        if told and word not in told:
            continue
        asked.concepts.append(_concept(word, lore, held, asked))
    _join(asked.concepts, held)
    return asked


def _concept(word: str, lore: Lexicon, held: Vocabulary, asked: Question) -> Concept:
    concept = Concept(dict.fromkeys(stems(word), 1.0), vague=stems(word)[0] in lore.vague)
    heads = list(stems(word))
    translated = lore.tongues.get(word, ())
    for english in translated:
        concept.may(stems(english)[0], _TRANSLATED)
    heads += [stems(english)[0] for english in translated]
    if not translated and len(word) > 2 and word.isascii() and not held.known(heads[0]) and heads[0] not in lore.senses:
        slip = held.near(heads[0])
        if slip is not None:
            concept.may(slip, _SLIP)
            heads.append(slip)
    for head in heads:
        for place, other in enumerate(lore.senses.get(head, ())):
            concept.may(other, max(_SENSE - _FURTHER * place, _SENSE / 2) * concept.stems[head])
    for head in heads:
        for other in held.kin(head):
            concept.may(other, _KIN * concept.stems[head])
    action = next((lore.actions[head] for head in heads if head in lore.actions), None)
    if action is not None and (action != "act" or not asked.concepts):
        concept.verb = asked.action is None and action != "act"
        asked.action = asked.action or action
    return concept


def _phrase(words: Sequence[str], at: int, lore: Lexicon) -> tuple[int, tuple[str, ...]]:
    for size in range(4, 1, -1):
        means = lore.phrases.get(tuple(words[at : at + size])) if at + size <= len(words) else None
        if means:
            return size, means
    return 0, ()


def _join(concepts: list[Concept], held: Vocabulary) -> None:
    """Neighbours that the index knows as one word: `pull request` is `pullrequest` too."""
    for left, right in pairwise(concepts):
        both = next(iter(left.stems), "") + next(iter(right.stems), "")
        if held.known(both):
            left.may(both, 1.0)
            right.may(both, 1.0)


def _pieces(word: str, lore: Lexicon) -> Iterator[str]:
    """Words of a script without spaces, by the longest that is known; what is left over stays together."""
    if word in lore.tongues or UNSPACED.search(word) is None:
        yield word
        return
    rest, at = "", 0
    while at < len(word):
        longest = min(lore.unspaced, len(word) - at)
        size = next((n for n in range(longest, 0, -1) if _told(word[at : at + n], lore)), 0)
        if size:
            if rest:
                yield from pairs(rest)
            rest = ""
            yield word[at : at + size]
        else:
            rest += word[at]
        at += max(size, 1)
    if rest:
        yield from pairs(rest)


def _told(word: str, lore: Lexicon) -> bool:
    return word in lore.tongues or word in lore.stops
