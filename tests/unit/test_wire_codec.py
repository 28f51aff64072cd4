"""The codec: what it carries exactly, and what it refuses however it is dressed up."""

import contextlib
import math
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import codec
from bridge.wire.errors import FrameError, Unserializable

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(codec.INT_MIN, codec.INT_MAX)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=40,
)


def same(a: Any, b: Any) -> bool:
    """Equality that tells 1 from 1.0 and True, and 0.0 from -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return bool(a == b)


@given(VALUES)
def test_every_value_comes_back_exactly_as_it_went(value: Any) -> None:
    assert same(codec.decode(codec.encode(value)), value)


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused_with_a_frame_error(data: bytes) -> None:
    with contextlib.suppress(FrameError):
        codec.decode(data)


def test_a_refusal_repeats_none_of_the_bytes() -> None:
    """MSG-13."""
    with pytest.raises(FrameError) as refused:
        codec.decode(b"\xa6cnry_\xff")
    assert "cnry" not in refused.value.message


@pytest.mark.parametrize(
    ("threat", "data"),
    [
        ("MSG-02", b"\x81\xa1a" * 100_000),
        ("MSG-03", b"\xdd\xff\xff\xff\xff"),
        ("MSG-03", b"\xdf\xff\xff\xff\xff"),
        ("MSG-04", b"\xdd\x05\xf5\xe1\x00" + b"\xc0" * 1_000),
        ("MSG-05", b"\xdb\xff\xff\xff\xffabc"),
        ("MSG-05", b"\xc6\xff\xff\xff\xffabc"),
        ("MSG-05", b"\xc9\xff\xff\xff\xff\x01abc"),
        ("MSG-08", b"\xc1"),
        ("MSG-11", b"\x82\xa1a\x01\xa1a\x02"),
        ("MSG-12 int", b"\x81\x01\x02"),
        ("MSG-12 nil", b"\x81\xc0\x02"),
        ("MSG-12 nan", b"\x81\xcb" + struct.pack(">d", math.nan) + b"\x02"),
        ("MSG-12 bin", b"\x81\xc4\x01a\x02"),
        ("MSG-12 array", b"\x81\x90\x02"),
        ("MSG-12 map", b"\x81\x80\x02"),
        ("MSG-12 ext", b"\x81\xd4\x01a\x02"),
        ("MSG-13 lone byte", b"\xa1\xff"),
        ("MSG-13 overlong", b"\xa2\xc0\xaf"),
        ("MSG-13 surrogate", b"\xa3\xed\xa0\x80"),
        ("MSG-13 cut", b"\xa3\xf0\x9f\x98"),
        ("MSG-17 unknown", b"\xd4\x05\x00"),
        ("MSG-17 timestamp", b"\xd6\xff\x00\x00\x00\x00"),
        ("MSG-17 short timestamp", b"\xc7\x03\xff\x00\x00\x00"),
        ("MSG-17 timestamp 96", b"\xc7\x0c\xff" + b"\xff" * 12),
        ("trailing bytes", b"\x01\x01"),
        ("no bytes", b""),
    ],
)
def test_hostile_bytes_are_refused(threat: str, data: bytes) -> None:
    with pytest.raises(FrameError):
        codec.decode(data)


def test_a_length_that_lies_allocates_nothing() -> None:
    """MSG-03, MSG-04, MSG-05."""
    tracemalloc.start()
    try:
        for lie in (b"\xdd\xff\xff\xff\xff", b"\xdf\x05\xf5\xe1\x00", b"\xdb\x7f\xff\xff\xff"):
            with pytest.raises(FrameError):
                codec.decode(lie + b"\xc0" * 100)
        assert tracemalloc.get_traced_memory()[1] < 256 * 1024
    finally:
        tracemalloc.stop()


def test_keys_that_only_look_alike_stay_distinct() -> None:
    """MSG-11."""
    keys = ["é", "e\u0301", "a", "A", "a\0", "a\u200b"]
    assert list(codec.decode(msgpack.packb(dict.fromkeys(keys, 1)))) == keys


def test_integers_beyond_53_bits_stay_exact() -> None:
    """MSG-16."""
    for number in (2**53 + 1, 2**63, 2**64 - 1, -(2**63)):
        assert codec.decode(codec.encode(number)) == number
    assert codec.decode(b"\xcf" + (1).to_bytes(8, "big")) == 1


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"rows": [1, {"at": {1, 2}}]}, "$.rows[1].at"),
        ([2**64], "$[0]"),
        ({"a": {2: 1}}, "$.a"),
        (["\ud800"], "$[0]"),
        ({"t": (1, object())}, "$.t[1]"),
    ],
)
def test_what_cannot_cross_is_named_by_its_path(value: Any, path: str) -> None:
    with pytest.raises(Unserializable) as refused:
        codec.encode(value)
    assert refused.value.path == path


def test_nesting_beyond_the_limit_is_refused_not_recursed() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(Unserializable, match="nested deeper"):
        codec.encode(value)


def test_numbers_that_json_lacks_are_refused_at_the_json_doors() -> None:
    """MSG-15."""
    with pytest.raises(Unserializable) as refused:
        codec.check({"mean": math.nan}, json=True)
    assert refused.value.path == "$.mean"
    codec.check({"mean": math.nan})


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"k": inner}, lambda inner: ("x", inner)])
@pytest.mark.parametrize("measured", [True, False], ids=["with its bytes", "without"])
def test_depth_is_counted_whatever_the_value_is_made_of(wrap: Callable[[Any], Any], measured: bool) -> None:
    value: Any = 1
    for depth in range(1, codec.VALUE_DEPTH + 3):
        value = wrap(value)
        data = msgpack.packb(value) if measured else None
        assert codec.too_deep(value, data) == (depth > codec.VALUE_DEPTH), depth


def test_a_wide_value_is_not_deep() -> None:
    value = [[{"a": [1]}, {}, "x" * 300]] * 300
    assert not codec.too_deep(value, msgpack.packb(value))
    assert not codec.too_deep("x")


def test_a_value_that_says_it_was_parsed_is_still_looked_at_where_it_cannot_be_written() -> None:
    with pytest.raises(Unserializable, match="a"):
        codec.encode({"a": 2**70}, parsed=True)
    with pytest.raises(Unserializable):
        codec.encode([object()], parsed=True)


@pytest.mark.parametrize("levels", [0, 1, codec.VALUE_DEPTH, codec.VALUE_DEPTH + 1, codec.VALUE_DEPTH + 40])
def test_depth_is_the_same_however_it_is_counted(levels: int) -> None:
    value: Any = 1
    for level in range(levels):
        value = [value, 2] if level % 2 else {"a": value, "b": [[]]} if level else [value]
    deep = levels > codec.VALUE_DEPTH
    assert codec.too_deep(value) is deep
    assert codec.too_deep(value, parsed=True) is deep
    if levels <= codec.MAX_DEPTH:
        assert codec.too_deep(value, codec.encode(value)) is deep


def test_a_part_that_stands_in_many_places_is_looked_at_once() -> None:
    """Looked at in each of its places, this would not return."""
    value: Any = [1]
    for _ in range(60):
        value = [value, value]
    assert not codec.too_deep(value)
    for _ in range(60):
        value = {"a": value, "b": value}
    assert codec.too_deep(value)


@pytest.mark.parametrize("levels", [codec.MAX_DEPTH, codec.MAX_DEPTH + 1])
def test_what_is_nested_to_the_limit_exactly_is_written(levels: int) -> None:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    if levels > codec.MAX_DEPTH:
        with pytest.raises(Unserializable, match="deeper"):
            codec.encode(value)
    else:
        assert codec.encode(value) == b"\x91" * levels + b"\x01"


@pytest.mark.parametrize("head", [b"\xc7\x00", b"\xc8\x00\x00", b"\xc9\x00\x00\x00\x00"])
@pytest.mark.parametrize("kind", [0, 1, 127, 128, 255])
def test_an_ext_without_a_byte_is_refused_as_well(head: bytes, kind: int) -> None:
    for data in (head + bytes([kind]), b"\x91" + head + bytes([kind]), b"\x81\xa1a" + head + bytes([kind])):
        with pytest.raises(FrameError):
            codec.decode(data)
