"""npm packages as tools: installed, prepared once, and run in isolates. What `/execute-tool` and `add npm` stand on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol

import anyio

from bridge.calls import CallContext, Door
from bridge.npm.installer import Installer
from bridge.wire.errors import (
    ConfigError,
    ImportFailed,
    InvalidRequest,
    Overloaded,
    PackageUnavailable,
    ToolError,
    ToolErrorCode,
)
from catalog.kinds.npm.bundle import PackageSource
from catalog.kinds.npm.listing import EXPORT, listing_of
from catalog.kinds.npm.metadata import declared_tools
from catalog.kinds.npm.tree import Lock, PackageTree
from runtime.budgets import Budgets
from runtime.packages import PackageCall
from runtime.results import RunResult

Code = Literal[
    "PACKAGE_NOT_FOUND",
    "TOOL_NOT_FOUND",
    "TOOL_INVALID",
    "TOOL_EXECUTION_ERROR",
    "EXECUTION_TIMEOUT",
    "INTERNAL_ERROR",
]
_REASONS: Final[Mapping[str, Code]] = {
    "not_found": "TOOL_NOT_FOUND",
    "invalid": "TOOL_INVALID",
    "threw": "TOOL_EXECUTION_ERROR",
    "load_failed": "TOOL_EXECUTION_ERROR",
}
_LIMITS: Final[Mapping[str, Code]] = {
    "deadline_exceeded": "EXECUTION_TIMEOUT",
    "fuel_exhausted": "EXECUTION_TIMEOUT",
    "internal": "INTERNAL_ERROR",
    "worker_lost": "INTERNAL_ERROR",
    "cancelled": "INTERNAL_ERROR",
}


_NOT_LET: Final = frozenset({"egress_denied", "blocked", "approval_required", "tool_not_found", "connection_missing"})
_ERRORS: Final[Mapping[str, ToolErrorCode]] = {
    "deadline_exceeded": "upstream_timeout",
    "result_too_large": "too_large",
    "internal": "internal",
    "worker_lost": "internal",
}


@dataclass(frozen=True, slots=True)
class ToolAsked:
    """One execution: the export `name` of `package` at `version` (a version, a range or a tag)."""

    package: str
    name: str
    version: str = "latest"
    params: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What became of an execution. `run` is the run behind it, None where none was started."""

    took_ms: int
    output: Any = None
    code: Code | None = None
    message: str = ""
    run: RunResult | None = None

    @property
    def success(self) -> bool:
        return self.code is None

    def as_dict(self) -> dict[str, Any]:
        """The protocol's JSON form of it."""
        if self.code is None:
            return {"success": True, "output": self.output, "executionTimeMs": self.took_ms}
        error = {"code": self.code, "message": self.message}
        return {"success": False, "error": error, "executionTimeMs": self.took_ms}


class Runner(Protocol):
    """Runs one export of a package in an isolate."""

    async def run(self, call: PackageCall, budgets: Budgets, context: CallContext) -> RunResult: ...

    async def aclose(self) -> None: ...


class Packages:
    """Installs and runs packages. Close it when done."""

    def __init__(self, opened: Callable[[], Awaitable[Installer]], runner: Runner, budgets: Budgets) -> None:
        """`opened` gives the installer, the first time that a package is asked for."""
        self._opened = opened
        self._installer: Installer | None = None
        self._opening = anyio.Lock()
        self._runner = runner
        self._budgets = budgets

    @property
    def wall_ms(self) -> int:
        """How long a tool may take."""
        return self._budgets.wall_ms

    async def aclose(self) -> None:
        """End what is being installed, and what is loaded ahead. Safe to call again."""
        await self._runner.aclose()
        if self._installer is not None:
            await self._installer.aclose()

    async def installer(self) -> Installer:
        """Raises PackageUnavailable where no package can be installed."""
        async with self._opening:
            if self._installer is None:
                try:
                    self._installer = await self._opened()
                except ConfigError as e:
                    raise PackageUnavailable(e.message, hint=e.hint) from None
            return self._installer

    async def execute(self, asked: ToolAsked, *, principal: str = "sdk", door: Door = "sdk") -> ToolAnswer:
        """Install, load and run. A package or a tool that fails is an answer, not an exception.

        Raises InvalidRequest for parameters that cannot be given, and Overloaded; nothing ran then.
        """
        began = time.perf_counter()
        try:
            lock = await (await self.installer()).lock(asked.package, asked.version)
            context = CallContext(principal=principal, door=door)
            run = await self.run(lock, asked.name, asked.params, asked.env, context)
        except PackageUnavailable as e:
            message = e.message if e.hint is None else f"{e.message} {e.hint}"
            return ToolAnswer(_since(began), code="PACKAGE_NOT_FOUND", message=message)
        if run.status == "completed":
            return ToolAnswer(_since(began), run.result, run=run)
        code, message = verdict(run)
        return ToolAnswer(_since(began), code=code, message=message, run=run)

    async def listed(self, package: str, version: str, env: Mapping[str, str]) -> tuple[Lock, list[Any]]:
        """What a package is resolved to, and what it says of its tools when it has `env`. Raises ImportFailed."""
        lock = await (await self.installer()).lock(package, version)
        call = PackageCall(listing_of(lock, self._reading(lock)), EXPORT, {}, dict(env))
        try:
            run = await self._runner.run(call, self._budgets, CallContext())
        except InvalidRequest as e:
            raise ImportFailed(e.message, hint=e.hint) from None
        if run.status != "completed" or not isinstance(run.result, list):
            raise ImportFailed(f"{lock.name}@{lock.version} cannot be loaded: {verdict(run)[1]}")
        return lock, run.result

    async def call(
        self, lock: Lock, export: str, args: Mapping[str, Any], context: CallContext, env: Mapping[str, str]
    ) -> Any:
        """What one export of an installed package gives back. Raises ToolError."""
        try:
            run = await self.run(lock, export, args, env, context)
        except PackageUnavailable as e:
            code: ToolErrorCode = "upstream_unreachable" if e.reason == "unreachable" else "upstream_error"
            raise ToolError(code, e.message, hint=e.hint) from None
        except InvalidRequest as e:
            raise ToolError("invalid_arguments", e.message, hint=e.hint) from None
        except Overloaded as e:
            raise ToolError("upstream_unreachable", e.message, retryable=True) from None
        if run.status == "completed":
            return run.result
        error = run.error or {}
        raise ToolError(
            _ERRORS.get(str(error.get("code")), "upstream_error"),
            verdict(run)[1],
            retryable=False,
            hint=_refused(run),
            details={"name": str(error["name"])} if "name" in error else None,
        )

    async def run(
        self, lock: Lock, export: str, params: Mapping[str, Any], env: Mapping[str, str], context: CallContext
    ) -> RunResult:
        """Run one export of an installed package. Raises PackageUnavailable, InvalidRequest, Overloaded."""
        source = PackageSource(lock.digest, lock.name, self._reading(lock))
        call = PackageCall(source, export, dict(params), dict(env))
        run = await self._runner.run(call, self._budgets, context)
        if (run.error or {}).get("reason") == "not_found" and export in await self._declared(lock):
            # Any other name would run whatever the package exports by default.
            run = await self._runner.run(replace(call, fallback=True), self._budgets, context)
        return run

    async def _declared(self, lock: Lock) -> set[str]:
        tree = await (await self.installer()).tree(lock)
        return {one.name for one in declared_tools(tree.files.get(f"{tree.root}/package.json", b""))}

    def _reading(self, lock: Lock) -> Callable[[], PackageTree]:
        """The files of `lock`, for another thread: what is no longer kept is fetched again on this one."""
        loop = asyncio.get_running_loop()

        async def tree() -> PackageTree:
            return await (await self.installer()).tree(lock)

        return lambda: asyncio.run_coroutine_threadsafe(tree(), loop).result()


def verdict(run: RunResult) -> tuple[Code, str]:
    """What the protocol calls the failure of a run, and what it says of it."""
    error = run.error or {}
    code = str(error.get("code", "internal"))
    message = str(error.get("message", "the run failed"))
    if code == "script_error":
        found = _REASONS.get(str(error.get("reason")), "TOOL_EXECUTION_ERROR")
        return found, message
    found = _LIMITS.get(code, "TOOL_EXECUTION_ERROR")
    if run.limit is not None:
        message = f"{message} ({run.limit['name']}: {run.limit['limit']})"
    return found, message


def _refused(run: RunResult) -> str | None:
    """What the package was not let do: it is told less of that than its caller may know."""
    codes = sorted({str(call["code"]) for call in run.calls if call.get("code") in _NOT_LET})
    return f"A fetch of the package was not let through: {', '.join(codes)}." if codes else None


def _since(began: float) -> int:
    return max(0, round((time.perf_counter() - began) * 1000))
