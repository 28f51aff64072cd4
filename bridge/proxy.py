"""The one path of a tool call, whoever makes it: find, validate, decide, credential, check, send, shape, record."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import anyio.to_thread
import structlog

from bridge.acting import acting, strictest
from bridge.approvals import Ask, Binder, NeedsApproval
from bridge.asking import Asks, Question, Reply, Resumed, untimed
from bridge.calls import CallContext, CallJournal, CallOutcome, CallRecord, Door, since_ms, wall_clock
from bridge.deadline import Deadlines
from bridge.discovery import Discovery
from bridge.granted import Granted, granted
from bridge.outbound import Passage, written_limit
from bridge.policy import Decision, Policy
from bridge.repeats import Repeats
from bridge.scrub import Scrubber
from bridge.toolkits import Toolkits
from bridge.traces import traced
from bridge.values import NotFinite, TooDeep, encoded
from bridge.view import LensRule, Narrowing, View
from bridge.wire import codec
from bridge.wire.errors import ExecutorError, InvalidRequest, ToolError, Unserializable
from catalog import paging
from catalog.address import MAX_PATH
from catalog.kinds.code import Code
from catalog.kinds.http import Http
from catalog.model import Connection, Integration, Tool, ToolValue
from catalog.registry import Installed, Registry
from catalog.validate import Check, checked, checker

__all__ = ["CallContext", "CallJournal", "CallOutcome", "CallRecord", "Door", "ToolProxy"]

SEARCH: Final = "$search"
DESCRIBE: Final = "$describe"
FETCH: Final = "$fetch"
PAGE: Final = "$page"

ASKING: Final = "mcp"
"""The kind of integration whose servers may ask a person something in the middle of a call."""

MakePassage = Callable[[Installed, Connection, int, Callable[[], Awaitable[None]]], Passage]
"""A way out for one call as an account, with the bytes that an answer may have and what to await before sending."""

MANY_DEFINITIONS: Final = 200
_log = structlog.get_logger("executor.proxy")


class ToolProxy:
    """Makes calls. `timeout_s` is the longest that one may take; the context's deadline may be nearer."""

    def __init__(
        self,
        registry: Registry,
        policy: Policy,
        toolkits: Toolkits,
        discovery: Discovery,
        passage: MakePassage,
        timeout_s: float = 30.0,
    ) -> None:
        self._registry = registry
        self._policy = policy
        self._toolkits = toolkits
        self._discovery = discovery
        self._passage = passage
        self._timeout_s = timeout_s
        self._numbers = itertools.count(1)
        self._checks: dict[str, tuple[Tool, Check | None]] = {}
        self._deadlines = Deadlines()
        self._binder = Binder()
        self._repeats = Repeats()

    async def call(
        self,
        ctx: CallContext,
        path: str,
        args: Any,
        *,
        meta: bool = False,
        journal: CallJournal | None = None,
        args_size: int | None = None,
        call_id: int | None = None,
        waits: bool = False,
        approved: str | None = None,
        asks: Asks | None = None,
        resumed: Resumed | None = None,
    ) -> CallOutcome:
        """Call the tool at `path` with `args` (an object, or None for none).

        `args_size` is the arguments' size in msgpack where the caller knows it; `call_id` the number of the record.
        A call that a person must allow raises NeedsApproval where the caller `waits` for one, without a word to the
        journal; `approved` is the binding of the ask that a person said yes to. What the tool's server asks a person in
        the middle of the call goes to `asks`, without which it fails; `resumed` is an answer that it goes on with,
        where it was asked before. Raises ToolError, with its `path`;
        anything unforeseen is ToolError("internal") with a correlation id, its cause in the log alone.
        """
        record = CallRecord(
            id=next(self._numbers) if call_id is None else call_id,
            path=path[:MAX_PATH],
            started_at=wall_clock(),
        )
        began = time.perf_counter_ns()
        try:
            outcome = await self._call(
                ctx, path, args, meta, journal, args_size, record, waits, approved, asks, resumed
            )
            record.outcome = "done"
            return outcome
        except NeedsApproval:
            journal = None
            raise
        except ToolError as e:
            self._failed(record, e)
            raise
        except BaseException:
            record.outcome = "unknown" if record.sent and record.side_effect != "read" else "failed"
            record.code = "cancelled"
            raise
        finally:
            record.duration_ms = since_ms(began)
            if journal is not None:
                journal.finished(record)

    def _failed(self, record: CallRecord, error: ToolError) -> None:
        record.code = error.code
        record.outcome = "failed"
        error.path = record.path
        if error.status is not None:
            record.status = error.status
        lost = error.code in ("upstream_timeout", "upstream_unreachable", "outcome_unknown") and record.sent
        if lost and record.side_effect != "read":
            record.outcome = "unknown"
            error.retryable = record.idempotent
            error.hint = "It was sent and no answer came: " + (
                "it is idempotent, so that it may be repeated."
                if record.idempotent
                else "check whether it took effect before you repeat it."
            )

    async def _call(
        self,
        ctx: CallContext,
        path: str,
        args: Any,
        meta: bool,
        journal: CallJournal | None,
        args_size: int | None,
        record: CallRecord,
        waits: bool,
        approved: str | None,
        asks: Asks | None,
        resumed: Resumed | None,
    ) -> CallOutcome:
        args = {} if args is None else args
        if args_size is None:
            args_size = _size(args)
        record.args_bytes = args_size
        if args_size > ctx.args_bytes:
            raise ToolError(
                "too_large",
                f"The arguments take {args_size} bytes; at most {ctx.args_bytes} may be sent.",
                details={"limit": ctx.args_bytes, "size": args_size},
            )
        if not isinstance(args, dict):
            raise ToolError("invalid_arguments", "A tool takes one object of named arguments.")
        view = self._view(ctx)
        if path in (SEARCH, DESCRIBE):
            record.side_effect, record.decision = "read", "approve"
            await (self._discovery.ready() if path == SEARCH else self._discovery.turn())
            found = self._discovery.search if path == SEARCH else self._discovery.describe
            return self._outcome(ctx, ToolValue(found(args, view)), meta, record, None)

        fetching = granted(self._registry, args) if path == FETCH else None
        page = paging.asked(args) if path == PAGE else None
        if (meant := fetching or page) is not None:
            # From here on it is a call of that tool like any other.
            path, args = meant.path, meant.args
            record.path = path[:MAX_PATH]
        tool = self._find(view, path)
        record.side_effect = effect = tool.side_effect
        installed = self._installed(tool)
        integration = installed.integration
        gather = getattr(integration, "gather", None)
        if gather is not None:
            args = gather(tool, args)
        if effect != "read":
            args, record.idempotent = self._repeats.keyed(tool, args, installed, ctx.run_id, record.id)
        await self._validate(ctx, tool, args)
        if (examine := getattr(integration, "examine", None)) is not None:
            await examine(tool, args)
        tool, parts = acting(self._registry, integration, tool, args, view)
        record.side_effect = tool.side_effect
        about, decision = self._decide((tool, *parts), view, record)
        if decision.effect == "require_approval":
            ask = self._ask(ctx, record.id, tool, args, decision)
            if approved != ask.binding:
                raise NeedsApproval(ask) if waits else _unapproved(about, decision)

        connection = self._registry.connection(tool)

        async def announce() -> None:
            if journal is not None:
                record.outcome = "sending"
                await journal.sending(record)
            record.sent = True

        passage = self._passage(installed, connection, written_limit(ctx.value_bytes), announce)
        passage.body_limit = written_limit(ctx.args_bytes)
        passage.repeatable = record.idempotent
        passage.context = ctx
        if resumed is not None:
            record.answered, passage.resumed = resumed.reply.id, resumed
        if asks is not None and integration.kind == ASKING:

            async def put(question: Question, gone: asyncio.Event) -> Reply:
                if scrubber := _scrubber(passage):
                    question = question.without(scrubber)
                reply = await asks(self._ask(ctx, record.id, tool, args, decision), question, gone)
                # What the answer sets off is recorded before it leaves, as a call is.
                record.answered = reply.id
                if journal is not None:
                    await journal.sending(record)
                return reply

            passage.put = put
        answering = self._answer(tool, args, integration, connection, passage, fetching, page)
        value = await self._made(ctx, tool, answering, passage, record)
        return self._outcome(ctx, value, meta, record, passage)

    def check_view(self, toolkit: str | None, narrowings: Sequence[Narrowing]) -> None:
        """Raises InvalidRequest for a toolkit that there is not."""
        self._toolkits.view(toolkit, narrowings)

    def _view(self, ctx: CallContext) -> View:
        """What the caller may see. A toolkit that was removed while it is used holds nothing any more."""
        try:
            return self._toolkits.view(ctx.toolkit, ctx.narrowings)
        except InvalidRequest as e:
            raise ToolError("tool_not_found", f"{e.message.rstrip('.')}, so it holds no tool.", hint=e.hint) from None

    def _find(self, view: View, path: str) -> Tool:
        tool = self._registry.find(path)
        if tool is None or not view.holds(tool):
            unconnected = self._discovery.unconnected(path, view) if tool is None else None
            raise unconnected or self._discovery.not_found(path, view)
        return tool

    def _installed(self, tool: Tool) -> Installed:
        installed = self._registry.installed(tool.integration)
        assert installed is not None
        return installed

    async def _validate(self, ctx: CallContext, tool: Tool, args: dict[str, Any]) -> None:
        known = self._checks.get(tool.path)
        if known is None or known[0] is not tool:
            trusted = isinstance(self._installed(tool).integration, Code)
            making = partial(checker, tool.input_schema, tool.definitions, trusted=trusted)
            # Of hundreds of definitions a tool may reach most, which takes longer than the event loop has.
            large = len(tool.definitions) > MANY_DEFINITIONS
            known = self._checks[tool.path] = (tool, await anyio.to_thread.run_sync(making) if large else making())
        problem = None if known[1] is None else await checked(known[1], args, ctx.deadline)
        if problem is not None:
            raise ToolError("invalid_arguments", problem, hint=f"tools.describe({tool.path!r}) shows what it takes.")

    def _decide(self, tools: Sequence[Tool], view: View, record: CallRecord) -> tuple[Tool, Decision]:
        """The strictest decision about a tool and what its call asks for, and which of them it is about. Raises
        ToolError."""
        tool, decision = strictest(self._policy, tools, view)
        itself = tool is tools[0]
        record.decision = decision.effect
        record.rule = decision.rule.id if decision.rule is not None else None
        if tool.awaits:
            said = "This tool awaits" if itself else f"This call asks for {tool.name}, which awaits"
            raise ToolError(
                "blocked",
                f"{said} review: {tool.awaits}.",
                hint=f"An operator can let it in: executor review {tool.integration} --accept {tool.name}",
            )
        if decision.effect == "block":
            lens = decision.rule.lens if isinstance(decision.rule, LensRule) else None
            hint = "An operator can change the policy." if lens is None else f"No policy can lift the rule of {lens}."
            what = "this tool" if itself else f"{tool.name}, which this call asks for"
            raise ToolError("blocked", f"A {'policy' if lens is None else 'rule of ' + lens} blocks {what}.", hint=hint)
        return tool, decision

    def _ask(self, ctx: CallContext, id: int, tool: Tool, args: dict[str, Any], decision: Decision) -> Ask:
        connection = self._registry.connection(tool)
        return self._binder.ask(ctx, id, tool, args, self._installed(tool), connection, decision)

    def may_ask(self, path: str) -> bool:
        """Whether the tool's server may ask a person something in the middle of a call."""
        tool = self._registry.find(path)
        return tool is not None and self._installed(tool).kind == ASKING

    def asks(
        self, ctx: CallContext, path: str, args: dict[str, Any], *, call_id: int, made: bool = False
    ) -> Ask | None:
        """What a person is asked now for a call that once needed one: None when it would not wait any more, because
        the tool is gone or hidden, or a rule allows or blocks it. For one that is `made`, and in the middle of which
        its server asks, a rule that allows it is as good. Raises ToolError."""
        tool, view = self._registry.find(path), self._view(ctx)
        if tool is None or not view.holds(tool):
            return None
        tool, parts = acting(self._registry, self._installed(tool).integration, tool, args, view)
        _, decision = strictest(self._policy, (tool, *parts), view)
        stands = decision.effect == "require_approval" or (made and decision.effect == "approve" and not tool.awaits)
        return self._ask(ctx, call_id, tool, args, decision) if stands else None

    async def _answer(
        self,
        tool: Tool,
        args: dict[str, Any],
        integration: Integration,
        connection: Connection,
        passage: Passage,
        fetching: Granted | None,
        page: paging.Page | None,
    ) -> ToolValue:
        if fetching is not None:
            assert isinstance(integration, Http)
            return await integration.fetch(tool, args, connection, passage, follow=fetching.follow)
        value = await integration.invoke(tool, args, connection, passage)
        return value if page is None else paging.paged(tool, page._replace(args=args), value)

    async def _made(
        self,
        ctx: CallContext,
        tool: Tool,
        answering: Coroutine[Any, Any, ToolValue],
        passage: Passage,
        record: CallRecord,
    ) -> ToolValue:
        """The integration's answer, or a ToolError without a secret in it."""
        now = asyncio.get_running_loop().time()
        deadline = now + self._timeout_s if ctx.deadline is None else min(now + self._timeout_s, ctx.deadline)
        passage.deadline = deadline
        timer = self._deadlines.until(deadline)
        if passage.put is not None:
            passage.put = untimed(passage.put, timer, passage)
        try:
            value = await timer.over(answering)
        except ToolError as e:
            raise self._clean(e, passage) from None
        except ExecutorError as e:
            raise self._clean(ToolError("internal", e.message, hint=e.hint), passage) from None
        except Exception as e:
            raise _opaque(e, tool, _scrubber(passage)) from None
        finally:
            record.status = passage.status
        if value is None:
            raise ToolError("upstream_timeout", f"No answer within {max(0.0, deadline - now):.1f} s.")
        return value

    def _clean(self, error: ToolError, passage: Passage) -> ToolError:
        scrubber = _scrubber(passage)
        if scrubber:
            error.message = scrubber.text(error.message)
            error.hint = None if error.hint is None else scrubber.text(error.hint)
            error.details = scrubber.value(error.details)
            error.args = (error.message,)
        return error

    def _outcome(
        self, ctx: CallContext, value: ToolValue, meta: bool, record: CallRecord, passage: Passage | None
    ) -> CallOutcome:
        result, http, _ = value
        data = _encoded(result)
        scrubber = _scrubber(passage) if passage is not None else None
        if scrubber:
            if scrubber.finds(data):
                result = scrubber.value(result)
                data = _encoded(result)
            http = scrubber.value(http)
        record.value_bytes = len(data)
        if len(data) > ctx.value_bytes:
            raise ToolError(
                "too_large",
                f"The answer takes {len(data)} bytes; at most {ctx.value_bytes} come back.",
                hint="Ask for less: a page, a range, or fewer fields.",
                details={"limit": ctx.value_bytes, "size": len(data)},
            )
        if meta:
            data = _with_facts(data, http)
        return CallOutcome(result, http, record, data)


def _remedy(tool: Tool, decision: Decision) -> str:
    if isinstance(decision.rule, LensRule):
        return f"The rule is that of {decision.rule.lens}: no policy can lift it there."
    return f"An operator can allow it: executor policy set {tool.integration} {tool.name} approve"


def _unapproved(tool: Tool, decision: Decision) -> ToolError:
    return ToolError(
        "approval_required",
        f"This call needs a person's approval: {decision.reason}.",
        hint=_remedy(tool, decision),
        details={"side_effect": tool.side_effect},
    )


def _scrubber(passage: Passage) -> Scrubber | None:
    return Scrubber(secret.reveal() for secret in passage.revealed.values()) if passage.revealed else None


def _size(args: Any) -> int:
    try:
        return len(codec.encode(args)) if args else 1
    except Unserializable as e:
        raise ToolError("invalid_arguments", f"{e.path}: {e.message}.") from None


def _encoded(value: Any) -> bytes:
    try:
        return encoded(value)
    except TooDeep as e:
        raise ToolError("too_large", f"The answer is {e.message}.", hint="Ask for less, or for fewer fields.") from None
    except NotFinite as e:
        what = f"The answer cannot be read: {e.message} at {e.path}."
        raise ToolError("upstream_error", what, retryable=False) from None
    except Unserializable as e:
        raise ToolError("internal", f"The tool returned {e.message} at {e.path}, which cannot cross.") from None


def _with_facts(data: bytes, http: Any) -> bytes:
    """The msgpack of `{value, http}`, around the value's own."""
    return b"\x82" + codec.encode("value") + data + codec.encode("http") + _encoded(http)


def _opaque(error: Exception, tool: Tool, scrubber: Scrubber | None) -> ToolError:
    """An unforeseen failure: a number to look it up by, and nothing else."""
    correlation = secrets.token_hex(8)
    _log.error("tool_failed", path=tool.path, correlation_id=correlation, exception=traced(error, scrubber))
    return ToolError(
        "internal",
        f"The tool failed unexpectedly (correlation id {correlation}).",
        hint="The cause is in the log. A Python tool can raise ToolError to say something to its caller.",
        details={"correlation_id": correlation},
    )
