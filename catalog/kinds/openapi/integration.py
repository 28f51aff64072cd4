"""The OpenAPI integration: a document in, tools and calls out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bridge.wire.errors import ImportFailed, ToolError
from catalog.kinds import payload
from catalog.kinds.openapi import bundle, reader, request, security, swagger
from catalog.kinds.openapi.operations import Importer
from catalog.kinds.openapi.servers import Servers
from catalog.model import Connection, Manifest, Outbound, Tool, ToolSpec, ToolValue
from catalog.origin import reach_of
from catalog.patience import KEY

MAX_DIAGNOSTICS: Final = 1000


class OpenApi:
    """Configuration: `document` (bytes, text or an object), `base_url`?, `document_url`?, `server`?,
    `server_variables`?; and `fetch`, which gives the documents that one from a URL refers to."""

    kind = "openapi"

    def __init__(self, name: str) -> None:
        self.name = name
        self._operations: dict[int, tuple[Any, request.Operation]] = {}

    def resolve_tools(self, config: Mapping[str, Any]) -> Manifest:
        """Raises ImportFailed, naming the place, when no tool can be made of the document."""
        source, url = config["document"], config.get("document_url")
        root = reader.load(source)
        _check(root)
        kept = config.get("source")
        file = kept.get("file") if isinstance(kept, Mapping) else None
        root, unread = bundle.whole(
            root, source, url=url, file=Path(file) if file is not None else None, fetch=config.get("fetch")
        )
        if "openapi" not in root:
            root = swagger.upgraded(root, url)
        servers = Servers(
            root.get("servers"),
            base_url=config.get("base_url"),
            document_url=url,
            variables=config.get("server_variables"),
            server=config.get("server"),
        )
        importer = Importer(reader.Document(root), servers, document_url=url)
        importer.diagnostics.extend(unread)
        tools = tuple(importer.tools())
        if not tools:
            first = (
                f" {importer.diagnostics[0].message} ({importer.diagnostics[0].where})." if importer.diagnostics else ""
            )
            raise ImportFailed(f"The document has no operation that can be called (#/paths).{first}")
        offered = {origin: url for origin, url in servers.offered.items() if origin not in servers.used}
        info = root.get("info")
        info = info if isinstance(info, dict) else {}
        return Manifest(
            tools=tools,
            title=str(info.get("title", ""))[:200],
            description=str(info.get("description", ""))[:2000],
            diagnostics=tuple(importer.diagnostics[:MAX_DIAGNOSTICS]),
            definitions=importer.schemas.definitions,
            reach=tuple(reach_of(url) for url in (servers.used | offered).values()),
            offered=tuple(reach_of(url) for url in offered.values()),
            schemes=importer.schemes,
            security=importer.default_security,
        )

    async def invoke(self, tool: Tool, args: dict[str, Any], connection: Connection, outbound: Outbound) -> ToolValue:
        operation = self._operation(tool)
        lacking = security.missing(operation.security, connection)
        if lacking:
            raise ToolError(
                "connection_missing",
                f"The connection {connection.label} has no credential for {', '.join(lacking)}.",
                hint="Connect the account again with a secret for each of them.",
            )
        credentials = security.chosen(operation.security, connection)
        answer = await outbound.send(request.build(operation, args, credentials))
        return await payload.shaped(answer, outbound, connection=connection.label)

    def gather(self, tool: Tool, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments in the form that the schema describes."""
        return request.gathered(self._operation(tool), args)

    def key_argument(self, tool: Tool) -> str | None:
        """The argument that is sent as `Idempotency-Key`, where the operation takes one."""
        parameters = self._operation(tool).parameters
        return next((one.key for one in parameters if one.place == "header" and one.name.lower() == KEY), None)

    def credentialed(self, tool: Tool, connection: Connection) -> bool | None:
        """Whether a call of the tool carries a credential of the connection; None: it does, and none is asked for."""
        operation = self._operation(tool)
        if security.chosen(operation.security, connection) == ():
            return False
        return True if operation.security else None

    def destination(self, spec: ToolSpec) -> str:
        """The method and the URL of a tool, its path's parameters in braces."""
        binding = spec.binding
        return f"{binding['method']} {str(binding['base']).rstrip('/')}{binding['path']}"

    def _operation(self, tool: Tool) -> request.Operation:
        known = self._operations.get(id(tool.binding))
        if known is None or known[0] is not tool.binding:
            known = self._operations[id(tool.binding)] = (tool.binding, request.Operation.from_dict(tool.binding))
        return known[1]


def _check(root: dict[str, Any]) -> None:
    """Raises ImportFailed when the document is not an OpenAPI document at all."""
    key = "openapi" if "openapi" in root else "swagger"
    version = root.get(key)
    if version is None:
        raise ImportFailed("The document has no key 'openapi' (#/openapi), so it is not an OpenAPI document.")
    read = ("3.",) if key == "openapi" else ("2.", "2")
    if not isinstance(version, (str, float)) or not str(version).startswith(read):
        said = f"OpenAPI {str(version)[:20]!r} (#/{key})"
        raise ImportFailed(f"{said} is not a version that is read: 2.0, 3.0 and 3.1 are.")
    paths = root.get("paths")
    if not isinstance(paths, dict):
        what = "is missing" if paths is None else "is not an object"
        raise ImportFailed(f"The document's list of operations {what} (#/paths).")
