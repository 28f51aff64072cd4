"""Python callables of this process as tools."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio.to_thread

from bridge.wire.codec import VALUE_DEPTH
from bridge.wire.errors import InvalidRequest, ToolError
from catalog.model import Connection, Manifest, Outbound, Schema, Tool, ToolValue
from catalog.validate import Check, SchemaError, checked, checker

Function = Callable[[dict[str, Any]], Any]

MAX_PARTS: Final = 1 << 20
"""Of a value, counted as they would be written: shared ones each time."""


@dataclass(frozen=True, slots=True)
class Binding:
    """`check_result` looks at what the function returned, where an output schema was given."""

    function: Function
    is_async: bool
    check_result: Check | None = None


def bind(function: Function, check_result: Check | None = None) -> Binding:
    """A coroutine function is awaited on the event loop, anything else runs in a thread.

    Raises InvalidRequest for what cannot be called.
    """
    if not callable(function):
        raise InvalidRequest(f"A tool is a function, and what is of type {type(function).__name__} cannot be called.")
    by_type = inspect.iscoroutinefunction(type(function).__call__)
    return Binding(function, by_type or inspect.iscoroutinefunction(function), check_result)


def schema_check(schema: Schema | None) -> Check | None:
    """Raises InvalidRequest when the operator's own schema is not one."""
    try:
        return checker(schema, {}, trusted=True)
    except SchemaError as e:
        raise InvalidRequest(f"The schema of the tool is not a JSON Schema: {e.message[:300]}.") from None


class Code:
    """Tools are added one by one; the configuration is empty and nothing is stored."""

    kind = "code"

    def __init__(self, name: str) -> None:
        self.name = name

    def resolve_tools(self, config: Mapping[str, Any]) -> Manifest:
        return Manifest(tools=(), title=self.name)

    async def invoke(self, tool: Tool, args: dict[str, Any], connection: Connection, outbound: Outbound) -> ToolValue:
        binding: Binding = tool.binding
        await outbound.announce()
        if binding.is_async:
            value = await _awaited(binding.function(args))
        else:
            value = await anyio.to_thread.run_sync(_called, binding.function, args, abandon_on_cancel=True)
            if inspect.isawaitable(value):
                value = await _awaited(value)
        check_parts(value)
        if binding.check_result is not None and (problem := await checked(binding.check_result, value)) is not None:
            raise ToolError("internal", f"The tool returned what its output schema does not allow: {problem}")
        return ToolValue(value)


class Escaped(RuntimeError):
    """Raised for what a tool raised to end more than itself: its call has failed, and nothing else."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"the tool raised {type(error).__name__}")


def _called(function: Function, args: dict[str, Any]) -> Any:
    try:
        return function(args)
    except Exception:
        raise
    except BaseException as e:
        raise Escaped(e) from e


async def _awaited(value: Awaitable[Any]) -> Any:
    try:
        return await value
    except Exception:
        raise
    except BaseException as e:
        task = asyncio.current_task()
        # Whoever cancels the call cancels the task; a tool that only says so has failed.
        if isinstance(e, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise Escaped(e) from e


_CONTAINERS: Final = frozenset((dict, list, tuple))


def check_parts(value: Any) -> None:
    """Raises ToolError for a value whose keys are no strings, or that unfolds into more parts than are written."""
    if type(value) not in _CONTAINERS:
        return
    level = [value]
    parts = 1
    for _ in range(VALUE_DEPTH + 1):
        within: list[Any] = []
        for part in level:
            if type(part) is dict:
                odd = [key for key in part if type(key) is not str]
                if odd:
                    kind = type(odd[0]).__name__
                    raise ToolError("internal", f"The tool returned a key of type {kind}, and keys are strings.")
                within += part.values()
            elif type(part) in _CONTAINERS:
                within += part
            if parts + len(within) > MAX_PARTS:
                raise ToolError("too_large", f"The tool returned a value of more than {MAX_PARTS} parts.")
        parts += len(within)
        level = [part for part in within if type(part) in _CONTAINERS]
        if not level:
            return
