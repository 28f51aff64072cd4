"""What an uncaught error says: more than the engine's words where those do not help, and what was behind it."""

from __future__ import annotations

import pytest
from guest_host import run

CALLEES: list[tuple[str, str]] = [
    ("let f; f()", "f is not a function"),
    ("const o = {};\no.list()", "o.list is not a function"),
    ("const o = { list: {} };\n  await o?.list.all(1)", "o?.list.all is not a function"),
    ("const o = {}; o.a?.b.c(); o.d`text`", "o.d is not a function"),
    ("class A { go() { this.x() } } new A().go()", "this.x is not a function"),
    ("const é = '日本𝒳'; é.foo()", "é.foo is not a function"),
    ("const o = {}; new o.Client()", "o.Client is not a function"),
    ("(() => ({}))().then(1)", "then is not a function"),
    ("const a = [1]; a[0]()", "a[0] is not a function"),
    ("const o = {}; o.list['a b'](1)", "cannot read property 'a b' of undefined"),
    ("const o = {}; o['a b'](1)", "o['a b'] is not a function"),
    ("const o = {}, k = 'x'; o[k]()", "o[k] is not a function"),
    ("const o = {a: []};\no.a[0]()", "o.a[0] is not a function"),
    ("const o = {}; o[')('](1)", "o[')('] is not a function"),
    ("(5)()", "(5) is not a function"),
    ("const f = () => 1; f()()", "f() is not a function"),
    ("const o = {}; o['" + "x" * 200 + "']()", "not a function"),
    ("const o = {}; o[/" + "\\(" * 50_000 + "/]()", "not a function"),
    ("[1].map(5)", "map: a function is expected"),
    ("new Promise()", "Promise: a function is expected"),
    ("eval('1;\\n\\nlet f = 1; f()')", "not a function"),
    ("throw new RangeError('not a function')", "not a function"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "message"), CALLEES, ids=[source[:40] for source, _ in CALLEES])
def test_what_is_no_function_is_named_where_the_script_shows_it(source: str, message: str) -> None:
    assert run(source).failure["message"] == message


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("require('fs')", "there are no modules"),
        ("module.exports = 1", "there are no modules"),
        ("process.env.HOME", "`input`"),
        ("Buffer.from('a')", "Uint8Array"),
        ("window.alert(1)", "browser"),
        ("document.title", "browser"),
        ("new XMLHttpRequest()", "tools.search"),
        ("new Blob([])", "Uint8Array"),
        ("Intl.NumberFormat()", "toFixed"),
    ],
)
def test_a_global_of_another_runtime_is_answered_with_what_to_use_instead(source: str, words: str) -> None:
    failure = run(source).failure
    assert failure["name"] == "ReferenceError"
    assert failure["message"].split(" is not defined: ")[0] in source
    assert words in failure["message"]


@pytest.mark.parametrize("name", ["foo", "processes", "Buf", "e", "x" * 400])
def test_any_other_name_is_not_defined_and_no_more(name: str) -> None:
    assert run(name).failure["message"].endswith(" is not defined")


def test_a_feature_test_finds_no_global_of_another_runtime() -> None:
    names = ["require", "module", "process", "Buffer", "window", "document", "Blob", "Intl"]
    step = run(f"[{', '.join(f'typeof {name}' for name in names)}]")
    assert step.payload == ["undefined"] * len(names)


def test_the_causes_of_an_error_follow_its_stack() -> None:
    source = (
        "try { null.x } catch (e) {\n  throw new Error('a', { cause: new RangeError('b', { cause: { code: 7 } }) })\n}"
    )
    failure = run(source).failure
    assert (failure["message"], failure["line"], failure["column"]) == ("a", 2, 13)
    assert failure["stack"] == (
        "    at <main> (script:2:13)\ncaused by: RangeError: b\n    at <main> (script:2:37)\ncaused by: { code: 7 }\n"
    )


def test_the_errors_of_an_aggregate_follow_its_stack() -> None:
    failure = run("await Promise.any([Promise.reject(new Error('x')), Promise.reject('y')])").failure
    assert failure["name"] == "AggregateError"
    assert failure["message"] == "All promises were rejected"
    assert failure["stack"].endswith("one of: Error: x\n    at <main> (script:1:39)\none of: y\n")


@pytest.mark.parametrize(
    "cause",
    ["e", "{ get message() { for (;;); } }", "new Proxy({}, { get() { for (;;); } })", "new Error('x'.repeat(5e6))"],
)
def test_no_cause_runs_code_or_has_no_end(cause: str) -> None:
    """ESC-17"""
    failure = run(f"const e = new Error('m'); e.cause = {cause}; throw e").failure
    assert (failure["code"], failure["message"], failure["column"]) == ("script_error", "m", 15)
    assert len(failure["stack"]) <= 16384


def test_a_getter_for_a_cause_is_not_run() -> None:
    """ESC-17"""
    source = "throw Object.defineProperty(new Error('m'), 'cause', { get() { for (;;); } })"
    assert run(source).failure["stack"] == "    at <main> (script:1:33)\n"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("const main = async () => 5", "main"),
        ("const main = async function () {}", "main"),
        ("let go = x => x;", "go"),
        ("const first = (a) => a\nasync function main() { return first(1) }\nfunction last() {}", "main"),
        ("function first() {}\nfunction last() {}", "last"),
        ("async function main() { return limit }\nconst limit = 5;", "main"),
        ("// main begins\n/* main */ function main() {}\nconst u = 'http://x'\n// so main", "main"),
        ("class A {}\nlet n = [1].map(x => x)\nconst go = async () => n", "go"),
    ],
)
def test_a_script_that_only_defines_functions_is_warned_that_nothing_was_called(source: str, name: str) -> None:
    step = run(source)
    assert step.logs == [["warn", f"{name} was defined and never called: end the script with `await {name}()`"]]
    assert (step.status, step.payload) == ("done", None)


@pytest.mark.parametrize(
    "source",
    [
        "const main = async () => 5; await main()",
        "function main() { return 1 }",
        "const x = (a => a)(5)",
        "const x = async(1); function async() {}",
        "async function main() { return 1 }\nconst all = await main()",
        "const twice = (x) => 2 * x, list = [1].map(twice)",
        "function $a() {} const b = { $a }",
        "const call = tools.a.b; const f = () => 1; f",
        "export default function () {}",
        "const list = [1].map((x) => x)",
        "const data = 5",
        "",
    ],
)
def test_a_script_that_does_something_is_not_warned(source: str) -> None:
    assert run(source).logs == []
