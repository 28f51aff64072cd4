"""Calls outside any run, recorded like those of one."""

from __future__ import annotations

from bridge.calls import CallRecord
from runtime.call import facts
from runtime.journal import call_row
from runtime.store.runs import NO_RUN, RunStore


class Direct:
    """The journal of a call outside any run."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._id = store.direct_number()

    async def sending(self, record: CallRecord) -> None:
        if record.side_effect != "read":
            await self._store.sending(call_row(NO_RUN, facts(self._id, record) | {"outcome": "sending"}))

    def finished(self, record: CallRecord) -> None:
        self._store.called(call_row(NO_RUN, facts(self._id, record)))
