"""Calls that wait for a person: what is asked, how it is answered, what the call is told."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any, Final, Literal

from bridge.approvals import Ask
from bridge.asking import Question, Reply
from bridge.wire.errors import Conflict, Forbidden, InvalidRequest, NotFound, ToolError
from runtime import values
from runtime.store.interactions import Decided, Denials, InteractionRow, Interactions, Pending

Action = Literal["approve", "deny", "dismiss", "cancel"]
DENIALS_S: Final = 600.0
"""Denials in a row count for this long, and so long after the last one nobody is asked again."""

STATES: Final[dict[str, str]] = {"approve": "approved", "deny": "denied", "dismiss": "dismissed", "cancel": "cancelled"}
REPLIES: Final[dict[str, Literal["accept", "decline"]]] = {"approved": "accept", "denied": "decline"}
"""What a server is told; of any other state `cancel`: nobody chose."""
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
        question: Question | None = None,
    ) -> InteractionRow:
        """Keep a question, durably; `before`, an earlier one about the same call, becomes void. `question` is what a
        server asks in the middle of the call, where it is not whether the call may be made.

        Raises ToolError where too many are open, or too many were denied in a row; StorageFull.
        """
        now = time.time()
        asked = None if question is None else json.dumps(question.as_dict(), ensure_ascii=False)
        resume = None if question is None or question.resume is None else json.dumps(question.resume)
        row = InteractionRow(
            id=f"int_{secrets.token_hex(16)}",
            run=run,
            call=call,
            kind="approval" if question is None else "input",
            path=ask.path,
            arguments=shown(ask),
            args_bytes=args_bytes + len(asked or "") + len(resume or ""),
            reason=ask.reason if question is None else f"{question.server} asks in the middle of the call",
            side_effect=ask.side_effect,
            binding=ask.binding,
            state="pending",
            created_at=now,
            expires_at=now + self._seconds,
            approver=ask.approver,
            principal=principal,
            question=asked,
            resume=resume,
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
    if row.state == "void" and row.kind == "input":
        raise Conflict(
            "the server does not wait for this answer any more: it was not given",
            code="approval_void",
            hint="look at the run again: it goes on without the answer",
        )
    if row.state == "void":
        raise Conflict(
            "the tool, its connection or the policy is not what it was when this was asked: nothing was sent",
            code="approval_void",
            hint="look at the run again: the call is decided as things are now",
        )
    raise Conflict(f"the interaction has been {row.state} already", code="already_decided", details={"was": row.state})


def filled_in(row: InteractionRow, action: str, content: Any) -> Any:
    """The content of an answer as it is kept: of one to a server's question what goes into its form. Raises
    InvalidRequest."""
    if row.kind != "input":
        if action == "dismiss":
            raise InvalidRequest("only a server's question is dismissed", hint="use approve, deny or cancel")
        return content
    if action != "approve":
        return None
    from catalog.kinds.mcp import forms

    try:
        return forms.answered(json.loads(row.question or "{}")["schema"], content)
    except ValueError as e:
        raise InvalidRequest(
            f"that is no answer to {row.path}: {e}", hint="content is what the form asks for"
        ) from None


def reply_of(row: InteractionRow) -> Reply:
    """What a server is told that asked."""
    action = REPLIES.get(row.state)
    if action is None:
        return Reply(row.id, "cancel")
    return Reply(row.id, action, json.loads(row.content or "{}") if action == "accept" else None)


def is_answered(row: InteractionRow) -> bool:
    """Whether there is something to tell the server that asked."""
    return row.kind == "input" and row.state not in ("pending", "void")


def shown(ask: Ask) -> str:
    """The arguments as a person sees them: JSON."""
    return json.dumps(values.to_json(ask.arguments), ensure_ascii=False)


def arguments_of(row: InteractionRow) -> Any:
    """The arguments in JSON."""
    return json.loads(row.arguments)


def as_dict(row: InteractionRow) -> dict[str, Any]:
    """What every door shows of an open interaction. Arguments are there in full."""
    asked = {} if row.question is None else {"question": json.loads(row.question)}
    return asked | {
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
    if row.kind != "approval":
        return None
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
