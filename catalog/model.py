"""What can be called, as plain data: tools, connections, manifests, and the two ports of an integration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from catalog.oauth import TOKEN, OAuthClient
from catalog.origin import Reach, Url

SideEffect = Literal["read", "write", "delete", "unknown"]
Carrier = Literal["header", "query", "cookie", "basic", "env"]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as its integration declares it, before a connection gives it an address.

    Schemas are JSON Schema 2020-12; their `$ref`s point at `#/$defs/<name>`, which the manifest holds once for all its
    tools. `words` are for search only. `binding` belongs to the integration alone; it is JSON data wherever the catalog
    is stored. `source` is what the tool is made of, such as `GET /pets/{id}`. `idempotent`: made twice, a call means
    what it means once.
    """

    name: str
    title: str = ""
    description: str = ""
    input_schema: Schema | None = None
    output_schema: Schema | None = None
    side_effect: SideEffect = "unknown"
    words: str = ""
    binding: Any = None
    deprecated: bool = False
    source: str = ""
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """One callable thing under its full address, `<integration>.<scope>.<connection>.<name>`.

    `awaits` says why it cannot be called before somebody has reviewed it; empty: it can.
    """

    path: str
    integration: str
    scope: str
    connection: str
    spec: ToolSpec
    definitions: Mapping[str, Schema]
    awaits: str = ""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def title(self) -> str:
        return self.spec.title

    @property
    def description(self) -> str:
        return self.spec.description

    @property
    def input_schema(self) -> Schema | None:
        return self.spec.input_schema

    @property
    def output_schema(self) -> Schema | None:
        return self.spec.output_schema

    @property
    def side_effect(self) -> SideEffect:
        return self.spec.side_effect

    @property
    def binding(self) -> Any:
        return self.spec.binding


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one credential of a connection goes in a request.

    `name` is the security scheme that it satisfies (empty: every request). `secret` is a SecretRef such as
    `env:TOKEN`, never a value; where it is empty, `value` is sent, which is no secret. `field` names the header,
    parameter, cookie or environment variable. `basic` has a user name, `username` or the one behind `username_secret`;
    without either, its secret is the whole pair.
    """

    name: str
    carrier: Carrier
    field: str
    secret: str
    prefix: str = ""
    username: str = ""
    username_secret: str = ""
    value: str = ""

    @property
    def references(self) -> tuple[str, ...]:
        """The SecretRefs that this credential is made of."""
        return tuple(one for one in (self.secret, self.username_secret) if one)


@dataclass(frozen=True, slots=True)
class Connection:
    """An account of an integration within a scope. No placements: calls go out without a credential.

    `reach` is where its credentials may go: what the integration reached when they were given; None: nobody has said.
    `probe` is the name of a tool that reads and needs no argument: calling it shows whether the credential works.
    `oauth` says where the access token comes from that one of its placements sends. `without` names the tools that the
    server does not offer to this account, though it does to the one that described it.
    """

    integration: str
    scope: str
    name: str
    placements: tuple[Placement, ...] = ()
    probe: str = ""
    reach: tuple[Reach, ...] | None = None
    oauth: OAuthClient | None = None
    without: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.integration}.{self.scope}.{self.name}"

    @property
    def references(self) -> list[str]:
        """The SecretRefs of its placements and of its client, each once, in order."""
        found = {ref for placement in self.placements for ref in placement.references if ref != TOKEN}
        return sorted(found | ({self.oauth.secret} if self.oauth is not None and self.oauth.secret else set()))


class Diagnostic(NamedTuple):
    """Something an importer left out or bent: `where` is a JSON pointer into the document."""

    where: str
    message: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an integration offers, as `resolve_tools` found it.

    `reach` is where its requests may go, `offered` the part of it where none goes unless a call asks for it; `schemes`
    are the ways to authenticate that its description declares; `kept` is what the integration itself needs again.
    """

    tools: tuple[ToolSpec, ...]
    title: str = ""
    description: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    definitions: Mapping[str, Schema] = field(default_factory=dict)
    reach: tuple[Reach, ...] = ()
    offered: tuple[Reach, ...] = ()
    schemes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    security: Sequence[Sequence[str]] | None = None
    kept: str = ""

    @property
    def places(self) -> tuple[Reach, ...]:
        """Every place that a call may have a request go to: what a refresh holds back and a credential is bound to."""
        return self.reach


@dataclass(frozen=True, slots=True)
class AddReport:
    """What was added. `tools` are paths; `origins` is where its calls may go; `private` the private hosts allowed."""

    name: str
    kind: str
    tools: list[str]
    diagnostics: list[Diagnostic]
    origins: list[str]
    private: list[str]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"diagnostics": [one._asdict() for one in self.diagnostics]}


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """A request without its credentials. `url` is what will be sent, byte for byte.

    `credentials` names the placements that the operation asks for; None means every one of the connection. `follow`
    False: a redirect is the answer.
    """

    method: str
    url: Url
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    credentials: tuple[str, ...] | None = None
    follow: bool = True


class Cut(NamedTuple):
    """Why the end of a stream was not waited for: `limit` is in records, in bytes, or in milliseconds of `time`."""

    by: Literal["records", "bytes", "time"]
    limit: int


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    """The answer, decoded from any content coding and whole, unless `cut` says why it is not.

    `credentialed`: a credential was sent; `remedy` is what helps where it was refused, if that is known. `url` is where
    the answer came from, without a credential in it.
    """

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    credentialed: bool = False
    url: Url | None = None
    reason: str = ""
    cut: Cut | None = None
    remedy: str = ""

    def header(self, name: str) -> str | None:
        """The first header of that lower-case name."""
        return next((value for key, value in self.headers if key == name), None)


class ToolValue(NamedTuple):
    """What a call gives back. `http` is `{"status": int, "headers": {name: value}}` where HTTP was spoken, and `url`
    where the answer came from."""

    value: Any
    http: dict[str, Any] | None = None
    url: Url | None = None


class Bounded(Protocol):
    """What a call may have. `value_bytes` is of msgpack."""

    @property
    def value_bytes(self) -> int: ...


class Outbound(Protocol):
    """The one way out of an integration, already narrowed to its hosts and its connection."""

    @property
    def context(self) -> Bounded | None:
        """The bounds of the call; None where nothing but the answer's own size is bounded."""
        ...

    async def send(self, request: OutboundRequest) -> OutboundResponse:
        """Check, credential and send `request`. Raises ToolError when it may not or could not be sent."""
        ...

    async def announce(self) -> None:
        """Say that an effect is about to happen by other means than `send`; it is recorded first."""
        ...

    async def call_tool(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """The result of a call of the MCP server that the integration stands for, as it came. Raises ToolError."""
        ...


class Integration(Protocol):
    """A source of tools: the open seam of the catalog.

    `resolve_tools` turns its configuration (JSON data) into a manifest and raises ImportFailed when nothing can be
    made of it. `invoke` makes one call with validated arguments and raises ToolError when it fails. It may also have
    `gather(tool, args)`, which brings arguments in a form that is tolerated into the one that the schema describes, and
    `credentialed(tool, connection)`: whether a call carries a credential, None where it does and none is asked for;
    `restore(manifest)`, which goes on with what an earlier `resolve_tools` kept; `examine(tool, args)`, a coroutine
    that raises ToolError for what no schema of arguments can say; and `acts(tool, args)`: what a call does, where that
    is not told by the tool but by the arguments.
    """

    kind: str
    name: str

    def resolve_tools(self, config: Mapping[str, Any]) -> Manifest: ...

    async def invoke(
        self, tool: Tool, args: dict[str, Any], connection: Connection, outbound: Outbound
    ) -> ToolValue: ...
