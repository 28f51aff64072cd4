"""Finding tools by words: SQLite FTS5 for the candidates, a ranker for their order."""

from __future__ import annotations

import heapq
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from catalog.model import Tool
from catalog.question import MAX_QUERY, MAX_WORDS, Question, question
from catalog.ranking import Entry, Ranker, WordRanker, entry_of
from catalog.vocabulary import Vocabulary
from catalog.words import stems, words_of

BATCH: Final = 200
"""Tools that are indexed in one transaction."""
WINDOW: Final = 500
"""Candidates that the ranker orders; what FTS5 puts behind them stays in its order."""
MOST: Final = 1000
"""Tools that a search finds at most."""
_WEIGHTS: Final = "0.0, 8.0, 5.0, 1.5, 0.5"
_COMMON: Final = 15_000
"""A word that more tools hold than this makes no candidates when there are rarer ones."""


class Hits(NamedTuple):
    paths: list[str]
    total: int


class SearchIndex:
    """An FTS5 table in memory over stems: address, title, description, parameter names."""

    def __init__(self, ranker: Ranker | None = None) -> None:
        self._ranker = ranker or WordRanker()
        self._rows: dict[str, int] = {}
        self._entries: dict[int, Entry] = {}
        self._next = 1
        self._lock = threading.Lock()
        self._all = Vocabulary()
        self._own: dict[str, Vocabulary] = {}
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._db.execute(
            "CREATE VIRTUAL TABLE tools USING fts5(integration, head, title, description, parameters,"
            " content = '', tokenize = 'unicode61')"
        )

    def close(self) -> None:
        self._ranker.close()
        self._db.close()

    @property
    def cold(self) -> bool:
        """Whether the first search would wait for the ranker to be ready: `warm` it in a thread."""
        return self._ranker.cold

    def warm(self) -> None:
        self._ranker.warm()

    def add(self, tools: Sequence[Tool]) -> None:
        """Index `tools`, in small transactions: it may run in a thread while others search."""
        for at in range(0, len(tools), BATCH):
            some = tools[at : at + BATCH]
            entries = [entry_of(tool) for tool in some]
            self._ranker.learn(some)
            with self._lock:
                self._insert(entries)

    def _insert(self, entries: list[Entry]) -> None:
        rows = []
        for entry in entries:
            self._rows[entry.path] = self._next
            self._entries[self._next] = entry
            held = _stems(entry)
            self._all.add(held)
            self._own.setdefault(entry.integration, Vocabulary()).add(held)
            rows.append((self._next, *_columns(entry)))
            self._next += 1
        self._db.execute("BEGIN")
        self._db.executemany(
            "INSERT INTO tools(rowid, integration, head, title, description, parameters) VALUES (?,?,?,?,?,?)", rows
        )
        self._db.execute("COMMIT")

    def remove(self, paths: Iterable[str]) -> None:
        """Forget the tools at `paths`; those that were never indexed are passed over."""
        paths = list(paths)
        self._ranker.forget(paths)
        with self._lock:
            rows = []
            for path in paths:
                row = self._rows.pop(path, None)
                if row is None:
                    continue
                entry = self._entries.pop(row)
                rows.append((row, *_columns(entry)))
                held, own = _stems(entry), self._own[entry.integration]
                self._all.remove(held)
                own.remove(held)
                if not own.size:
                    del self._own[entry.integration]
            self._db.execute("BEGIN")
            self._db.executemany(
                "INSERT INTO tools(tools, rowid, integration, head, title, description, parameters)"
                " VALUES ('delete',?,?,?,?,?,?)",
                rows,
            )
            self._db.execute("COMMIT")

    def search(self, query: str, integration: str | None = None) -> Hits:
        """The paths of the tools that answer `query`, best first, at most MOST. A query without a word finds nothing.

        The name of an integration among the words is a filter, not a word.
        """
        words = list(dict.fromkeys(words_of(query[:MAX_QUERY])))[:MAX_WORDS]
        with self._lock:
            if integration is None:
                product, others = self._product(words)
                if product is not None and others and (hits := self._within(product, others)) is not None:
                    return hits
                return self._within(None, words, product) or Hits([], 0)
            return self._within(integration, words) or Hits([], 0)

    def _within(self, integration: str | None, words: list[str], also: str | None = None) -> Hits | None:
        """What answers the words in an integration, or in all and then every tool of `also` too. None: nothing does."""
        scope = self._all if integration is None else self._own.get(integration)
        if scope is None:
            return None
        asked = question(words, scope)
        text = " ".join(words)
        found = self._candidates(asked, scope, integration, also)
        alike = [row for path in self._ranker.more(text, integration) if (row := self._rows.get(path)) is not None]
        found = list(dict.fromkeys(found[:WINDOW] + alike + found[WINDOW:])) if words else found
        if not found:
            return None
        size = WINDOW + len(alike)
        window = [self._entries[row] for row in found[:size]]
        ranked = self._ranker.rank(asked, window, scope.rarity, text)
        paths = [entry.path for entry in ranked] + [self._entries[row].path for row in found[size:]]
        return Hits(paths, len(paths))

    def _candidates(self, asked: Question, scope: Vocabulary, integration: str | None, also: str | None) -> list[int]:
        """Rows that hold a word of what is asked for; the verb alone makes none unless there is nothing else."""
        things = [stem for concept in asked.concepts if not concept.verb for stem in concept.stems if scope.known(stem)]
        verbs = [stem for concept in asked.concepts if concept.verb for stem in concept.stems if scope.known(stem)]
        stems = dict.fromkeys(things or verbs)
        telling = [stem for stem in stems if scope.count(stem) <= _COMMON] or list(stems)
        words = " OR ".join(f'"{stem}"' for stem in telling)
        only = f"integration : {_token(integration)} AND " if integration is not None else ""
        everything = [f"integration : {_token(also)}"] if also is not None else []
        match = " OR ".join([f"{only}({words})"] * bool(words) + everything)
        if not match:
            return []
        ranked = self._db.execute(
            f"SELECT rowid, bm25(tools, {_WEIGHTS}) AS score FROM tools WHERE tools MATCH ?"  # noqa: S608
            " ORDER BY score, rowid LIMIT ?",
            (match, MOST),
        ).fetchall()
        # Rows are numbered as they came; what is equal stands in the order of its path, whenever it came.
        ranked.sort(key=lambda row: (row[1], self._entries[row[0]].path))
        rows = [row for row, _ in ranked]
        if len(rows) > WINDOW and words:
            # bm25 measures whole descriptions: the plainest of addresses may stand far behind.
            heads = self._db.execute("SELECT rowid FROM tools WHERE tools MATCH ?", (f"{only}(head : ({words}))",))
            plain = heapq.nsmallest(WINDOW // 2, (row for (row,) in heads), key=self._plainness)
            rows = list(dict.fromkeys(rows[: WINDOW // 2] + plain + rows))[:MOST]
        return rows

    def _plainness(self, row: int) -> tuple[int, str]:
        entry = self._entries[row]
        return entry.size, entry.path

    def _product(self, words: list[str]) -> tuple[str | None, list[str]]:
        """The integration that the words name, alone or two together, and the other words."""
        for names in (_is, _shortens):
            for size in (3, 2, 1):
                for at in range(len(words) - size + 1):
                    said = words[at : at + size]
                    name = next((one for one in sorted(self._own) if names(one, said)), None)
                    if name is not None:
                        return name, words[:at] + words[at + size :]
        return None, words

    def candidates(self, text: str, limit: int) -> list[str]:
        """Paths that share a word, or the beginning of one, with `text`."""
        said = dict.fromkeys(words_of(text[:MAX_QUERY])[:MAX_WORDS])
        words = dict.fromkeys(stem for word in said for stem in stems(word))
        if not words:
            return []
        match = " OR ".join(f'"{word}"*' for word in words)
        with self._lock:
            rows = self._db.execute(
                f"SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, {_WEIGHTS}) LIMIT ?",  # noqa: S608
                (match, limit),
            ).fetchall()
            return [self._entries[row].path for (row,) in rows]


def _is(integration: str, said: Sequence[str]) -> bool:
    return integration.replace("-", "").replace("_", "") == "".join(said)


def _shortens(integration: str, said: Sequence[str]) -> bool:
    """`k8s` is kubernetes; `msgraph` is what "microsoft graph" is called for short, `gcal` "google calendar"."""
    plain = integration.replace("-", "").replace("_", "")
    if len(said) == 1:
        word = said[0]
        return len(word) > 2 and word[1:-1].isdigit() and word == f"{plain[0]}{len(plain) - 2}{plain[-1]}"
    first, last = said[0], said[-1]
    if len(said) == 2 and len(last) > 3 and plain.endswith(last):
        head = plain.removesuffix(last)
        return 0 < len(head) < len(first) and head[0] == first[0] and _within(head, first)
    return False


def _within(letters: str, word: str) -> bool:
    """Whether the letters come in the word in this order."""
    rest = iter(word)
    return all(letter in rest for letter in letters)


def _token(integration: str) -> str:
    """The name of an integration as one token, whatever it is made of."""
    return "x" + integration.encode().hex()


def _stems(entry: Entry) -> set[str]:
    return {stem for text in (entry.head, entry.title, entry.text, entry.parameters) for stem in text.split()}


def _columns(entry: Entry) -> tuple[str, ...]:
    return _token(entry.integration), entry.head, entry.title, entry.text, entry.parameters
