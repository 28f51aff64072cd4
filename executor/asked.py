"""One call as a run of its own, because only a run can wait for a person, and outlive the caller and the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ONE_CALL: Final = "await tools.call(input.path, input.arguments, {meta: input.meta === true})"
ONE_CALL_MS: Final = 300_000


def one_call(path: str, args: Mapping[str, Any] | None, *, meta: bool = False) -> dict[str, Any]:
    """What to run. The result of the run is what the call gives."""
    given = {"path": path, "arguments": dict(args or {}), "meta": meta}
    return {"code": ONE_CALL, "language": "javascript", "input": given, "budgets": {"wall_ms": ONE_CALL_MS}}
