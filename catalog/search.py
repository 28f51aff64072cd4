"""Finding tools by words: SQLite FTS5 for the candidates, a ranker for their order."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from catalog.model import Tool

MAX_QUERY: Final = 500
"""Characters of a query that are read."""
MAX_WORDS: Final = 24
WINDOW: Final = 400
"""Candidates that the ranker orders; what FTS5 puts behind them stays in its order."""

_WORD: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WEIGHTS: Final = "10.0, 6.0, 4.0, 1.0, 0.5"

_STOP = (
    "a an the of in on to for from with by and or is are be it its this that these those all any my me i we our your"
    " please can could how do does what which who when where want need should using use via into as at some s"
    " api tool tools"
)
_READING = "get list show fetch read retrieve find search lookup count view check download"
_WRITING = "create add make new open post send update edit change modify set put rename upload place start invite"
_DELETING = "delete remove destroy drop close cancel"
STOPWORDS: Final = frozenset(_STOP.split())
SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "show": ("get", "list"),
    "fetch": ("get", "list"),
    "read": ("get",),
    "retrieve": ("get",),
    "find": ("search", "list"),
    "lookup": ("get", "find"),
    "make": ("create",),
    "add": ("create",),
    "new": ("create",),
    "open": ("create",),
    "edit": ("update",),
    "change": ("update",),
    "modify": ("update",),
    "rename": ("update",),
    "remove": ("delete",),
    "destroy": ("delete",),
    "ticket": ("issue",),
    "bug": ("issue",),
    "repo": ("repository", "repos"),
    "repository": ("repo", "repos"),
    "pr": ("pull",),
    "sms": ("message",),
    "dm": ("message", "conversation"),
    "photo": ("image",),
    "picture": ("image",),
    "customer": ("account",),
    "people": ("user", "member"),
    "person": ("user", "member"),
    "server": ("droplet", "instance"),
    "folder": ("directory",),
}
_READ: Final = frozenset(_READING.split())
_WRITE: Final = frozenset(_WRITING.split())
_DELETE: Final = frozenset(_DELETING.split())


class Candidate(NamedTuple):
    """A hit of the index: `score` is bm25's, larger is better."""

    path: str
    name: str
    title: str
    side_effect: str
    score: float


class Ranker(Protocol):
    """Orders the candidates of a query, best first."""

    def rank(self, words: Sequence[str], candidates: list[Candidate]) -> list[Candidate]: ...


def words_of(text: str) -> list[str]:
    """Lower-case words, camelCase and snake_case taken apart, diacritics left alone."""
    return [word.lower() for run in _WORD.findall(text) for word in _CAMEL.split(run) if word]


def _stem(word: str) -> str:
    for ending in ("ies", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


class WordRanker:
    """bm25, then what people mean by their words: the share of them in the name, the verb, and the shorter name."""

    def rank(self, words: Sequence[str], candidates: list[Candidate]) -> list[Candidate]:
        asked = {_stem(word) for word in words}
        wanted = self._side_effect(words)

        def weight(candidate: Candidate) -> float:
            own = [_stem(word) for word in words_of(candidate.name)]
            title = {_stem(word) for word in words_of(candidate.title)}
            met = asked & (set(own) | title)
            score = candidate.score * (1 + len(met) / max(1, len(asked)))
            if wanted is not None and candidate.side_effect == wanted:
                score *= 1.25
            strangers = sum(word not in asked for word in set(own))
            return score / (1 + 0.06 * strangers)

        return sorted(candidates, key=lambda candidate: (-weight(candidate), candidate.path))

    def _side_effect(self, words: Sequence[str]) -> str | None:
        for word in words:
            if word in _READ:
                return "read"
            if word in _DELETE:
                return "delete"
            if word in _WRITE:
                return "write"
        return None


class Hits(NamedTuple):
    paths: list[str]
    total: int


class SearchIndex:
    """An FTS5 table in memory: name, integration, title with search words, description, parameter names."""

    def __init__(self, ranker: Ranker | None = None) -> None:
        self._ranker = ranker or WordRanker()
        self._rows: dict[str, int] = {}
        self._next = 1
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._db.execute(
            "CREATE VIRTUAL TABLE tools USING fts5(name, title, words, description, parameters,"
            " path UNINDEXED, integration UNINDEXED, side_effect UNINDEXED, label UNINDEXED, heading UNINDEXED,"
            " tokenize = 'porter unicode61 remove_diacritics 2')"
        )

    def close(self) -> None:
        self._db.close()

    def add(self, tools: Iterable[Tool]) -> None:
        rows = []
        for tool in tools:
            self._rows[tool.path] = self._next
            rows.append((self._next, *_columns(tool)))
            self._next += 1
        self._db.execute("BEGIN")
        self._db.executemany(
            "INSERT INTO tools(rowid, name, title, words, description, parameters,"
            " path, integration, side_effect, label, heading) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            rows,
        )
        self._db.execute("COMMIT")

    def remove(self, paths: Iterable[str]) -> None:
        self._db.execute("BEGIN")
        self._db.executemany("DELETE FROM tools WHERE rowid = ?", [(self._rows.pop(path),) for path in paths])
        self._db.execute("COMMIT")

    def search(self, query: str, integration: str | None = None) -> Hits:
        """Every path that holds a word of `query`, best first. A query without a word finds nothing."""
        words = self._words(query)
        match = _expression(words)
        if match is None:
            return Hits([], 0)
        where, bound = "tools MATCH ?", [match]
        if integration is not None:
            where += " AND integration = ?"
            bound.append(integration)
        found = self._db.execute(
            f"SELECT path, label, heading, side_effect, -bm25(tools, {_WEIGHTS}) FROM tools"  # noqa: S608
            f" WHERE {where} ORDER BY bm25(tools, {_WEIGHTS}), path",
            bound,
        ).fetchall()
        window = [Candidate(*row) for row in found[:WINDOW]]
        ranked = [candidate.path for candidate in self._ranker.rank(words, window)]
        return Hits(ranked + [row[0] for row in found[WINDOW:]], len(found))

    def candidates(self, text: str, limit: int) -> list[str]:
        """Paths that share a word, or the beginning of one, with `text`."""
        words = words_of(text[:MAX_QUERY])[:MAX_WORDS]
        if not words:
            return []
        match = " OR ".join(f'"{word}"*' for word in words)
        rows = self._db.execute(
            f"SELECT path FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, {_WEIGHTS}) LIMIT ?",  # noqa: S608
            (match, limit),
        )
        return [row[0] for row in rows]

    def _words(self, query: str) -> list[str]:
        words = list(dict.fromkeys(words_of(query[:MAX_QUERY])))
        telling = [word for word in words if word not in STOPWORDS]
        return (telling or words)[:MAX_WORDS]


def _expression(words: Sequence[str]) -> str | None:
    terms = dict.fromkeys(word for word in words)
    for word in words:
        terms.update(dict.fromkeys(SYNONYMS.get(word, ())))
    return " OR ".join(f'"{term}"' for term in terms) or None


def _columns(tool: Tool) -> tuple[str, ...]:
    schema = tool.input_schema or {}
    parameters = schema.get("properties", {})
    return (
        " ".join(words_of(tool.name)) + " " + " ".join(words_of(tool.integration)),
        " ".join(words_of(tool.title)),
        tool.spec.words,
        tool.description[:2000],
        " ".join(word for name in parameters for word in words_of(name)),
        tool.path,
        tool.integration,
        tool.side_effect,
        tool.name,
        tool.title,
    )
