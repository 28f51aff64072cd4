# ruff: noqa: E501 (a row of a table is read across)
"""How a run ends without a result: each code from the shim's own knowledge, none from what an error looks like."""

from __future__ import annotations

from typing import Any

import pytest
from guest_host import FUEL, Isolate, run, value

from bridge.wire import codec

OUT_OF_STACK = "function f(n) { return f(n + 1) + 1 }"
OUT_OF_MEMORY = "const a = []; for (;;) a.push(new Array(1000).fill(1))"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (f"{OUT_OF_STACK}; f(0)", "stack_exhausted"),
        (f"await (async () => {{ {OUT_OF_STACK}; f(0) }})()", "stack_exhausted"),
        ("JSON.parse('['.repeat(1e6))", "stack_exhausted"),
        ("const o = { get x() { return this.x } }; o.x", "stack_exhausted"),
        ("const o = { toJSON() { return JSON.stringify(this) } }; o", "stack_exhausted"),
        (OUT_OF_MEMORY, "memory_exhausted"),
        ("'x'.repeat(2 ** 29)", "memory_exhausted"),
        ("new ArrayBuffer(2 ** 30)", "memory_exhausted"),
        ("new Uint8Array(100 << 20)", "memory_exhausted"),
        ("await (async () => { new ArrayBuffer(2 ** 30) })()", "memory_exhausted"),
        ("const f = () => Promise.resolve().then(f); await f()", "memory_exhausted"),
        ("await new Promise(() => {})", "never_settles"),
        ("new Promise(() => {})", "never_settles"),
        ("const t = setTimeout(() => {}, 5); clearTimeout(t); await new Promise(() => {})", "never_settles"),
        ("for (let i = 0; i < 300; i++) tools.a.b({})", "calls_exhausted"),
        ("'x'.repeat(1 << 21)", "result_too_large"),
        ("() => () => 1", "unserializable"),
        ("null.x", "script_error"),
        ("(", "syntax_error"),
    ],
)  # fmt: skip
def test_each_way_to_end_has_its_code(source: str, code: str) -> None:
    assert run(source).failure["code"] == code


@pytest.mark.parametrize(
    "thrown",
    [
        "new RangeError('Maximum call stack size exceeded')",
        "new InternalError('out of memory')",
        "Object.assign(new InternalError('interrupted'), { code: 'fuel_exhausted' })",
        "Object.assign(new Error('x'), { code: 'memory_exhausted', name: 'calls_exhausted' })",
        "null",
        "'out of memory'",
        "new ToolError('x', { code: 'deadline_exceeded' })",
        "{ code: 'result_too_large', path: '$' }",
        "new SyntaxError('x')",
        f"(() => {{ {OUT_OF_STACK} try {{ f(0) }} catch (e) {{ return Object.assign(new e.constructor(e.message), {{ stack: e.stack }}) }} }})()",
    ],
)  # fmt: skip
def test_no_code_can_be_forged(thrown: str) -> None:
    assert run(f"throw {thrown}").failure["code"] == "script_error"


def test_the_very_error_of_an_exhausted_stack_keeps_its_code_when_thrown_again() -> None:
    source = f"{OUT_OF_STACK} let e; try {{ f(0) }} catch (x) {{ e = x }} throw e"
    assert run(source).failure["code"] == "stack_exhausted"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"{OUT_OF_STACK} try {{ f(0) }} catch (e) {{ e instanceof RangeError && e.message }}", "Maximum call stack size exceeded"),
        ("try { JSON.parse('['.repeat(1e6)) } catch (e) { e.name }", "RangeError"),
        ("try { new ArrayBuffer(2 ** 30) } catch (e) { e.message }", "out of memory"),
        ("try { 'x'.repeat(2 ** 29) } catch (e) { 'went on' }", "went on"),
        (f"const fill = () => {{ {OUT_OF_MEMORY} }}; try {{ fill() }} catch (e) {{ [e.name, [1, 2].map((x) => x * 2)] }}",
         ["InternalError", [2, 4]]),
        ("const r = []; for (let i = 0; i < 5; i++) try { new Uint8Array(1 << 30) } catch { r.push(i) } r", [0, 1, 2, 3, 4]),
    ],
)  # fmt: skip
def test_a_script_that_caught_an_exhausted_limit_goes_on(source: str, expected: Any) -> None:
    assert value(source) == expected


def test_memory_stays_within_its_budget() -> None:
    """BUD-04, BUD-05"""
    for source in (
        OUT_OF_MEMORY,
        "let s = 'a'; for (;;) s = s + s + Math.random()",
        "new Map(); const m = new Map(); for (let i = 0; ; i++) m.set(i, i)",
    ):
        isolate = Isolate(memory=16 << 20)
        assert isolate.start(source).failure["code"] in ("memory_exhausted", "script_error")
        assert isolate.memory.data_len(isolate.store) <= 16 << 20


def test_most_of_a_memory_budget_can_be_used() -> None:
    assert value("const a = new Uint8Array(56 << 20).fill(7); a.at(-1)") == 7
    assert value("const l = []; for (let i = 0; i < 50; i++) l.push(new ArrayBuffer(1 << 20)); l.length") == 50


def test_what_was_logged_and_emitted_comes_with_a_failure() -> None:
    for source, code in (
        ("null.x", "script_error"),
        (OUT_OF_MEMORY, "memory_exhausted"),
        (f"{OUT_OF_STACK} f()", "stack_exhausted"),
    ):
        isolate = Isolate()
        step = isolate.start(f"console.log('before'); emit({{ n: 1 }}); {source}")
        assert step.failure["code"] == code
        logs, emitted = isolate.tail()
        assert (step.logs or logs) == [["log", "before"]]
        assert (step.emitted or emitted) == [{"n": 1}]


@pytest.mark.parametrize(
    "source",
    [
        "for (;;);",
        "for (;;) { try { throw 1 } catch {} finally { continue } }",
        "try { for (;;); } finally { for (;;); }",
        "for (;;) await null",
        "/^(a+)+$/.test('a'.repeat(40) + '!')",
        "/(x+x+)+y/.exec('x'.repeat(5000))",
        "const a = []; a.length = 2 ** 32 - 1; a.sort()",
        "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 5)",
        "const b = new Uint8Array(32 << 20); for (;;) b.fill(1)",
        "const b = new Uint8Array(32 << 20); for (;;) b.copyWithin(1, 0)",
        "for (;;) try { new Array(1e7).fill(1).map(String) } catch {}",
        "throw { toString() { for (;;); }, get message() { for (;;); } } + ''",
        "const f = () => { queueMicrotask(f) }; f(); await new Promise(() => {})",
        "const t = () => setTimeout(t, 0); t(); await new Promise(() => {})",
        "[...(function* () { for (;;) yield 1 })()].length > 0 || 1; for (;;);",
        "let s = 0; for (const x of { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) }) s++",
    ],
)
def test_fuel_stops_what_does_not_end(source: str) -> None:
    """BUD-01, BUD-02, BUD-03"""
    isolate = Isolate(fuel=FUEL // 10)
    step = isolate.attempt(f"console.log('begun'); {source}")
    if step is not None:
        assert step.failure["code"] == "memory_exhausted"
        return
    assert isolate.used() <= FUEL // 10
    assert isolate.tail() == ([["log", "begun"]], [])


STACKS = {
    "calls": "function f(n) { return f(n + 1) + 1 } f(0)",
    "big frames": "function f(a, b, c, d) { let x = [a, b, c], y = { a, b }; return f(...x, y) + 1 } f(1)",
    "sort": "function f() { [2, 1].sort(f); return 0 } f()",
    "replace": "function f() { return 'a'.replace(/a/, f) } f()",
    "getter": "const o = { get x() { return this.x } }; o.x",
    "proxy chain": "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x",
    "proxy trap": "const p = new Proxy({}, { get(t, k, r) { return r.x } }); p.x",
    "toString": "const o = { toString() { return '' + this } }; '' + o",
    "toJSON": "const o = { toJSON() { return JSON.stringify(this) } }; JSON.stringify(o)",
    "JSON.parse": "JSON.parse('['.repeat(1e6))",
    "parentheses": "eval('('.repeat(1e6))",
    "brackets": "eval('['.repeat(1e5) + ']'.repeat(1e5))",
    "unary": "eval('!'.repeat(1e6) + '1')",
    "templates": "eval('`${'.repeat(1e5))",
    "class fields": "eval('class A{x='.repeat(1e5))",
    "ternary": "eval('1?'.repeat(1e5) + '1')",
    "destructuring": "eval('let ' + '[a,'.repeat(1e5))",
    "functions": "eval('function f(){'.repeat(1e5))",
    "arrows": "eval('()=>'.repeat(1e5) + '1')",
    "generators": "function* g() { yield* g() } [...g()]",
    "flat": "const a = []; a[0] = a; a.flat(Infinity)",
    "join": "let b = []; for (let i = 0; i < 1e5; i++) b = [b]; b.join()",
    "regexp groups": "new RegExp('(?:'.repeat(1e5) + ')'.repeat(1e5))",
    "regexp classes": "new RegExp('['.repeat(1e5), 'v')",
    "Reflect.apply": "function f() { return Reflect.apply(f, null, []) } f()",
    "constructors": "class A { constructor() { new A() } } new A()",
    "bind chain": "let f = () => 1; for (let i = 0; i < 30000; i++) f = f.bind(null); f()",
    "async": "async function f() { await f() } await f()",
    "iterators": "const o = { [Symbol.iterator]() { return [...o] } }; [...o]",
    "instanceof": "class A { static [Symbol.hasInstance]() { return 1 instanceof A } } 1 instanceof A",
    "eval": "function f() { return eval('f()') } f()",
    "structuredClone": "let o = []; for (let i = 0; i < 1e5; i++) o = [o]; structuredClone(o)",
    "console": "let o = []; for (let i = 0; i < 1e5; i++) o = [o]; console.log(o); null.x",
    "tagged templates": "function f() { return f`${1}` } f()",
    "spread arguments": "Math.max(...new Array(1e6).fill(1)); (function f(...a) { return f(...a) })(1)",
    "await in a tool": "const o = { toJSON() { tools.a.b(this); return 1 } }; await tools.a.b(o)",
}


@pytest.mark.parametrize("shape", STACKS)
def test_no_recursion_is_a_trap_and_the_next_line_runs(shape: str) -> None:
    """ESC-28"""
    source = f"let r; try {{ r = await (async () => {{ {STACKS[shape]} }})() }} catch (e) {{ r = e }} 'went on'"
    step = run(source, memory=200 << 20, fuel=10**12)
    if shape == "await in a tool" and step.status == "failed":
        assert step.failure["code"] == "calls_exhausted"
    else:
        assert (step.status, step.payload) == ("done", "went on")


BOMBS = {
    "bigint power": "2n ** (2n ** 24n)",
    "bigint square": "let x = 3n; for (let i = 0; i < 40; i++) x = x * x; 1",
    "bigint text": "(7n ** 400000n).toString().length",
    "bigint parse": "BigInt('9'.repeat(1e6))",
    "sort": "new Array(5e6).fill(0).map((_, i) => -i).sort((a, b) => a - b).length",
    "stringify": "const o = []; for (let i = 0; i < 1e6; i++) o.push({ a: i, b: 'x'.repeat(20) }); JSON.stringify(o).length",
    "stringify a shared tree": "let a = [1]; for (let i = 0; i < 30; i++) a = [a, a]; JSON.stringify(a)",
    "clone a shared tree": "let a = [1]; for (let i = 0; i < 30; i++) a = [a, a]; structuredClone(a); 1",
    "replace": "'x'.repeat(2 ** 22).replace(/x/g, 'yyyyyyyy').length",
    "pad": "'x'.padEnd(2 ** 29).length",
    "string doubling": "let s = 'x'; for (;;) s += s",
    "array of holes": "new Array(2 ** 32 - 1).fill(0)",
    "many buffers": "const l = []; for (;;) l.push(new ArrayBuffer(1 << 20))",
    "many promises": "const l = []; for (let i = 0; i < 1e7; i++) l.push(new Promise(() => {})); 1",
    "Promise.all": "await Promise.all(new Array(3e5).fill(1)); 1",
    "free a long list": "let o = null; for (let i = 0; i < 3e5; i++) o = { n: o }; o = null; 1",
    "prototype chain": "let o = {}; for (let i = 0; i < 2e5; i++) o = Object.create(o); o.zzz; 1",
    "colliding keys": "const o = {}; for (let i = 0; i < 1e5; i++) o['k' + i * 65536] = i; 1",
    "join of itself": "const a = []; a[0] = a; a[1] = [a]; a.join()",
    "label of a million letters": "eval('x'.repeat(1e6) + ' = 1')",
    "long regexp": "/(?:(?:a|b)*)*c/.test('ab'.repeat(1e6))",
    "URL": "new URL('http://a/' + '../'.repeat(1e5)).href.length",
    "query": "new URLSearchParams('a&'.repeat(2e5)).size",
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_ends_within_its_budgets(bomb: str) -> None:
    """BUD-04, BUD-05, BUD-08, BUD-21, BUD-22, BUD-23"""
    isolate = Isolate()
    step = isolate.attempt(BOMBS[bomb])
    if step is not None and step.status != "done":
        assert step.failure["code"] in ("memory_exhausted", "script_error", "stack_exhausted", "result_too_large")
    assert isolate.memory.data_len(isolate.store) <= 64 << 20


def test_uninitialised_memory_is_zero() -> None:
    """ESC-25"""
    source = """
      let dirty = 0; const kept = [];
      const look = (size) => { const b = new Float64Array(size / 8); if (b.some((x) => x !== 0)) dirty++; return b };
      for (let i = 0; i < 32; i++) kept.push(look(2 ** 20));
      kept.length = 0;
      new Uint8Array(2 ** 20).fill(9).buffer.transfer(0);
      for (let i = 0; i < 8; i++) look(2 ** 20 - i * 4096).fill(7);
      for (let i = 1; i < 500; i++) look(i * 8).fill(7);
      dirty
    """
    assert value(source, fuel=10**11) == 0


def test_an_exhausted_call_budget_cannot_be_caught() -> None:
    """BUD-09, BUD-10"""
    source = """
      const swallow = async () => { for (;;) { try { await tools.a.b({}) } catch { continue } finally { try { tools.a.b({}) } catch {} } } };
      swallow(); swallow().catch(() => swallow()).finally(() => swallow()); for (;;) { try { tools.c.d({}) } catch {} finally {} }
    """
    isolate = Isolate()
    step = isolate.start(source, calls=5)
    assert step.failure["code"] == "calls_exhausted"
    assert [call[0] for call in step.calls] == [1, 2, 3, 4, 5]
    assert isolate.used() < 10**8


def test_a_budget_of_no_calls_allows_none() -> None:
    step = run("tools.a({})", calls=0)
    assert step.failure["code"] == "calls_exhausted"
    assert step.calls == []


def test_a_step_too_many_is_refused_in_a_later_step_too() -> None:
    isolate = Isolate()
    step = isolate.start("for (;;) { try { await tools.a.b({}) } catch (e) {} }", calls=3)
    for call in (1, 2, 3):
        assert [c[0] for c in step.calls] == [call]
        step = isolate.resume({call: None})
    assert step.failure["code"] == "calls_exhausted"


def test_values_that_decode_are_all_that_leaves() -> None:
    """MSG-13"""
    step = run(
        "console.log('a\\ud800', { '\\udfff': '\\ud800' }); emit('\\ud800'); throw new Error('\\udc00'.repeat(9000))"
    )
    assert step.logs[0][1].startswith("a\ufffd")
    assert step.emitted == ["\ufffd"]
    assert step.failure["message"] == "\ufffd" * (8192 // 3)
    assert codec.decode(codec.encode(step.failure)) == step.failure
