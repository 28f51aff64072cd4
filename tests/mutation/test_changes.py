"""The changes are what they say they are, and the modules and tests that they are made for are there."""

from __future__ import annotations

import pytest

from tests.mutation.changes import changes
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
        ("a('é' < b)", {"a('é' <= b)"}),
    ],
)
def test_a_decision_is_turned(body: str, expected: set[str]) -> None:
    source = f"def f(a, b):\n    {body}\n"
    assert {one.made(source) for one in changes(source)} == {f"def f(a, b):\n    {one}\n" for one in expected}


@pytest.mark.parametrize("module", GUARDS)
def test_a_guard_has_decisions_and_tests(module: str) -> None:
    assert len(changes((ROOT / module).read_text())) >= 8
    assert all((ROOT / test).exists() for test in GUARDS[module])
