"""Which text of a Python script is tried, and which error is told, with the interpreter's answers made up."""

from __future__ import annotations

import pytest

from bridge.wire.frames import Failure
from runtime.worker.python import PythonReading

EXAMPLE = "\n```python\nexample()\n```\n"


def texts(text: str) -> list[str]:
    """The texts that are tried when none compiles."""
    reading = PythonReading(text)
    seen: list[str] = []
    attempt = reading.first()
    while attempt is not None:
        seen.append(attempt.text)
        attempt = reading.refused(Failure("syntax_error", "SyntaxError", f"number {len(seen)}", 1, 1, None, None))
    return seen


def told(text: str) -> str:
    """The error when none compiles, by the number of its attempt."""
    reading = PythonReading(text)
    attempt, number = reading.first(), 0
    while attempt is not None:
        number += 1
        attempt = reading.refused(Failure("syntax_error", "SyntaxError", f"number {number}", 1, 1, None, None))
    return reading.failure().message


@pytest.mark.parametrize(
    "script",
    [
        f"# it is a \"\"\" comment\ns = '''{EXAMPLE}'''\nlen(s)",
        f'import os\n# a """ of three\ns = """{EXAMPLE}"""',
        f'def f():\n    """{EXAMPLE}"""\nf()',
        f"s = 'it is \"\"\"'\nt = '''{EXAMPLE}'''",
    ],
)
def test_a_script_is_tried_as_it_stands_before_a_fence_in_its_strings(script: str) -> None:
    assert texts(script)[0] == script


def test_a_script_with_a_mistake_never_runs_the_example_in_its_docstring() -> None:
    script = f'def f(x):\n    """{EXAMPLE}"""\n    return 1 +\n'
    assert texts(script) == [script]


def test_fences_below_a_heading_or_a_word_run_and_their_error_is_told() -> None:
    for head in ("# Solution", "python"):
        sent = head + EXAMPLE
        assert texts(sent) == [sent, "\n\nexample()\n"]
        assert told(sent) == "number 2"


def test_a_fence_that_comes_first_or_below_prose_is_tried_alone() -> None:
    for head in ("", "Here is the script:\n"):
        assert [text.strip() for text in texts(head + EXAMPLE)] == ["example()"]


def test_the_head_of_a_block_that_lost_its_indent_is_never_left_out() -> None:
    assert texts("if False:\nprint('ran')") == ["if False:\nprint('ran')"]
    assert told("Here is the script:\nprint(1") == "number 1"
