"""Values at the JSON doors: bytes, numbers, what JSON cannot hold, and the cost of reading hostile ones."""

import contextlib
import json

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.errors import FrameError, InvalidRequest, Unserializable
from executor.http import answers
from runtime import values

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
values_with_bytes = st.recursive(
    json_values | st.binary(max_size=50),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(min_size=1).map("k".__add__), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(values_with_bytes)
def test_a_value_comes_back_from_its_json_form(value: object):
    there = json.loads(json.dumps(values.to_json(value)))
    assert values.from_json(there) == value


@given(values_with_bytes)
def test_counting_finds_every_part(value: object):
    def parts(part: object) -> int:
        if isinstance(part, dict):
            return 1 + sum(1 + parts(inner) for inner in part.values())
        if isinstance(part, list):
            return 1 + sum(parts(inner) for inner in part)
        return 1

    assert values.count_nodes(msgpack.packb(value), 10_000) == parts(value)


@given(st.binary(max_size=200))
def test_counting_hostile_bytes_ends_in_a_number_or_a_frame_error(data: bytes):
    with contextlib.suppress(FrameError):
        assert 1 <= values.count_nodes(data, 1000) <= 1000


def test_a_json_form_shares_what_holds_no_bytes():
    value = {"rows": [[1, 2], [3, 4]]}
    assert values.to_json(value) is value
    assert values.from_json(value) is value


def test_bytes_that_are_not_base64_are_refused_by_path():
    with pytest.raises(InvalidRequest, match=r"\$\.rows\.1\.\$bytes is not base64"):
        values.from_json({"rows": [1, {"$bytes": "not base64!"}]})


def test_an_object_that_only_looks_like_bytes_stays_an_object():
    value = {"$bytes": "aGk=", "more": 1}
    assert values.from_json(value) == value


def test_json_nested_beyond_what_can_cross_is_refused():
    value: object = 1
    for _ in range(500):
        value = [value]
    with pytest.raises(InvalidRequest, match="nested deeper"):
        values.from_json(value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: [n], lambda n: {"a": {"b": [n]}}])
def test_a_number_that_json_lacks_is_named(number: float, wrap):
    with pytest.raises(Unserializable, match="not a JSON number"):
        values.vetted(msgpack.packb(wrap(number)))


def test_the_path_of_what_cannot_be_json_is_given():
    with pytest.raises(Unserializable) as refusal:
        values.vetted(msgpack.packb({"rows": [{"at": float("nan")}]}))
    assert refusal.value.path == "$.rows[0].at"


def test_bytes_are_a_value_that_json_can_hold():
    assert values.vetted(msgpack.packb({"a": b"hi"})) == {"a": b"hi"}


def test_a_small_message_that_unfolds_into_many_parts_is_refused_before_it_is_built():
    """BUD-17"""
    empty_lists = bytes([0xDD]) + (2_000_000).to_bytes(4, "big") + b"\x90" * 2_000_000
    with pytest.raises(values.TooManyNodes):
        values.decode(empty_lists)


def test_a_length_that_lies_costs_nothing():
    with pytest.raises(values.TooManyNodes):
        values.count_nodes(bytes([0xDD]) + (2**32 - 1).to_bytes(4, "big"), 1000)
    with pytest.raises(FrameError):
        values.count_nodes(bytes([0xC6]) + (2**32 - 1).to_bytes(4, "big"), 1000)


@given(json_values)
def test_a_document_is_the_json_of_the_value(value: object):
    assert json.loads(values.document(value)) == value


def test_bytes_are_written_where_they_stand():
    value = {"a": [b"hi", 1, {"b": b""}], "c": "x"}
    said = {"a": [{"$bytes": "aGk="}, 1, {"b": {"$bytes": ""}}], "c": "x"}
    assert values.to_json(value) == said
    assert json.loads(values.document(value)) == said
    assert json.loads(answers.encode(value)) == said
    assert values.from_json(said) == value
    assert list(values.to_json({"z": 1, "a": b"", "b": 2})) == ["z", "a", "b"]


def test_what_is_no_value_is_not_written():
    for write in (values.to_json, values.document, answers.encode):
        with pytest.raises(Unserializable):
            write([object()])
