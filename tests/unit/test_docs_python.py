"""docs/python.md says of the image what the image says of itself."""

from __future__ import annotations

from pathlib import Path

from benchmarks.python_modules import modules

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()


def test_the_page_lists_exactly_the_modules_that_can_be_imported() -> None:
    listed = PAGE.partition("<!-- modules:")[2].partition("```\n")[2].partition("```")[0].split()
    assert listed == modules()


def test_the_page_names_every_code_that_a_limit_ends_a_run_with() -> None:
    for code in ("fuel", "memory", "stack", "calls"):
        assert f"`{code}_exhausted`" in PAGE
