"""What can be read of runs: those in progress as they stand, those that ended from the store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Final
from weakref import WeakValueDictionary

from bridge.wire.errors import Conflict, InvalidRequest, NotFound
from runtime import output, values
from runtime.interactions import as_dict
from runtime.live import Live, record_of, timeline_of
from runtime.references import reference_in
from runtime.results import TERMINAL, RunEvent, RunPage, RunRecord, RunResult, StoredResult
from runtime.store.runs import RunRow, RunStore

STATUSES: Final = ("queued", "running", "waiting", *sorted(TERMINAL))
MAX_PAGE: Final = 500


class Records:
    """Reads runs. `live` are those in progress, by id; everything else is in the store."""

    def __init__(self, store: RunStore, live: Mapping[str, Live]) -> None:
        self._store = store
        self._live = live
        self._arrivals: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()

    async def get(self, run_id: str) -> RunRecord:
        live = self._live.get(run_id)
        if live is not None and not live.reviving:
            return live.record()
        return await self.of(await self._stored(run_id))

    def appears(self, run_id: str) -> asyncio.Event:
        """An event that is set when the run is next in progress here."""
        return self._arrivals.setdefault(run_id, asyncio.Event())

    def appeared(self, run_id: str) -> None:
        """The run is in progress here."""
        arrival = self._arrivals.pop(run_id, None)
        if arrival is not None:
            arrival.set()

    async def list(
        self, *, status: str | None, label: str | None, limit: int, cursor: str | None, principal: str | None = None
    ) -> RunPage:
        if status is not None and status not in STATUSES:
            raise InvalidRequest(f"{str(status)[:64]!r} is not a status", hint=f"use one of {', '.join(STATUSES)}")
        if type(limit) is not int or not 1 <= limit <= MAX_PAGE:
            raise InvalidRequest(f"limit must be a whole number from 1 to {MAX_PAGE}")
        before = None if cursor is None else _cursor(cursor)
        wanted: tuple[str, str | None] | None = None
        if label is not None:
            key, given, value = label.partition("=")
            wanted = (key, value if given else None)
        rows = await self._store.page(status=status, label=wanted, limit=limit + 1, before=before, principal=principal)
        more = str(rows[limit - 1].n) if len(rows) > limit else None
        return RunPage([self._listed(row) for row in rows[:limit]], more)

    async def events(self, run_id: str, *, after: int = 0) -> AsyncIterator[RunEvent]:
        if type(after) is not int or after < 0:
            raise InvalidRequest("after must be the number of an event, or 0")
        while True:
            appeared = self.appears(run_id)
            live = self._live.get(run_id)
            if live is None or live.reviving:
                row = await self._stored(run_id)
                record = await self.of(row)
                answer = RunResult.as_dict(record)
                for seq, mark in enumerate(timeline_of(row), 1):
                    if seq > after:
                        after = seq
                        yield output.event(seq, mark, record.logs, record.emitted, record.calls, answer)
                if record.ended:
                    return
                await (appeared.wait() if live is None else live.revived.wait())
                continue
            async with aclosing(self._live_events(live, after)) as events:
                async for told in events:
                    after = told.seq
                    yield told
            if not live.output.moved:
                return

    async def _live_events(self, live: Live, after: int) -> AsyncGenerator[RunEvent, None]:
        """The events of a run in progress, until its result or until it moves on."""
        out = live.output
        listener = out.listen()
        try:
            while True:
                listener.clear()
                while after < len(out.timeline):
                    mark = out.timeline[after]
                    after += 1
                    answer = live.answer().as_dict() if mark[0] == output.RESULT else {}
                    yield output.event(after, mark, out.logs, out.emitted, out.calls, answer)
                if out.closed or out.moved:
                    return
                await listener.wait()
        finally:
            out.forget(listener)

    async def result(self, run_id: str, emitted: int | None) -> Any:
        """See `Executor.run_result`."""
        n, value, ref = await self._held(run_id, emitted)
        return value if ref is None else values.from_json(json.loads((await self._slice(n, ref, 0, None)).data))

    async def result_slice(self, run_id: str, emitted: int | None, offset: Any, length: Any) -> StoredResult:
        """See `Executor.run_result`."""
        for name, figure in (("offset", offset), ("length", 0 if length is None else length)):
            if type(figure) is not int or figure < 0:
                raise InvalidRequest(f"{name} must be a whole number, 0 or more")
        n, value, ref = await self._held(run_id, emitted)
        if ref is not None:
            return await self._slice(n, ref, offset, length)
        whole = values.document(value)
        return StoredResult(whole[offset : None if length is None else offset + length], offset, len(whole))

    def _listed(self, row: RunRow) -> RunRecord:
        live = self._live.get(row.id)
        return live.record() if live is not None else record_of(row)

    async def of(self, row: RunRow) -> RunRecord:
        """The record of a row, with its calls."""
        record = record_of(row)
        if record.status == "waiting":
            asked = await self._store.interactions.of_run(row.n)
            record.interactions = [as_dict(one) for one in asked if one.state == "pending"]
        if record.error is not None and record.error["code"] == "worker_lost":
            # The host may have stopped before it wrote the record: what had left by then was written on its own.
            record.calls = record.calls or await self._store.calls(row.n)
        return record

    async def row(self, run_id: str) -> RunRow:
        """The row of a run as it stands. Raises NotFound."""
        live = self._live.get(run_id)
        return await self._stored(run_id) if live is None else live.row()

    async def _stored(self, run_id: Any) -> RunRow:
        row = await self._store.get(run_id) if isinstance(run_id, str) else None
        if row is None:
            raise NotFound("there is no such run", hint="`GET /runs` lists the runs that are kept")
        return row

    async def _held(self, run_id: str, emitted: int | None) -> tuple[int, Any, dict[str, Any] | None]:
        """The number of a run, and its result or emitted value: itself, or the reference to its blob."""
        row = await self.row(run_id)
        if emitted is None:
            if row.status != "completed":
                raise Conflict(f"the run has no result: it is {row.status}")
            return row.n, record_of(row).result, None if row.result_ref is None else json.loads(row.result_ref)
        if row.ended_at is None:
            raise Conflict(f"the run is {row.status}: what it emits is in its events")
        all_emitted = record_of(row).emitted
        if type(emitted) is not int or not 0 <= emitted < len(all_emitted):
            raise NotFound(f"the run emitted {len(all_emitted)} values")
        value = all_emitted[emitted]
        return row.n, value, reference_in(value)

    async def _slice(self, n: int, ref: dict[str, Any], offset: int, length: int | None) -> StoredResult:
        found = await self._store.blob(n, bytes.fromhex(ref["sha256"]), offset, length)
        if found is None:
            raise NotFound("the stored value is gone")
        data, total = found
        return StoredResult(data, offset, total)


def plain(record: RunRecord) -> RunResult:
    """The answer of a record, without what was asked."""
    return RunResult(**{name: getattr(record, name) for name in RunResult.__dataclass_fields__})


def _cursor(text: Any) -> int:
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    raise InvalidRequest("the cursor is not one that a page gave", hint="leave it out for the first page")
