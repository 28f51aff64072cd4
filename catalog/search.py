"""Finding tools by words: SQLite FTS5 for the candidates, a ranker for their order."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from catalog.model import Tool

MAX_QUERY: Final = 500
"""Characters of a query that are read."""
MAX_WORDS: Final = 24
BATCH: Final = 200
"""Tools that are indexed in one transaction."""
WINDOW: Final = 400
"""Candidates that the ranker orders; what FTS5 puts behind them stays in its order."""

_WORD: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WEIGHTS: Final = "10.0, 6.0, 4.0, 1.0, 0.5"

_STOP = (
    "a an the of in on to for from with by and or is are be it its this that these those all any i we our your am"
    " please can could how do does what which when where want need should using use via into as at some s"
    " api tool tools"
)
_READING = "see get list show fetch read retrieve find search lookup count view check download"
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
    "clone": ("duplicate", "copy", "fork"),
    "copy": ("duplicate",),
    "undelete": ("restore",),
    "see": ("get", "list"),
    "unlink": ("remove", "delete"),
    "my": ("me", "authenticated"),
    "who": ("me", "myself", "identity", "current"),
    "text": ("message",),
    "email": ("message", "mail"),
    "chargeback": ("dispute",),
    "bill": ("invoice",),
    "machine": ("droplet", "instance", "vm"),
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
_VERBS: Final = _READ | _WRITE | _DELETE


class Candidate(NamedTuple):
    """A hit of the index: `score` is bm25's, larger is better; `words` are the fixed words of its address."""

    path: str
    name: str
    title: str
    words: str
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


_VERB_STEMS: Final = frozenset(map(_stem, _VERBS | {"put", "patch", "head", "v1", "v2", "v3", "api", "rest", "json"}))


class WordRanker:
    """bm25, then what people mean by their words: all of the things they name, the verb, and nothing besides.

    "create an issue" is the tool that writes and whose name speaks of issues alone, before the one that creates a
    comment on an issue.
    """

    def rank(self, words: Sequence[str], candidates: list[Candidate]) -> list[Candidate]:
        verb = next((word for word in words if word in _VERBS), None)
        things = {_stem(word) for word in words if word != verb}
        wanted = None if verb is None else _effect(verb)

        def weight(candidate: Candidate) -> float:
            name = {_stem(word) for word in words_of(candidate.name)} - _VERB_STEMS
            address = {_stem(word) for word in words_of(candidate.words)} - _VERB_STEMS
            title = {_stem(word) for word in words_of(candidate.title)}
            met = sum(_met(thing, name | address | title) for thing in things)
            besides = min(len(address - things) if address else 99, len(name - things))
            score = candidate.score * (0.4 + met / max(1, len(things)))
            if wanted is not None:
                score *= 1.3 if candidate.side_effect == wanted else 0.8
            return score / (1 + 0.12 * besides)

        return sorted(candidates, key=lambda candidate: (-weight(candidate), candidate.path))


def _met(thing: str, own: set[str]) -> bool:
    return thing in own or any(_stem(other) in own for other in SYNONYMS.get(thing, ()))


def _effect(verb: str) -> str:
    return "read" if verb in _READ else "delete" if verb in _DELETE else "write"


class Hits(NamedTuple):
    paths: list[str]
    total: int


class SearchIndex:
    """An FTS5 table in memory: name, integration, title with search words, description, parameter names."""

    def __init__(self, ranker: Ranker | None = None) -> None:
        self._ranker = ranker or WordRanker()
        self._rows: dict[str, int] = {}
        self._next = 1
        self._lock = threading.Lock()
        self._integrations: Counter[str] = Counter()
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._db.execute(
            "CREATE VIRTUAL TABLE tools USING fts5(name, title, words, description, parameters,"
            " path UNINDEXED, integration UNINDEXED, side_effect UNINDEXED, label UNINDEXED, heading UNINDEXED,"
            " tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        self._db.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(tools, row)")

    def close(self) -> None:
        self._db.close()

    def add(self, tools: Sequence[Tool]) -> None:
        """Index `tools`, in small transactions: it may run in a thread while others search."""
        for at in range(0, len(tools), BATCH):
            with self._lock:
                self._insert(tools[at : at + BATCH])

    def _insert(self, tools: Sequence[Tool]) -> None:
        rows = []
        for tool in tools:
            self._rows[tool.path] = self._next
            self._integrations[tool.integration] += 1
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
        """Forget the tools at `paths`; those that were never indexed are passed over."""
        with self._lock:
            known = [(path, self._rows.pop(path)) for path in paths if path in self._rows]
            self._integrations -= Counter(path.partition(".")[0] for path, _ in known)
            self._db.execute("BEGIN")
            self._db.executemany("DELETE FROM tools WHERE rowid = ?", [(row,) for _, row in known])
            self._db.execute("COMMIT")

    def search(self, query: str, integration: str | None = None) -> Hits:
        """Every path that holds a word of `query`, best first. A query without a word finds nothing.

        The name of an integration among the words is a filter, not a word.
        """
        with self._lock:
            return self._search(query, integration)

    def _search(self, query: str, integration: str | None) -> Hits:
        words = list(dict.fromkeys(words_of(query[:MAX_QUERY])))[:MAX_WORDS]
        if integration is None:
            integration, words = self._product(words)
        telling = [word for word in words if word not in STOPWORDS] or words
        terms = [self._known(word) for word in telling]
        match = _expression(terms)
        if match is None:
            return Hits([], 0)
        where, bound = "tools MATCH ?", [match]
        if integration is not None:
            where += " AND integration = ?"
            bound.append(integration)
        found = self._db.execute(
            f"SELECT path, label, heading, words, side_effect, -bm25(tools, {_WEIGHTS}) AS score FROM tools"  # noqa: S608
            f" WHERE {where} ORDER BY score DESC, path",
            bound,
        ).fetchall()
        window = [Candidate(*row) for row in found[:WINDOW]]
        ranked = [candidate.path for candidate in self._ranker.rank(terms, window)]
        return Hits(ranked + [row[0] for row in found[WINDOW:]], len(found))

    def _product(self, words: list[str]) -> tuple[str | None, list[str]]:
        """The integration that the words name, alone or two together, and the other words."""
        for size in (2, 1):
            for at in range(len(words) - size + 1):
                name = "".join(words[at : at + size])
                rest = words[:at] + words[at + size :]
                if self._integrations[name] and rest:
                    return name, rest
        return None, words

    def _known(self, word: str) -> str:
        """The word, or the indexed one that it is a slip of the keyboard away from."""
        if len(word) < 3 or not word.isascii() or word in SYNONYMS:
            return word
        if self._db.execute("SELECT 1 FROM tools WHERE tools MATCH ? LIMIT 1", (f'"{word}"',)).fetchone():
            return word
        stem = _stem(word)
        near = self._db.execute(
            "SELECT term FROM terms WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? ORDER BY doc DESC",
            (word[0], chr(ord(word[0]) + 1), len(stem) - 1, len(word) + 1),
        )
        return next((term for (term,) in near if _one_slip(word, term) or _one_slip(stem, term)), word)

    def candidates(self, text: str, limit: int) -> list[str]:
        """Paths that share a word, or the beginning of one, with `text`."""
        words = words_of(text[:MAX_QUERY])[:MAX_WORDS]
        if not words:
            return []
        match = " OR ".join(f'"{word}"*' for word in words)
        with self._lock:
            rows = self._db.execute(
                f"SELECT path FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, {_WEIGHTS}) LIMIT ?",  # noqa: S608
                (match, limit),
            ).fetchall()
        return [row[0] for row in rows]


def _one_slip(word: str, term: str) -> bool:
    """Whether one letter was left out, put in, changed, or swapped with its neighbour."""
    if abs(len(word) - len(term)) > 1 or word == term:
        return False
    at = next(
        (i for i, (one, other) in enumerate(zip(word, term, strict=False)) if one != other), min(len(word), len(term))
    )
    rest, other = word[at:], term[at:]
    return (
        rest[1:] == other[1:]
        or rest[1:] == other
        or rest == other[1:]
        or (rest[:2] == other[1::-1] and rest[2:] == other[2:])
    )


def _expression(words: Sequence[str]) -> str | None:
    """Any of the words or their synonyms; of the verbs only the first speaks for others."""
    terms = dict.fromkeys(word for word in words)
    verb = next((word for word in words if word in _VERBS), None)
    for word in words:
        if word == verb or word not in _VERBS:
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
