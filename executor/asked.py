"""One call as a run of its own, because only a run can wait for a person, and outlive the caller and the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

from bridge.wire.errors import ToolError, ToolErrorCode

if TYPE_CHECKING:
    from runtime.results import RunResult

ONE_CALL: Final = "await tools.call(input.path, input.arguments, {meta: input.meta === true})"
ONE_CALL_MS: Final = 300_000


def one_call(path: str, args: Mapping[str, Any] | None, *, meta: bool = False) -> dict[str, Any]:
    """What to run. The result of the run is what the call gives."""
    given = {"path": path, "arguments": dict(args or {}), "meta": meta}
    return {"code": ONE_CALL, "language": "javascript", "input": given, "budgets": {"wall_ms": ONE_CALL_MS}}


def settled(run: RunResult) -> Any:
    """The value of a run of one call that has come to one, else the run. Raises ToolError where the call failed."""
    if run.status == "completed" and run.result_ref is None:
        return run.result
    error = run.error or {}
    facts = error.get("details") or {}
    if run.status == "failed" and facts.get("code") in get_args(ToolErrorCode):
        more = {key: value for key, value in facts.items() if key not in ("code", "path", "status", "retryable")}
        failure = ToolError(
            facts["code"],
            error["message"],
            path=facts.get("path"),
            status=facts.get("status"),
            retryable=facts.get("retryable"),
            hint=error.get("hint"),
            details=more or None,
        )
        raise failure
    return run
