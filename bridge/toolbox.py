"""The catalog and the bridge behind one handle: what the doors compose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from bridge.policy import Effect
from bridge.proxy import ToolProxy
from bridge.secrets.ports import KeyStore, SecretStore
from catalog.model import Diagnostic, Schema, SideEffect
from catalog.store import CatalogStore

Auth = Literal["bearer", "basic"] | Mapping[str, Any] | None
"""How a connection authenticates: `"bearer"`, `"basic"`, `{"type": "header"|"query"|"cookie", "name": …, "prefix"?}`,
`{"type": "basic", "username": …}`, `{"type": "scheme", "scheme": <name in the document>, "username"?}`,
or None: the document's own security decides (bearer when it says nothing and a secret is given)."""


@dataclass(frozen=True, slots=True)
class AddReport:
    """What was added. `tools` are paths; `origins` is where its calls may go; `private` the private hosts allowed."""

    name: str
    kind: str
    tools: list[str]
    diagnostics: list[Diagnostic]
    origins: list[str]
    private: list[str]

    def as_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class ToolboxSettings:
    """`egress_allow`: allowlist entries that bound every integration (None: any public host). `allow_private`: private
    hosts, addresses or networks that any integration may reach. `key_file` and `config_dir` None: the defaults."""

    egress_allow: Sequence[str] | None = None
    allow_private: Sequence[str] = ()
    tool_timeout_s: float = 30.0
    response_bytes: int = 32 * 1024 * 1024
    document_bytes: int = 64 * 1024 * 1024
    connections_per_host: int = 32
    ca_file: Path | None = None
    key_file: Path | None = None
    config_dir: Path | None = None


class Toolbox:
    """Use as `async with Toolbox(...) as box`; entering loads the stores. All methods on one event loop."""

    proxy: ToolProxy  # await box.proxy.call(ctx, path, args, meta=False, journal=None) -> CallOutcome

    def __init__(
        self,
        settings: ToolboxSettings = ToolboxSettings(),
        *,
        catalog: CatalogStore | None = None,      # None: in memory
        policies: Any | None = None,              # bridge.policy.PolicyStore
        secrets: SecretStore | None = None,
        keys: KeyStore | None = None,
        resolver: Any | None = None,              # bridge.egress.Resolver
    ) -> None: ...

    async def __aenter__(self) -> Toolbox: ...
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None: ...
    async def aclose(self) -> None: ...

    # integrations; raise ImportFailed (document), InvalidRequest (arguments), Conflict (name taken), ConfigError (key)
    async def add_openapi(self, name: str, source: str | Path | bytes | dict[str, Any], *, base_url: str | None = None, scope: str = "org", connection: str = "main", auth: Auth = None, secret: str | None = None, allow_private: Sequence[str] = (), replace: bool = False) -> AddReport: ...
    async def add_http(self, name: str, allow: Sequence[str], *, scope: str = "org", connection: str = "main", auth: Auth = None, secret: str | None = None, allow_private: Sequence[str] = (), replace: bool = False) -> AddReport: ...
    def add_code_tool(self, path: str, fn: Callable[[dict[str, Any]], Any], *, title: str = "", description: str = "", input_schema: Schema | None = None, output_schema: Schema | None = None, side_effect: SideEffect = "unknown") -> None: ...
    async def remove(self, name: str) -> None: ...                     # NotFound
    def integrations(self) -> list[dict[str, Any]]: ...
    async def connect(self, integration: str, *, scope: str = "org", connection: str = "main", auth: Auth = None, secret: str | None = None, replace: bool = False) -> AddReport: ...
    async def disconnect(self, integration: str, *, scope: str = "org", connection: str = "main") -> None: ...

    # discovery (plain JSON data, the same as inside a script)
    def search(self, query: str, *, limit: int = 10, cursor: str | None = None, integration: str | None = None) -> dict[str, Any]: ...
    def describe(self, path: str, *, schemas: bool = False) -> dict[str, Any]: ...     # ToolError(tool_not_found)
    def list_tools(self, *, integration: str | None = None, limit: int = 100, cursor: str | None = None) -> dict[str, Any]: ...

    # secrets; no method returns a value
    async def set_secret(self, name: str, value: str, *, scope: str = "org") -> None: ...
    async def delete_secret(self, name: str, *, scope: str = "org") -> bool: ...
    async def secret_names(self, *, scope: str = "org") -> list[str]: ...

    # policies: target is "*", an integration, or integration.scope.connection; pattern a glob over the tool part
    async def add_policy(self, target: str, pattern: str, effect: Effect, *, scope: str = "org", reason: str = "") -> dict[str, Any]: ...
    async def remove_policy(self, rule_id: str) -> None: ...           # NotFound
    def policies(self) -> list[dict[str, Any]]: ...
    def explain(self, path: str) -> dict[str, Any]: ...                # ToolError(tool_not_found)

    def egress(self) -> dict[str, Any]: ...                            # for /health and doctor
