"""What a server asks a person in the middle of a call, and what the person answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol

from bridge.approvals import Ask
from bridge.deadline import Deadline
from bridge.scrub import Scrubber

WORDS: Final = "These are the words of the server, not of Executor. Enter no password, key or other secret."


@dataclass(frozen=True, slots=True)
class Question:
    """`message` and `schema` are the server's, cleaned and bounded. `resume` is what the call goes on with once there
    is an answer, also in another process; None where it can only go on in the session in which the server asked."""

    server: str
    message: str
    schema: dict[str, Any]
    resume: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """What every door shows."""
        return {
            "server": self.server,
            "message": self.message,
            "schema": self.schema,
            "lasting": self.resume is not None,
            "note": WORDS,
        }

    def without(self, scrubber: Scrubber) -> Question:
        """The same without secrets of the connection, which a server may say back. A state that has one is not kept:
        the call goes on only where it is under way."""
        resume = None if self.resume is not None and scrubber.value(self.resume) != self.resume else self.resume
        return Question(self.server, scrubber.text(self.message), scrubber.value(self.schema), resume)


class Reply(NamedTuple):
    """A person's answer; `id` is that of the interaction."""

    id: str
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class Resumed(NamedTuple):
    """The answer to a question that was asked before this call was made again; `state` is the question's `resume`."""

    state: dict[str, Any]
    reply: Reply


Put = Callable[[Question, asyncio.Event], Awaitable[Reply]]
"""Puts a question to a person. The event says that nobody needs the answer any more: the reply is `cancel` then."""
Asks = Callable[[Ask, Question, asyncio.Event], Awaitable[Reply]]
"""The same for whoever makes calls: with the call that it is about."""


class Ends(Protocol):
    deadline: float | None


def untimed(put: Put, timer: Deadline, call: Ends) -> Put:
    """`put` for a `call` that `timer` ends: waiting for a person takes nothing of its time."""

    async def asked(question: Question, gone: asyncio.Event) -> Reply:
        timer.stop()
        try:
            return await put(question, gone)
        finally:
            call.deadline = timer.go_on()

    return asked
