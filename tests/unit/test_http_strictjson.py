"""Strict JSON against the standard library's reader as the oracle for everything that is allowed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.errors import PayloadTooLarge
from executor.http.strictjson import _PIECE, MAX_DEPTH, NotJson, loads

_INTEGERS = st.integers(-(2**63), 2**64 - 1)
_TEXT = st.text(st.characters(exclude_categories=("Cs",)))
_VALUES = st.recursive(
    st.none() | st.booleans() | _INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner),
)


@given(_VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_whatever_json_can_hold_is_read_as_it_is(value: object, ascii_only: bool, indent: int | None) -> None:
    """HTTP-02"""
    assert loads(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_as_the_standard_library_does_or_refused(data: bytes) -> None:
    """HTTP-02"""
    try:
        value = loads(data)
    except NotJson:
        return
    assert json.loads(data) == value


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1])
@pytest.mark.parametrize(("start", "end"), [("[", "]"), ('{"[": ', "}"), ('[{"}": ', "}]")])
def test_depth_is_counted_outside_of_strings(depth: int, start: str, end: str) -> None:
    """HTTP-02"""
    times = depth // len(start.replace('"}": ', "").replace('"[": ', ""))
    document = (start * times + "1" + end * times).encode()
    deep = times * start.replace('"}": ', "").replace('"[": ', "").count("[") + times * start.count("{")
    if deep > MAX_DEPTH:
        with pytest.raises(NotJson, match="deeper"):
            loads(document)
    else:
        assert loads(document) == json.loads(document)


def test_brackets_in_a_string_are_text() -> None:
    text = '[{"' * 5000
    assert loads(json.dumps([text, "\\", '"']).encode()) == [text, "\\", '"']


def test_values_are_counted_before_they_are_made() -> None:
    """HTTP-03"""
    with pytest.raises(PayloadTooLarge):
        loads(b"[" + b"1," * 100 + b"1]", max_nodes=50)
    with pytest.raises(PayloadTooLarge):
        loads(b"[" * 200_000, max_nodes=50)
    assert loads(b'["' + b"," * 100 + b'"]', max_nodes=50) == ["," * 100]


@pytest.mark.parametrize(
    "number", ["1e308", "-1e308", "18446744073709551615", "-9223372036854775808", "1e-999", "-0.0"]
)
def test_a_number_within_range_is_kept(number: str) -> None:
    assert loads(number.encode()) == json.loads(number)


@pytest.mark.parametrize(
    "number", ["1e309", "-1e309", "1E+400", "18446744073709551616", "-9223372036854775809", "9" * 5000]
)
def test_a_number_out_of_range_is_refused(number: str) -> None:
    """HTTP-02"""
    with pytest.raises(NotJson):
        loads(f'{{"n": [{number}]}}'.encode())


def test_a_surrogate_pair_is_a_character_and_half_of_one_is_refused() -> None:
    """HTTP-02"""
    assert loads(b'"\\ud83d\\ude00"') == "\U0001f600"
    for half in (b'"\\ud83d"', b'"\\ude00"', b'{"\\uDBFF": 1}'):
        with pytest.raises(NotJson, match="surrogate"):
            loads(half)


@pytest.mark.parametrize("text", [b'{"a": 1, "a": 1}', b'[{"x": {"b": 1, "c": 2, "b": 3}}]', b'{"\\u0061": 1, "a": 2}'])
def test_a_key_that_repeats_is_refused_however_it_is_spelt(text: bytes) -> None:
    """HTTP-02"""
    with pytest.raises(NotJson, match="twice"):
        loads(text)


def test_the_key_that_repeats_is_the_one_that_is_named() -> None:
    with pytest.raises(NotJson, match="'b'"):
        loads(b'{"a": 1, "b": 1, "c": 1, "b": 2, "d": 1}')


@pytest.mark.parametrize("values", [50, 51])
@pytest.mark.parametrize("shape", [b"[%s]", b"[[%s]]", b'{"k": [%s]}'])
def test_values_are_counted_exactly_and_not_within_strings(values: int, shape: bytes) -> None:
    """HTTP-03"""
    commas = values - shape.count(b"[") - shape.count(b"{")
    body = shape % b",".join([b'"[{,"'] * (commas + 1))
    if values > 50:
        with pytest.raises(PayloadTooLarge) as caught:
            loads(body, max_nodes=50)
        assert caught.value.details == {"limit": 50}
    else:
        assert loads(body, max_nodes=50) == json.loads(body)


@pytest.mark.parametrize(
    "text", [b"", b" \t\r\n", b"\xff", b'"\xc3"', b"NaN", b"[Infinity]", b"-Infinity", b"{", b"1 2"]
)
def test_what_is_no_json_says_so(text: bytes) -> None:
    """HTTP-02"""
    with pytest.raises(NotJson) as caught:
        loads(text)
    assert str(caught.value)


@pytest.mark.parametrize("before", [3, 2, 1, 0])
@pytest.mark.parametrize("number", ["-9999999999999999999", "1e999"])
def test_a_number_out_of_range_is_found_wherever_it_stands(before: int, number: str) -> None:
    """HTTP-02"""
    text = '["' + "x" * (_PIECE - before - len('["",-')) + f'",{number}]'
    with pytest.raises(NotJson, match=r"range|64 bits"):
        loads(text.encode())
