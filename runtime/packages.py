"""Exports of npm packages, run as tools: the package loaded and the tool executed in one isolate, within budgets."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import structlog

from bridge.calls import CallContext, CallJournal
from bridge.proxy import ToolProxy
from bridge.wire import codec, frames
from bridge.wire.errors import FrameError, InvalidRequest, Overloaded, Unserializable
from catalog.kinds.npm.bundle import RULES, Bundle, PackageSource, TooLarge
from catalog.kinds.npm.resolution import Unresolved
from runtime import values
from runtime.budgets import STORED_RESULT_BYTES, Budgets, limit_of
from runtime.dispatcher import Dispatcher
from runtime.package_images import Loaded, PackageImage, PackageImages, loaded_of, sound
from runtime.package_run import PackageRuns, Pages, Ran, together
from runtime.package_stock import Stock
from runtime.results import RunResult
from runtime.run import failure
from runtime.settle import HINTS
from runtime.tasks import Tasks
from runtime.worker.run import NODE, TAKE

REASONS: Final = frozenset({"load_failed", "not_found", "invalid", "threw"})
"""`error["reason"]` where the package is at fault: it did not load; it has no such export; the export is no tool; the
tool threw. Every other failure is a run's, such as a limit's."""

_MAX_ENV: Final = 1024 * 1024
_BUNDLES: Final = 8
_log = structlog.get_logger("executor.packages")


@dataclass(frozen=True, slots=True)
class PackageCall:
    """Run `export` of `package` with `params` (JSON data), as `execute(params, {toolCallId, messages, abortSignal})`.

    `env` is what the package finds in `process.env`, set before any of it is loaded and shared with no other call. With
    `fallback` the default export stands in for an export that there is not.
    """

    package: PackageSource
    export: str
    params: Any
    env: Mapping[str, str] = field(default_factory=dict)
    fallback: bool = False


class Packages:
    """Runs packages in the workers of `dispatcher`; what they fetch goes through `proxy`, like a script's `fetch`.

    `journal` gives what hears of each fetch, for the record of calls; None keeps no record of them.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        proxy: ToolProxy,
        journal: Callable[[], CallJournal | None] = lambda: None,
        images: PackageImages | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._runs = PackageRuns(dispatcher, proxy, journal)
        self._images = images or PackageImages()
        self._bundles: OrderedDict[str, Bundle] = OrderedDict()
        self._loading: dict[str, asyncio.Lock] = {}
        self._stock = Stock()
        self._refills: dict[str, asyncio.Task[None]] = {}
        self._expected: set[str] = set()
        """Packages of which somebody waits for the memory that is being made."""
        self._tasks: Tasks | None = None

    async def aclose(self) -> None:
        """End what is made ahead of calls. Safe to call again."""
        if self._tasks is not None:
            await self._tasks.close()

    async def run(self, call: PackageCall, budgets: Budgets, context: CallContext) -> RunResult:
        """The result of a call: completed with the tool's output, or failed.

        A failure of the package itself is `script_error` and has a `reason` (see REASONS). Raises InvalidRequest for
        parameters or an environment that cannot be given, and where the machine has no image for packages; Overloaded.
        """
        env, asked = _environment(call), _asked(call)
        await self._dispatcher.prepare(NODE)
        # A script that calls the package keeps its place. A package calls none in turn: it has no tools.
        nested = context.run_id is not None
        context = replace(context, run_id=f"run_{secrets.token_hex(16)}")
        key = self._key(call.package)
        image = await self._images.get(key)
        before: Ran | None = None
        if image is None:
            lock = self._loading.setdefault(key, asyncio.Lock())
            try:
                async with lock:
                    image = await self._images.get(key)
                    if image is None:
                        before, image, failed = await self._load(call.package, key, budgets, context)
                        if failed is not None and not env:
                            return failed
            finally:
                self._loading.pop(key, None)
            if before is not None:
                budgets = _less(budgets, before)
        if image is not None and image.loaded.suits(env):
            pages = await self._own(call.package, key, budgets, context) if image.loaded.once else image.pages
            if pages is not None:
                order = _packed({"env": env, "call": asked})
                ran = await self._runs.run(order, budgets, context, pages=pages, nested=nested)
                return _result(context, ran, before, budgets, image.loaded)
        try:
            bundle = await self._bundle(call.package)
        except (Unresolved, TooLarge) as e:
            return _unloadable(context, str(e))
        order = _packed({"modules": dict(bundle.modules), "entry": bundle.entry, "env": env, "call": asked})
        return _result(context, await self._runs.run(order, budgets, context, nested=nested), before, budgets)

    async def _load(
        self, package: PackageSource, key: str, budgets: Budgets, context: CallContext
    ) -> tuple[Ran | None, PackageImage | None, RunResult | None]:
        """Load the package once, with nothing of a call. An image, or how loading failed."""
        try:
            bundle = await self._bundle(package)
        except (Unresolved, TooLarge) as e:
            return None, None, _unloadable(context, str(e))
        ran, result, pages = await self._taken(bundle, budgets, context)
        said = _said(result)
        if said is None or said.get("outcome") != "loaded":
            return ran, None, _result(context, replace(ran, ending=ran.ending._replace(result=result)), None, budgets)
        loaded = loaded_of(said, ran.logs)
        if loaded is None:
            return ran, None, _result(context, ran, None, budgets)
        if ran.calls:
            # Whatever it says of itself: what it fetched was for this caller, and is not to be there for another.
            loaded = replace(loaded, pure=False)
        image = await self._images.put(key, loaded, pages)
        if image.loaded.once and image.loaded.pure:
            self._stock.add(key, pages)
        return ran, image, None

    async def _taken(self, bundle: Bundle, budgets: Budgets, context: CallContext) -> tuple[Ran, bytes | None, bytes]:
        """A run that loads a package; what it said, and the memory that it left."""
        order = _packed({"modules": dict(bundle.modules), "entry": bundle.entry, "env": {}})
        roomy = budgets._replace(result_bytes=STORED_RESULT_BYTES)
        # Whoever loads it, a call for which a script waits may wait for that.
        ran = await self._runs.run(order, roomy, context, source=TAKE, nested=True)
        return ran, *_taken(ran)

    async def _own(self, package: PackageSource, key: str, budgets: Budgets, context: CallContext) -> Pages | None:
        """A memory that is this call's alone, while the next one is made; None where it has to load the package."""
        if self._stock.count(key) == 0 and key in self._refills and key not in self._expected:
            self._expected.add(key)
            try:
                await asyncio.wait([self._refills[key]])
            finally:
                self._expected.discard(key)
        pages = self._stock.take(key)
        if key not in self._refills:
            self._tasks = self._tasks or Tasks()
            self._refills[key] = task = self._tasks.spawn(self._refill(package, key, budgets, context))
            task.add_done_callback(lambda done: self._refills.pop(key, None))
        return pages

    async def _refill(self, package: PackageSource, key: str, budgets: Budgets, context: CallContext) -> None:
        """Load the package once more, by what the caller may do who took the last one. What fetched is not kept."""
        try:
            ran, result, pages = await self._taken(await self._bundle(package), budgets, context)
        except (Unresolved, TooLarge, Overloaded) as e:
            _log.warning("a package is not loaded ahead", reason=str(e))
            return
        loaded = loaded_of(_said(result) or {}, ran.logs)
        if loaded is not None and loaded.pure and not ran.calls and sound(pages):
            self._stock.add(key, pages)

    async def _bundle(self, package: PackageSource) -> Bundle:
        known = self._bundles.get(name := f"{package.digest} {package.specifier}")
        if known is None:
            known = self._bundles[name] = await asyncio.to_thread(package.bundle)
            while len(self._bundles) > _BUNDLES:
                self._bundles.popitem(last=False)
        else:
            self._bundles.move_to_end(name)
        return known

    def _key(self, package: PackageSource) -> str:
        """Of everything that decides what a loaded package is in memory."""
        parts = [RULES, package.digest, package.specifier, self._dispatcher.image(NODE)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _environment(call: PackageCall) -> dict[str, str]:
    env = dict(call.env)
    if not all(isinstance(part, str) for pair in env.items() for part in pair):
        raise InvalidRequest("env is an object of strings")
    if sum(len(name) + len(value) for name, value in env.items()) > _MAX_ENV:
        raise InvalidRequest(f"env has more than {_MAX_ENV} characters")
    return env


def _asked(call: PackageCall) -> dict[str, Any]:
    try:
        codec.check(call.params, json=True)
    except Unserializable as e:
        raise InvalidRequest(f"the parameters cannot be given: {e.message} at {e.path}") from None
    id = f"call_{secrets.token_hex(8)}"
    return {"name": call.export, "params": call.params, "fallback": call.fallback, "call_id": id}


def _packed(order: dict[str, Any]) -> bytes:
    try:
        return codec.encode(order, parsed=True)
    except Unserializable as e:
        raise InvalidRequest(f"this cannot be given to a package: {e.message} at {e.path}") from None


def _less(budgets: Budgets, ran: Ran) -> Budgets:
    """What is left of a call's budgets after its package was loaded."""
    return budgets._replace(
        fuel=max(1, budgets.fuel - int(ran.usage["fuel"])),
        wall_ms=max(1, budgets.wall_ms - int(ran.usage["wall_ms"])),
        bridge_calls=max(0, budgets.bridge_calls - int(ran.usage["bridge_calls"])),
    )


def _taken(ran: Ran) -> tuple[bytes | None, bytes]:
    """The result of a run that was to give its memory too, and that memory; empty where it is too large."""
    if ran.ending.result is None:
        return None, b""
    try:
        both = codec.decode(ran.ending.result)
    except FrameError:
        return None, b""
    match both:
        case [bytes(result), bytes(pages)]:
            return result, pages
    return ran.ending.result, b""


def _said(packed: bytes | None) -> dict[str, Any] | None:
    try:
        said: Any = None if packed is None else values.vetted(packed)
    except (values.TooManyNodes, Unserializable, FrameError):
        return None
    return said if isinstance(said, dict) else None


def _unloadable(context: CallContext, message: str) -> RunResult:
    error = {"code": "script_error", "reason": "load_failed", "name": "Error", "message": message}
    return RunResult(str(context.run_id), "failed", error=error)


def _result(
    context: CallContext, ran: Ran, before: Ran | None, budgets: Budgets, loaded: Loaded | None = None
) -> RunResult:
    usage = ran.usage if before is None else together(before.usage, ran.usage)
    result = RunResult(str(context.run_id), "failed", usage=usage)
    earlier = [{"level": level, "text": text} for level, text in loaded.logs] if loaded is not None else []
    result.logs, result.calls = earlier + ran.logs, ran.calls
    packed, reason = ran.ending
    if packed is not None and len(packed) > budgets.result_bytes:
        reason = failure("result_too_large", f"the result is larger than {budgets.result_bytes} bytes")
    if reason is None:
        _tell(result, _said(packed))
        return result
    result.status = "cancelled" if reason.code == "cancelled" else "failed"
    result.error = _failure(reason)
    result.limit = limit_of(reason.code, budgets, usage)
    return result


def _failure(reason: frames.Failure) -> dict[str, Any]:
    known = {"code": reason.code, "message": reason.message, "name": reason.name, "stack": reason.stack}
    return {key: value for key, value in (known | {"hint": HINTS.get(reason.code)}).items() if value}


def _tell(result: RunResult, said: dict[str, Any] | None) -> None:
    """What the guest's own code says of the call; it is believed of the package, and of nothing else."""
    match said:
        case {"outcome": "done", "output": str(text)}:
            try:
                result.result = json.loads(text)
                result.status = "completed"
            except (ValueError, RecursionError):
                result.error = {"code": "unserializable", "message": "the result is nested too deeply"}
        case {"outcome": str(reason), "error": {"name": str(name), "message": str(message)} as error} if (
            reason in REASONS
        ):
            result.error = {"code": "script_error", "reason": reason, "name": name, "message": message}
            if isinstance(stack := error.get("stack"), str):
                result.error["stack"] = stack
        case _:
            _log.error("a package's isolate answered in another shape")
            result.error = {"code": "internal", "message": "the package's isolate failed"}
