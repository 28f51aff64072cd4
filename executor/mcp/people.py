"""Calls that wait for a person, put to the person at the client: in the middle of a call (protocol of 2025-11-25), or
as an `input_required` result that the client answers with the same call again (2026-07-28).

The client is asked only where its key may decide: what cannot approve over HTTP cannot approve here either. Elsewhere,
and where the client has no way to ask, the run stays `waiting` and is decided by another door.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import mcp_types as types
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from bridge.wire.errors import Conflict, InvalidRequest, NotFound
from runtime.records import plain
from runtime.results import RunResult

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from executor.executor import Executor
    from executor.mcp.caller import Caller

MOST_SHOWN: Final = 16_000
"""Characters of a call that a client is asked about; a longer one is not put to anybody who cannot see all of it."""
MOST_AT_ONCE: Final = 32
"""Calls that one `input_required` result asks about; the others come with the next."""
REMEMBERED: Final = 10_000
"""States that were answered: each is good once."""
STATE_S: Final = 86_400.0
"""How long a person may take to answer through the client: as long as a question stays open by default."""
ACTIONS: Final = {"accept": "approve", "decline": "deny"}
NOTHING_TO_FILL_IN: Final[types.ElicitRequestedSchema] = {"type": "object", "properties": {}}
_HIDING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


class People:
    """Asks the people at the clients of one Executor, and takes their answers."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._spent: OrderedDict[str, None] = OrderedDict()

    async def decide(
        self, ctx: ServerRequestContext[Any, Any], caller: Caller, answer: RunResult, *, owned: bool
    ) -> RunResult | types.InputRequiredResult:
        """`answer` once nobody can be asked here any more: the run has ended, or waits for another door. `owned` runs
        end with the call that is waiting for them."""
        asked: set[str] = set()
        while answer.status == "waiting" and caller.decides and _asks(ctx.session.client_capabilities):
            open = [one for one in answer.interactions if one["id"] not in asked and _here(one)][:MOST_AT_ONCE]
            if not open:
                break
            if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return _required(answer.run_id, open)
            try:
                decided = [await self._ask(ctx, caller, answer.run_id, one) for one in open]
            except NoBackChannelError:
                break
            asked.update(one["id"] for one in open)
            if not all(decided):
                return plain(await self._executor.get_run(answer.run_id))
            answer = await self.rest(answer.run_id, owned=owned)
        return answer

    async def take(
        self, ctx: ServerRequestContext[Any, Any], caller: Caller, state: str, responses: Mapping[str, Any]
    ) -> RunResult | types.InputRequiredResult:
        """What became of the run of `state`, which an `input_required` result carried and nobody has altered, now that
        the client has answered with `responses`. Raises MCPError for a state that was answered before."""
        told = json.loads(state)
        run_id, once = str(told["run"]), str(told["once"])
        if once in self._spent:
            raise MCPError(
                types.INVALID_PARAMS, f"this was answered already; resume with run_id {run_id!r} gives the outcome"
            )
        self._spent[once] = None
        if len(self._spent) > REMEMBERED:
            self._spent.popitem(last=False)
        dismissed = False
        for id in told["asked"]:
            given = _elicited(responses.get(id))
            if given is not None:
                dismissed |= not await self._settle(caller, run_id, id, given)
        if dismissed:
            return plain(await self._executor.get_run(run_id))
        return await self.decide(ctx, caller, await self.rest(run_id, owned=True), owned=True)

    async def rest(self, run_id: str, *, owned: bool) -> RunResult:
        """The run once it has ended or waits for a person. A caller that goes away takes an `owned` one along."""
        try:
            return plain(await self._executor.wait_run(run_id, rest=True))
        except asyncio.CancelledError:
            if owned:
                with anyio.CancelScope(shield=True):
                    await self._executor.cancel_run(run_id)
            raise

    async def _ask(
        self, ctx: ServerRequestContext[Any, Any], caller: Caller, run_id: str, one: Mapping[str, Any]
    ) -> bool:
        """Whether one question was settled: by the person at the client, or meanwhile through another door."""
        asking = asyncio.create_task(
            ctx.session.elicit_form(_message(run_id, one), _form(one), related_request_id=ctx.request_id)
        )
        elsewhere = asyncio.create_task(self._settled_elsewhere(run_id, one["id"]))
        try:
            await asyncio.wait([asking, elsewhere], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return True
            try:
                given = asking.result()
            except (MCPError, ValidationError) as e:
                if isinstance(e, NoBackChannelError):
                    raise
                return False
            return await self._settle(caller, run_id, one["id"], given)
        finally:
            for task in (asking, elsewhere):
                task.cancel()
            await asyncio.wait([asking, elsewhere])

    async def _settle(self, caller: Caller, run_id: str, id: str, given: types.ElicitResult) -> bool:
        """Whether the question is settled. One that the person put away without an answer stays open."""
        action = ACTIONS.get(given.action)
        if action is None:
            if not await self._is_question(run_id, id):
                return False
            # A server that asked is told so; a call that waits for approval waits on.
            action = "dismiss"
        content = given.content if action == "approve" and given.content else None
        try:
            # Decided by another door, expired, or put anew: the run as it is now tells what to do.
            with suppress(Conflict, NotFound):
                await self._executor.resume(run_id, id, action, content, wait=False, principal=caller.principal)
        except InvalidRequest:
            # No answer to the form: the question stays open.
            return False
        return True

    async def _is_question(self, run_id: str, id: str) -> bool:
        record = await self._executor.get_run(run_id)
        return any(one["id"] == id and one["kind"] == "input" for one in record.interactions)

    async def _settled_elsewhere(self, run_id: str, id: str) -> None:
        async with aclosing(cast(Any, self._executor.events(run_id))) as events:
            async for event in events:
                if event.type == "status":
                    record = await self._executor.get_run(run_id)
                    if all(one["id"] != id for one in record.interactions):
                        return


def sealed(caller: Callable[[ServerRequestContext[Any, Any]], Caller]) -> RequestStateBoundary:
    """What seals the states that clients carry, and opens them: each is good for the caller and the call that it was
    given to, and for a while."""

    def bound(ctx: ServerRequestContext[Any, Any]) -> str:
        who = caller(ctx)
        return json.dumps([who.principal, who.toolkit, who.tied])

    security = RequestStateSecurity(keys=[secrets.token_bytes(32)], bind_principal=bound, ttl=STATE_S)
    return RequestStateBoundary(security, default_audience="executor")


def _asks(capabilities: types.ClientCapabilities | None) -> bool:
    """Whether the client can put a form to its user. A bare capability means forms, as it did before URLs."""
    asking = capabilities.elicitation if capabilities is not None else None
    return asking is not None and (asking.form is not None or asking.url is None)


def _required(run_id: str, open: Sequence[Mapping[str, Any]]) -> types.InputRequiredResult:
    state = {"run": run_id, "asked": [one["id"] for one in open], "once": secrets.token_hex(16)}
    return types.InputRequiredResult(
        input_requests={
            one["id"]: types.ElicitRequest(
                params=types.ElicitRequestFormParams(message=_message(run_id, one), requested_schema=_form(one))
            )
            for one in open
        },
        request_state=json.dumps(state),
    )


def _elicited(response: Any) -> types.ElicitResult | None:
    """The answer of a person, or None for what is none: it is asked again."""
    if isinstance(response, types.ElicitResult):
        return response
    try:
        return types.ElicitResult.model_validate(response)
    except ValidationError:
        return None


def _here(one: Mapping[str, Any]) -> bool:
    """Whether the person at the client can decide it: they see all of it, and it takes no other than who asks."""
    return one["approver"] == "anyone" and len(_arguments(one)) <= MOST_SHOWN


def _form(one: Mapping[str, Any]) -> types.ElicitRequestedSchema:
    """What there is to fill in: the form of a server that asks; nothing where a yes or no is enough."""
    question = one.get("question")
    return NOTHING_TO_FILL_IN if question is None else question["schema"]


def _message(run_id: str, one: Mapping[str, Any]) -> str:
    """What a person reads before they decide: the call in full, and why they are asked."""
    if (question := one.get("question")) is not None:
        quoted = "\n".join(f"> {_plain(line)}" for line in str(question["message"]).splitlines())
        return (
            f"{_plain(question['server'])} asks, in the middle of {one['path']}:\n\n{quoted}\n\n{question['note']}\n\n"
            f"The call's arguments: {_arguments(one)}\nRun {run_id}."
        )
    return (
        f"{one['path']} needs your approval ({one['side_effect']}).\n{one['reason']}\n\n{_arguments(one)}\n\n"
        f"Accept to make this call, decline to refuse it. Run {run_id}."
    )


def _arguments(one: Mapping[str, Any]) -> str:
    """The arguments as JSON, with every character that could hide or reorder others as an escape."""
    return _plain(json.dumps(one.get("arguments"), ensure_ascii=False, indent=2))


def _plain(text: str) -> str:
    return "".join(
        char if char == "\n" or unicodedata.category(char) not in _HIDING else json.dumps(char)[1:-1] for char in text
    )
