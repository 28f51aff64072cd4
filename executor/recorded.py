"""The runs of a home: looked at, followed, answered, cancelled, replayed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, overload

from executor.scoped import Scoped
from runtime.results import ReplayReport, RunEvent, RunPage, RunRecord, StoredResult


class Recorded(Scoped):
    """What can be done with runs that were started, by anybody and at any time."""

    async def get_run(self, run_id: str) -> RunRecord:
        """The run as it stands now. Raises NotFound."""
        self._parts.runs.begin()
        return await self._parts.runs.records.get(run_id)

    async def list_runs(
        self,
        *,
        status: str | None = None,
        label: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        principal: str | None = None,
    ) -> RunPage:
        """Runs, newest first; `label` is `key` or `key=value`, `limit` 1 to 500, `principal` whose runs they are.
        Raises InvalidRequest."""
        self._parts.runs.begin()
        return await self._parts.runs.records.list(
            status=status, label=label, limit=limit, cursor=cursor, principal=principal
        )

    def events(self, run_id: str, *, after: int = 0) -> AsyncIterator[RunEvent]:
        """The events of a run with a `seq` above `after`: those that happened, then those to come, until `result`.

        Raises NotFound at the first step of the iteration.
        """
        return self._parts.runs.records.events(run_id, after=after)

    async def wait_run(self, run_id: str, *, rest: bool = False) -> RunRecord:
        """The run's record once it has ended, however long people take; with `rest`, also once it waits for one.
        Raises NotFound."""
        return await self._parts.runs.wait(run_id, rest=rest)

    async def cancel_run(self, run_id: str) -> RunRecord:
        """Cancel a run and wait until it has ended; a run that has ended stays as it is. Raises NotFound."""
        return await self._parts.runs.cancel(run_id)

    async def resume(
        self,
        run_id: str,
        interaction: str,
        action: Literal["approve", "deny", "dismiss", "cancel"] | str = "approve",
        content: Mapping[str, Any] | None = None,
        *,
        wait: bool = True,
        principal: str = "sdk",
    ) -> RunRecord:
        """Answer an interaction of a run: `approve` or `deny` the call, or `cancel` the whole run.

        `content` may say why: the script that was denied a call reads `content.reason` in its error. An interaction of
        kind `input` is a question of an MCP server in the middle of a call: `approve` answers it with `content`, which
        must fit its form, `deny` declines, and `dismiss` leaves it without a choice. With `wait` the
        record comes when the run has ended or waits again. The same answer again gives the same outcome. `principal` is
        who answers: where a policy asks for another's approval, not the one whose run it is. Raises NotFound,
        InvalidRequest, Forbidden (`own_approval`) and Conflict: `already_decided` (differently), `approval_expired`,
        `approval_void` (the tool, its connection or the policy changed; nothing was sent, and the call is
        decided as things are now).
        """
        return await self._parts.runs.resume(run_id, interaction, action, content, principal=principal, wait=wait)

    def take_up(self) -> None:
        """Take up now what an earlier process left in the middle, if `open` allowed it. Later calls do nothing."""
        self._parts.runs.begin()

    async def replay_run(self, run_id: str) -> ReplayReport:
        """Do a run that has ended again from its journal, without a call outside, and compare calls, fuel and result.

        The report names the first step that differs. Raises NotFound, Conflict (it has not ended, or its journal is not
        whole) and Overloaded (no place, or no time).
        """
        return await self._parts.runs.replay(run_id)

    async def read_result(
        self, id: str, *, offset: int = 0, length: int | None = None, principal: str = "sdk"
    ) -> StoredResult:
        """A part of the JSON document that a handle (`res_…` of a tool's value, `run_…` of a result) stands for.

        `principal` is who reads: only whoever it was made for may. Raises NotFound.
        """
        data, total = await self._parts.runs.handles.part(principal, id, offset, length)
        return StoredResult(data, offset, total)

    @overload
    async def run_result(self, run_id: str, *, emitted: int | None = None) -> Any: ...
    @overload
    async def run_result(
        self, run_id: str, *, emitted: int | None = None, offset: int, length: int | None = None
    ) -> StoredResult: ...
    async def run_result(
        self, run_id: str, *, emitted: int | None = None, offset: int | None = None, length: int | None = None
    ) -> Any:
        """The whole result of a completed run as a Python value, inline or stored; with `emitted`, that emitted value.

        With `offset` (and `length`, bytes), a StoredResult: that slice of the value's JSON document. Raises NotFound,
        Conflict when the run has no result, InvalidRequest for a slice that is not one.
        """
        if offset is None and length is None:
            return await self._parts.runs.records.result(run_id, emitted)
        return await self._parts.runs.records.result_slice(run_id, emitted, 0 if offset is None else offset, length)
