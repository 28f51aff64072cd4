"""Checking arguments: bounded work, schemas that make no sense, patterns, and words of JSON."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bridge.toolbox import Toolbox
from bridge.wire.errors import InvalidRequest, ToolError
from catalog.validate import Check, SchemaError, checked, checker
from tests.examples import examples
from tests.unit.upstream import call, toolbox

pytestmark = pytest.mark.anyio

MANY: dict[str, Any] = {"type": "array", "items": {"anyOf": [{"type": "string"}] * 20 + [{"type": "integer"}]}}


def check_of(schema: Any, *, trusted: bool = False) -> Check:
    check = checker({"type": "object", "properties": {"q": schema}}, {}, trusted=trusted)
    assert check is not None
    return check


@pytest.mark.parametrize("trusted", [True, False])
def test_work_beyond_the_allowance_is_refused_and_not_done(trusted: bool) -> None:
    """BUD-11"""
    check = check_of(MANY, trusted=trusted)
    assert check({"q": [1] * 1_000}) is None
    assert "too much" in str(check({"q": [1] * 50_000}))


def test_the_first_misfit_ends_the_check() -> None:
    """BUD-11"""
    check = check_of({"type": "array", "items": {"anyOf": [{"type": "string"}] * 20}})
    assert check({"q": [1] * 50_000}) == "q[0]: 1 is not of type string."


def test_a_large_plain_array_is_within_the_allowance() -> None:
    assert check_of({"type": "array", "items": {"type": "string"}})({"q": ["a"] * 50_000}) is None


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_event_loop_goes_on_while_a_large_check_is_under_way(trusted: bool) -> None:
    """BUD-11"""
    check, turns, answers = check_of(MANY, trusted=trusted), 0, []

    async def large() -> None:
        answers.append(await checked(check, {"q": [1] * 20_000}))

    async with anyio.create_task_group() as group:
        group.start_soon(large)
        while not answers:
            await anyio.lowlevel.checkpoint()
            turns += 1
    assert turns > 20


async def test_a_check_that_is_cancelled_gives_up_and_the_next_one_is_made() -> None:
    """BUD-11"""
    check = check_of(MANY)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(checked, check, {"q": [1] * 100_000})
            await anyio.lowlevel.checkpoint()
            scope.cancel()
    assert scope.cancelled_caught
    assert await checked(check, {"q": [1] * 5_000}) is None


async def test_a_check_ends_at_its_deadline() -> None:
    """BUD-11"""
    answer = await checked(check_of(MANY), {"q": [1] * 100_000}, anyio.current_time() - 1)
    assert "no time" in str(answer)


async def test_a_call_with_too_much_to_check_is_refused_in_the_call() -> None:
    """BUD-11"""
    async with toolbox() as box:
        box.add_code_tool(
            "a.org.main.b",
            lambda args: pytest.fail("it was called"),
            input_schema={"type": "object", "properties": {"q": MANY}},
        )
        with pytest.raises(ToolError, match="too much") as caught:
            await call(box, "a.org.main.b", {"q": [1] * 50_000})
        assert caught.value.code == "invalid_arguments"


def test_a_pattern_of_the_operator_takes_linear_time() -> None:
    """BUD-11: an engine that goes back over the text would not return from this."""
    check = check_of({"type": "string", "pattern": "^(a+)+$"}, trusted=True)
    assert check({"q": "a" * 100_000}) is None
    assert "does not match" in str(check({"q": "a" * 100_000 + "!"}))


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "(?=a)b"},
        {"pattern": "("},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://example.com/schema"},
        {"multipleOf": 0},
        {"type": "frob"},
        {"unevaluatedProperties": False},
    ],
)
async def test_an_operators_schema_that_cannot_be_applied_is_refused_when_it_is_given(schema: Any) -> None:
    with pytest.raises(SchemaError):
        check_of(schema, trusted=True)
    async with Toolbox() as box:
        with pytest.raises(InvalidRequest, match="not a JSON Schema"):
            box.add_code_tool("a.org.main.b", lambda args: 1, input_schema={"properties": {"q": schema}})


ODD = st.sampled_from([0, -1, "x", "(", None, True, False, [], {}, [5], {"a": 5}, ["a", "a"], 1.5, {"type": "frob"}])
_KEYWORDS = (
    "type enum const required minimum maximum exclusiveMinimum multipleOf minLength maxItems pattern properties"
    " patternProperties additionalProperties propertyNames items prefixItems contains minContains uniqueItems allOf"
    " anyOf oneOf not if then else dependentRequired dependentSchemas $ref"
)
KEYWORDS = st.sampled_from(_KEYWORDS.split())
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.sampled_from(["", "a", "ab"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(KEYWORDS, ODD, max_size=4), VALUES)
def test_a_strangers_schema_that_makes_no_sense_never_fails(schema: Any, value: Any) -> None:
    check_of(schema)({"q": value})


SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [
            True,
            False,
            {},
            {"type": "string"},
            {"type": ["integer", "null"]},
            {"enum": [1, "a", [True]]},
            {"const": {"a": 1}},
            {"minimum": 1},
            {"maxLength": 1},
            {"multipleOf": 2},
            {"minItems": 2},
            {"required": ["a"]},
            {"pattern": "^a"},
            {"uniqueItems": True},
            {"dependentRequired": {"a": ["b"]}},
            {"minProperties": 1},
        ]
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)}),
        st.fixed_dictionaries({"properties": st.just({"a": True}), "additionalProperties": inner}),
        st.fixed_dictionaries({"patternProperties": st.just({"^a": True}), "additionalProperties": inner}),
        st.fixed_dictionaries({"prefixItems": st.lists(inner, min_size=1, max_size=2), "items": inner}),
        st.builds(lambda key, part: {key: part}, st.sampled_from(["items", "not", "propertyNames", "contains"]), inner),
        st.builds(
            lambda key, parts: {key: parts},
            st.sampled_from(["allOf", "anyOf", "oneOf"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.fixed_dictionaries({"if": inner, "then": inner, "else": inner}),
        st.fixed_dictionaries({"dependentSchemas": st.fixed_dictionaries({"a": inner})}),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(400))
@given(SCHEMAS, VALUES)
def test_the_check_agrees_with_another_implementation(schema: Any, value: Any) -> None:
    oracle: Any = Draft202012Validator({"properties": {"q": schema}})
    assert (check_of(schema, trusted=True)({"q": value}) is None) == oracle.is_valid({"q": value})


@pytest.mark.parametrize(
    ("value", "fits"), [(0.3, True), (0.35, False), (1e300, True), (float("inf"), False), (7, True)]
)
def test_a_multiple_is_one_by_its_decimal_digits(value: Any, fits: bool) -> None:
    assert (check_of({"multipleOf": 0.1}, trusted=True)({"q": value}) is None) is fits
    assert check_of({"multipleOf": 10**400})({"q": 1.5}) is not None


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "string"}, None, "q: null is not of type string."),
        ({"type": "string"}, True, "q: true is not of type string."),
        ({"type": ["object", "null"]}, 1.5, "q: 1.5 is not of type object or null."),
        ({"type": "string"}, {"a": 1}, "q: an object is not of type string."),
        ({"enum": ["a", None]}, "b", 'q: "b" is not one of "a", null.'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "q: 1 is not of type string or null."),
        (
            {"anyOf": [{"properties": {"a": {"type": "null"}}}, {"type": "null"}]},
            {"a": 1},
            "q.a: 1 is not of type null.",
        ),
        (
            {"oneOf": [{"properties": {"kind": {"const": "a"}}}, {"properties": {"kind": {"enum": ["b", "c"]}}}]},
            {"kind": "d"},
            'q.kind: "d" is not one of "a", "b", "c".',
        ),
        ({"minLength": 3}, "ab", 'q: "ab" is shorter than 3 characters.'),
        ({"type": "integer"}, "x" * 500, 'q: "' + "x" * 80 + '"… is not of type integer.'),
        ({"required": ["a"]}, {}, "Missing a in q."),
        ({"additionalProperties": False, "properties": {"name": {}}}, {"nme": 1}, "Unknown argument 'nme' in q."),
    ],
)
def test_a_misfit_is_told_in_words_of_json(schema: Any, value: Any, message: str) -> None:
    assert str(check_of(schema)({"q": value})).startswith(message)
