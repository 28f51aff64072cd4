# ruff: noqa: E501 (a row of a table is read across)
"""console and emit: what a person reads, and what it may cost."""

from __future__ import annotations

import pytest
from guest_host import Isolate, run, value


def printed(source: str, **options: int) -> list[str]:
    step = run(source, **options)
    assert step.status == "done", step
    return [text for _, text in step.logs]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("'text'", "text"),
        ("'a', 'b', 1", "a b 1"),
        ("", ""),
        ("null, undefined, true, -0, 1.5, NaN, 10n", "null undefined true -0 1.5 NaN 10n"),
        ("Symbol('s')", "Symbol(s)"),
        ("{ a: 1, 'b c': 'x', [Symbol('s')]: 2 }", "{ a: 1, 'b c': 'x' }"),
        ("{}, []", "{} []"),
        ("[1, 'a', [2, [3]]]", "[ 1, 'a', [ 2, [ 3 ] ] ]"),
        ("[1, , 3]", "[ 1, <empty>, 3 ]"),
        ("{ s: 'it\\'s', q: '\"', n: 'a\\nb', e: 'back\\\\\"slash' }", "{ s: \"it's\", q: '\"', n: 'a\\nb', e: 'back\\\\\"slash' }"),
        ("new Map([['a', { b: 1 }], [2, 3]])", "Map(2) { 'a' => { b: 1 }, 2 => 3 }"),
        ("new Set([1, 'x'])", "Set(2) { 1, 'x' }"),
        ("new Date(0), new Date(NaN)", "1970-01-01T00:00:00.000Z Invalid Date"),
        ("/a\\/b/gi", "/a\\/b/gi"),
        ("new Uint8Array([1, 2])", "Uint8Array(2) [ 1, 2 ]"),
        ("new Uint8Array(2).buffer", "ArrayBuffer { byteLength: 2 }"),
        ("Promise.resolve(1), new WeakMap()", "Promise { … } [WeakMap]"),
        ("function named() {}, () => 1, class K {}, Math.max", "[Function: named] [Function: (anonymous)] [class K] [Function: max]"),
        ("tools, tools.a.b", "[Tool tools] [Tool tools.a.b]"),
        ("new (class Point { x = 1 })()", "Point { x: 1 }"),
        ("Object.create(null)", "[Object: null prototype] {}"),
        ("{ get g() { throw 1 }, set g(v) {} }", "{ g: [Getter] }"),
        ("new Proxy({}, { ownKeys() { throw 1 } })", "[Proxy]"),
        ("new Number(3), new String('s')", "[Number: 3] [String: \"s\"]"),
        ("{ a: { b: { c: { d: { e: { f: 1 } } } } } }", "{ a: { b: { c: { d: { e: [Object] } } } } }"),
        ("Array.from({ length: 102 }, (_, i) => i)", "[ " + ", ".join(map(str, range(100))) + ", … 2 more ]"),
        ("'%s is %d of %i, %f %j %o %% %c%x', 'it', '4.5', '7.9', '1.5', { a: [1] }, { b: 1 }, 'css', 'rest'",
         "it is 4.5 of 7, 1.5 {\"a\":[1]} { b: 1 } % %x rest"),
        ("'%s'", "%s"),
        ("'100%'", "100%"),
        ("'%s %s', 'one'", "one %s"),
        ("'a', '%s', 'b'", "a %s b"),
        ("new Error('boom').message", "boom"),
    ],
)  # fmt: skip
def test_a_value_is_shown_on_one_line(shown: str, text: str) -> None:
    assert printed(f"console.log({shown}); 1") == [text]


def test_an_error_is_shown_with_its_stack_its_fields_and_its_cause() -> None:
    (text,) = printed("console.log(Object.assign(new TypeError('no', { cause: new Error('why') }), { code: 'E' })); 1")
    assert text.startswith("TypeError: no\n    at <main> (script:1:")
    assert "{ code: 'E' }" in text
    assert "[cause]: Error: why" in text


def test_a_cycle_is_named() -> None:
    assert printed("const o = { a: 1 }; o.self = o; o.list = [o]; console.log(o); 1") == [
        "{ a: 1, self: [Circular], list: [ [Circular] ] }"
    ]


def test_each_method_has_its_level() -> None:
    step = run("for (const m of ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir', 'table']) console[m](m); 1")
    assert step.logs == [
        ["log", "log"], ["info", "info"], ["warn", "warn"], ["error", "error"], ["debug", "debug"], ["debug", "trace"],
        ["log", "dir"], ["log", "table"],
    ]  # fmt: skip


def test_groups_counts_times_and_assertions() -> None:
    source = """
      console.group('g'); console.log('in'); console.groupEnd(); console.log('out');
      console.count(); console.count('x'); console.count(); console.countReset(); console.count();
      console.time('t'); console.timeEnd('t'); console.timeEnd('never');
      console.assert(true, 'no'); console.assert(false, 'yes', 1); console.assert(false); 1
    """
    lines = printed(source)
    assert lines[:7] == ["g", "  in", "out", "default: 1", "x: 1", "default: 2", "default: 1"]
    assert lines[7].startswith("t: 0")
    assert lines[8:] == ["Assertion failed: yes 1", "Assertion failed"]


@pytest.mark.parametrize(
    "flood",
    [
        "for (let i = 0; i < 1e4; i++) console.log('line %d', i)",
        "for (let i = 0; i < 1e5; i++) console.log()",
        "console.log('x'.repeat(2e7))",
        "console.log('%s%s%s'.repeat(1e4), ...Array(1e4).fill('abc'))",
        "const o = Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => ['k' + i, i])); for (let i = 0; i < 100; i++) console.log(o)",
        "let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; console.log(a); for (let i = 0; i < 2000; i++) console.log(a)",
        "const e = new Error('e'); let c = e; for (let i = 0; i < 1e4; i++) c = new Error('x', { cause: c }); for (let i = 0; i < 1000; i++) console.log(c)",
        "console.log('é'.repeat(1e5))",
        "console.log(...Array(6e4).fill({ a: { b: 1 } }))",
    ],
)
def test_a_flood_of_logs_is_cut_with_a_marker_and_ends_nothing(flood: str) -> None:
    """BUD-16"""
    isolate = Isolate()
    step = isolate.start(f"{flood}; 'went on'", log_bytes=65536)
    assert step.payload == "went on"
    assert step.logs[-1] == ["warn", "… log truncated"]
    assert sum(len(text.encode()) for _, text in step.logs) <= 65536
    assert isolate.used() < 10**10


def test_the_log_budget_spans_steps_and_the_marker_comes_once() -> None:
    isolate = Isolate()
    first = isolate.start(
        "console.log('a'.repeat(100)); await tools.x({}); console.log('b'.repeat(100)); console.log('c'); await tools.y({}); console.log('d'); 1",
        log_bytes=200,
    )
    second = isolate.resume({1: None})
    third = isolate.resume({2: None})
    assert [text[:1] for _, text in first.logs] == ["a"]
    assert [text[:1] for _, text in second.logs] == ["b", "…"]
    assert third.logs == []


def test_console_never_throws() -> None:
    source = """
      const bad = [{ get [Symbol.toStringTag]() { throw 1 } }, new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 } }),
        Object.create(new Proxy({}, { get() { throw 1 }, getOwnPropertyDescriptor() { throw 1 } })),
        Object.defineProperty(new Error('m'), 'message', { get() { throw 1 } }), Object.create({ constructor: { get name() { throw 1 } } })];
      for (const b of bad) { console.log(b); console.log('%s %d %j %o', b, b, b, b); console.error(b, [b]) }
      'ok'
    """
    assert value(source) == "ok"


def test_emit_gives_values_in_order_and_refuses_what_cannot_cross() -> None:
    step = run("emit(1); emit({ a: [new Uint8Array([1])] }); emit(); try { emit(() => 1) } catch (e) { e.message }")
    assert step.emitted == [1, {"a": [b"\x01"]}, None]
    assert step.payload == "emit: $: a function cannot cross"


def test_emitted_values_are_charged_to_the_result_budget() -> None:
    step = run(
        "let n = 0; try { for (;;) { emit('x'.repeat(100)); n++ } } catch (e) { [n, e.name] }", result_bytes=1000
    )
    assert step.payload == [9, "RangeError"]
    assert len(step.emitted) == 9
    step = run("let n = 0; try { for (;;) { emit(0); n++ } } catch (e) { [n, e.name] }")
    assert step.payload == [10_000, "RangeError"]
