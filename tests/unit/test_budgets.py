"""Budgets: what a request may ask, what it gets, what is refused."""

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.errors import ConfigError, ImportFailed, InvalidRequest, RequestRefused, RunErrorCode, ToolErrorCode
from runtime.budgets import MIB, STORED_RESULT_BYTES, TABLE, BudgetPolicy, Budgets, limit_of


def test_the_table_is_the_documented_one():
    assert {name: (row.default, row.ceiling, row.ends) for name, row in TABLE.items()} == {
        "fuel": (2 * 10**10, 10**12, "fuel_exhausted"),
        "wall_ms": (30_000, 600_000, "deadline_exceeded"),
        "memory_bytes": (64 * MIB, 512 * MIB, "memory_exhausted"),
        "bridge_calls": (256, 10_000, "calls_exhausted"),
        "bridge_calls_in_flight": (32, 256, None),
        "call_args_bytes": (MIB, 32 * MIB, None),
        "call_value_bytes": (8 * MIB, 32 * MIB, None),
        "source_bytes": (256 * 1024, 8 * MIB, None),
        "input_bytes": (MIB, 8 * MIB, None),
        "result_bytes": (MIB, 64 * MIB, "result_too_large"),
        "log_bytes": (64 * 1024, MIB, None),
    }


def test_every_budget_is_a_field_of_what_a_run_is_given():
    assert tuple(TABLE) == Budgets._fields


def test_a_run_that_asks_for_nothing_gets_the_defaults():
    budgets = BudgetPolicy().resolve(None, "typescript")
    assert budgets == Budgets(**{name: row.default for name, row in TABLE.items()})


def test_python_gets_more_memory_by_default():
    assert BudgetPolicy().resolve({}, "python").memory_bytes == 128 * MIB


@pytest.mark.parametrize("name", TABLE)
def test_a_figure_above_the_ceiling_becomes_the_ceiling(name: str):
    """BUD-29"""
    assert getattr(BudgetPolicy().resolve({name: 10**18}, "typescript"), name) == TABLE[name].ceiling


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("text", ["-1", "NaN", '"5s"', "1e309", "null", "true", "false", "1.5", "[]", "{}", "-1e309"])
def test_what_is_no_amount_is_refused_by_name(name: str, text: str):
    """BUD-29"""
    with pytest.raises(InvalidRequest, match=name):
        BudgetPolicy().resolve({name: json.loads(text)}, "typescript")


@pytest.mark.parametrize("name", ["fuel", "wall_ms", "memory_bytes", "bridge_calls_in_flight"])
def test_nothing_is_not_unlimited(name: str):
    """BUD-29"""
    with pytest.raises(InvalidRequest, match="at least 1"):
        BudgetPolicy().resolve({name: 0}, "typescript")


def test_a_whole_number_written_as_a_float_is_an_amount():
    assert BudgetPolicy().resolve({"fuel": 2e9}, "typescript").fuel == 2_000_000_000


def test_an_unknown_budget_is_refused_naming_the_known_ones():
    with pytest.raises(InvalidRequest, match="'timeout' is not a budget") as refusal:
        BudgetPolicy().resolve({"timeout": 5}, "typescript")
    assert all(name in str(refusal.value.hint) for name in TABLE)


@pytest.mark.parametrize("budgets", [[], "fuel", 5, True])
def test_budgets_that_are_no_object_are_refused(budgets: object):
    with pytest.raises(InvalidRequest, match="must be an object"):
        BudgetPolicy().resolve(budgets, "typescript")  # type: ignore[arg-type]


@given(
    asked=st.integers(1, 10**13),
    default=st.integers(1, 10**12),
    ceiling=st.integers(1, 10**12),
)
def test_the_lower_of_what_is_asked_and_allowed_wins(asked: int, default: int, ceiling: int):
    policy = BudgetPolicy({"fuel": default}, {"fuel": ceiling})
    assert policy.resolve({"fuel": asked}, "typescript").fuel == min(asked, ceiling)
    assert policy.resolve(None, "typescript").fuel == min(default, ceiling)


def test_an_operator_may_lower_a_ceiling_but_not_lift_it():
    assert BudgetPolicy(ceilings={"wall_ms": 1000}).resolve({"wall_ms": 5000}, "typescript").wall_ms == 1000
    with pytest.raises(ConfigError, match="above 600000"):
        BudgetPolicy(ceilings={"wall_ms": 600_001})


def test_a_limit_that_ended_a_run_is_named_with_what_was_used():
    budgets = BudgetPolicy().resolve({"fuel": 1000}, "typescript")
    assert limit_of("fuel_exhausted", budgets, {"fuel": 998}) == {"name": "fuel", "limit": 1000, "used": 1000}
    assert limit_of("deadline_exceeded", budgets, {"wall_ms": 30000.6}) == {
        "name": "wall_ms",
        "limit": 30_000,
        "used": 30_001,
    }
    size = STORED_RESULT_BYTES + 1
    assert limit_of("result_too_large", budgets, {"result_bytes": size}) == {
        "name": "result_bytes",
        "limit": STORED_RESULT_BYTES,
        "used": size,
    }
    assert limit_of("result_too_large", budgets, {"result_bytes": 0}) is None, "it had too many parts, or no size yet"
    assert limit_of("script_error", budgets, {}) is None


DOCS = Path(__file__).parents[2] / "docs"


def test_the_documentation_has_the_table():
    lines = (DOCS / "budgets.md").read_text().splitlines()
    for name, row in TABLE.items():
        (line,) = [line for line in lines if line.startswith(f"| `{name}` |")]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[1].split()[0] == str(row.default)
        assert (cells[2], cells[3]) == (str(row.ceiling), str(row.least))
        if row.ends:
            assert row.ends in cells[4]


def test_every_code_is_documented():
    text = (DOCS / "errors.md").read_text()
    refusals = [kind.code for kind in RequestRefused.__subclasses__()]
    for code in (*get_args(RunErrorCode), *get_args(ToolErrorCode), *refusals, ConfigError.code, ImportFailed.code):
        assert f"`{code}`" in text, code
