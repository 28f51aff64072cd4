"""Which values leave a Python script and come in, and what is said of those that cannot."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from python_host import echo, run, value

from tests.examples import examples

OUT: list[tuple[str, Any]] = [
    ("None", None),
    ("True", True),
    ("0", 0),
    ("-1", -1),
    ("2**53 + 1", 2**53 + 1),
    ("-(2**63)", -(2**63)),
    ("2**64 - 1", 2**64 - 1),
    ("1.0", 1.0),
    ("5e-324", 5e-324),
    ("'é𝒳\\0'", "é𝒳\0"),
    ("'a\\ud800b'", "a\ufffdb"),
    ("'\\ud83d\\ude00'", "😀"),
    ("'x' * 70000", "x" * 70000),
    ("b'\\0\\xff'", b"\0\xff"),
    ("bytearray(b'ab')", b"ab"),
    ("memoryview(b'abc')[1:]", b"bc"),
    ("[1, [2, (3, 4)]]", [1, [2, [3, 4]]]),
    ("{1, 2} - {2}", [1]),
    ("frozenset([7])", [7]),
    ("range(3)", [0, 1, 2]),
    ("{'a': 1}.values()", [1]),
    ("{'a': {'b': None}}", {"a": {"b": None}}),
    ("{1: 'i', 2.5: 'f', None: 'n', False: 'b'}", {"1": "i", "2.5": "f", "null": "n", "false": "b"}),
    ("import datetime as d\n{d.date(2020, 1, 2): 1}", {"2020-01-02": 1}),
    ("import datetime as d\nd.datetime(2020, 1, 2, 3, 4, tzinfo=d.UTC)", "2020-01-02T03:04:00+00:00"),
    ("import decimal\ndecimal.Decimal('1.10')", "1.10"),
    ("import uuid\nuuid.UUID(int=5)", "00000000-0000-0000-0000-000000000005"),
    ("import enum\nclass E(enum.Enum):\n    A = 'a'\n[E.A, {E.A: 1}]", ["a", {"a": 1}]),
    ("import enum\nclass E(enum.IntEnum):\n    A = 3\nE.A", 3),
    ("import collections\ncollections.Counter('aab')", {"a": 2, "b": 1}),
    ("import collections\ncollections.deque([1, 2])", [1, 2]),
    ("import collections\nP = collections.namedtuple('P', 'x y')\nP(1, 2)", [1, 2]),
    ("import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n    y: list\nP(1, [2])", {"x": 1, "y": [2]}),
    ("import types\ntypes.SimpleNamespace(a=1)", {"a": 1}),
    ("import types\ntypes.MappingProxyType({'a': 1})", {"a": 1}),
    ("import array\narray.array('i', [1, 2])", [1, 2]),
    ("ValueError('bad')", {"name": "ValueError", "message": "bad"}),
    ("class S(str):\n    pass\nclass L(list):\n    pass\nL([S('a')])", ["a"]),
    ("x = [1]\n[x, x]", [[1], [1]]),
]


@pytest.mark.parametrize(("source", "expected"), OUT, ids=[source[-40:] for source, _ in OUT])
def test_a_value_leaves_as_the_table_says(source: str, expected: Any) -> None:
    assert value(source) == expected


REFUSED: list[tuple[str, str, str]] = [
    ("float('nan')", "$", "NaN"),
    ("{'a': [1, float('-inf')]}", "$.a[1]", "infinite"),
    ("[2**64]", "$[0]", "64 bits"),
    ("-(2**63) - 1", "$", "64 bits"),
    ("x = [1]\nx.append({'me': x})\nx", "$[1].me", "cycle"),
    ("x = []\nfor i in range(200):\n    x = [x]\nx", "$" + "[0]" * 100, "100 levels"),
    ("{(1, 2): 3}", "$", "dict key of type tuple"),
    ("{1: 'a', '1': 'b'}", "$", "same string"),
    ("{'f': print}", "$.f", "not a value"),
    ("[object()]", "$[0]", "a dict or a dataclass"),
    ("(i for i in [1])", "$", "a list of it"),
    ("1j", "$", "complex"),
    ("[tools.a.b]", "$[0]", "call it"),
    ("async def f():\n    pass\n[f()]", "$[0]", "never awaited"),
    ("import datetime\ndatetime.timedelta(1)", "$", "timedelta"),
]


@pytest.mark.parametrize(("source", "path", "words"), REFUSED, ids=[source[-30:] for source, _, _ in REFUSED])
def test_a_value_that_cannot_cross_is_named_by_its_path(source: str, path: str, words: str) -> None:
    failure = run(source).failed
    assert (failure.code, failure.path) == ("unserializable", path)
    assert words in failure.message


@pytest.mark.parametrize(
    "source",
    [
        "x = [1]\nfor i in range(40):\n    x = [x, x]\nx",
        "[0] * 2_000_000",
        "'x' * 2_000_000",
        "{str(i): i for i in range(530_000)}",
    ],
)
def test_a_result_over_its_bytes_or_parts_is_too_large(source: str) -> None:
    assert run(source).failed.code == "result_too_large"


def test_an_exception_of_the_script_while_its_value_is_read_is_the_scripts_own() -> None:
    source = (
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n"
        "    def __getattribute__(self, n):\n        raise KeyError(n)\nP(1)"
    )
    failure = run(source).failed
    assert (failure.code, failure.name) == ("script_error", "KeyError")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(), inner, max_size=8),
    max_leaves=40,
)


def same(left: Any, right: Any) -> bool:
    """Equal in value and in kind, so that 1, 1.0 and True differ."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return bool(left == right)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_what_comes_in_goes_out_unchanged_through_input_call_and_result(given_value: Any) -> None:
    outcome = run("r = tools.a.b(x=input)\n[input, r['x']]", given_value, handler=echo)
    assert same(outcome.value, [given_value, given_value])
