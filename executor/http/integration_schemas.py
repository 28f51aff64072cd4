"""The bodies and queries about integrations, their connections, and the secrets that those use."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints

from executor.http.models import Asked, Name, Reference, Scope, Text, Told, Url

OAuthScope = Annotated[str, StringConstraints(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,200}$")]
DocumentUrl = Annotated[str, StringConstraints(max_length=2048, pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://")]
SchemaText = Annotated[str, StringConstraints(max_length=16 * 1024 * 1024, pattern=r"\{")]


class Placement(Asked):
    """Where a credential goes."""

    type: Literal["bearer", "basic", "header", "query", "cookie", "scheme", "env", "oauth2", "none"]
    name: Text | None = Field(default=None, description="The header, query parameter, cookie or variable.")
    prefix: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="Before the secret in a header, such as `Token `."
    )
    scheme: Text | None = Field(default=None, description="A security scheme that the document declares.")
    secret: Reference | None = Field(default=None, description="Its own secret; left out, the connection's.")
    value: Text | None = Field(default=None, description="What is sent instead of a secret; it is kept in clear.")
    username: Text | None = Field(default=None, description="For basic.")
    username_secret: Reference | None = Field(default=None, description="For basic, a user name that is a secret.")
    password: Annotated[str, StringConstraints(max_length=128)] | None = Field(
        default=None, description="For basic, a password that is no secret, such as `x`; it is kept in clear."
    )

    flow: Literal["authorization_code", "client_credentials"] | None = Field(
        default=None, description="For oauth2; left out, as the document says, else authorization_code."
    )
    issuer: Url | None = Field(default=None, description="For oauth2: the authorization server, which says the rest.")
    authorization_url: Url | None = Field(default=None, description="For oauth2: the page where a person signs in.")
    token_url: Url | None = Field(default=None, description="For oauth2: where tokens come from.")
    client_id: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = Field(
        default=None, description="For oauth2; its `secret` is the client's."
    )
    scopes: list[OAuthScope] | None = Field(default=None, max_length=100, description="For oauth2: what to ask for.")
    token_auth: Literal["basic", "post", "none"] | None = Field(
        default=None, description="For oauth2: how the client proves itself at the token endpoint."
    )
    resource: Url | None = Field(default=None, description="For oauth2: what the token is for (RFC 8707).")
    parameters: dict[Text, Annotated[str, StringConstraints(min_length=1, max_length=1024)]] | None = Field(
        default=None, max_length=20, description="For oauth2: more parameters, such as `audience`."
    )

    def as_dict(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


Auth = (
    Literal["bearer", "basic", "oauth2", "none"]
    | Placement
    | Annotated[list[Placement], Field(min_length=1, max_length=16)]
)

Tool = Annotated[str, StringConstraints(min_length=1, max_length=512)]


Pattern = Annotated[str, StringConstraints(max_length=256, pattern=r"^[A-Za-z0-9_.*-]+$")]


class _Account(Asked):
    scope: Scope = "org"
    connection: Name = "main"
    auth: Auth | None = Field(default=None, description="Left out: as the document says, else a bearer token.")
    secret: Reference | None = Field(default=None, description="Such as `local:github`; never a value.")
    probe: Tool | None = Field(default=None, description="The tool that a check calls: it reads and takes no argument.")


class _Integration(_Account):
    name: Name
    allow_private: list[Url] = Field(
        default_factory=list, max_length=100, description="Private hosts, addresses or networks that it may reach."
    )
    replace: bool = False


class OpenApiIntegration(_Integration):
    """An API described by an OpenAPI document: the document itself, or its http(s) URL."""

    kind: Literal["openapi"]
    source: DocumentUrl | dict[str, Any]
    base_url: Url | None = Field(default=None, description="Where the API is, when the document is silent or wrong.")
    server: Url | None = Field(default=None, description="Which of the document's servers: its URL or description.")
    server_variables: dict[Text, Text] = Field(
        default_factory=dict, max_length=100, description="Values of the variables in the document's servers."
    )
    idempotent: list[Pattern] = Field(
        default_factory=list,
        max_length=200,
        description="Patterns over tools that may be called again when nobody knows what became of a call.",
    )


class GraphQLIntegration(_Integration):
    """A GraphQL API: its endpoint, which is asked for its schema; or, with `url`, the schema itself or its URL."""

    kind: Literal["graphql"]
    source: DocumentUrl | SchemaText | dict[str, Any]
    url: Url | None = Field(default=None, description="The endpoint, when `source` is the schema.")
    any_query: bool = Field(default=False, description="Whether the tool `graphql` takes any document.")
    idempotent: list[Pattern] = Field(
        default_factory=list,
        max_length=200,
        description="Patterns over tools that may be called again when nobody knows what became of a call.",
    )


class HttpIntegration(_Integration):
    """Plain HTTP requests to the URLs that are allowed, by origin and path prefix."""

    kind: Literal["http"]
    allow: list[Url] = Field(min_length=1, max_length=100)
    fetch: bool = Field(default=False, description="Whether the `fetch` of a script may go there.")


Argument = Annotated[str, StringConstraints(max_length=8192)]


class McpIntegration(_Integration):
    """An MCP server: one at a URL, or a program of the server's machine where its operator allows that."""

    kind: Literal["mcp"]
    url: DocumentUrl | None = None
    command: Annotated[list[Argument], Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="The absolute path of a program, and its arguments; no shell is asked."
    )
    cwd: Argument | None = Field(default=None, description="The folder that the program runs in.")


class NpmIntegration(_Account):
    """The tools that an npm package exports. `auth` names the variables of its environment."""

    kind: Literal["npm"]
    name: Name
    package: Annotated[str, StringConstraints(min_length=1, max_length=512)]
    version: Annotated[str, StringConstraints(max_length=512)] = Field(
        default="latest", description="A version, a range or a dist-tag, resolved when it is added."
    )
    replace: bool = False


WithAccount = OpenApiIntegration | GraphQLIntegration | HttpIntegration | McpIntegration | NpmIntegration


class IntegrationRequest(RootModel[Annotated[WithAccount, Field(discriminator="kind")]]):
    """An API to add."""


class RefreshRequest(Asked):
    """Where to read the description again: left out, from where it came."""

    source: DocumentUrl | SchemaText | dict[str, Any] | None = None


Accepted = Annotated[list[Annotated[str, StringConstraints(min_length=1, max_length=1024)]], Field(min_length=1)]


class ReviewRequest(Asked):
    """What to let in: `all`, or names and paths of tools and places that are held back."""

    accept: Literal["all"] | Accepted


class ConnectionRequest(_Account):
    """One more account of an integration."""

    integration: Name
    replace: bool = False


class AuthorizeRequest(Asked):
    """A sign-in. Without `redirect_uri` the browser comes back to this server."""

    redirect_uri: Url | None = Field(
        default=None, description="Where whoever asks listens: http, on 127.0.0.1 or [::1], any port."
    )
    scopes: list[OAuthScope] = Field(
        default_factory=list, max_length=100, description="To ask for, beside those of the account."
    )


Came = Annotated[str, StringConstraints(max_length=4096)]


class FinishRequest(Asked):
    """The parameters that a browser came back with."""

    state: Came
    code: Came | None = None
    iss: Came | None = None
    error: Came | None = None
    error_description: Came | None = None


class CallbackQuery(BaseModel):
    """What a browser comes back with; servers add what they like."""

    model_config = ConfigDict(extra="ignore")

    state: Came | None = None
    code: Came | None = None
    iss: Came | None = None
    error: Came | None = None
    error_description: Came | None = None


class TicketQuery(Asked):
    ticket: Annotated[str, StringConstraints(max_length=200)]


class SecretRequest(Asked):
    """A secret to keep under a name; no operation gives it back."""

    value: Annotated[str, StringConstraints(min_length=8, max_length=64 * 1024)]


class RotateRequest(Asked):
    """A new master key. The old one stays in the key file for other homes and for backups, unless it is forgotten."""

    forget_old: bool = False


class ConnectionsQuery(Asked):
    integration: Name | None = None
    scope: Scope | None = None


class RemoveQuery(Asked):
    connections: bool = Field(default=False, description="Also forget its connections, which are kept else.")


class ScopeQuery(Asked):
    scope: Scope = "org"


class DiagnosticFacts(Told):
    where: str
    message: str


class AddAnswer(Told):
    name: str
    kind: str
    tools: list[str]


class AwaitingTool(Told):
    tool: str
    why: list[str]
    side_effect: str
    destination: str


class Awaiting(Told):
    """What of an integration cannot be called or reached before it is let in."""

    name: str
    tools: list[AwaitingTool]
    held: list[str]
    accepted: list[str] | None = None


class RefreshAnswer(Told):
    name: str
    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    changed: list[dict[str, Any]]
    unchanged: int
    awaiting: list[str]
    held: list[str]


class IntegrationFacts(Told):
    name: str
    kind: str


class IntegrationList(Told):
    integrations: list[IntegrationFacts]


class ConnectionFacts(Told):
    """An account. `secrets` are references, and nothing here is the value of one."""

    path: str
    integration: str
    scope: str
    name: str
    secrets: list[str]
    placements: list[dict[str, Any]]
    probe: str | None = None
    tools: int
    oauth: dict[str, Any] | None = None


class AuthorizeAnswer(Told):
    """The URL that a person visits, within `expires_in` seconds."""

    url: str
    redirect_uri: str
    expires_in: int
    state: str | None = None


class FinishAnswer(Told):
    connection: str
    oauth: dict[str, Any]
    tools: list[str] | None = None
    problem: str | None = None


class ClientDocument(Told):
    client_id: str
    redirect_uris: list[str]


class ConnectionList(Told):
    connections: list[ConnectionFacts]


class CheckAnswer(Told):
    connection: str
    status: Literal["ok", "connection_missing", "credential_rejected", "unreachable", "failed"]
    probe: str
    http_status: int | None = None
    message: str | None = None
    hint: str | None = None
    duration_ms: float


class RotateAnswer(Told):
    """How many secrets were sealed anew, and which could not be opened before."""

    secrets: int
    damaged: list[str]


class SecretList(Told):
    secrets: list[str]


class Removed(Told):
    """An integration that is gone. `unrevoked`: by account, why its tokens were not taken back; empty where their
    server cannot."""

    rules: int
    unrevoked: dict[str, str]


class Disconnected(Told):
    """An account that is gone. `unrevoked`: why its tokens were not taken back; empty where their server cannot."""

    rules: int
    unrevoked: str
