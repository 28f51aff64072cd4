"""The order of what a search finds: who speaks of all that was asked, does what was asked, and little besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from catalog.lexicon import lexicon
from catalog.model import Tool
from catalog.question import Concept, Question
from catalog.words import stems_of

_METHODS: Final = frozenset({"get", "put", "post", "delete", "head", "patch", "options", "trace"})
_NOISE: Final = frozenset(
    {
        "v1",
        "v2",
        "v3",
        "v4",
        "api",
        "rest",
        "json",
        "for",
        "by",
        "of",
        "to",
        "and",
        "the",
        "a",
        "an",
        "with",
        "in",
        "id",
    }
)
"""Words of an address that tell nothing about the tool."""
_HEAD, _TITLE, _TEXT, _PARAMETER = 1.0, 0.9, 0.45, 0.2
_VERB: Final = 0.35
"""What the verb counts as a word, beside what it counts as an action."""
_VAGUE: Final = 0.4
_DOES, _DOES_NOT = 1.25, 0.7
_BESIDES, _DEEP, _DATED = 0.06, 0.04, 0.85
_BY_METHOD: Final[dict[str, tuple[str, ...]]] = {
    "get": ("read", "list", "search"),
    "head": ("read",),
    "post": ("create", "update"),
    "put": ("update", "create"),
    "patch": ("update",),
    "delete": ("delete",),
}
_BY_EFFECT: Final[dict[str, tuple[str, ...]]] = {
    "read": ("read", "list", "search"),
    "write": ("create", "update"),
    "delete": ("delete",),
}
_READING: Final = frozenset({"read", "list", "search"})
_GROUP: Final = {"read": 0, "list": 0, "search": 0, "create": 1, "update": 1, "delete": 2, "act": 1}


class Entry(NamedTuple):
    """What the ranker knows of a tool. The texts are stems between spaces, with a space at both ends."""

    path: str
    integration: str
    head: str
    title: str
    text: str
    parameters: str
    actions: tuple[str, ...]
    size: int
    """Words of its address that tell something."""
    required: int
    """Arguments that have to be given besides the body: how deep it lies."""
    dated: bool


class Ranker(Protocol):
    """Orders the candidates of a question, best first, and may know of more than those that hold its words.

    It is told of every tool before that can be a candidate. `text` is the query as it was asked, without the name of an
    integration; `rarity` says how much it tells that a stem is met.
    """

    def learn(self, tools: Sequence[Tool]) -> None: ...

    def forget(self, paths: Sequence[str]) -> None: ...

    def more(self, text: str, integration: str | None) -> list[str]: ...

    def rank(
        self, asked: Question, candidates: Sequence[Entry], rarity: Callable[[str], float], text: str
    ) -> list[Entry]: ...

    def close(self) -> None: ...

    @property
    def cold(self) -> bool:
        """Whether the next question would wait for what `warm` does in a thread."""
        ...

    def warm(self) -> None: ...


def entry_of(tool: Tool) -> Entry:
    lore = lexicon()
    name, address = stems_of(tool.name), tool.spec.words.split()
    method = address[0] if address and address[0] in _METHODS else ""
    words = [stem for word in address[1 if method else 0 :] for stem in stems_of(word)]
    own = dict.fromkeys(name + words)
    last = [*stems_of(tool.name.rpartition(".")[2]), *words[-1:]]
    verbs = dict.fromkeys(lore.actions[stem] for stem in last if stem in lore.actions)
    usual = _BY_METHOD.get(method) or _BY_EFFECT.get(tool.side_effect, ())
    actions = [verb for verb in verbs if tool.side_effect not in ("read", "delete") or verb in usual] or usual
    schema = tool.input_schema or {}
    required = schema.get("required")
    telling = [stem for stem in own if stem not in _NOISE and stem not in lore.actions and stem not in _METHODS]
    return Entry(
        tool.path,
        tool.integration,
        _line(own),
        _line(dict.fromkeys(stems_of(tool.title))),
        _line(dict.fromkeys(stems_of(tool.description[:600]))),
        _line(dict.fromkeys(stem for key in schema.get("properties", {}) for stem in stems_of(key))),
        tuple(actions),
        len(telling),
        sum(key != "body" for key in required) if isinstance(required, list) else 0,
        tool.spec.deprecated or "deprecated" in tool.title.lower() or "deprecated" in tool.description[:200].lower(),
    )


def _weight(concept: Concept, rarity: Callable[[str], float]) -> float:
    return max((rarity(stem) for stem, share in concept.stems.items() if share >= 1.0), default=1.0)


def _line(stems: dict[str, None]) -> str:
    return f" {' '.join(stems)} "


class WordRanker:
    """ "create an issue" is the tool that writes and whose address speaks of issues alone, before the one that creates
    a comment on an issue."""

    def learn(self, tools: Sequence[Tool]) -> None:
        return None

    def forget(self, paths: Sequence[str]) -> None:
        return None

    def more(self, text: str, integration: str | None) -> list[str]:
        return []

    def close(self) -> None:
        return None

    @property
    def cold(self) -> bool:
        return False

    def warm(self) -> None:
        return None

    def rank(
        self, asked: Question, candidates: Sequence[Entry], rarity: Callable[[str], float], text: str
    ) -> list[Entry]:
        """Best first; those that answer equally well stay in the order in which they came."""
        scores = self.scores(asked, candidates, rarity)
        return [candidates[place] for place in sorted(range(len(candidates)), key=lambda place: -scores[place])]

    def scores(self, asked: Question, candidates: Sequence[Entry], rarity: Callable[[str], float]) -> list[float]:
        """How well each candidate answers, from 0 to somewhat more than 1."""
        parts = [
            (
                _weight(concept, rarity) * (_VERB if concept.verb else _VAGUE if concept.vague else 1.0),
                [(f" {stem} ", weight) for stem, weight in sorted(concept.stems.items(), key=lambda one: -one[1])],
            )
            for concept in asked.concepts
        ]
        whole = sum(weight for weight, _ in parts) or 1.0
        return [self._score(entry, parts, whole, asked.action) for entry in candidates]

    def _score(
        self, entry: Entry, parts: list[tuple[float, list[tuple[str, float]]]], whole: float, action: str | None
    ) -> float:
        met, used = 0.0, 0
        for weight, stems in parts:
            best = 0.0
            for stem, share in stems:
                if share <= best:
                    break
                if stem in entry.head:
                    best = share * _HEAD
                    used += 1
                    break
                if stem in entry.title:
                    best = max(best, share * _TITLE)
                elif stem in entry.text:
                    best = max(best, share * _TEXT)
                elif stem in entry.parameters:
                    best = max(best, share * _PARAMETER)
            met += weight * best
        score = met / whole
        if action is not None:
            if action in entry.actions or (action == "act" and not _READING.issuperset(entry.actions)):
                score *= _DOES
            elif not any(_GROUP[one] == _GROUP[action] for one in entry.actions):
                score *= _DOES_NOT
        besides = max(0, entry.size - used)
        score /= 1 + _BESIDES * besides
        score /= 1 + _DEEP * entry.required
        return score * _DATED if entry.dated else score
