# ruff: noqa: E501 (a row of a table is read across)
"""The table of docs/values.md, in both directions, against the wire's own codec."""

from __future__ import annotations

import math
from typing import Any

import pytest
from guest_host import Isolate, run, value
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.wire import codec
from tests.examples import examples

OUT: list[tuple[str, Any]] = [
    ("undefined", None),
    ("null", None),
    ("[undefined, 1]", [None, 1]),
    ("({a: undefined, b: 1})", {"b": 1}),
    ("[1,,2]", [1, None, 2]),
    ("true", True),
    ("2 ** 31", 2**31),
    ("-(2 ** 53)", -(2**53)),
    ("1.5", 1.5),
    ("5e-324", 5e-324),
    ("2 ** 53 + 2", float(2**53 + 2)),
    ("1e308", 1e308),
    ("(2n ** 64n) - 1n", 2**64 - 1),
    ("-(2n ** 63n)", -(2**63)),
    ("9007199254740993n", 9007199254740993),
    ("0n", 0),
    ("-1n", -1),
    ("4294967296n", 2**32),
    ("'é𝒳\\0'", "é𝒳\0"),
    ("'a\\ud800b'", "a\ufffdb"),
    ("'\\udc00'", "\ufffd"),
    ("'\\u00ff'.repeat(300)", "ÿ" * 300),
    ("'日'.repeat(300)", "日" * 300),
    ("'x'.repeat(70000)", "x" * 70000),
    ("let s = ''; for (let i = 0; i < 5000; i++) s += 'ab'; s", "ab" * 5000),
    ("new Date(1e12)", "2001-09-09T01:46:40.000Z"),
    ("new Date(Date.UTC(-1, 0))", "-000001-01-01T00:00:00.000Z"),
    ("new Date(Date.UTC(12345, 5))", "+012345-06-01T00:00:00.000Z"),
    ("new Uint8Array([1, 2, 255])", b"\x01\x02\xff"),
    ("new Uint8Array([1, 2, 3, 4]).subarray(1, 3)", b"\x02\x03"),
    ("new Uint8ClampedArray([300])", b"\xff"),
    ("new Uint8Array([7, 8]).buffer", b"\x07\x08"),
    ("new DataView(new Uint8Array([7, 8, 9]).buffer, 1)", b"\x08\x09"),
    ("new Int16Array([-1, 5])", [-1, 5]),
    ("new Float64Array([0.5, 2])", [0.5, 2]),
    ("new BigInt64Array([-5n])", [-5]),
    ("new Map([['a', 1], ['b', new Map()]])", {"a": 1, "b": {}}),
    ("new Set([1, 'x', [2]])", [1, "x", [2]]),
    ("new Set()", []),
    ("new TypeError('no')", {"name": "TypeError", "message": "no"}),
    ("Object.assign(new Error('no'), {code: 'E', cause: 1})", {"name": "Error", "message": "no", "code": "E", "cause": 1}),
    ("new Error('no', { cause: new TypeError('why', { cause: [1] }) })",
     {"name": "Error", "message": "no", "cause": {"name": "TypeError", "message": "why", "cause": [1]}}),
    ("new AggregateError([new Error('one'), 2], 'all')",
     {"name": "AggregateError", "message": "all", "errors": [{"name": "Error", "message": "one"}, 2]}),
    ("Object.defineProperty(new Error('no'), 'cause', { get() { throw 1 } })", {"name": "Error", "message": "no"}),
    ("new URLSearchParams({ a: 'x y', b: 2 })", "a=x+y&b=2"),
    ("class Empty {} new Empty()", {}),
    ("class Partly { #hidden = 1; shown = 2 } new Partly()", {"shown": 2}),
    ("class Told { #hidden = 1; toJSON() { return this.#hidden } } new Told()", 1),
    ("({ '\\ud800': 1, b: { '\\udfff': 2 } })", {"\ufffd": 1, "b": {"\ufffd": 2}}),
    ("({ '\\ufffd': 1, 'x\\ufffd': 2 })", {"\ufffd": 1, "x\ufffd": 2}),
    ("const key = () => ({ toJSON(k) { return typeof k + k } }); ({ a: key(), b: [key()], m: new Map([['q', key()]]), s: new Set([key()]) })",
     {"a": "stringa", "b": ["string0"], "m": {"q": "stringq"}, "s": ["string0"]}),
    ("({ toJSON(k) { return [k] } })", [""]),
    ("new DOMException('gone', 'AbortError')", {"name": "AbortError", "message": "gone"}),
    ("({toJSON() { return [1] }})", [1]),
    ("({toJSON() { return undefined }})", None),
    ("[{toJSON: () => ({toJSON: () => 3})}]", [3]),
    ("class P { x = 1; #y = 2; get z() { return 3 } } new P()", {"x": 1}),
    ("({get a() { return 4 }})", {"a": 4}),
    ("Object.create({inherited: 1}, {own: {value: 2, enumerable: true}, hidden: {value: 3}})", {"own": 2}),
    ("({[Symbol('s')]: 1, k: 2})", {"k": 2}),
    ("new URL('http://a.b/c?d')", "http://a.b/c?d"),
    ("[new Number(3), new String('s'), new Boolean(false), Object(4n)]", [3, "s", False, 4]),
    ("({__proto__: null, a: 1})", {"a": 1}),
    ("JSON.parse('{\"__proto__\": 1, \"constructor\": 2, \"toJSON\": 3, \"then\": 4}')",
     {"__proto__": 1, "constructor": 2, "toJSON": 3, "then": 4}),
    ("(function () { return arguments })(1, 2)", {"0": 1, "1": 2}),
    ("new Proxy([1, 2], {})", [1, 2]),
    ("new Proxy({a: 1}, {})", {"a": 1}),
    ("const shared = [1]; [shared, shared]", [[1], [1]]),
    ("let d = 1; for (let i = 0; i < 100; i++) d = [d]; JSON.stringify(d).length", 201),
    ("Object.fromEntries(Array.from({length: 20}, (_, i) => ['k' + i, i % 3 ? i : undefined]))",
     {f"k{i}": i for i in range(20) if i % 3}),
    ("Object.fromEntries(Array.from({length: 70000}, (_, i) => ['k' + i, null]))", {f"k{i}": None for i in range(70000)}),
]  # fmt: skip

REFUSED: list[tuple[str, str, str]] = [
    ("NaN", "$", "NaN"),
    ("({a: [1, Infinity]})", "$.a[1]", "Infinity"),
    ("2n ** 64n", "$", "BigInt"),
    ("-(2n ** 63n) - 1n", "$", "BigInt"),
    ("2n ** 200n", "$", "BigInt"),
    ("({d: new Date(NaN)})", "$.d", "invalid Date"),
    ("({f() {}})", "$.f", "function"),
    ("[{'a b': {\"q'\\\"\": () => 1}}]", '$[0]["a b"]["q\'\\""]', "function"),
    ("({s: Symbol('x')})", "$.s", "Symbol"),
    ("[/x/]", "$[0]", "RegExp"),
    ("({p: Promise.resolve(1)})", "$.p", "Promise"),
    ("[new WeakMap()]", "$[0]", "weak"),
    ("[new WeakSet(), 1]", "$[0]", "weak"),
    ("({t: tools.a.b})", "$.t", "tool"),
    ("const o = {}; o.self = {o}; o", "$.self.o", "cycle"),
    ("const a = []; a.push([a]); a", "$[0][0]", "cycle"),
    ("const m = new Map(); m.set('m', m); m", "$.m", "cycle"),
    ("new Map([[1, 2]])", "$", "key"),
    ("({m: new Map([['k', 1], [{}, 2]])})", "$.m", "key"),
    ("let d = 1; for (let i = 0; i < 101; i++) d = [d]; d", "$" + "[0]" * 100, "100 levels"),
    ("let d = []; for (let i = 0; i < 100000; i++) d = [d]; d", "$" + "[0]" * 100, "100 levels"),
    ("const o = {toJSON() { return {toJSON: o.toJSON} }}; o", "$", "without end"),
    ("({a: {'\\ud800': 1, '\\udfff': 2}})", "$.a.\ufffd", "surrogate"),
    ("[{'\\ufffd': 1, '\\ud800': 2}]", "$[0].\ufffd", "surrogate"),
    ("new Map([['\\ud800', 1], ['\\ufffd', 2]])", "$.\ufffd", "surrogate"),
    ("new AbortController()", "$", "an instance of AbortController"),
    ("[{ e: new TextEncoder() }]", "$[0].e", "TextEncoder"),
    ("({ t: new EventTarget() })", "$.t", "EventTarget"),
    ("class Safe { #key = 1 } [new Safe()]", "$[0]", "an instance of Safe"),
    ("class Safe { #key() {} static { Object.defineProperty(Safe, 'name', { get() { for (;;); } }) } } new Safe()", "$", "private fields"),
    ("new Error('m', { cause: { f() {} } })", "$.cause.f", "function"),
    ("new Error('m', { cause: new AggregateError([1n << 70n]) })", "$.cause.errors[0]", "BigInt"),
    ("const e = new Error('m'); e.cause = e; e", "$.cause", "cycle"),
    ("const double = (x) => x * 2; double", "$", "ends with a function: call it"),
    ("({ double: (x) => x * 2 })", "$.double", "a function cannot cross"),
    ("const b = new Uint8Array(4); b.buffer.transfer(); ({b})", "$.b", "detached"),
    ("(function* () {})()", "$", "kind"),
    ("new Float32Array([NaN])", "$[0]", "NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), OUT, ids=[source[:40] for source, _ in OUT])
def test_a_value_leaves_as_the_table_says(source: str, expected: Any) -> None:
    """ESC-15, ESC-20"""
    got = value(source, result_bytes=1 << 22)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(("source", "path", "why"), REFUSED, ids=[source[:40] for source, _, _ in REFUSED])
def test_what_cannot_cross_is_an_error_that_names_its_path(source: str, path: str, why: str) -> None:
    """ESC-14, ESC-15"""
    failure = run(source).failure
    assert failure["code"] == "unserializable"
    assert failure["path"] == path
    assert why in failure["message"]


def test_minus_zero_stays_what_it_is() -> None:
    assert math.copysign(1, value("-0")) == -1
    assert math.copysign(1, value("input", -0.0)) == -1


def test_the_path_of_a_very_long_way_is_cut_not_overrun() -> None:
    source = "let d = () => 1; for (let i = 0; i < 90; i++) d = {['key' + 'x'.repeat(30) + i]: d}; d"
    path = run(source).failure["path"]
    assert path.startswith("$.keyx")
    assert len(path) < 512


def test_a_getter_that_throws_while_the_result_is_read_is_the_scripts_own_error() -> None:
    failure = run("({get a() { throw new TypeError('mine') }})").failure
    assert (failure["code"], failure["name"], failure["message"]) == ("script_error", "TypeError", "mine")


def test_a_getter_is_read_once() -> None:
    """ESC-10"""
    assert value("let n = 0; ({get a() { return n++ ? 'second' : 'first' }})") == {"a": "first"}


@pytest.mark.parametrize(
    "source",
    [
        "let a = [1]; for (let i = 0; i < 28; i++) a = [a, a]; a",
        "let a = {x: 1}; for (let i = 0; i < 28; i++) a = {l: a, r: a}; a",
        "let a = new Set([1]); for (let i = 0; i < 28; i++) a = new Set([[a], [a]]); a",
        "new Array(2 ** 32 - 1)",
        "'x'.repeat(2 ** 20)",
        "new Uint8Array(2 ** 20)",
        "Array.from({length: 1100}, () => 'é'.repeat(500))",
        "new Proxy([], {get: (t, k) => k === 'length' ? 2 ** 53 - 1 : t[k]})",
    ],
)
def test_the_export_is_charged_and_stops_at_its_budget(source: str) -> None:
    """ESC-14, BUD-17"""
    isolate = Isolate()
    step = isolate.start(source, result_bytes=1 << 20)
    assert step.failure["code"] == "result_too_large"
    assert isolate.used() < 2 * 10**9


def test_a_result_of_just_the_budget_is_let_through() -> None:
    assert len(value("'x'.repeat(2 ** 20 - 5)", result_bytes=1 << 20)) == 2**20 - 5


def test_a_million_parts_are_the_most() -> None:
    for source in (
        "new Array(2 ** 20).fill(0)",
        "new Array(2 ** 20 + 1).fill(0)",
        "const a = new Array(2000).fill(0); new Array(2000).fill(a)",
    ):
        failure = run(source, result_bytes=1 << 24).failure
        assert (failure["code"], failure["message"]) == ("result_too_large", "the result has more than 1048576 parts")
    failure = run("'x'.repeat(5000)", result_bytes=1000).failure
    assert (failure["code"], failure["message"]) == (
        "result_too_large",
        "the result is larger than the budget result_bytes",
    )
    caught = "const many = new Array(2 ** 20).fill(0); try { emit(many) } catch (e) { const [first] = await Promise.allSettled([tools.a({ many })]);"
    said = value(
        f"{caught} [e.name, e.message, first.reason.code, first.reason.message] }}",
        result_bytes=1 << 24,
        args_bytes=1 << 24,
    )
    assert said == [
        "RangeError",
        "an emitted value has more than 1048576 parts",
        "too_large",
        "the arguments have more than 1048576 parts",
    ]
    assert len(value("new Array(2 ** 20 - 1).fill(0)", result_bytes=1 << 24)) == 2**20 - 1


def test_an_array_that_a_getter_changes_is_still_written_as_one_array() -> None:
    """ESC-31"""
    source = "const a = [{get x() { a.length = 1; return 1 }}, 2, 3]; a"
    assert value(source) == [{"x": 1}, None, None]
    source = "const a = [{toJSON() { for (let i = 0; i < 1e5; i++) a.push(i); return 1 }}, 2]; a"
    assert value(source) == [1, 2]
    source = "const m = new Map([['a', {toJSON() { m.delete('b'); m.set('c', 3); return 1 }}], ['b', 2]]); m"
    assert value(source) == {"a": 1, "c": 3}


def test_an_object_that_is_being_written_can_be_sent_from_within() -> None:
    """ESC-12"""
    source = """
      const root = { list: [{ toJSON() { tools.a({ root: { n: 1, again: [root.other] } }); emit(root.other); return 'x' } }] };
      root.other = { deep: [1] }; root.list.push(root.other); root
    """
    step = run(source)
    assert step.payload == {"list": ["x", {"deep": [1]}], "other": {"deep": [1]}}
    assert step.emitted == [{"deep": [1]}]
    source = "const o = { a: { toJSON() { try { emit(o); return 'sent' } catch (e) { return e.message } } } }; o"
    assert run(source).status in ("done", "failed"), "it ends with the stack, not with a trap"
    source = "const o = {}; o.o = o; for (const n of [1, 2]) try { emit(o) } catch (e) { emit(e.message) } o.o = 1; o"
    step = run(source)
    assert (step.payload, step.emitted) == ({"o": 1}, ["emit: $.o: a cycle cannot cross"] * 2)


def test_a_proxy_with_endless_keys_is_bounded() -> None:
    """ESC-11"""
    source = "new Proxy({}, {ownKeys: () => Array.from({length: 2 ** 22}, (_, i) => 'k' + i)})"
    assert run(source, memory=64 << 20).failure["code"] in ("memory_exhausted", "result_too_large", "script_error")


INPUTS: list[tuple[Any, str]] = [
    (None, "input === null"),
    (2**53, "input === 2 ** 53"),
    (2**53 + 1, "input === 9007199254740993n"),
    (-(2**53) - 1, "input === -9007199254740993n"),
    (2**64 - 1, "input === 18446744073709551615n"),
    (-(2**63), "input === -(2n ** 63n)"),
    (b"\x00\xff", "input instanceof Uint8Array && input[1] === 255 && input.length === 2"),
    ("é𝒳", "input === 'é𝒳' && input.length === 3"),
    ({"__proto__": {"x": 1}}, "Object.hasOwn(input, '__proto__') && Object.getPrototypeOf(input) === Object.prototype && input.x === undefined"),
    ({"then": 1}, "(await input) === input"),
    ({"toJSON": 1, "constructor": 2}, "input.toJSON === 1 && input.constructor === 2"),
    ({"length": 10**9}, "input.length === 1e9 && !Array.isArray(input)"),
    ([1, [2, {"a": None}]], "Array.isArray(input) && input[1][1].a === null && input.length === 2"),
    ({"": 1, "0": 2, "-1": 3}, "input[''] === 1 && input[0] === 2 && input['-1'] === 3"),
    ({"a": 1}, "Object.getOwnPropertyDescriptor(input, 'a').writable"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "holds"), INPUTS, ids=[holds[:40] for _, holds in INPUTS])
def test_a_value_arrives_as_the_table_says(sent: Any, holds: str) -> None:
    """ESC-20"""
    assert value(holds, sent) is True


def test_no_setter_of_a_prototype_sees_what_arrives() -> None:
    source = """
      const seen = [];
      for (const key of ['a', '0', 'list'])
        Object.defineProperty(Object.prototype, key, { set(v) { seen.push(key) }, configurable: true });
      Object.defineProperty(Array.prototype, '1', { set(v) { seen.push('array') }, configurable: true });
      const got = await tools.x({});
      [seen, got.a, got.list]
    """
    isolate = Isolate()
    isolate.start(source)
    assert isolate.resume({1: {"a": 5, "list": [1, 2]}}).payload == [[], 5, [1, 2]]


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
)


def _as_number(value: Any) -> Any:
    """What the round trip may change: a whole float of at most 53 bits comes back as an int, and keys in another order."""
    if (
        type(value) is float
        and value.is_integer()
        and abs(value) <= 2**53
        and not (value == 0 and math.copysign(1, value) < 0)
    ):
        return int(value)
    if type(value) is list:
        return [_as_number(item) for item in value]
    if type(value) is dict:
        return {key: _as_number(item) for key, item in sorted(value.items())}
    return value


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES)
def test_every_value_of_the_wire_comes_back_the_same(sent: Any) -> None:
    isolate = Isolate()
    got = isolate.start("input", sent, result_bytes=1 << 24)
    assert got.status == "done", got
    assert codec.encode(_as_number(got.payload)) == codec.encode(_as_number(sent))
