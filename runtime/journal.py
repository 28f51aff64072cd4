"""The journal of a run: everything that reached the isolate from outside, in order, and what it asked for.

An entry is a msgpack array whose first item is its kind:

    [1, version, language, seed, now_us, image]                   the isolate started
    [2, fuel, [[id, path, meta, args_sha256], …], wake_us]        it paused, with these new calls
    [3, now_us, [[id, ok, value], …]]                             it went on, with these answers
    [4, fuel, code]                                               it ended (code nil: with a result)
    [5, id, ok, value]                                            a call with an effect came back


`value` is msgpack in a bin, or `[sha256, size]` of a blob where it is large, or nil in a 3 where a 5 has it: the
answer to a call with an effect is kept as soon as it is there, for the call is not made again. Same script, input and
journal give the same calls, fuel and result. Arguments are kept as a hash and secrets never get here: they never reach
an isolate.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgpack

from bridge.wire import frames
from bridge.wire.errors import FrameError
from runtime.store.runs import CallRow, RunStore, put_blob, put_calls

T = TypeVar("T")

VERSION: Final = 2
START: Final = 1
PAUSE: Final = 2
RESUME: Final = 3
END: Final = 4
ANSWER: Final = 5

BLOB_BYTES: Final = 16 * 1024
"""Values above this size are blobs of their own."""


class Journal:
    """The journal of run number `n`. Entries are committed soon, in order, and before any later write of the store.

    A run that never paused has no entries: its seed and clock are in its record. Past `max_bytes` nothing more is
    kept and `whole` is False: such a run cannot be replayed.
    """

    def __init__(self, store: RunStore, n: int, max_bytes: int) -> None:
        self.whole = True
        self._store = store
        self._n = n
        self._room = max_bytes
        self._start: list[Any] | None = None
        self._entries: deque[list[Any]] = deque()
        self._calls: deque[dict[str, Any]] = deque()
        self._posted = False
        self._seq = 0
        self._revived = False
        self.early: set[int] = set()
        """Calls whose answers are kept before the run went on with them."""

    def goes_on(self, seq: int, size: int) -> None:
        """This is the journal of a run that was begun before: it has `seq` rows of `size` bytes together."""
        self._seq = seq
        self._room -= size
        self._revived = True

    def started(self, language: str, seed: int, now_us: int, image: str) -> None:
        self._start = [START, VERSION, language, seed, now_us, image]

    def paused(self, fuel: int, calls: Sequence[frames.Call], wake_us: int | None) -> None:
        self._add([PAUSE, fuel, calls, wake_us], 64 * (len(calls) + 1))

    def resumed(self, now_us: int, answers: Sequence[frames.Answer]) -> None:
        self._add([RESUME, now_us, answers], 32 + sum([len(answer.value) + 32 for answer in answers]))

    def ended(self, fuel: int, code: str | None) -> None:
        """Close the journal of a run that paused at least once."""
        if self._start is None:
            self._add([END, fuel, code], 32)

    def called(self, facts: dict[str, Any], answer: frames.Answer | None = None) -> None:
        """Record what became of a call with an effect, and its answer, without waiting for company."""
        self._calls.append(facts)
        if answer is not None:
            self.early.add(answer.id)
            self._add([ANSWER, *answer], 32 + len(answer.value))
        self._post(urgent=True)

    async def sending(self, facts: dict[str, Any]) -> None:
        """Record, durably and after everything before it, that a call is about to leave. Raises StorageFull."""
        await self._store.sending(call_row(self._n, facts))

    def _add(self, entry: list[Any], size: int) -> None:
        self._room -= size
        if self._room < 0:
            if self.whole:
                self.whole = False
                self._store.not_whole(self._n)
            return
        if self._start is not None:
            self._entries.append(self._start)
            self._start = None
        if self._revived:
            self._revived = False
            self._store.progressed(self._n)
        self._entries.append(entry)
        if not self._posted:
            self._post(urgent=False)

    def _post(self, urgent: bool) -> None:
        self._posted = True
        self._store.database.post(_Chunk(self), urgent=urgent, failed=self._broken)

    def _broken(self) -> None:
        self.whole = False

    def take(self) -> _Taken:
        """On the writer's thread: what waits to be written."""
        # Cleared first: what arrives meanwhile is taken now or posts again, never lost.
        self._posted = False
        self._seq += 1
        return _Taken(self._seq, _drain(self._entries), [call_row(self._n, facts) for facts in _drain(self._calls)])

    @property
    def number(self) -> int:
        return self._n


class _Taken(NamedTuple):
    seq: int
    entries: list[list[Any]]
    calls: list[CallRow]


class _Chunk:
    """One row of a journal. It is called again when its transaction failed, and then writes the same again."""

    __slots__ = ("_journal", "_taken")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._taken: _Taken | None = None

    def __call__(self, connection: sqlite3.Connection) -> None:
        if self._taken is None:
            self._taken = self._journal.take()
        seq, entries, calls = self._taken
        if entries:
            run = self._journal.number
            packed = b"".join(_packed(connection, run, entry, self._journal.early) for entry in entries)
            connection.execute("INSERT INTO journal (run, seq, entries) VALUES (?, ?, ?)", (run, seq, packed))
        put_calls(connection, calls)


def call_row(run: int, facts: dict[str, Any]) -> CallRow:
    """The row of a call with these facts."""
    return CallRow(run, facts["id"], facts["path"], facts["outcome"], facts["started_at"], json.dumps(facts))


def _drain(queue: deque[T]) -> list[T]:
    taken: list[T] = []
    while queue:
        taken.append(queue.popleft())
    return taken


def _packed(connection: sqlite3.Connection, run: int, entry: list[Any], early: set[int]) -> bytes:
    if entry[0] == PAUSE:
        asked = [[call.id, call.path, call.meta, hashlib.sha256(call.args).digest()] for call in entry[2]]
        entry = [PAUSE, entry[1], asked, entry[3]]
    elif entry[0] == RESUME:
        answers = [[id, ok, None if id in early else _value(connection, run, value)] for id, ok, value in entry[2]]
        entry = [RESUME, entry[1], answers]
    elif entry[0] == ANSWER:
        entry = [ANSWER, entry[1], entry[2], _value(connection, run, entry[3])]
    packed = msgpack.packb(entry, use_bin_type=True)
    assert isinstance(packed, bytes)
    return packed


def _value(connection: sqlite3.Connection, run: int, value: bytes) -> bytes | list[Any]:
    if len(value) <= BLOB_BYTES:
        return value
    return [put_blob(connection, run, value), len(value)]


def read(stream: bytes) -> list[list[Any]]:
    """The entries of a journal, in order. Raises FrameError for bytes that are no whole entries."""
    unpacker = msgpack.Unpacker(raw=False, max_buffer_size=0)
    unpacker.feed(stream)
    entries: list[list[Any]] = []
    try:
        # Iterating over it would end without a word where the last entry is cut off.
        while unpacker.tell() < len(stream):
            entries.append(unpacker.unpack())
    except (ValueError, msgpack.UnpackException) as e:
        raise FrameError("the journal is damaged") from e
    return entries
