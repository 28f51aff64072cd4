"""Calls that wait for a person: what is asked, how it is answered, what the call is told."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any, Final, Literal

from bridge.approvals import Ask
from bridge.wire.errors import Conflict, Forbidden, InvalidRequest, NotFound, ToolError
from runtime import values
from runtime.store.interactions import Decided, Denials, InteractionRow, Interactions, Pending

Action = Literal["approve", "deny", "cancel"]
DENIALS_S: Final = 600.0
"""Denials in a row count for this long, and so long after the last one nobody is asked again."""

STATES: Final[dict[str, str]] = {"approve": "approved", "deny": "denied", "cancel": "cancelled"}
MAX_CONTENT: Final = 16 * 1024
MOST_BYTES_OF_RUN: Final = 8 * 1024 * 1024
"""Bytes of arguments that may wait in one run: a person is shown all of them."""
MOST_BYTES: Final = 512 * 1024 * 1024
"""Bytes of arguments that may wait in a home; a run that waits is not swept out."""


class Approvals:
    """Asks people, and takes each answer once. `seconds` is how long an answer is waited for, `most` how many
    questions may be open, `denials` how many of a tool in a row end the asking for a while."""

    def __init__(self, store: Interactions, seconds: float, most: int, denials: int) -> None:
        self.store = store
        self._seconds = seconds
        self._most = most
        self._denials = denials

    async def open(
        self,
        run: int,
        principal: str,
        call: int,
        ask: Ask,
        args_bytes: int,
        before: InteractionRow | None = None,
    ) -> InteractionRow:
        """Keep a question, durably; `before`, an earlier one about the same call, becomes void.

        Raises ToolError where too many are open, or too many were denied in a row; StorageFull.
        """
        now = time.time()
        row = InteractionRow(
            id=f"int_{secrets.token_hex(16)}",
            run=run,
            call=call,
            kind="approval",
            path=ask.path,
            arguments=shown(ask),
            args_bytes=args_bytes,
            reason=ask.reason,
            side_effect=ask.side_effect,
            binding=ask.binding,
            state="pending",
            created_at=now,
            expires_at=now + self._seconds,
            approver=ask.approver,
            principal=principal,
        )
        limits = Pending(self._most, MOST_BYTES, MOST_BYTES_OF_RUN)
        denials = Denials(self._denials, now - DENIALS_S)
        open = await self.store.add(row, before.id if before is not None else None, limits, denials)
        if isinstance(open, Denials):
            raise _denied_too_often(open, now)
        if open is not None:
            raise ToolError(
                "approval_required",
                f"This call needs a person's approval, and too much waits for one already: {open.calls} calls, "
                f"{open.bytes_of_run} bytes of arguments in this run.",
                hint="Answer those that wait, or ask with less at a time.",
            )
        return row

    def close(self, run: int) -> None:
        """Nobody needs to answer what is still open for a run."""
        self.store.close_run(run, time.time())

    async def find(self, run: int, id: Any) -> InteractionRow:
        """Raises NotFound, for an interaction of another run too."""
        row = await self.store.get(id) if isinstance(id, str) else None
        if row is None or row.run != run:
            raise NotFound("the run has no such interaction", hint="`GET /runs/{id}` lists those that are open")
        return row

    async def answer(self, row: InteractionRow, state: str, content: Any, by: str) -> Decided:
        """Take an answer, durably.

        Raises InvalidRequest for content that is none.
        """
        text = content_of(content)
        return await self.store.decide(row.id, state, now=time.time(), by=by, content=text)


def check_approver(row: InteractionRow, asker: str, by: str) -> None:
    """Raises Forbidden (`own_approval`) where it takes another than the one whose run asks, and it is the same."""
    if row.approver == "another" and by == asker:
        raise Forbidden(
            "this call takes the approval of another than the one whose run makes it",
            code="own_approval",
            hint="somebody with another key can approve it; whoever asked can deny it, or cancel the run",
        )


def check(decided: Decided, state: str, content: Any) -> None:
    """Whether an interaction is as an answer wanted it. Raises Conflict: `approval_expired`, `approval_void` (the call
    was put anew), `already_decided`."""
    row = decided.interaction
    if row.state == state and row.content == content_of(content):
        return
    if row.state == "expired":
        raise Conflict("nobody answered in time: the interaction has expired", code="approval_expired")
    if row.state == "void":
        raise Conflict(
            "the tool, its connection or the policy is not what it was when this was asked: nothing was sent",
            code="approval_void",
            hint="look at the run again: the call is decided as things are now",
        )
    raise Conflict(f"the interaction has been {row.state} already", code="already_decided", details={"was": row.state})


def shown(ask: Ask) -> str:
    """The arguments as a person sees them: JSON."""
    return json.dumps(values.to_json(ask.arguments), ensure_ascii=False)


def arguments_of(row: InteractionRow) -> Any:
    """The arguments in JSON."""
    return json.loads(row.arguments)


def as_dict(row: InteractionRow) -> dict[str, Any]:
    """What every door shows of an open interaction. Arguments are there in full."""
    return {
        "id": row.id,
        "kind": row.kind,
        "path": row.path,
        "arguments": arguments_of(row),
        "reason": row.reason,
        "side_effect": row.side_effect,
        "call": row.call,
        "approver": row.approver,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
    }


def refusal(row: InteractionRow) -> ToolError | None:
    """What a call is told whose interaction has been answered with no, or not at all."""
    if row.state == "denied" or row.state == "cancelled":
        content = json.loads(row.content) if row.content else {}
        reason = content.get("reason")
        said = f": {reason}" if isinstance(reason, str) and reason else ""
        return ToolError(
            "approval_denied",
            f"A person denied this call{said}.",
            hint="Nothing was sent. Do without it, or ask why.",
            details={"interaction": row.id} | ({"content": content} if content else {}),
        )
    if row.state == "expired":
        return ToolError(
            "approval_expired",
            "Nobody approved this call in time.",
            hint="Nothing was sent.",
            details={"interaction": row.id},
        )
    return None


def _denied_too_often(denied: Denials, now: float) -> ToolError:
    left = max(1.0, denied.last + DENIALS_S - now)
    return ToolError(
        "approval_denied",
        f"People denied the last {denied.calls} calls of this tool: nobody is asked about it for {left:.0f} seconds.",
        hint="Nothing was sent. Do without it, or find out first what would be allowed.",
        details={"denials": denied.calls},
        retry_after_ms=round(left * 1000),
    )


def content_of(content: Any) -> str | None:
    if content is None:
        return None
    if not isinstance(content, Mapping):
        raise InvalidRequest("content must be an object", hint='such as {"reason": "not on a Friday"}')
    try:
        text = json.dumps(dict(content), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidRequest("content must be JSON data") from None
    if len(text) > MAX_CONTENT:
        raise InvalidRequest(f"content must be at most {MAX_CONTENT} characters of JSON")
    return text
