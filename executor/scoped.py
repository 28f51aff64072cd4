"""What may be done with the tools: everything, or what a scope has left of it. A scope is made from another one, and
only ever narrows it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from bridge.wire.errors import InvalidRequest, ToolError
from executor.asked import one_call, settled
from runtime.budgets import TABLE, amount
from runtime.results import RunResult

if TYPE_CHECKING:
    from bridge.calls import Door
    from bridge.view import Narrowing
    from executor.composition import Parts

Language = Literal["typescript", "javascript", "python"]
Isolation = Literal["shared", "run"]


class Scoped:
    """Runs, calls and finds tools within its narrowings. Made by `scope`; an Executor is one without any."""

    def __init__(
        self, parts: Parts, narrowings: tuple[Narrowing, ...] = (), ceilings: Mapping[str, int] | None = None
    ) -> None:
        self._parts = parts
        self._narrowings = narrowings
        self._ceilings = dict(ceilings or {})

    def scope(
        self,
        *,
        toolkit: str | None = None,
        tools: Sequence[str] | None = None,
        scopes: Sequence[str] | None = None,
        budgets: Mapping[str, int] | None = None,
        policies: Mapping[str, str] | Iterable[Sequence[str]] = (),
    ) -> Scoped:
        """The same with less: what this allows *and* what is said here allows.

        `tools` are patterns over paths of tools, `scopes` those of `org` and `user` whose connections are left,
        `budgets` ceilings for its runs, `policies` patterns over paths with `require_approval` or `block`. A toolkit is
        looked up each time it is used: what is changed in it counts at once. Raises InvalidRequest for what is none of
        these, and for an effect that would loosen.
        """
        from bridge.view import narrowing

        made = narrowing(toolkit=toolkit, tools=tools, rules=policies, scopes=scopes)
        narrowings = (*self._narrowings, made) if made.as_dict() else self._narrowings
        self._parts.toolbox.toolkits.view(None, narrowings)
        return Scoped(self._parts, narrowings, _lower(self._ceilings, budgets or {}))

    async def run(
        self,
        code: str,
        *,
        language: Language | str | None = None,
        input: Any = None,
        budgets: Mapping[str, Any] | None = None,
        toolkit: str | None = None,
        labels: Mapping[str, str] | Sequence[str] | None = None,
        wait: bool = True,
        isolation: Isolation | str | None = None,
        principal: str = "sdk",
        idempotency_key: str | None = None,
    ) -> RunResult:
        """Run a script. A script that fails is an answer (`status="failed"`), not an exception.

        `language` is `typescript` (the default; plain JavaScript runs as it is), `javascript` or `python`. `input` is
        JSON data or bytes. `toolkit` leaves the tools of that toolkit. With `wait=False` the answer comes as soon as
        the run's record is durable, with status `queued`. The same `idempotency_key` with the same request gives the
        run that exists already. Cancelling the task that waits here cancels the run. A run that can only go on with a
        person's answer is an answer too, with status `waiting` and its `interactions`: see `Executor.resume`.

        Raises InvalidRequest (a toolkit that there is not, too), PayloadTooLarge (source or input over its budget),
        Conflict (the idempotency key was used for another request), Overloaded (no place and the queue is full) and
        StorageFull; in each case nothing ran.
        """
        return await self._parts.runs.run(
            code,
            language=language,
            input=input,
            budgets=budgets,
            ceilings=self._ceilings,
            toolkit=toolkit,
            narrowings=self._narrowings,
            labels=labels,
            wait=wait,
            isolation=isolation,
            principal=principal,
            idempotency_key=idempotency_key,
        )

    async def call(
        self,
        path: str,
        args: Any = None,
        *,
        meta: bool = False,
        principal: str = "sdk",
        door: Door = "sdk",
        toolkit: str | None = None,
    ) -> Any:
        """Call one tool; with `meta`, `{"value", "http"}`. Raises ToolError, the same that a script sees.

        `args` is an object (None: an empty one). Cancelling the waiting task cancels the call.
        """
        return await self._parts.runs.call(
            path,
            args,
            meta=meta,
            principal=principal,
            door=door,
            toolkit=toolkit,
            narrowings=self._narrowings,
        )

    async def ask(
        self,
        path: str,
        args: Mapping[str, Any] | None = None,
        *,
        meta: bool = False,
        principal: str = "sdk",
        toolkit: str | None = None,
    ) -> RunResult:
        """Call one tool in a run of its own, which waits where a person must allow the call: its `result` is what
        `call` gives, and it is answered like every other. Raises as `run` does."""
        return await self.run(**one_call(path, args, meta=meta), principal=principal, toolkit=toolkit)

    def may_ask(self, path: str) -> bool:
        """Whether the server of the tool may ask a person something in the middle of a call: see `ask`."""
        return self._parts.runs.may_ask(path)

    async def call_or_ask(
        self,
        path: str,
        args: Mapping[str, Any] | None = None,
        *,
        meta: bool = False,
        principal: str = "sdk",
        door: Door = "sdk",
        toolkit: str | None = None,
    ) -> Any:
        """What `call` gives where nobody needs to be asked; else the RunResult of `ask`, whose run waits or did not
        come to a value. Raises ToolError as `call` does, and as `run` does."""
        if not self._parts.runs.may_ask(path):
            try:
                return await self.call(path, args, meta=meta, principal=principal, door=door, toolkit=toolkit)
            except ToolError as e:
                if e.code != "approval_required":
                    raise
                # Nothing was sent.
        return settled(await self.ask(path, args, meta=meta, principal=principal, toolkit=toolkit))

    async def paginate(
        self,
        path: str,
        args: dict[str, Any] | None = None,
        *,
        limit: int | None = None,
        pages: int | None = None,
        items: str | None = None,
        principal: str = "sdk",
    ) -> AsyncIterator[Any]:
        """The items of a list that comes in pages, each page a call of the tool: at most `limit` items of at most
        `pages` pages. `items` is where in an answer the list stands, such as `data.rows`. Raises ToolError."""
        asked: dict[str, Any] | None = args or {}
        while asked is not None and pages != 0 and limit != 0:
            page = await self.call("$page", {"path": path, "args": asked, "items": items}, principal=principal)
            for item in page["items"][:limit]:
                yield item
            limit = None if limit is None else max(0, limit - len(page["items"]))
            asked, pages = page["next"], None if pages is None else pages - 1

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        cursor: str | None = None,
        integration: str | None = None,
        toolkit: str | None = None,
    ) -> dict[str, Any]:
        """Ranked tools, the same answer that `tools.search` gives a script: `{"items", "total", "next"}`."""
        await self._parts.toolbox.ready_to_search()
        return self._parts.toolbox.search(
            query,
            limit=limit,
            cursor=cursor,
            integration=integration,
            toolkit=toolkit,
            narrowings=self._narrowings,
        )

    async def describe(self, path: str, *, schemas: bool = False, toolkit: str | None = None) -> dict[str, Any]:
        """Signature and docs of one tool, as in a script. Raises ToolError(tool_not_found) with suggestions."""
        return self._parts.toolbox.describe(path, schemas=schemas, toolkit=toolkit, narrowings=self._narrowings)

    async def tools(
        self,
        *,
        integration: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        toolkit: str | None = None,
    ) -> dict[str, Any]:
        """The tools that a caller may see, by path: `{"items", "total", "next"}`."""
        return self._parts.toolbox.list_tools(
            integration=integration,
            limit=limit,
            cursor=cursor,
            toolkit=toolkit,
            narrowings=self._narrowings,
        )

    async def integrations(self, *, toolkit: str | None = None) -> list[str]:
        """The names of the integrations that have a tool here."""
        return self._parts.toolbox.seen_integrations(toolkit=toolkit, narrowings=self._narrowings)

    async def explain(self, path: str, *, toolkit: str | None = None) -> dict[str, Any]:
        """Why a call of the tool is approved, needs a person, or is blocked: `{effect, rule, reason, steps, applying}`.
        Raises ToolError(tool_not_found)."""
        return self._parts.toolbox.explain(path, toolkit=toolkit, narrowings=self._narrowings)


def _lower(ceilings: Mapping[str, int], budgets: Mapping[str, Any]) -> dict[str, int]:
    lowered = dict(ceilings)
    for name, value in budgets.items():
        if name not in TABLE:
            raise InvalidRequest(f"{str(name)[:64]!r} is not a budget", hint=f"budgets are {', '.join(TABLE)}")
        try:
            figure = amount(name, value, least=TABLE[name].least)
        except ValueError as e:
            raise InvalidRequest(str(e)) from None
        lowered[name] = min(figure, lowered.get(name, figure))
    return lowered
