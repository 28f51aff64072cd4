"""The bodies and queries of the API, as pydantic models: what is checked is what `/openapi.json` says.

Requests refuse unknown fields. Answers describe what the runtime says and are not checked again on the way out.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from executor.http.models import Asked, Name, Scope, Text, Told
from runtime.budgets import TABLE

Cursor = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Glob = Annotated[str, StringConstraints(max_length=256, pattern=r"^[A-Za-z0-9_.*-]+$")]
Effect = Literal["approve", "require_approval", "block"]
Approver = Literal["anyone", "another"]


def _budgets_schema(schema: dict[str, Any]) -> None:
    """The budgets one by one: what the runtime checks, and a name that it does not know is refused."""
    schema["properties"] = {
        name: {"type": "integer", "minimum": row.least, "default": row.default, "description": row.meaning}
        for name, row in TABLE.items()
    }
    schema["additionalProperties"] = False


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
    action: Literal["approve", "deny", "dismiss", "cancel"] = Field(
        description="`cancel` cancels the whole run. A server's question is answered (`approve`, with `content`), "
        "declined (`deny`), or dismissed without a choice."
    )
    content: dict[str, Any] | None = Field(
        default=None,
        description="Why; a script that is denied a call reads `reason` in its error. For a server's question what "
        "goes into its form.",
    )
    wait: bool = Field(default=True, description="false: answer as soon as the decision is recorded.")


class CallRequest(Asked):
    """The arguments of one tool call."""

    args: dict[str, Any] = Field(default_factory=dict)
    toolkit: Text | None = Field(default=None, description="Narrows the tools to a named subset.")
    meta: bool = Field(default=False, description="Also answer the HTTP status and headers.")
    ask: bool = Field(
        default=False, description="Where a person must allow the call, make it in a run that waits for one."
    )


class PolicyRequest(Asked):
    """A rule: `target` is `*`, an integration or `integration.scope.connection`; `pattern` a glob over tool names."""

    target: Annotated[
        str, StringConstraints(max_length=300, pattern=r"^(\*|[a-z0-9_-]+(\.[a-z0-9_-]+\.[a-z0-9_-]+)?)$")
    ]
    pattern: Glob = "*"
    effect: Effect
    scope: Scope = "org"
    reason: Annotated[str, StringConstraints(max_length=500)] = ""
    approver: Approver = Field(
        default="anyone", description="`another`: approval by the key whose run makes the call does not count."
    )


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


class Question(Told):
    """What an MCP server asks a person: its own words, and the form that the answer must fit. `lasting` false: it can
    be answered only while the Executor that made the call runs."""

    server: str
    message: str
    form: dict[str, Any] = Field(alias="schema")
    lasting: bool
    note: str


class Interaction(Told):
    """A call that waits for a person. `arguments` are exactly those that would be sent, in full. `input`: the call is
    under way, and its server asks the `question`."""

    id: str
    kind: Literal["approval", "input"]
    path: str
    arguments: Any
    reason: str
    side_effect: str
    call: int
    approver: Approver = Field(description="`another`: not the key that the run is of.")
    created_at: float
    expires_at: float
    question: Question | None = None


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


class PolicyFacts(Told):
    id: str
    scope: str
    target: str
    pattern: str
    effect: Effect
    reason: str
    approver: Approver | None = Field(default=None, description="Of a rule that requires approval.")


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
    approver: Approver | None = None
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
    protocolVersion: str = Field(description="Of the TPMJS executor protocol.")
    implementationVersion: str


class ToolRequest(BaseModel):
    """Fields that are not known are passed over, as the TPMJS protocol has it."""

    model_config = ConfigDict(extra="ignore")

    packageName: str = Field(min_length=1, max_length=512)
    name: str = Field(min_length=1, max_length=512, description="The export.")
    version: str | None = Field(default="latest", max_length=512, description="A version, a range or a dist-tag.")
    params: dict[str, Any] | None = Field(default=None, description="The argument of the tool's execute.")
    env: dict[str, str] | None = Field(default=None, description="What the package finds in process.env.")


class ToolFailure(Told):
    code: str
    message: str


class ToolOutcome(Told):
    success: bool
    output: Any = None
    error: ToolFailure | None = None
    executionTimeMs: int


class ExecutorInfo(Told):
    name: str
    version: str
    protocolVersion: str
    capabilities: dict[str, Any]
