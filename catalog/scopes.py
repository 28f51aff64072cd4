"""How what the scopes say becomes one, from the outer to the inner: a setting is the innermost scope's that has it, a
limit is the lowest of all. (What is visible is the union of all scopes; of their rules the strictest holds.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def innermost(said: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Of each setting, the innermost that there is."""
    return {name: value for one in said for name, value in one.items()}


def lowest(said: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Of each limit, the lowest that there is: an inner scope lowers what an outer one allows, and never lifts it."""
    names = {name for one in said for name in one}
    return {name: min(one[name] for one in said if name in one) for name in names}
