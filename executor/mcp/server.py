"""The handlers of the MCP door. They translate: what may be done, and to whom, is decided behind `Executor`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from anyio import CancelScope
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import executor as product
from bridge.wire.errors import ExecutorError, NotFound, ToolError
from executor.asked import ONE_CALL, ONE_CALL_MS
from executor.mcp import definitions, direct, guide, render
from executor.mcp.caller import Caller
from executor.mcp.changes import Announcing, Changes
from executor.mcp.people import People, sealed
from executor.mcp.watching import Presence, Progress, until_news
from executor.validation import validated
from runtime import values
from runtime.records import plain
from runtime.results import RunResult

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from executor.executor import Executor
    from executor.scoped import Scoped

PROMPT: Final = "write_a_script"
LISTED: Final = 20
"""Waiting runs that are listed."""
Done = RunResult | types.CallToolResult
"""What a tool of ours came to: a run, which may wait for a person, or the answer."""


class Door:
    """The MCP server of one Executor. `caller` tells who is behind a request; over standard input it is always one."""

    def __init__(self, executor: Executor, caller: Callable[[ServerRequestContext[Any, Any]], Caller]) -> None:
        self._executor = executor
        self._caller = caller
        self._people = People(executor)
        self._changes = Changes(executor, self._listed)
        self._tools: dict[str, Callable[[Caller, Any], Awaitable[Done]]] = {
            "run_code": self._run_code,
            "search": self._search,
            "describe": self._describe,
            "execute": self._execute,
            "resume": self._resume,
        }

    def server(self) -> Server[Any]:
        """A server to run over a transport."""
        schemas = {tool.name: tool.input_schema for tool in definitions.tools(())}
        server: Server[Any] = Announcing(
            "executor",
            version=product.__version__,
            title="Executor",
            description="Runs scripts in sandboxed isolates and gives them tools.",
            get_tool_input_schema=schemas.get,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_resource_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=self._listen,
        )
        server.middleware.extend([sealed(self._caller), self._introduced])
        return server

    async def _introduced(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """The instructions name what this caller can see, and nothing else."""
        answer = await call_next(ctx)
        if ctx.method in ("initialize", "server/discover") and isinstance(answer, Mapping):
            return {**answer, "instructions": guide.instructions(await self._integrations(self._caller(ctx)))}
        return answer

    def _within(self, caller: Caller) -> Scoped:
        return self._executor if caller.tied is None else self._executor.scope(toolkit=caller.tied)

    async def _integrations(self, caller: Caller) -> list[str]:
        try:
            return await self._within(caller).integrations(toolkit=caller.toolkit)
        except ExecutorError:
            # The toolkit is gone: each call says so.
            return []

    async def _list_tools(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        caller = self._caller(ctx)
        tools = await self._listed(caller)
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._changes.heard(ctx, caller, tools)
        return types.ListToolsResult(tools=tools)

    async def _listed(self, caller: Caller) -> list[types.Tool]:
        """Raises MCPError."""
        if not caller.direct:
            return definitions.tools(await self._integrations(caller))
        try:
            one_by_one = await direct.tools(self._within(caller), caller.toolkit)
        except ExecutorError as e:
            raise MCPError(types.INVALID_PARAMS, e.message) from None
        return [*one_by_one, definitions.resume()]

    async def _listen(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await self._changes.listen(ctx, self._caller(ctx), params)

    async def _call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        caller = self._caller(ctx)
        with CancelScope() as scope:
            async with Progress(ctx), Presence(caller.gone, scope):
                try:
                    return await self._called(ctx, caller, params)
                except ExecutorError as e:
                    return render.failed(e)
        raise MCPError(types.INTERNAL_ERROR, "the client went away")

    async def _called(
        self, ctx: ServerRequestContext[Any, Any], caller: Caller, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        name, arguments = params.name, params.arguments or {}
        if caller.direct and name != "resume":
            path = (await direct.paths(self._within(caller), caller.toolkit)).get(name)
            if path is None:
                raise MCPError(types.INVALID_PARAMS, f"there is no tool {name[:80]!r} here; tools/list names them")
            name, arguments = "execute", {"path": path, "arguments": arguments}
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(self._tools)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {name[:80]!r}; there are: {known}")
        if params.request_state is not None:
            given = params.input_responses or {}
            done: Done | types.InputRequiredResult = await self._people.take(ctx, caller, params.request_state, given)
        else:
            done = await tool(caller, validated(definitions.ARGUMENTS[name], arguments, "argument", strict=True))
            if isinstance(done, RunResult):
                done = await self._people.decide(ctx, caller, done, owned=name != "resume")
        if isinstance(done, RunResult):
            return render.call_result(done) if name == "execute" else render.run_result(done)
        return done

    async def _run_code(self, caller: Caller, asked: definitions.RunCode) -> Done:
        return await self._run(caller, asked.code, asked.language, values.from_json(asked.input), asked.budgets)

    async def _run(
        self, caller: Caller, code: str, language: str, input: Any, budgets: Mapping[str, int] | None
    ) -> RunResult:
        return await self._within(caller).run(
            code,
            language=language,
            input=input,
            budgets=budgets,
            toolkit=caller.toolkit,
            principal=caller.principal,
        )

    async def _search(self, caller: Caller, asked: definitions.Search) -> Done:
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

    async def _describe(self, caller: Caller, asked: definitions.Describe) -> Done:
        told = await self._within(caller).describe(asked.path, schemas=asked.schemas, toolkit=caller.toolkit)
        return render.described(told)

    async def _execute(self, caller: Caller, asked: definitions.Execute) -> Done:
        given = values.from_json(asked.arguments)
        call = {"path": asked.path, "arguments": given or {}}
        if self._within(caller).may_ask(asked.path):
            # Its server may ask a person on the way, which a run can wait for.
            return await self._run(caller, ONE_CALL, "javascript", call, {"wall_ms": ONE_CALL_MS})
        try:
            value = await self._within(caller).call(
                asked.path, given, principal=caller.principal, door="mcp", toolkit=caller.toolkit
            )
        except ToolError as e:
            if e.code != "approval_required":
                raise
            # Nothing was sent. Only a run can wait for a person, and outlive this call and this process.
            return await self._run(caller, ONE_CALL, "javascript", call, {"wall_ms": ONE_CALL_MS})
        return render.value_result(value)

    async def _resume(self, caller: Caller, asked: definitions.Resume) -> Done:
        if asked.run_id is None:
            page = await self._executor.list_runs(status="waiting", limit=LISTED, principal=caller.principal)
            mine = [await self._executor.get_run(each.run_id) for each in page.items]
            return render.waiting_runs([run for run in mine if caller.toolkit in (None, run.toolkit)])
        record = await self._executor.get_run(asked.run_id)
        if record.principal != caller.principal or caller.toolkit not in (None, record.toolkit):
            raise NotFound("there is no such run", hint="without run_id, resume lists the runs that wait")
        return plain(await until_news(self._executor, record, asked.wait_s))

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

    async def _list_resource_templates(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def _read_resource(
        self, ctx: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if str(params.uri) != guide.GUIDE_URI:
            uri = str(params.uri)[:200]
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri!r}", {"uri": uri})
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
