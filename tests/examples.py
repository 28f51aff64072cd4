"""How many examples a property is tried on: fewer and always the same ones by default, all of them with `--long`."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

USUAL: Final = 100
"""Of the long form, where a test says nothing else."""

settings.register_profile("quick", max_examples=USUAL * 2 // 5, derandomize=True, database=None, deadline=None)
settings.register_profile("long", max_examples=USUAL, deadline=None)


def examples(number: int) -> int:
    """As many of `number` as the profile in force has of the usual ones."""
    return max(1, number * settings().max_examples // USUAL)
