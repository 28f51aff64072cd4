"""The rules by which scopes are merged, from the outer one to the inner one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from catalog.scopes import innermost, lowest
from executor import Config

SAID = st.lists(st.dictionaries(st.sampled_from(["fuel", "wall_ms", "log_bytes"]), st.integers(1, 99)), max_size=3)


@given(SAID)
def test_a_setting_is_the_innermost_that_says_it_and_a_limit_the_lowest(said: list[dict[str, int]]) -> None:
    for name in ("fuel", "wall_ms", "log_bytes"):
        values = [one[name] for one in said if name in one]
        assert innermost(said).get(name) == (values[-1] if values else None)
        assert lowest(said).get(name) == (min(values) if values else None)


def test_the_inner_scope_chooses_a_default_and_can_only_lower_a_ceiling() -> None:
    environ = {
        "EXECUTOR_BUDGETS_WALL_MS": "1000",
        "EXECUTOR_USER_BUDGETS_WALL_MS": "9000",
        "EXECUTOR_CEILINGS_WALL_MS": "8000",
        "EXECUTOR_USER_CEILINGS_WALL_MS": "20000",
        "EXECUTOR_USER_CEILINGS_FUEL": "5000",
    }
    policy = Config.load(environ=environ).budget_policy()
    assert (policy.default("wall_ms", "typescript"), policy.ceiling("wall_ms")) == (8000, 8000)
    assert policy.ceiling("fuel") == 5000
    assert policy.resolve({"wall_ms": 60_000}, "typescript").wall_ms == 8000
