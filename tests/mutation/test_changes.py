"""The changes are what they say they are, and the modules and tests that they are made for are there."""

from __future__ import annotations

import pytest

from tests.mutation.changes import changes
from tests.mutation.equivalent import EQUIVALENT, Known
from tests.mutation.run import GUARDS, ROOT


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return a < b", {"return a <= b", "return None"}),
        ("return (a) in (b)", {"return (a) not in (b)", "return None"}),
        ("return a and b", {"return a or b", "return None"}),
        ("return not a", {"return (a)", "return None"}),
        ("if a: b()", {"if (False): b()", "if (True): b()"}),
        ("raise a", {"pass"}),
        ("a(True)", {"a(False)"}),
        ("a(7)", {"a(8)"}),
        ("return", set()),
        ("return None", set()),
        ("return False", {"return True"}),
        ("a('é' < b)", {"a('é' <= b)"}),
    ],
)
def test_a_decision_is_turned(body: str, expected: set[str]) -> None:
    source = f"def f(a, b):\n    {body}\n"
    assert {one.made(source) for one in changes(source)} == {f"def f(a, b):\n    {one}\n" for one in expected}


@pytest.mark.parametrize("module", GUARDS)
def test_a_guard_has_decisions_and_tests(module: str) -> None:
    assert len(changes((ROOT / module).read_text())) >= 8
    assert all((ROOT / test.partition("::")[0]).exists() for test in GUARDS[module])


@pytest.mark.parametrize("known", EQUIVALENT, ids=lambda one: f"{one.module} {one.line}")
def test_a_change_that_makes_no_difference_can_still_be_made_and_says_why(known: Known) -> None:
    source = (ROOT / known.module).read_text()
    lines = source.splitlines()
    there = [one for one in changes(source) if lines[one.line - 1].strip() == known.line]
    assert there, "the line is no more: look at what took its place"
    for text in known.changes:
        assert text in {one.text.strip() for one in there}
    assert len(known.why) > 20
