"""The GraphQL integration: a schema in, tools and calls out. It reads nothing of graphql-core before it needs it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
import anyio.to_thread

from bridge.wire.errors import ImportFailed
from catalog.kinds.graphql.sending import request
from catalog.model import Connection, Manifest, Outbound, SideEffect, Tool, ToolSpec, ToolValue
from catalog.origin import BadUrl, parse_url, reach_of

if TYPE_CHECKING:
    from graphql import GraphQLSchema

    from catalog.kinds.graphql.documents import Asked

MAX_REMEMBERED: Final = 64
"""Selections, and documents, of one integration that are kept as they are sent; each may take some 400 KB."""


class Acts(NamedTuple):
    """What a call is about to do: its side effect, and the names of the tools that may do the same alone."""

    side_effect: SideEffect
    names: tuple[str, ...]


class GraphQL:
    """Configuration: `document` (SDL or introspection, as bytes, text or an object), `endpoint`, `any_query`?."""

    kind = "graphql"

    def __init__(self, name: str) -> None:
        self.name = name
        self._kept = ""
        self._schema: GraphQLSchema | None = None
        self._lock = anyio.Lock()
        self._selections: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        self._documents: OrderedDict[tuple[str, str | None], Asked] = OrderedDict()

    def resolve_tools(self, config: Mapping[str, Any]) -> Manifest:
        """Raises ImportFailed, naming the place, when no tool can be made of the schema."""
        from catalog.kinds.graphql import operations, reader

        url = endpoint(config.get("endpoint"))
        description = reader.read(config["document"])
        schema = description.schema()
        importer = operations.Importer(schema, str(url), description.diagnostics)
        tools = tuple(importer.tools(config.get("any_query") is True))
        if not tools:
            first = "".join(f" {one.message} ({one.where})." for one in description.diagnostics[:1])
            raise ImportFailed(f"The schema has no query and no mutation that can be called.{first}")
        self._kept = operations.kept(description.data)
        self._schema = None
        return Manifest(
            tools=tools,
            title=f"GraphQL at {url.netloc}"[:200],
            description=(description.data["__schema"]["description"] or "")[:2000],
            diagnostics=tuple(importer.diagnostics[: reader.MAX_DIAGNOSTICS]),
            definitions=importer.schemas.definitions,
            reach=(reach_of(url, prefix=url.path, methods=("POST",)),),
            kept=self._kept,
        )

    def restore(self, manifest: Manifest) -> None:
        """Go on with what an earlier `resolve_tools` kept."""
        self._kept = manifest.kept

    def destination(self, spec: ToolSpec) -> str:
        return f"POST {spec.binding['url']}"

    async def examine(self, tool: Tool, args: Mapping[str, Any]) -> None:
        """Check what the caller wrote against the schema. Raises ToolError(invalid_arguments)."""
        if tool.binding["operation"] == "any":
            await self._asked(args)
        else:
            await self._selected(tool, args)

    def acts(self, tool: Tool, args: Mapping[str, Any]) -> Acts | None:
        """What a call of the tool that takes any document is about to do; None for the others."""
        if tool.binding["operation"] != "any":
            return None
        from catalog.kinds.graphql import documents, operations

        text, name = args.get("query"), args.get("operationName")
        if not isinstance(text, str) or not isinstance(name, (str, type(None))):
            raise documents.refused("query", "it is the text of a document")
        asked = self._documents.get((text, name)) or documents.asked(text, name)
        names = tuple(f"{asked.kind}.{root}" for root in asked.roots if not root.startswith("__"))
        return Acts(operations.EFFECTS[asked.kind], names)

    async def invoke(self, tool: Tool, args: dict[str, Any], connection: Connection, outbound: Outbound) -> ToolValue:
        from catalog.kinds.graphql import answers

        binding = tool.binding
        body: dict[str, Any]
        if binding["operation"] == "any":
            asked = self._documents.get((args["query"], args.get("operationName"))) or await self._asked(args)
            body = {"query": asked.text, "variables": args.get("variables") or {}}
            body |= {"operationName": asked.name} if asked.name else {}
        else:
            variables = {name: args[name] for name in binding["arguments"] if name in args}
            body = {"query": head(binding, variables) + await self._selected(tool, args) + " }", "variables": variables}
        answer = await outbound.send(request(parse_url(binding["url"]), body))
        field = None if binding["operation"] == "any" else binding["field"]
        return await answers.value(answer, outbound, field, connection.label)

    async def _selected(self, tool: Tool, args: Mapping[str, Any]) -> str:
        """The selection of a call: what its caller asks for, once it has been checked, else the default."""
        binding = tool.binding
        text = args.get(binding["select"]) if binding["select"] else None
        if text is None:
            chosen: str = binding["selection"]
            return chosen
        key = (binding["operation"], binding["field"], text)
        if key not in self._selections:
            from catalog.kinds.graphql import documents

            variables = {name: args[name] for name in binding["arguments"] if name in args}
            known = await self._opened()
            made = await self._thread(
                lambda: documents.selection(known, head(binding, variables), binding["select"], text, binding["type"])
            )
            _remember(self._selections, key, made)
        return self._selections[key]

    async def _asked(self, args: Mapping[str, Any]) -> Asked:
        from catalog.kinds.graphql import documents

        text, name, variables = args["query"], args.get("operationName"), args.get("variables") or {}
        schema = await self._opened()

        def whole() -> Asked:
            asked = self._documents.get((text, name)) or documents.asked(text, name)
            documents.check(schema, asked, variables)
            return asked

        asked: Asked = await self._thread(whole)
        _remember(self._documents, (text, name), asked)
        return asked

    async def _opened(self) -> GraphQLSchema:
        """The schema, made when it is first needed: a large one takes a second and tens of megabytes."""
        async with self._lock:
            if self._schema is None:
                from catalog.kinds.graphql import operations

                self._schema = await anyio.to_thread.run_sync(operations.opened, self._kept)
        return self._schema

    async def _thread(self, work: Callable[[], Any]) -> Any:
        """Documents of one integration are checked one at a time, beside the event loop."""
        async with self._lock:
            return await anyio.to_thread.run_sync(work)


def head(binding: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
    """The operation up to its selection: only arguments that are given are declared, so that defaults are kept."""
    kinds = {name: binding["arguments"][name] for name in variables}
    declared = f"({', '.join(f'${name}: {kind}' for name, kind in kinds.items())})" if kinds else ""
    passed = f"({', '.join(f'{name}: ${name}' for name in kinds)})" if kinds else ""
    return f"{binding['operation']}{declared} {{ {binding['field']}{passed} "


def endpoint(text: Any) -> Any:
    """The URL of an endpoint. Raises ImportFailed."""
    try:
        return parse_url(str(text or ""))
    except BadUrl as e:
        raise ImportFailed(
            f"{str(text or '')[:120]!r} is not the URL of a GraphQL endpoint: {e}.",
            hint="Such as https://api.example.com/graphql.",
        ) from None


def _remember(known: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > MAX_REMEMBERED:
        known.popitem(last=False)
