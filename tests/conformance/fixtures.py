"""The tools, resources and prompts that the conformance suite asks for by name, on a server of the protocol's package.

They stand behind the very layer that serves the product's own tools: the edge, the endpoint with its sessions, and what
seals the states of clients.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from anyio import sleep
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from executor.mcp.people import sealed

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
NONE: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
SCHEMA_HEADER = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}
ENUM = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"{name} Option"} for n, name in enumerate(("First", "Second", "Third"), 1)]
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS = {
    "untitledSingle": {"type": "string", "enum": ENUM},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ENUM}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}

Context = Any
Given = types.CallToolRequestParams
Tool = Callable[[Context, Given], Awaitable[Any]]


def text(said: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=said)], **more)


def resource(uri: str, mime: str, said: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime, text=said))


def form(message: str, properties: dict[str, Any], required: list[str] | None = None) -> types.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": required or list(properties)}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str, most: int = 100) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


def required(state: str | None = None, **asked: Any) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=asked, request_state=state)


def said_of(response: Any) -> str:
    return json.dumps(response.model_dump(mode="json", by_alias=True, exclude_none=True))


class Fixtures:
    """The server, and the lists that its tools can change."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.tools: dict[str, tuple[dict[str, Any], Tool]] = {}
        for name in dir(self):
            if name.startswith(("test_", "json_")):
                made: Tool = getattr(self, name)
                self.tools[name] = (getattr(made, "schema", NONE), made)

    def server(self, caller: Any) -> Server[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            server: Server[Any] = Server(
                "fixtures",
                version="1",
                on_list_tools=self._list_tools,
                on_call_tool=self._call_tool,
                on_list_resources=self._list_resources,
                on_list_resource_templates=self._list_templates,
                on_read_resource=self._read_resource,
                on_subscribe_resource=self._accept,
                on_unsubscribe_resource=self._accept,
                on_subscriptions_listen=ListenHandler(self.bus),
                on_list_prompts=self._list_prompts,
                on_get_prompt=self._get_prompt,
                on_completion=self._complete,
                on_set_logging_level=self._accept,
            )
        server.middleware.append(sealed(caller))
        return server

    async def _accept(self, ctx: Context, params: Any) -> types.EmptyResult:
        return types.EmptyResult()

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        return types.CompleteResult(completion=types.Completion(values=["paris", "park"], total=2, has_more=False))

    # Tools

    async def _list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        listed = [
            types.Tool(name=name, description=name, input_schema=schema) for name, (schema, _) in self.tools.items()
        ]
        return types.ListToolsResult(tools=listed)

    async def _call_tool(self, ctx: Context, params: Given) -> Any:
        if params.name not in self.tools:
            raise MCPError(types.INVALID_PARAMS, "no such tool")
        return await self.tools[params.name][1](ctx, params)

    async def test_simple_text(self, ctx: Context, given: Given) -> Any:
        return text("This is a simple text response for testing.")

    async def test_image_content(self, ctx: Context, given: Given) -> Any:
        return types.CallToolResult(content=[types.ImageContent(data=PNG, mime_type="image/png")])

    async def test_audio_content(self, ctx: Context, given: Given) -> Any:
        return types.CallToolResult(content=[types.AudioContent(data=WAV, mime_type="audio/wav")])

    async def test_embedded_resource(self, ctx: Context, given: Given) -> Any:
        part = resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
        return types.CallToolResult(content=[part])

    async def test_multiple_content_types(self, ctx: Context, given: Given) -> Any:
        return types.CallToolResult(
            content=[
                types.TextContent(text="Multiple content types test:"),
                types.ImageContent(data=PNG, mime_type="image/png"),
                resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
            ]
        )

    async def test_tool_with_logging(self, ctx: Context, given: Given) -> Any:
        for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                await ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)
            await sleep(0.05)
        return text("Logged.")

    test_logging_tool = test_tool_with_logging

    async def test_error_handling(self, ctx: Context, given: Given) -> Any:
        return text("This tool intentionally returns an error for testing", is_error=True)

    async def test_tool_with_progress(self, ctx: Context, given: Given) -> Any:
        for done in (0, 50, 100):
            await ctx.session.report_progress(done, 100)
            await sleep(0.05)
        return text("Progressed.")

    async def test_sampling(self, ctx: Context, given: Given) -> Any:
        asked = sampling((given.arguments or {}).get("prompt", ""))
        answer = await ctx.session.send_request(asked, types.CreateMessageResult)
        return text(f"LLM response: {said_of(answer)}")

    async def test_elicitation(self, ctx: Context, given: Given) -> Any:
        fields = {"username": {"type": "string"}, "email": {"type": "string"}}
        return await self._elicited(ctx, (given.arguments or {}).get("message", ""), fields, "User response")

    async def test_elicitation_sep1034_defaults(self, ctx: Context, given: Given) -> Any:
        return await self._elicited(ctx, "Defaults", DEFAULTS, "Elicitation completed")

    async def test_elicitation_sep1330_enums(self, ctx: Context, given: Given) -> Any:
        return await self._elicited(ctx, "Enums", ENUMS, "Elicitation completed")

    async def _elicited(self, ctx: Context, message: str, fields: dict[str, Any], said: str) -> Any:
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
        return text(f"{said}: action={answer.action}, content={json.dumps(answer.content or {})}")

    async def json_schema_2020_12_tool(self, ctx: Context, given: Given) -> Any:
        return text("ok")

    json_schema_2020_12_tool.schema = SCHEMA_2020  # type: ignore[attr-defined]

    async def test_custom_header(self, ctx: Context, given: Given) -> Any:
        return text("ok")

    test_custom_header.schema = SCHEMA_HEADER  # type: ignore[attr-defined]

    async def test_missing_capability(self, ctx: Context, given: Given) -> Any:
        if ctx.session.client_capabilities.sampling is None:
            needed = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is required", needed)
        return text("ok")

    async def test_streaming_elicitation(self, ctx: Context, given: Given) -> Any:
        await ctx.session.report_progress(1, 2)
        return required(user_name=form("What is your name?", {"name": {"type": "string"}}))

    async def test_trigger_tool_change(self, ctx: Context, given: Given) -> Any:
        await self.bus.publish(ToolsListChanged())
        return text("changed")

    async def test_trigger_prompt_change(self, ctx: Context, given: Given) -> Any:
        await self.bus.publish(PromptsListChanged())
        return text("changed")

    # Tools that need more input (2026-07-28)

    async def test_input_required_result_elicitation(self, ctx: Context, given: Given) -> Any:
        answer = (given.input_responses or {}).get("user_name")
        if not isinstance(answer, types.ElicitResult):
            return required(user_name=form("What is your name?", {"name": {"type": "string"}}))
        return text(f"Hello, {(answer.content or {}).get('name')}!")

    async def test_input_required_result_sampling(self, ctx: Context, given: Given) -> Any:
        answer = (given.input_responses or {}).get("capital_question")
        return (
            text(said_of(answer)) if answer else required(capital_question=sampling("What is the capital of France?"))
        )

    async def test_input_required_result_list_roots(self, ctx: Context, given: Given) -> Any:
        answer = (given.input_responses or {}).get("client_roots")
        return text(said_of(answer)) if answer else required(client_roots=types.ListRootsRequest())

    async def test_input_required_result_request_state(self, ctx: Context, given: Given) -> Any:
        if given.request_state != "confirming":
            return required("confirming", confirm=form("Please confirm", {"ok": {"type": "boolean"}}))
        return text("state-ok")

    test_input_required_result_tampered_state = test_input_required_result_request_state

    async def test_input_required_result_multiple_inputs(self, ctx: Context, given: Given) -> Any:
        asked = {
            "user_name": form("What is your name?", {"name": {"type": "string"}}),
            "greeting": sampling("Generate a greeting", 50),
            "client_roots": types.ListRootsRequest(),
        }
        if set(asked) <= set(given.input_responses or {}):
            return text("all there")
        return required("several", **asked)

    async def test_input_required_result_multi_round(self, ctx: Context, given: Given) -> Any:
        if given.request_state is None:
            return required("1", step1=form("Step 1: What is your name?", {"name": {"type": "string"}}))
        if given.request_state == "1":
            return required("2", step2=form("Step 2: What is your favorite color?", {"color": {"type": "string"}}))
        return text("done")

    async def test_input_required_result_capabilities(self, ctx: Context, given: Given) -> Any:
        can = ctx.session.client_capabilities
        asked: dict[str, Any] = {}
        if can.sampling is not None:
            asked["sample"] = sampling("Say something")
        if can.elicitation is not None:
            asked["name"] = form("What is your name?", {"name": {"type": "string"}})
        return required(**asked) if asked else text("nothing to ask")

    # Resources

    async def _list_resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        kinds = {"test://static-text": "text/plain", "test://static-binary": "image/png"}
        listed = [types.Resource(uri=uri, name=uri, description=uri, mime_type=mime) for uri, mime in kinds.items()]
        return types.ListResourcesResult(resources=listed)

    async def _list_templates(self, ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
        made = types.ResourceTemplate(uri_template="test://template/{id}/data", name="data", description="data")
        return types.ListResourceTemplatesResult(resource_templates=[made])

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        contents: types.TextResourceContents | types.BlobResourceContents
        if uri == "test://static-text":
            said = "This is the content of the static text resource."
            contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=said)
        elif uri == "test://static-binary":
            contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        elif uri.startswith("test://template/"):
            id = uri.split("/")[3]
            data = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
            contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=data)
        else:
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
        return types.ReadResourceResult(contents=[contents])

    # Prompts

    async def _list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        takes = {
            "test_simple_prompt": [],
            "test_prompt_with_arguments": ["arg1", "arg2"],
            "test_prompt_with_embedded_resource": ["resourceUri"],
            "test_prompt_with_image": [],
            "test_input_required_result_prompt": [],
        }
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=name,
                    description=name,
                    arguments=[types.PromptArgument(name=each, description=each, required=True) for each in arguments],
                )
                for name, arguments in takes.items()
            ]
        )

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        given = params.arguments or {}
        parts: list[Any]
        if params.name == "test_simple_prompt":
            parts = [types.TextContent(text="This is a simple prompt for testing.")]
        elif params.name == "test_prompt_with_arguments":
            said = f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
            parts = [types.TextContent(text=said)]
        elif params.name == "test_prompt_with_embedded_resource":
            uri = given.get("resourceUri", "")
            parts = [
                resource(uri, "text/plain", "Embedded resource content for testing."),
                types.TextContent(text="Please process the embedded resource above."),
            ]
        elif params.name == "test_prompt_with_image":
            parts = [
                types.ImageContent(data=PNG, mime_type="image/png"),
                types.TextContent(text="Please analyze the image above."),
            ]
        elif params.name == "test_input_required_result_prompt":
            answer = (params.input_responses or {}).get("user_context")
            if answer is None:
                fields = {"context": {"type": "string"}}
                return required(user_context=form("What context should the prompt use?", fields))
            parts = [types.TextContent(text=said_of(answer))]
        else:
            raise MCPError(types.INVALID_PARAMS, "no such prompt")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=part) for part in parts])
