"""One run: start it, resume it, say how it stands. The shim calls these; nothing else does."""

from __future__ import annotations

import asyncio
import builtins
import gc
import inspect
import sys
import types
from typing import Any

from . import failures, script, state, tools, values, wire, world
from .loop import Loop, NeverSettles

Answers = list[tuple[int, bool, Any]]
_tools = tools.Tools("")


def start(source: str, value: Any, seed: int) -> tuple[Any, ...]:
    """Compile and run the script until it is done or only waits."""
    world.reseed(seed)
    loop = state.loop = Loop()
    sys.set_asyncgen_hooks(loop.generator_begins, loop.generator_is_lost)
    state.source = source
    module = types.ModuleType("__main__")
    namespace = vars(module)
    namespace.update(
        __builtins__=builtins, input=value, tools=_tools, ToolError=tools.ToolError, emit=emit, asyncio=asyncio
    )
    sys.modules["__main__"] = module
    try:
        function, state.asynchronous = script.compiled(source, namespace)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return failures.refused(error)
    state.main = state.loop.create_task(_settled(function))
    return step()


def resume(answers: Answers) -> tuple[Any, ...]:
    """Take the answers and go on."""
    answer(answers)
    return step()


def answer(answers: Answers) -> None:
    """Take the answers without going on."""
    state.loop.answered(answers, tools.failed)


def step() -> tuple[Any, ...]:
    """Run until there is nothing to do in this step: (1, wake_us), (0, result) or a failure."""
    loop = state.loop
    while True:
        wake = loop.run()
        if not state.main.done():
            if wake is None and not loop.waiting:
                return failures.describe(NeverSettles())
            return (1, wake)
        if loop.tasks > 1:
            gc.collect()  # a task that failed unseen says so when it goes
            loop.tasks = 0
        try:
            result = state.main.result()
        except SystemExit as error:
            if error.code not in (None, 0):
                return failures.describe(error)
            result = None
        except BaseException as error:
            return failures.describe(error)
        if not loop.waiting and not loop.close_generators():
            return (0, result)
        # calls that nobody awaited are still under way: they were made, so they are seen through
        state.main = loop.create_task(_drained(result))


async def _drained(result: Any) -> Any:
    await asyncio.sleep(0)
    waiting = list(state.loop.waiting.items())
    for _, outcome in zip(waiting, await asyncio.gather(*(f for _, f in waiting), return_exceptions=True), strict=True):
        if isinstance(outcome, tools.ToolError):
            wire.log(True, f"a tool call that was never awaited failed: {outcome}\n")
    return result


async def _settled(function: Any) -> Any:
    """What the script comes to; a coroutine or a future as its result is awaited."""
    result = await function()
    for _ in range(10):
        if isinstance(result, tools.ToolPath) or not inspect.isawaitable(result):
            break
        result = await result
    return result


def emit(value: Any) -> None:
    """Hand out a value while the script runs."""
    wire.emit(value)


def install() -> None:
    """Tell the shim whom to call, and give the compiled scripts what they refer to."""
    setattr(builtins, script.DEFERRED, tools.deferred)
    for shown in (tools.ToolError, values.Unserializable, state.TooLarge, state.CannotWait):
        shown.__module__ = "builtins"  # a traceback names them as a script does
    wire.install(
        start,
        resume,
        answer,
        failures.describe,
        values.special,
        values.Unserializable,
        state.TooLarge,
        state.Exhausted,
        state.CannotWait,
        float,
        set,
        frozenset,
        bytearray,
        memoryview,
    )
