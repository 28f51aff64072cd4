"""The executor as the key of a request may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from executor.executor import Executor
    from executor.http.operation import Call
    from executor.scoped import Scoped


def within(executor: Executor, call: Call) -> Scoped:
    """Narrowed to the toolkit that the key is tied to. Raises InvalidRequest when that is gone."""
    return executor if call.access.toolkit is None else executor.scope(toolkit=call.access.toolkit)
