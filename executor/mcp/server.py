"""The handlers of the MCP door. They translate: what may be done, and to whom, is decided behind `Executor`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import executor as product
from bridge.wire.errors import ExecutorError
from executor.http.operation import validated
from executor.mcp import definitions, guide, render
from runtime import values

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from executor.executor import Executor
    from executor.scoped import Scoped

PROMPT: Final = "write_a_script"
PROGRESS_S: Final = 5.0
"""How often a client that asked for it hears that a run goes on."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, through which toolkit, and the one that their key is tied to."""

    principal: str = "mcp"
    toolkit: str | None = None
    tied: str | None = None


class Door:
    """The MCP server of one Executor. `caller` tells who is behind a request; over standard input it is always one."""

    def __init__(self, executor: Executor, caller: Callable[[ServerRequestContext[Any, Any]], Caller]) -> None:
        self._executor = executor
        self._caller = caller
        self._tools: dict[str, Callable[[Caller, Any], Awaitable[types.CallToolResult]]] = {
            "run_code": self._run_code,
            "search": self._search,
            "describe": self._describe,
            "execute": self._execute,
        }

    def server(self) -> Server[Any]:
        """A server to run over a transport."""
        return Server(
            "executor",
            version=product.__version__,
            title="Executor",
            description="Runs scripts in sandboxed isolates and gives them tools.",
            instructions=guide.instructions(self._integrations()),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    def _within(self, caller: Caller) -> Scoped:
        return self._executor if caller.tied is None else self._executor.scope(toolkit=caller.tied)

    def _integrations(self) -> list[str]:
        return [one["name"] for one in self._executor.toolbox.integrations()]

    async def _list_tools(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=definitions.tools(self._integrations()))

    async def _call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name[:80]!r}; there are: {known}")
        try:
            arguments = validated(definitions.ARGUMENTS[params.name], params.arguments or {}, "argument", strict=True)
            async with _Progress(ctx):
                return await tool(self._caller(ctx), arguments)
        except ExecutorError as e:
            return render.failed(e)

    async def _run_code(self, caller: Caller, asked: definitions.RunCode) -> types.CallToolResult:
        answer = await self._within(caller).run(
            asked.code,
            language=asked.language,
            input=values.from_json(asked.input),
            budgets=asked.budgets,
            toolkit=caller.toolkit,
            principal=caller.principal,
        )
        return render.run_result(answer)

    async def _search(self, caller: Caller, asked: definitions.Search) -> types.CallToolResult:
        if not asked.query.strip():
            return render.found(
                await self._within(caller).tools(
                    integration=asked.integration, limit=asked.limit, cursor=asked.cursor, toolkit=caller.toolkit
                )
            )
        return render.found(
            await self._within(caller).search(
                asked.query,
                limit=asked.limit,
                cursor=asked.cursor,
                integration=asked.integration,
                toolkit=caller.toolkit,
            )
        )

    async def _describe(self, caller: Caller, asked: definitions.Describe) -> types.CallToolResult:
        told = await self._within(caller).describe(asked.path, schemas=asked.schemas, toolkit=caller.toolkit)
        return render.described(told)

    async def _execute(self, caller: Caller, asked: definitions.Execute) -> types.CallToolResult:
        value = await self._within(caller).call(
            asked.path,
            values.from_json(asked.arguments),
            principal=caller.principal,
            door="mcp",
            toolkit=caller.toolkit,
        )
        return render.value_result(value)

    async def _list_resources(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        resource = types.Resource(
            uri=guide.GUIDE_URI,
            name="guide",
            title="Writing scripts for run_code",
            description="How to find and call tools, what comes back, what errors mean.",
            mime_type="text/markdown",
        )
        return types.ListResourcesResult(resources=[resource])

    async def _read_resource(
        self, ctx: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if str(params.uri) != guide.GUIDE_URI:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {str(params.uri)[:200]!r}")
        text = types.TextResourceContents(uri=guide.GUIDE_URI, text=guide.GUIDE, mime_type="text/markdown")
        return types.ReadResourceResult(contents=[text])

    async def _list_prompts(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        prompt = types.Prompt(
            name=PROMPT,
            title="Write a script",
            description="Solve a task with one script over the connected tools.",
            arguments=[types.PromptArgument(name="task", description="What is to be done.", required=True)],
        )
        return types.ListPromptsResult(prompts=[prompt])

    async def _get_prompt(
        self, ctx: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        task = (params.arguments or {}).get("task")
        if params.name != PROMPT or not task:
            raise MCPError(types.INVALID_PARAMS, f"the prompt is {PROMPT}, and takes a task")
        text = f"{guide.GUIDE}\n# The task\n\n{task}\n\nSolve it with run_code, after looking the tools up."
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description="Solve a task with one script.", messages=[message])


class _Progress:
    """Tells a client that asked for progress, now and then, that its call goes on."""

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self._ctx = ctx
        self._wanted = ctx.meta is not None and "progress_token" in ctx.meta
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._wanted:
            self._task = asyncio.create_task(self._tell())

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _tell(self) -> None:
        elapsed = 0.0
        while True:
            await asyncio.sleep(PROGRESS_S)
            elapsed += PROGRESS_S
            await self._ctx.session.report_progress(elapsed, message=f"running for {elapsed:.0f} s")
