"""Calls in several rounds, as the protocol of 2026-07-28 has them: the server answers with questions and a state, and
the call is made again with the answers and that state. So it goes on in another session too, and after a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from bridge.asking import Question, Reply, Resumed
from bridge.outbound import Passage
from bridge.wire.errors import ToolError
from catalog.kinds.mcp.forms import NotAsked, form_of, message_of

MAX_QUESTIONS: Final = 10
"""Questions of one call, also of several rounds together."""
MAX_ROUNDS: Final = 10
MAX_STATE: Final = 256 * 1024
"""Characters of what a server has us keep between two rounds, with its questions, as JSON."""
LAST_PAUSE_S: Final = 0.25
"""Between rounds in which nothing is asked."""


class Rounds:
    """The rounds of one call. `state` and `responses` go into its next request."""

    def __init__(self, label: str, passage: Passage) -> None:
        self._label = label
        self._passage = passage
        self._asked = 0
        self._rounds = 0
        self.state: str | None = None
        self.responses: dict[str, dict[str, Any]] | None = None

    async def taken_up(self) -> None:
        """Begin where the call was when its last question was asked, if it was made before. Raises ToolError."""
        if self._passage.resumed is not None:
            await self._answered(self._passage.resumed)

    async def asked(self, result: Mapping[str, Any]) -> bool:
        """Whether `result` asks for another round, which `state` and `responses` are for. Raises ToolError."""
        if result.get("resultType") != "input_required":
            return False
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            raise self._refusal(f"it wants more than {MAX_ROUNDS} rounds of this call")
        requests, state = result.get("inputRequests"), result.get("requestState")
        if state is not None and not isinstance(state, str):
            raise self._refusal("the state that it gives is no text")
        self.state = state
        if not requests:
            await asyncio.sleep(min(0.05 * 2 ** (self._rounds - 1), LAST_PAUSE_S))
            self.responses = None
            return True
        if not isinstance(requests, Mapping):
            raise self._refusal("its questions are none")
        forms = {str(key): self._form(request) for key, request in requests.items()}
        await self._put(forms, {})
        return True

    def _form(self, request: Any) -> dict[str, Any]:
        """One request of the server as `{message, schema}`. Raises ToolError."""
        method = request.get("method") if isinstance(request, Mapping) else None
        params = request.get("params") if isinstance(request, Mapping) else None
        if method != "elicitation/create" or not isinstance(params, Mapping):
            raise self._refusal("it asks for something else than a form, which is all that a person is shown")
        try:
            return {"message": message_of(params), "schema": form_of(params)}
        except NotAsked as e:
            raise self._refusal(str(e)) from None

    async def _put(self, forms: dict[str, dict[str, Any]], responses: dict[str, dict[str, Any]]) -> None:
        """Ask one thing after the other."""
        if self._asked + len(forms) > MAX_QUESTIONS:
            raise self._refusal(f"it asks more than {MAX_QUESTIONS} questions in one call")
        put = self._passage.put
        while forms:
            key = next(iter(forms))
            form = forms[key]
            if put is None:
                raise unasked(self._label, form["message"])
            self._asked += 1
            resume = {"state": self.state, "forms": forms, "responses": responses, "asked": self._asked}
            resume["rounds"] = self._rounds
            if len(json.dumps(resume)) > MAX_STATE:
                raise self._refusal(f"it gives more than {MAX_STATE // 1024} KiB to keep until there is an answer")
            question = Question(self._label, form["message"], form["schema"], resume)
            reply = await put(question, asyncio.Event())
            responses = responses | {key: response(reply)}
            forms = {other: each for other, each in forms.items() if other != key}
        self.responses = responses

    async def _answered(self, resumed: Resumed) -> None:
        kept, reply = resumed
        self.state, self._asked, self._rounds = kept["state"], kept["asked"], kept["rounds"]
        key, *others = kept["forms"]
        await self._put({one: kept["forms"][one] for one in others}, kept["responses"] | {key: response(reply)})

    def _refusal(self, why: str) -> ToolError:
        return refused(self._label, why)


def response(reply: Reply) -> dict[str, Any]:
    return {"action": reply.action} | ({"content": reply.content or {}} if reply.action == "accept" else {})


def refused(label: str, why: str) -> ToolError:
    """The server asked what is not put to anybody."""
    return ToolError(
        "upstream_error",
        f"{label} asks for input in the middle of the call, and was refused: {why}.",
        hint="What it did before it asked is not known.",
        retryable=False,
    )


def unasked(label: str, message: str) -> ToolError:
    """The server asked, and whoever called cannot wait for a person."""
    said = f" It says: {message[:500]}" if message else ""
    return ToolError(
        "input_required",
        f"{label} asks a person for input before it does this.{said}",
        hint="Call it in a run, or as a call that may ask: the run waits for the answer.",
        details={"server": label, "message": message},
        retryable=False,
    )
