"""What a caller gets: a run's answer, its record, its events, a page of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, cast

from bridge.wire.errors import RunErrorCode, RunFailed
from runtime import values

RunStatus = Literal["queued", "running", "waiting", "completed", "failed", "cancelled", "expired"]

TERMINAL: Final[frozenset[str]] = frozenset({"completed", "failed", "cancelled", "expired"})

EventType = Literal["status", "log", "emit", "call", "result"]


@dataclass(slots=True)
class RunResult:
    """The answer to a run, whatever became of it.

    `result` and `emitted` are Python values (bytes stay bytes); `result_ref` stands in for a result above the inline
    limit: `{"id", "bytes", "preview", "media_type"}`, read with `Executor.run_result`. `error` is
    `{"code", "message", "name"?, "line"?, "column"?, "stack"?, "path"?, "hint"?}`, `limit` is `{"name", "limit",
    "used"}` when a budget ended the run. `logs` are `{"level", "text"}` in order, `calls` the tool calls made so far,
    `usage` every budget's figure plus `cpu_ms` and `waited_ms`.
    """

    run_id: str
    status: RunStatus
    result: Any = None
    result_ref: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    limit: dict[str, Any] | None = None
    interactions: list[dict[str, Any]] = field(default_factory=list)
    logs: list[dict[str, Any]] = field(default_factory=list)
    emitted: list[Any] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, int | float] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether the status is a terminal one."""
        return self.status in TERMINAL

    def unwrap(self) -> Any:
        """The result of a completed run (None when it was stored: see `result_ref`). Raises RunFailed otherwise."""
        if self.status == "completed":
            return self.result
        error = self.error or {"code": "internal", "message": f"the run is {self.status}"}
        raise RunFailed(cast(RunErrorCode, error["code"]), error["message"], run_id=self.run_id, hint=error.get("hint"))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form that every door answers with; bytes become `{"$bytes": "<base64>"}`."""
        out: dict[str, Any] = {"run_id": self.run_id, "status": self.status}
        if self.status == "completed" and self.result_ref is None:
            out["result"] = values.to_json(self.result)
        if self.result_ref is not None:
            out["result_ref"] = self.result_ref
        if self.error is not None:
            out["error"] = self.error
        if self.limit is not None:
            out["limit"] = self.limit
        if self.interactions:
            out["interactions"] = self.interactions
        out["logs"] = self.logs
        out["emitted"] = [values.to_json(value) for value in self.emitted]
        out["calls"] = self.calls
        out["usage"] = self.usage
        return out


@dataclass(slots=True)
class RunRecord(RunResult):
    """A run as stored: its answer so far, and what was asked. Times are Unix seconds."""

    language: str = "typescript"
    code: str | None = None
    input: Any = None
    budgets: dict[str, int] = field(default_factory=dict)
    toolkit: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    principal: str = "sdk"
    isolation: str = "shared"
    source_sha256: str = ""
    created_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None

    def as_dict(self) -> dict[str, Any]:
        # `super()` without arguments does not survive dataclass(slots=True), which makes the class anew.
        return (
            RunResult.as_dict(self)
            | {
                "language": self.language,
                "code": self.code,
                "input": values.to_json(self.input),
                "budgets": self.budgets,
                "toolkit": self.toolkit,
                "isolation": self.isolation,
            }
            | self._facts()
        )

    def summary(self) -> dict[str, Any]:
        """The short JSON form of a listing: no code, input, output or calls."""
        out = {"run_id": self.run_id, "status": self.status, "language": self.language} | self._facts()
        if self.error is not None:
            out["error"] = {key: self.error[key] for key in ("code", "message") if key in self.error}
        out["usage"] = self.usage
        return out

    def _facts(self) -> dict[str, Any]:
        return {
            "labels": self.labels,
            "principal": self.principal,
            "source_sha256": self.source_sha256,
            "created_at": self.created_at,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
        }


class RunEvent(NamedTuple):
    """One thing that happened in a run. `seq` counts from 1 without gaps; `data` is JSON-ready.

    `status` carries `{"status"}`, `log` `{"level", "text"}`, `emit` `{"value"}`, `call` a call with its `state`
    (`started`, then `done`, `failed` or `unknown`), and `result`, the last one, the whole answer.
    """

    seq: int
    type: EventType
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of runs, newest first, without their code, output and calls. `next` is the cursor of the page after it."""

    items: list[RunRecord]
    next: str | None

    def as_dict(self) -> dict[str, Any]:
        return {"runs": [item.summary() for item in self.items], "next": self.next}


@dataclass(slots=True)
class ReplayReport:
    """What became of doing a run again from its journal.

    `complete`: the run ended by itself, so that the replay went to its end; one that was ended from outside (cancelled,
    out of time, its worker lost) is done again up to its last pause. `steps` are the pauses that were compared, `calls`
    the calls that came out. `fuel` is `{"recorded", "replayed"}`, `image` `{"recorded", "present"}`: where the guest
    image is another one by now, fuel and timers are not compared. `divergence` is the first difference, `{"step",
    "what", "recorded", "replayed"}`.
    """

    run_id: str
    same: bool
    complete: bool
    steps: int
    calls: int
    fuel: dict[str, int]
    image: dict[str, str]
    divergence: dict[str, Any] | None = None

    @property
    def same_image(self) -> bool:
        return self.image["recorded"] == self.image["present"]

    def as_dict(self) -> dict[str, Any]:
        out = {name: getattr(self, name) for name in ("run_id", "same", "complete", "steps", "calls", "fuel", "image")}
        out["same_image"] = self.same_image
        if self.divergence is not None:
            out["divergence"] = self.divergence
        return out


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A slice of a result's JSON document: `data` starts at byte `offset` of `total`."""

    data: bytes
    offset: int
    total: int
    media_type: str = "application/json"
