# ruff: noqa: E501 (a row of a table is read across)
"""What a script may look like, what its result is, and where its errors are."""

from __future__ import annotations

from typing import Any

import pytest
from guest_host import Isolate, run, value

RESULTS: list[tuple[str, Any]] = [
    ("", None),
    ("// nothing", None),
    ("1 + 1", 2),
    ("1; 2;", 2),
    ("const x = 5", None),
    ("const x = 5; x", 5),
    ("if (true) { 7 } else { 8 }", 7),
    ("let n = 0; for (let i = 0; i < 3; i++) n += i", 3),
    ("{a: 1}", {"a": 1}),
    ("/* what */ {a: 1}; // so", {"a": 1}),
    ("const x = 1;\n{ x }", {"x": 1}),
    ("const x = 1;\n{ x, y: [2], ...{z: '}'} }", {"x": 1, "y": [2], "z": "}"}),
    ("const s = `${1}`;\n{ s, t: `a${ {b: 1}.b }`, r: /[}]/.test('}') }", {"s": "1", "t": "a1", "r": True}),
    ("{ let y = 1; y + 1 }", 2),
    ("let z = 0; { z = 5; z }", 5),
    ("{a: 1}\n{b: 2}", {"b": 2}),
    ("{ a: for (;;) { break a } }", None),
    ("if (true) { a: 5 }", 5),
    ("() => {a: 1}", None),
    ("{ 'a' }", "a"),
    ("return 5", 5),
    ("return", None),
    ("return;", None),
    ("if (input) { return input.n } 3", 41),
    ("for (const x of [1, 2, 3]) { if (x === 2) return x }", 2),
    ("try { return 1 } finally { emit(2) }", 1),
    ("try { return 1 } finally { return 2 }", 2),
    ("try { throw 1 } catch (e) { return e + 1 } finally { 9 }", 2),
    ("for (const k in {a: 1}) { try { return k } finally { continue } } 'went on'", "went on"),
    ("switch (1) { case 1: return 'one' }", "one"),
    ("{ { return 4 } }", 4),
    ("for await (const x of [Promise.resolve(1)]) return x", 1),
    ("return Promise.resolve(3)", 3),
    ("return (async () => 4)()", 4),
    ("Promise.resolve(3)", 3),
    ("(async () => 4)()", 4),
    ("await 6", 6),
    ("const f = (a = `4` / 2\n) => a; f()", 2),
    ("const f = (a = `${/[/)]/.source}` + `${8}` / 2 / 2\n) => a; f()", "[/)]2"),
    ("const a = await Promise.all([1, Promise.resolve(2)]); a", [1, 2]),
    ("await Promise.reject(1).catch((x) => x + 1)", 2),
    ("({then(r) { r(7) }})", 7),
    ("export default 8", 8),
    ("export default {a: 1}; 9", {"a": 1}),
    ("export default (i) => i.n", 41),
    ("export default async (i) => { return i.n + 1 }", 42),
    ("export default function (i) { return i.n }", 41),
    ("export default function main(i) { return i.n } 5", 41),
    ("export default async function main(i) { return helper(i) } function helper(i) { return i.n }", 41),
    ("const run = (i) => i.n; export default run", 41),
    ("export default await Promise.resolve(2)", 2),
    ("export const a = 1; export let b = 2; export function f() { return 3 } export class C {} a + b + f()", 6),
    ("export async function f() { return 3 } await f()", 3),
    ("function go(i) { return i.n } export { go as default }", 41),
    ("const a = 1; export { a }; a", 1),
    ("function main(i) { return i.n }", 41),
    ("async function main(i) { return i.n }", 41),
    ("async function main({n}) { return n }\n", 41),
    ("(i) => i.n", 41),
    ("async (i) => i.n", 41),
    ("async ({n}) => { return n };", 41),
    ("(function (i) { return i.n })", 41),
    ("'use strict'; (i) => i.n", 41),
    ("/* a comment */ (i) => i.n // and another", 41),
    ("(i) => (j) => 1", None),
    ("async function main() { return 1 }\nmain()", 1),
    ("async function main() { return 1 }\nawait main();", 1),
    ("let x = 1; { let x = 2 } x", 1),
    ("var v = 1; var v = 2; v", 2),
    ("globalThis.v === undefined && (() => { var v = 1; return v })()", 1),
    ("const input = 3; const console = 4; const tools = 5; input + console + tools", 12),
    ("function fetch() { return 'mine' } fetch()", "mine"),
    ("undeclared = 5; globalThis.undeclared", 5),
    ("eval('1 + 1')", 2),
    ("let x = 4; eval('x + 1')", 5),
    ("eval('var hoisted = 3'); hoisted", 3),
    ("(0, eval)('typeof x') + new Function('return typeof x')(); ", "undefinedundefined"),
    ("new Function('a', 'return a + 1')(2)", 3),
    ("typeof this + (this === globalThis)", "objecttrue"),
    ("label: for (;;) { break label } 5", 5),
    ("using = 3; using", 3),
    ("const f = async () => { for (let i = 0; i < 3; i++) await i; return 'done' }; await f()", "done"),
    ("const fs = []; for (let i = 0; i < 3; i++) fs.push(() => i); fs.map((f) => f())", [0, 1, 2]),
    ("\ufeff1", 1),
    ("#!/usr/bin/env node\n3", 3),
    ("1\u20282", 2),
    ("//# sourceMappingURL=file:///etc/passwd\n1", 1),
    ("a = 1\n;[1, 2].length", 2),
    ("class A { static { this.x = 1 } } A.x", 1),
    ("let { n, ...rest } = input; [n, rest]", [41, {}]),
    ("`${input.n}`", "41"),
    ("input?.missing?.deep ?? 'none'", "none"),
    ("[3, 1, 2].toSorted()", [1, 2, 3]),
    ("Object.groupBy([1, 2, 3], (x) => x % 2 ? 'odd' : 'even').odd", [1, 3]),
    ('{"a": 1, "b": 2}', {"a": 1, "b": 2}),
    ("// the answer\n{ n: input.n, more: [input] };\n", {"n": 41, "more": [{"n": 41}]}),
    ("{ f() { return 1 }, toJSON() { return this.f() } }", 1),
    ("export async function main(i) { return i.n }", 41),
    ("const unit = (i) => i.n", None),
    ("function helper(i) { return i.n }\nexport function main(i) { return helper(i) }\nfunction other() {}", 41),
    ("export function a(i) { return 1 } export function b(i) { return 2 }", None),
    ("export function a(i) { return i.n } a({ n: 2 })", 2),
    ("x".ljust(1) + " = 1; " + "y" * 100_000 + " = 2", 2),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), RESULTS, ids=[repr(source[:50]) for source, _ in RESULTS])
def test_a_script_gives_what_its_writer_meant(source: str, expected: Any) -> None:
    """ESC-28"""
    if source == "(i) => (j) => 1":
        assert run(source, {"n": 41}).failure["code"] == "unserializable"
    else:
        assert value(source, {"n": 41}) == expected


@pytest.mark.parametrize(
    ("source", "words", "line", "column"),
    [
        ("1 +", "unexpected end of the script", 1, 4),
        ("call(", "unexpected end of the script", 1, 6),
        ('{"a": 1,\n "b": }', "unexpected token", 2, 7),
        ("{ if (a b) }", "", 1, 9),
        ("let x = 1;\nlet x = 2;", "redefinition", 2, 7),
        ("a b", "expecting", 1, 3),
        ("\n\n  const = 1", "", 3, 9),
        ("import fs from 'fs'", "imports are not available", 1, 1),
        ("1;\nimport 'x'", "imports are not available", 2, 1),
        ("import { a } from 'b'; a()", "imports are not available", 1, 1),
        ("export * from 'x'", "expected after export", 1, 8),
        ("export { a } from 'x'", "another module", 1, 14),
        ("export default 1; export default 2", "one default export", 1, 34),
        ("function f() { export default 1 }", "", 1, 16),
        ("class A { constructor() { return } static { return } }", "return", 1, 45),
        ("'\ud800", "", 1, 1),
        ("'unterminated", "", 1, 1),
        ("await = 1", "", 1, 7),
        ("(" * 200_000, "nested too deeply", None, None),
    ],
)
def test_a_script_that_does_not_compile_says_where(
    source: str, words: str, line: int | None, column: int | None
) -> None:
    failure = run(source).failure
    assert words in failure["message"]
    assert failure["code"] == "syntax_error"
    assert failure["name"] == "SyntaxError"
    assert (failure["line"], failure["column"]) == (line, column)


def test_nothing_runs_when_the_script_does_not_compile() -> None:
    step = run("emit(1); console.log(2); tools.a.b({});\n)")
    assert step.failure["code"] == "syntax_error"
    assert (step.calls, step.logs, step.emitted) == ([], [], [])


@pytest.mark.parametrize(
    "inner", ["eval('return 1')", "eval('export default 1')", "eval('await 1')", "new Function('export default 1')"]
)
def test_what_the_main_script_may_do_no_other_code_may(inner: str) -> None:
    assert value(f"try {{ {inner}; 'allowed' }} catch (e) {{ e.name }}") == "SyntaxError"


def test_a_syntax_error_of_evaluated_code_is_a_script_error_at_the_place_that_evaluated() -> None:
    failure = run("const a = 1;\n  eval('1 +')").failure
    assert (failure["code"], failure["name"], failure["line"]) == ("script_error", "SyntaxError", 2)


@pytest.mark.parametrize("module", ["fs", "node:fs", "data:text/javascript,1", "https://evil.test/x.js", "../../x"])
def test_a_dynamic_import_is_refused(module: str) -> None:
    """ESC-04"""
    assert "imports are not available" in value(f"try {{ await import({module!r}) }} catch (e) {{ e.message }}")


POSITIONS: list[tuple[str, int, int]] = [
    ("throw new Error('x')", 1, 11),
    ("\n\n   throw new Error('x')", 3, 14),
    ("function f() {\n  null.x\n}\nf()", 2, 3),
    ("const f = () => {\n  return undefinedName\n}\nf()", 2, 10),
    ("await (async () => {\n  await 1;\n  throw new TypeError('x')\n})()", 3, 13),
    ("[1].map(() => {\n throw new Error('in a callback') })", 2, 12),
    ("JSON.parse('{')", 1, 6),
    ("const é = '日本語'; throw new Error('x')", 1, 28),
    ("throw 5", 1, 7),
    ("let a;\n  throw { code: 1 }", 2, 9),
    ("throw null", 1, 7),
    ("throw undefined", 1, 7),
    ("new Promise((_, reject) => setTimeout(() => reject(new Error('later'))))\n", 1, 56),
    ("class A { #x; static has(o) { return o.#x } }\nA.has({})", 1, 38),
    ("new URL('no url')", 1, 5),
    ("\nstructuredClone(() => 1)", 2, 1),
    ("\n  import('fs')", 2, 3),
    ("class Gone extends Error {}\nthrow new Gone('x')", 2, 11),
    (
        "class A extends Error { constructor(m) { super(m); this.n = 1 } }\nclass B extends A {}\nnull ?? new B('x')\nthrow new B('y')",
        4,
        11,
    ),
    ("class A extends Error { constructor() { super('a'); null.x } }\nnew A()", 1, 53),
    ("class A extends Error { constructor() { super('a'); throw new TypeError('b') } }\nnew A()", 1, 63),
    ("AbortSignal.abort().throwIfAborted()", 1, 13),
]


@pytest.mark.parametrize(("source", "line", "column"), POSITIONS, ids=[repr(source[:40]) for source, _, _ in POSITIONS])
def test_an_error_has_the_line_and_column_of_the_text_that_was_sent(source: str, line: int, column: int) -> None:
    failure = run(source).failure
    assert failure["code"] == "script_error"
    assert (failure["line"], failure["column"]) == (line, column)


def test_a_stack_has_the_scripts_frames_and_none_of_the_boot_code() -> None:
    """ESC-17"""
    source = "function inner() { new URL('x') }\nfunction outer() { inner() }\nouter()"
    stack = run(source).failure["stack"]
    assert "inner (script:1:" in stack
    assert "outer (script:2:" in stack
    assert "<main> (script:3:" in stack
    assert "executor" not in stack
    assert "boot" not in value("try { structuredClone(() => 1) } catch (e) { e.stack }")
    for call in ("setTimeout(() => { throw new Error('t') })", "console.log({get x() { throw 1 }})"):
        assert "executor" not in str(run(call + "; await new Promise((r) => setTimeout(r, 1))"))


def test_the_stack_of_a_scripts_own_error_begins_where_it_was_made() -> None:
    classes = "class A extends Error {}\nclass B extends A { constructor(m) { super(m) } }\n"
    source = f"{classes}function f() {{ throw new B('x') }}\nf()"
    assert run(source).failure["stack"] == "    at f (script:3:26)\n    at <main> (script:4:1)\n"
    assert value(f"{source.removesuffix('f()')}try {{ f() }} catch (e) {{ e.stack.includes('at B') }}") is False


def test_the_error_of_a_call_is_placed_where_the_call_stands() -> None:
    isolate = Isolate()
    isolate.start("const a = 1;\nconst b = await tools.x.y({});\nb")
    failure = isolate.resume(errors={1: {"code": "upstream_error", "message": "no"}}).failure
    assert (failure["name"], failure["message"]) == ("ToolError", "no")
    assert (failure["line"], failure["column"]) == (2, 25)


@pytest.mark.parametrize(
    ("thrown", "name", "message"),
    [
        ("null", None, "null"),
        ("undefined", None, "undefined"),
        ("'text'", None, "text"),
        ("12n", None, "12n"),
        ("Symbol('s')", None, "Symbol(s)"),
        ("{ code: 1, get message() { for (;;); } }", None, "{ code: 1, message: [Getter] }"),
        ("new Error('x'.repeat(5e6))", "Error", "x" * 8192),
        ("new Error('é'.repeat(5000))", "Error", "é" * 4096),
        ("new Error('a\\ud800')", "Error", "a\ufffd"),
        ("Object.assign(new Error('m'), { name: 'Mine' })", "Mine", "m"),
        ("Object.defineProperty(new Error('m'), 'name', { get() { for (;;); } })", None, "m"),
        ("Object.defineProperty(new Error('m'), 'message', { get() { for (;;); } })", "Error", ""),
        ("Object.assign(new Error('m'), { name: Symbol() })", None, "m"),
        ("new (class E2 extends TypeError {})('m')", "TypeError", "m"),
        ("(() => { const e = new Error('m'); e.cause = e; return e })()", "Error", "m"),
        ("new AggregateError(Array.from({ length: 1e5 }, () => 1), 'm')", "AggregateError", "m"),
        ("new Proxy(new Error('m'), { get() { for (;;); } })", None, "[Proxy]"),
        ("new DOMException('m', 'AbortError')", "AbortError", "m"),
        ("tools.a", None, "[Tool tools.a]"),
    ],
)
def test_whatever_is_thrown_is_described_without_running_the_scripts_code(
    thrown: str, name: str | None, message: str
) -> None:
    """ESC-17"""
    failure = run(f"throw {thrown}").failure
    assert failure["code"] == "script_error"
    assert failure["name"] == name
    assert failure["message"] == message


def test_a_replaced_stack_does_not_reach_the_failure() -> None:
    failure = run("const e = new Error('m'); e.stack = 'at /etc/passwd:1:1 (script:99:99)'; throw e").failure
    assert failure["line"] != 1 or failure["stack"] is not None
    failure = run("Error.prepareStackTrace = () => ({}); throw new Error('m')").failure
    assert (failure["message"], failure["stack"]) == ("m", None)
