"""Python callables of this process as tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from bridge.wire.errors import InvalidRequest, ToolError
from catalog.model import Connection, Manifest, Outbound, Schema, Tool, ToolValue
from catalog.validate import Check, SchemaError, checked, checker

Function = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Binding:
    """`check_result` looks at what the function returned, where an output schema was given."""

    function: Function
    is_async: bool
    check_result: Check | None = None


def bind(function: Function, check_result: Check | None = None) -> Binding:
    """A coroutine function is awaited on the event loop, anything else runs in a thread."""
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
            value = await binding.function(args)
        else:
            value = await anyio.to_thread.run_sync(binding.function, args, abandon_on_cancel=True)
            if inspect.isawaitable(value):
                value = await value
        if binding.check_result is not None and (problem := await checked(binding.check_result, value)) is not None:
            raise ToolError("internal", f"The tool returned what its output schema does not allow: {problem}")
        return ToolValue(value)
