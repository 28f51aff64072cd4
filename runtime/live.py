"""A run that is not over: what was asked, what it said so far, and how its answer and its row are made."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from functools import lru_cache
from typing import Any, Final

import anyio
import msgpack

from bridge.view import Narrowing
from runtime import output
from runtime.budgets import Budgets
from runtime.call import given_up
from runtime.calls import Calls
from runtime.driver import Driver, Script
from runtime.history import History
from runtime.interactions import as_dict
from runtime.journal import Journal
from runtime.output import Output
from runtime.request import RunRequest
from runtime.results import TERMINAL, RunRecord, RunResult, RunStatus
from runtime.store.interactions import InteractionRow
from runtime.store.runs import RunRow

_EMPTY_LIST: Final = b"\x90"


class Live:
    """One run from its acceptance to its answer. `done` is set when its record is committed."""

    def __init__(self, request: RunRequest, n: int, journal: Journal) -> None:
        self.request = request
        self.n = n
        self.id = f"run_{secrets.token_hex(16)}"
        self.seed = secrets.randbits(63)
        self.status: RunStatus = "queued"
        self.created_at = time.time()
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.error: dict[str, Any] | None = None
        self.limit: dict[str, Any] | None = None
        self.result: Any = None
        self.result_packed: bytes | None = None
        self.result_bytes = 0
        self.result_ref: dict[str, Any] | None = None
        self.refused: BaseException | None = None
        """Why the run never got a place; its record is forgotten."""
        self.done = asyncio.Event()
        self.rested = asyncio.Event()
        """Set while there is nothing to expect without a person, and for ever once the run has ended here."""
        self.durable = False
        """Whether somebody was promised that the run goes on without them."""
        self.begun_before = False
        self.waits_so_far = 0
        self.early: list[InteractionRow] = []
        """Interactions that were decided while the run was on its way to its calls."""
        self.revived = asyncio.Event()
        self.reviving = False
        """Whether the run is on its way to where it was before; until then its row says how it stands."""
        self.queueing = anyio.CancelScope()
        self.output = Output(request.budgets.log_bytes, request.budgets.result_bytes)
        self.journal = journal
        self.calls: Calls | None = None
        self.script = Script(request.language, request.code, request.input, self.seed, request.budgets)
        self.driver = Driver(self.script, self.output, journal)
        self._queued: float | None = time.perf_counter()
        self._since: float | None = None
        """When its wall time was started last; None while it stands still."""
        self._wall_s = 0.0
        self._waited_s = 0.0
        self._before: dict[str, int | float] = {}
        """Figures of a run that does not go on from where it was."""
        self.output.status("queued")

    @classmethod
    def again(cls, row: RunRow, journal: Journal) -> Live:
        """A run that was begun before, as its row has it; its output is still to come."""
        live = cls(_request_of(row), row.n, journal)
        live.id, live.seed, live.status = row.id, row.seed, "waiting" if row.status == "waiting" else "running"
        live.created_at, live.started_at = row.created_at, row.started_at
        live.durable = live.begun_before = True
        live.script = Script(row.language, row.source, row.input, row.seed, live.request.budgets)
        live.driver = Driver(live.script, live.output, journal)
        usage = json.loads(row.usage)
        live._wall_s, live._waited_s = usage.get("wall_ms", 0.0) / 1000, usage.get("waited_ms", 0.0) / 1000
        live._queued = None
        return live

    def restore(self, row: RunRow, history: History | None = None) -> None:
        """Take the output and the figures of a run that does not go on from its row, and from its history where the row
        has none yet."""
        self._before = json.loads(row.usage)
        if history is not None and history.steps:
            self._before = {"fuel": history.steps[-1].fuel, "bridge_calls": history.calls} | self._before
        out = self.output
        out.logs, out.emitted, out.calls = _unpack(row.logs), _unpack(row.emitted), _unpack(row.calls)
        out.timeline = [(kind, what) for kind, what in _unpack(row.timeline)]
        for index, call in enumerate(out.calls):
            if call["outcome"] == "waiting":
                out.call_ended(index, given_up(call))
            elif call["outcome"] == "sending":
                out.call_ended(index, call | {"outcome": "unknown"})

    def started(self) -> None:
        """The run has its place: its wall time begins."""
        if self._queued is not None:
            self._waited_s = time.perf_counter() - self._queued
            self._queued = None
            self.started_at = time.time()
        self.goes_on()

    def goes_on(self) -> None:
        """The run computes, or waits for what needs no person."""
        self._since = time.perf_counter()
        self.rested.clear()
        self.status = "running"
        self.output.status("running")

    def waits(self) -> None:
        """The run waits for a person, which takes nothing of its wall time."""
        self._stop_clocks()
        self._since = None
        self.waits_so_far += 1
        self.status = "waiting"
        self.output.status("waiting")

    def waiting_since(self, period: int) -> bool:
        """Whether the run waits, and has waited ever since it began to for the `period`-th time."""
        return self.status == "waiting" and self.waits_so_far == period

    @property
    def wall_s(self) -> float:
        """Wall time that was used until the last wait."""
        return self._wall_s

    def ended(self, status: RunStatus) -> None:
        """The run is over: its clocks stop."""
        self._stop_clocks()
        self._since = None
        self.status = status
        self.ended_at = time.time()

    def cancel(self, reason: str) -> None:
        self.driver.cancel(reason)
        self.queueing.cancel()

    def usage(self) -> dict[str, int | float]:
        """Every budget's figure so far, with `cpu_ms` and `waited_ms`; for the sizes of one call, the largest."""
        self._stop_clocks()
        used, calls, driver = self.driver.usage, self.calls, self.driver
        figures = {
            "fuel": used.fuel,
            "wall_ms": round(self._wall_s * 1000, 3),
            "memory_bytes": used.memory_bytes,
            "bridge_calls": driver.calls_made,
            "bridge_calls_in_flight": driver.in_flight_peak,
            "call_args_bytes": calls.args_bytes if calls else 0,
            "call_value_bytes": calls.value_bytes if calls else 0,
            "source_bytes": self.request.code_bytes,
            "input_bytes": len(self.request.input),
            "result_bytes": self.result_bytes + self.output.emitted_bytes,
            "log_bytes": self.output.log_bytes,
            "cpu_ms": round(used.cpu_us / 1000, 3),
            "waited_ms": round(self._waited_s * 1000, 3),
        }
        return figures | {name: max(figures[name], used) for name, used in self._before.items()}

    def answer(self) -> RunResult:
        """The answer as it stands; later output does not show in it."""
        return RunResult(
            run_id=self.id,
            status=self.status,
            result=self.result,
            result_ref=self.result_ref,
            error=self.error,
            limit=self.limit,
            interactions=self.interactions(),
            logs=list(self.output.logs),
            emitted=list(self.output.emitted),
            calls=list(self.output.calls),
            usage=self.usage(),
        )

    def interactions(self) -> list[dict[str, Any]]:
        """What a person is asked now."""
        return (
            [as_dict(row) for row in self.calls.waiting] if self.calls is not None and self.calls.interactions else []
        )

    def record(self) -> RunRecord:
        """The record as it stands; later output does not show in it."""
        request, answer = self.request, self.answer()
        return RunRecord(
            **{name: getattr(answer, name) for name in RunResult.__dataclass_fields__},
            language=request.language,
            code=request.code,
            input=request.input_value,
            budgets=request.budgets._asdict(),
            toolkit=request.toolkit,
            labels=request.labels,
            principal=request.principal,
            isolation=request.isolation,
            source_sha256=request.source_sha256,
            created_at=self.created_at,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )

    def row(self) -> RunRow:
        """The row as it stands. Large columns are filled once the run has ended."""
        request, out = self.request, self.output
        over = self.ended_at is not None or self.status == "waiting"
        return RunRow(
            n=self.n,
            id=self.id,
            status=self.status,
            language=request.language,
            isolation=request.isolation,
            principal=request.principal,
            toolkit=request.toolkit,
            labels=json.dumps(request.labels) if request.labels else "{}",
            created_at=self.created_at,
            started_at=self.started_at,
            ended_at=self.ended_at,
            source_sha256=request.source_sha256,
            error=None if self.error is None else json.dumps(self.error),
            limit_hit=None if self.limit is None else json.dumps(self.limit),
            usage=json.dumps(self.usage()) if over else "{}",
            budgets=_budgets(request.budgets),
            idempotency_key=request.idempotency_key,
            request_sha256=request.fingerprint() if request.idempotency_key else None,
            seed=self.seed,
            clock_us=self.driver.started_us,
            journal_whole=int(self.journal.whole),
            result_ref=None if self.result_ref is None else json.dumps(self.result_ref),
            source=request.code,
            input=request.input,
            result=self.result_packed,
            logs=_pack(out.logs) if over and out.logs else _EMPTY_LIST,
            emitted=_pack(out.emitted) if over and out.emitted else _EMPTY_LIST,
            calls=_pack(out.calls) if over and out.calls else _EMPTY_LIST,
            timeline=_pack(out.timeline),
            image=self.driver.image or None,
            narrowings=json.dumps([one.as_dict() for one in request.narrowings]) if request.narrowings else "[]",
        )

    def _stop_clocks(self) -> None:
        """Bring the figures up to date."""
        now = time.perf_counter()
        if self._queued is not None and self.ended_at is None:
            self._waited_s = now - self._queued
        if self._since is not None:
            self._wall_s += now - self._since
            self._since = now


def record_of(row: RunRow) -> RunRecord:
    """The record that a row holds."""
    return RunRecord(
        run_id=row.id,
        status=row.status,  # type: ignore[arg-type]  # the store keeps what it was given
        result=None if row.result is None else _unpack(row.result),
        result_ref=None if row.result_ref is None else json.loads(row.result_ref),
        error=None if row.error is None else json.loads(row.error),
        limit=None if row.limit_hit is None else json.loads(row.limit_hit),
        logs=_unpack(row.logs),
        emitted=_unpack(row.emitted),
        calls=_unpack(row.calls),
        usage=json.loads(row.usage),
        language=row.language,
        code=row.source,
        input=_unpack(row.input),
        budgets=json.loads(row.budgets),
        toolkit=row.toolkit,
        labels=json.loads(row.labels),
        principal=row.principal,
        isolation=row.isolation,
        source_sha256=row.source_sha256,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


def narrowings_of(row: RunRow) -> tuple[Narrowing, ...]:
    """What the run was narrowed to. Raises InvalidRequest for what cannot be read."""
    return tuple(Narrowing.from_dict(one) for one in json.loads(row.narrowings))


def _request_of(row: RunRow) -> RunRequest:
    """What was asked, as it was checked then."""
    return RunRequest(
        code=row.source,
        code_bytes=len(row.source.encode()),
        language=row.language,
        input=row.input,
        input_value=_unpack(row.input),
        budgets=Budgets(**json.loads(row.budgets)),
        toolkit=row.toolkit,
        narrowings=narrowings_of(row),
        labels=json.loads(row.labels),
        isolation=row.isolation,
        principal=row.principal,
        idempotency_key=row.idempotency_key,
        source_sha256=row.source_sha256,
    )


def timeline_of(row: RunRow) -> list[output.Mark]:
    """The timeline of a run that is over. What a crash cut off ends all the same: with its status and its answer."""
    marks = [(kind, what) for kind, what in _unpack(row.timeline)]
    if row.status not in TERMINAL:
        return marks
    if not marks or marks[-1][0] != output.RESULT:
        marks += [(output.STATUS, row.status), (output.RESULT, None)]
    return marks


@lru_cache(maxsize=64)
def _budgets(budgets: Budgets) -> str:
    return json.dumps(budgets._asdict())


def _pack(value: Any) -> bytes:
    packed = msgpack.packb(value, use_bin_type=True)
    assert isinstance(packed, bytes)
    return packed


def _unpack(data: bytes) -> Any:
    return msgpack.unpackb(data, raw=False)
