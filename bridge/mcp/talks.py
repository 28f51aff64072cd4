"""Questions of servers of the older era, which come in the middle of a call and do not say of which.

So that an answer never reaches another call than the one that it is about, calls of tools that are not known to be
quiet begin one after the other: the next when the one before it has ended or waits for a person. A tool is quiet once a
call of it ended without a question. What cannot be told apart all the same is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from bridge.asking import Put, Question, Reply
from bridge.mcp.rounds import MAX_QUESTIONS, refused, unasked
from bridge.wire.errors import ToolError
from catalog.kinds.mcp.forms import NotAsked, form_of, message_of

TURN_S: Final = 5.0
"""How long a call waits for the one before it, and a question until it is clear whose it is."""
MAX_HELD: Final = 32
"""Calls of a session that wait for people at once: each holds a place in it."""

T = TypeVar("T")


class Refusal(Exception):
    """Raised for a question that is not put to anybody; the text is for the server."""


class Asked:
    """One question that waits. `gone`: the server does not wait for it any more."""

    def __init__(self, message: str, schema: dict[str, Any]) -> None:
        self.message = message
        self.schema = schema
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.gone = asyncio.Event()


class Talk:
    """One call, and what is asked in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.held = False
        self.asked = 0
        self.turned_away: ToolError | None = None
        """Why a question of it was not put to anybody."""
        self.questions: asyncio.Queue[Asked | ToolError] = asyncio.Queue()


class Talks:
    """The calls of one session. `label` is what its server is called here."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._open: list[Talk] = []
        self._quiet: set[str] = set()
        self._ask: set[str] = set()
        self._unclear = 0
        self._moved = asyncio.Event()

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[Talk]:
        """Hold a call's turn; it may have to wait for it."""
        await self._until(lambda: self._may_begin(name))
        talk = Talk(name)
        self._open.append(talk)
        try:
            yield talk
            if not talk.asked and name not in self._ask:
                self._quiet.add(name)
        finally:
            self._open.remove(talk)
            self._move()

    async def conversed(self, calling: Awaitable[T], talk: Talk, put: Put | None) -> T:
        """What comes of `calling`, while questions of it are put to a person. Raises ToolError."""
        call = asyncio.ensure_future(calling)
        try:
            while True:
                asked = asyncio.ensure_future(talk.questions.get())
                try:
                    await asyncio.wait([call, asked], return_when=asyncio.FIRST_COMPLETED)
                    if call.done():
                        return call.result()
                    question = asked.result()
                finally:
                    asked.cancel()
                if isinstance(question, ToolError):
                    raise question
                await self._put(call, question, talk, put)
        finally:
            if not call.done():
                call.cancel()
                await asyncio.wait([call])
            if not call.cancelled():
                call.exception()

    async def _put(self, call: asyncio.Future[T], asked: Asked, talk: Talk, put: Put | None) -> None:
        if put is None:
            talk.turned_away = unasked(self._label, asked.message)
            asked.reply.set_result(Reply("", "cancel"))
            return

        def over(_: object) -> None:
            asked.gone.set()

        call.add_done_callback(over)
        talk.held = True
        self._move()
        try:
            reply = await put(Question(self._label, asked.message, asked.schema), asked.gone)
            # With the answer the call goes on, and may ask again: that is a turn like its first.
            await self._until(lambda: self._may_begin(talk.name))
            if not asked.reply.done():
                asked.reply.set_result(reply)
        finally:
            talk.held = False
            call.remove_done_callback(over)
            if not asked.reply.done():
                asked.reply.set_result(Reply("", "cancel"))

    async def answer(self, params: Mapping[str, Any]) -> Reply:
        """The answer to a question of the server. Raises Refusal."""
        talk = await self._whose()
        talk.asked += 1
        if talk.asked > MAX_QUESTIONS:
            talk.questions.put_nowait(refused(self._label, f"it asks more than {MAX_QUESTIONS} questions in one call"))
            raise Refusal(f"at most {MAX_QUESTIONS} questions are asked in one call")
        try:
            asked = Asked(message_of(params), form_of(params))
        except NotAsked as e:
            talk.turned_away = refused(self._label, str(e))
            raise Refusal(str(e)) from None
        if sum(one.held for one in self._open) >= MAX_HELD:
            talk.turned_away = refused(self._label, f"{MAX_HELD} calls of it wait for answers already")
            raise Refusal("too many questions wait for answers already")
        talk.questions.put_nowait(asked)
        try:
            return await asked.reply
        finally:
            asked.gone.set()

    async def _whose(self) -> Talk:
        """The call that a question belongs to. Raises Refusal."""
        self._unclear += 1
        try:
            await self._until(lambda: len(self._candidates()) <= 1)
            candidates = self._candidates()
            if len(candidates) == 1:
                self._ask.add(candidates[0].name)
                self._quiet.discard(candidates[0].name)
                return candidates[0]
            if not candidates:
                raise Refusal("no call is under way that it could belong to")
            why = "several calls are under way, and which of them it belongs to cannot be told"
            for talk in candidates:
                self._ask.add(talk.name)
                self._quiet.discard(talk.name)
                talk.turned_away = refused(self._label, why)
            raise Refusal(why)
        finally:
            self._unclear -= 1
            self._move()

    def _candidates(self) -> list[Talk]:
        return [talk for talk in self._open if not talk.held] or self._open

    def _may_begin(self, name: str) -> bool:
        if self._unclear:
            return False
        return name in self._quiet or all(talk.held or talk.name in self._quiet for talk in self._open)

    async def _until(self, ready: Callable[[], bool]) -> None:
        """Wait for it, at most `TURN_S`."""
        if ready():
            return
        try:
            async with asyncio.timeout(TURN_S):
                while not ready():
                    await self._moved.wait()
        except TimeoutError:
            pass

    def _move(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
