"""Calls that were under way while their server asked a person, when their host has died: made on, or not made again."""

from typing import Any

import pytest

from bridge.wire.errors import ToolError
from runtime.history import History
from runtime.revival import Past, _known
from runtime.store.interactions import InteractionRow

SENT = {"id": 1, "path": "a.org.main.b", "outcome": "sending", "side_effect": "write"}


def asked(state: str = "pending", resume: str | None = "{}", id: str = "int_1") -> InteractionRow:
    facts = (id, 7, 1, "input", "a.org.main.b", "{}", 2, "", "write", "bound", state, 0.0, 9e9)
    return InteractionRow(*facts, question="{}", resume=resume)


def known(row: InteractionRow | None, **facts: Any) -> Any:
    past = Past(None, History(), {}, {1: SENT | facts}, {} if row is None else {1: row})  # type: ignore[arg-type]
    return _known(1, past)


@pytest.mark.parametrize("state", ["pending", "approved", "denied", "dismissed", "expired"])
def test_a_call_goes_on_from_a_question_whose_answer_has_not_left(state: str):
    assert known(asked(state)) is None
    assert known(asked(state, id="int_2"), answered="int_1") is None


@pytest.mark.parametrize(
    ("row", "facts"),
    [
        (asked("approved"), {"answered": "int_1"}),
        (asked("void"), {}),
        (asked("approved", resume=None), {}),
        (asked("pending", resume=None), {}),
        (None, {}),
    ],
    ids=["its answer has left", "void", "answered, of a session", "of a session", "no question"],
)
def test_what_may_have_happened_is_not_made_again(row: InteractionRow | None, facts: dict[str, Any]):
    told = known(row, **facts)
    assert isinstance(told.answer, ToolError)
    assert (told.answer.code, told.facts["outcome"]) == ("outcome_unknown", "unknown")


def test_what_is_idempotent_is_made_again():
    assert known(asked("approved"), answered="int_1", idempotent=True) is None
