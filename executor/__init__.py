"""Executor: run agent scripts in sandboxed isolates, with budgets, and give them tools through one typed bridge.

    async with Executor.open() as ex:
        answer = await ex.run("1 + 1")

Only what this module exports is public. Names load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from bridge.wire.errors import (
        ConfigError,
        Conflict,
        ExecutorError,
        Forbidden,
        ImportFailed,
        InvalidRequest,
        NotFound,
        Overloaded,
        PayloadTooLarge,
        RangeNotSatisfiable,
        RequestRefused,
        RunFailed,
        StorageFailed,
        StorageFull,
        ToolError,
        Unauthorized,
    )
    from executor.config import Config
    from executor.executor import Executor
    from executor.packages import ToolAnswer
    from executor.scoped import Scoped
    from runtime.results import ReplayReport, RunEvent, RunPage, RunRecord, RunResult, StoredResult

__version__: Final = "0.1.0"

_ERRORS: Final = "bridge.wire.errors"
_RESULTS: Final = "runtime.results"
_HOMES: Final[dict[str, str]] = {
    "Config": "executor.config",
    "ConfigError": _ERRORS,
    "Conflict": _ERRORS,
    "Executor": "executor.executor",
    "ExecutorError": _ERRORS,
    "Forbidden": _ERRORS,
    "ImportFailed": _ERRORS,
    "InvalidRequest": _ERRORS,
    "NotFound": _ERRORS,
    "Overloaded": _ERRORS,
    "PayloadTooLarge": _ERRORS,
    "RangeNotSatisfiable": _ERRORS,
    "ReplayReport": _RESULTS,
    "RequestRefused": _ERRORS,
    "RunEvent": _RESULTS,
    "RunFailed": _ERRORS,
    "RunPage": _RESULTS,
    "RunRecord": _RESULTS,
    "RunResult": _RESULTS,
    "Scoped": "executor.scoped",
    "StorageFailed": _ERRORS,
    "StorageFull": _ERRORS,
    "StoredResult": _RESULTS,
    "ToolAnswer": "executor.packages",
    "ToolError": _ERRORS,
    "Unauthorized": _ERRORS,
}

__all__ = [
    "Config",
    "ConfigError",
    "Conflict",
    "Executor",
    "ExecutorError",
    "Forbidden",
    "ImportFailed",
    "InvalidRequest",
    "NotFound",
    "Overloaded",
    "PayloadTooLarge",
    "RangeNotSatisfiable",
    "ReplayReport",
    "RequestRefused",
    "RunEvent",
    "RunFailed",
    "RunPage",
    "RunRecord",
    "RunResult",
    "Scoped",
    "StorageFailed",
    "StorageFull",
    "StoredResult",
    "ToolAnswer",
    "ToolError",
    "Unauthorized",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
