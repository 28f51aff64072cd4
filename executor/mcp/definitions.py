"""The tools of the MCP door: names, schemas, annotations, and the arguments as types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import mcp_types as types
from pydantic import BaseModel, ConfigDict, Field

from executor.mcp import guide


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class RunCode(Arguments):
    code: Annotated[str, Field(description="The script. Its last expression, or what it returns, is the result.")]
    language: Annotated[
        Literal["typescript", "javascript", "python"], Field(description="TypeScript also takes plain JavaScript.")
    ] = "typescript"
    input: Annotated[Any, Field(description="Any JSON value; the script finds it as `input`.")] = None
    budgets: Annotated[
        dict[str, int] | None,
        Field(description="Lower limits for this run, such as `wall_ms`, `fuel`, `memory_bytes`, `bridge_calls`."),
    ] = None


class Search(Arguments):
    query: Annotated[str, Field(description="What the tool should do, in a few words; empty lists them all.")] = ""
    integration: Annotated[str | None, Field(description="Only tools of this integration.")] = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    cursor: Annotated[str | None, Field(description="`next` of the page before.")] = None


class Describe(Arguments):
    path: Annotated[str, Field(description="The path of a tool, as search gives it.")]
    schemas: Annotated[bool, Field(description="Also give the JSON Schemas.")] = False


class Execute(Arguments):
    path: Annotated[str, Field(description="The path of a tool, as search gives it.")]
    arguments: Annotated[dict[str, Any] | None, Field(description="What describe says it takes.")] = None


class Resume(Arguments):
    run_id: Annotated[str | None, Field(description="The run; without it, your runs that wait are listed.")] = None
    wait_s: Annotated[int, Field(ge=0, le=600, description="Seconds to wait for the run to end.")] = 20


ARGUMENTS: Final[dict[str, type[Arguments]]] = {
    "run_code": RunCode,
    "search": Search,
    "describe": Describe,
    "execute": Execute,
    "resume": Resume,
}

_ERROR: Final = {
    "type": "object",
    "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "hint": {"type": "string"}},
    "required": ["code", "message"],
}
_RUN: Final = {
    "run_id": {"type": "string"},
    "status": {"enum": ["queued", "running", "waiting", "completed", "failed", "cancelled", "expired"]},
    "result": {},
    "result_ref": {"type": "object"},
    "error": _ERROR,
    "limit": {"type": "object"},
    "interactions": {"type": "array", "items": {"type": "object"}},
    "logs": {"type": "array", "items": {"type": "object"}},
    "emitted": {"type": "array"},
    "calls": {"type": "array", "items": {"type": "object"}},
    "usage": {"type": "object"},
}
_OUTPUTS: Final[dict[str, dict[str, Any]]] = {
    "run_code": {"type": "object", "properties": _RUN},
    "search": {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"type": "object"}},
            "total": {"type": "integer"},
            "next": {"type": ["string", "null"]},
            "error": _ERROR,
        },
    },
    "describe": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "signature": {"type": "string"}, "error": _ERROR},
    },
    "execute": {"type": "object", "properties": {"value": {}} | _RUN},
    "resume": {"type": "object", "properties": {"runs": {"type": "array", "items": {"type": "object"}}} | _RUN},
}
_TITLES: Final = {
    "run_code": "Run a script",
    "search": "Find tools",
    "describe": "Describe a tool",
    "execute": "Call one tool",
    "resume": "Look at a waiting run",
}
_DESCRIPTIONS: Final = {
    "search": "Find tools that a script or execute can call, by what they do. Gives paths.",
    "describe": "Show the signature of a tool: what it takes, and what a call returns.",
    "execute": "Call one tool by its path. For more than one call, write a script for run_code.",
    "resume": "The outcome of a run that waits for a person's approval, once the person has decided; decides nothing "
    "itself. Waits `wait_s` seconds. Without run_id: which runs wait.",
}
_READS: Final = frozenset({"search", "describe", "resume"})


def output_of_call(value: dict[str, Any]) -> dict[str, Any]:
    """The output schema of a tool whose value is described by `value`."""
    return {"type": "object", "properties": {"value": value} | _RUN}


def resume() -> types.Tool:
    return _tool("resume", ())


def tools(integrations: Sequence[str]) -> list[types.Tool]:
    """The tools, always the same and in the same order but for the names of `integrations`."""
    return [_tool(name, integrations) for name in ARGUMENTS]


def _tool(name: str, integrations: Sequence[str]) -> types.Tool:
    reads = name in _READS
    return types.Tool(
        name=name,
        title=_TITLES[name],
        description=guide.run_code_description(integrations) if name == "run_code" else _DESCRIPTIONS[name],
        input_schema=_schema(ARGUMENTS[name]),
        output_schema=_OUTPUTS[name],
        annotations=types.ToolAnnotations(
            title=_TITLES[name],
            read_only_hint=reads,
            destructive_hint=not reads,
            idempotent_hint=reads,
            open_world_hint=not reads,
        ),
    )


def _schema(arguments: type[Arguments]) -> dict[str, Any]:
    schema = arguments.model_json_schema()
    for part in (schema, *schema.get("properties", {}).values()):
        part.pop("title", None)
    return schema
