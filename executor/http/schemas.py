"""The bodies and queries of the API, as pydantic models: what is checked is what `/openapi.json` says.

Requests refuse unknown fields. Answers describe what the runtime says and are not checked again on the way out.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints

from runtime.budgets import TABLE

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Reference = Annotated[str, StringConstraints(pattern=r"^[a-z]+:[^\x00-\x1f]{1,512}$")]
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Url = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
Scope = Literal["org", "user"]
Glob = Annotated[str, StringConstraints(max_length=256, pattern=r"^[A-Za-z0-9_.*-]+$")]
Effect = Literal["approve", "require_approval", "block"]


def _budgets_schema(schema: dict[str, Any]) -> None:
    """The budgets one by one: what the runtime checks, and a name that it does not know is refused."""
    schema["properties"] = {
        name: {"type": "integer", "minimum": row.least, "default": row.default, "description": row.meaning}
        for name, row in TABLE.items()
    }
    schema["additionalProperties"] = False


class Asked(BaseModel):
    """Base of what a client sends."""

    model_config = ConfigDict(extra="forbid")


class Told(BaseModel):
    """Base of what the server answers; further fields may come in later versions."""

    model_config = ConfigDict(extra="allow")


# Requests


class RunRequest(Asked):
    """A script to run, and what it may use. Left-out budgets have their defaults; a higher one than the operator's
    ceiling becomes the ceiling."""

    code: str = Field(description="The script. Code fences and prose around it are tolerated.")
    language: Literal["typescript", "javascript", "python"] = Field(
        default="typescript", description="Plain JavaScript runs as TypeScript too."
    )
    input: Any = Field(default=None, description='Any JSON value; `{"$bytes": "<base64>"}` is bytes.')
    budgets: dict[str, Any] = Field(
        default_factory=dict, description="Limits by name.", json_schema_extra=_budgets_schema
    )
    toolkit: Text | None = Field(default=None, description="Narrows the tools to a named subset.")
    wait: bool = Field(default=True, description="false: answer 202 as soon as the run is recorded.")
    labels: dict[
        Annotated[str, StringConstraints(max_length=64)], Annotated[str, StringConstraints(max_length=256)]
    ] = Field(default_factory=dict, max_length=32, description="For finding the run again.")
    isolation: Literal["shared", "run"] | None = Field(
        default=None, description="`run` gives the run a worker process of its own."
    )


class ResumeRequest(Asked):
    """A person's answer to an interaction of a run."""

    interaction: Text
    action: Literal["approve", "deny", "cancel"] = Field(description="`cancel` cancels the whole run.")
    content: dict[str, Any] | None = Field(
        default=None, description="Why; a script that is denied a call reads `reason` in its error."
    )
    wait: bool = Field(default=True, description="false: answer as soon as the decision is recorded.")


class CallRequest(Asked):
    """The arguments of one tool call."""

    args: dict[str, Any] = Field(default_factory=dict)
    toolkit: Text | None = Field(default=None, description="Narrows the tools to a named subset.")
    meta: bool = Field(default=False, description="Also answer the HTTP status and headers.")


class Placement(Asked):
    """Where a credential goes."""

    type: Literal["bearer", "basic", "header", "query", "cookie", "scheme", "none"]
    name: Text | None = Field(default=None, description="The header, query parameter or cookie.")
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

    def as_dict(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


Auth = Literal["bearer", "basic", "none"] | Placement | Annotated[list[Placement], Field(min_length=1, max_length=16)]
Tool = Annotated[str, StringConstraints(min_length=1, max_length=512)]


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
    """An API described by an OpenAPI 3.x document: the document itself, or its http(s) URL."""

    kind: Literal["openapi"]
    source: Annotated[str, StringConstraints(max_length=2048, pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://")] | dict[str, Any]
    base_url: Url | None = Field(default=None, description="Where the API is, when the document is silent or wrong.")


class HttpIntegration(_Integration):
    """Plain HTTP requests to the URLs that are allowed, by origin and path prefix."""

    kind: Literal["http"]
    allow: list[Url] = Field(min_length=1, max_length=100)
    fetch: bool = Field(default=False, description="Whether the `fetch` of a script may go there.")


class IntegrationRequest(RootModel[Annotated[OpenApiIntegration | HttpIntegration, Field(discriminator="kind")]]):
    """An API to add."""


class ConnectionRequest(_Account):
    """One more account of an integration."""

    integration: Name
    replace: bool = False


class SecretRequest(Asked):
    """A secret to keep under a name; no operation gives it back."""

    value: Annotated[str, StringConstraints(min_length=8, max_length=64 * 1024)]


class RotateRequest(Asked):
    """A new master key. The old one stays in the key file for other homes and for backups, unless it is forgotten."""

    forget_old: bool = False


class PolicyRequest(Asked):
    """A rule: `target` is `*`, an integration or `integration.scope.connection`; `pattern` a glob over tool names."""

    target: Annotated[
        str, StringConstraints(max_length=300, pattern=r"^(\*|[a-z0-9_-]+(\.[a-z0-9_-]+\.[a-z0-9_-]+)?)$")
    ]
    pattern: Glob = "*"
    effect: Effect
    scope: Scope = "org"
    reason: Annotated[str, StringConstraints(max_length=500)] = ""


class ExplainRequest(Asked):
    path: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    toolkit: Text | None = Field(default=None, description="Within this toolkit.")


class ToolkitRule(Asked):
    """What a call of the tools whose path matches needs at least. It can only be stricter than the policies are."""

    pattern: Glob
    effect: Literal["require_approval", "block"]


class ToolkitUpdate(Asked):
    """The parts to replace."""

    tools: Annotated[list[Glob], Field(min_length=1, max_length=200)] | None = None
    description: Annotated[str, StringConstraints(max_length=500)] | None = None
    rules: Annotated[list[ToolkitRule], Field(max_length=200)] | None = None

    def options(self) -> dict[str, Any]:
        pairs = None if self.rules is None else [(rule.pattern, rule.effect) for rule in self.rules]
        return {"tools": self.tools, "description": self.description, "rules": pairs}


class ToolkitRequest(Asked):
    """A named subset of the tools: those whose whole path matches one of the patterns."""

    name: Name
    tools: list[Glob] = Field(min_length=1, max_length=200)
    description: Annotated[str, StringConstraints(max_length=500)] = ""
    rules: list[ToolkitRule] = Field(default_factory=list, max_length=200)


# Queries


class RunsQuery(Asked):
    status: Literal["queued", "running", "waiting", "completed", "failed", "cancelled", "expired"] | None = None
    label: Annotated[str, StringConstraints(min_length=1, max_length=321)] | None = Field(
        default=None, description="`key`, or `key=value`."
    )
    limit: int = Field(default=50, ge=1, le=500)
    cursor: Cursor | None = None


class ConnectionsQuery(Asked):
    integration: Name | None = None
    scope: Scope | None = None


class SliceQuery(Asked):
    offset: int = Field(default=0, ge=0, description="Bytes from the start of the JSON document.")
    length: int | None = Field(default=None, ge=1, description="Bytes; left out, to the end.")


class EventsQuery(Asked):
    after: int | None = Field(default=None, ge=0, description="Like Last-Event-ID, for clients that cannot set it.")


class ToolsQuery(Asked):
    query: Annotated[str, StringConstraints(max_length=1000)] | None = None
    limit: int = Field(default=50, ge=1, le=500)
    cursor: Cursor | None = None
    integration: Name | None = None
    toolkit: Text | None = Field(default=None, description="Narrows the tools to a named subset.")


class ToolQuery(Asked):
    toolkit: Text | None = Field(default=None, description="Narrows the tools to a named subset.")
    schemas: bool = Field(default=False, description="Also answer the JSON Schemas.")


class ScopeQuery(Asked):
    scope: Scope = "org"


# Answers


class ErrorFacts(Told):
    code: str
    message: str
    hint: str | None = None
    details: dict[str, Any] | None = None


class ErrorAnswer(Told):
    error: ErrorFacts


class RunError(Told):
    code: str
    message: str
    name: str | None = None
    line: int | None = None
    column: int | None = None
    stack: str | None = None
    path: str | None = None
    hint: str | None = None


class LimitReached(Told):
    name: str
    limit: int
    used: int


class ResultRef(Told):
    """A result too large for the answer; read it at `/runs/{id}/result`."""

    id: str
    bytes: int
    preview: str
    media_type: str


class LogLine(Told):
    level: str
    text: str


class CallRecord(Told):
    path: str


class Interaction(Told):
    """A call that waits for a person. `arguments` are exactly those that would be sent, in full."""

    id: str
    kind: Literal["approval"]
    path: str
    arguments: Any
    reason: str
    side_effect: str
    call: int
    created_at: float
    expires_at: float


class RunAnswer(Told):
    """The answer to a run. A script that failed is an answer too: see `status` and `error`."""

    run_id: str
    status: Literal["queued", "running", "waiting", "completed", "failed", "cancelled", "expired"]
    result: Any = None
    result_ref: ResultRef | None = None
    error: RunError | None = None
    limit: LimitReached | None = None
    interactions: list[Interaction] | None = None
    logs: list[LogLine]
    emitted: list[Any]
    calls: list[CallRecord]
    usage: dict[str, int | float]


class RunFacts(RunAnswer):
    """A run as recorded. Times are Unix seconds."""

    language: str
    code: str | None = None
    input: Any = None
    budgets: dict[str, int]
    toolkit: str | None = None
    isolation: str
    labels: dict[str, str]
    principal: str
    source_sha256: str
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None


class Divergence(Told):
    """The first difference; `step` counts the pauses of a run from 1."""

    step: int
    what: Literal["outcome", "calls", "fuel", "timer", "result", "logs", "emitted"]
    recorded: Any = None
    replayed: Any = None


class ReplayAnswer(Told):
    """What became of a run done again from its journal."""

    run_id: str
    same: bool
    complete: bool = Field(description="false: the run was ended from outside, and is compared up to its last pause.")
    steps: int
    calls: int
    fuel: dict[str, int]
    image: dict[str, str]
    same_image: bool = Field(description="false: the guest image is another one now; fuel is not compared.")
    divergence: Divergence | None = None


class RunSummary(Told):
    run_id: str
    status: str
    language: str
    labels: dict[str, str]
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None


class RunList(Told):
    runs: list[RunSummary]
    next: str | None = None


class ToolSummary(Told):
    path: str


class ToolList(Told):
    items: list[ToolSummary]
    total: int
    next: str | None = None


class ToolFacts(Told):
    path: str


class CallAnswer(Told):
    value: Any = None
    http: dict[str, Any] | None = None


class DiagnosticFacts(Told):
    where: str
    message: str


class AddAnswer(Told):
    name: str
    kind: str
    tools: list[str]


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


class PolicyFacts(Told):
    id: str
    scope: str
    target: str
    pattern: str
    effect: Effect
    reason: str


class PolicyList(Told):
    policies: list[PolicyFacts]


class Step(Told):
    """`auto` is the default of the side effect, `scope` one of the scopes, `view` a toolkit or another narrowing."""

    step: str
    name: str | None = None
    effect: Effect | None
    why: str
    rules: list[dict[str, Any]]


class Explanation(Told):
    path: str
    effect: Effect
    reason: str
    steps: list[Step]


class ToolkitSummary(Told):
    name: str
    description: str
    tools: list[str]
    rules: list[ToolkitRule]


class ToolkitFacts(ToolkitSummary):
    holds: int = Field(description="How many tools it is now.")


class ToolkitList(Told):
    toolkits: list[ToolkitSummary]


class Health(Told):
    status: str
    isolation: dict[str, Any]
