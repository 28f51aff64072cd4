# ruff: noqa: E501 (a row of a table is read across)
"""`tools` inside a script: paths, calls, answers, errors, budgets, and the ways to misuse them."""

from __future__ import annotations

from typing import Any

import pytest
from guest_host import Isolate, run, value


def calls(source: str, **options: Any) -> list[list[Any]]:
    return run(source, **options).calls


@pytest.mark.parametrize(
    ("source", "path", "args", "meta"),
    [
        ("tools.github.org.work.list({ a: 1 })", "github.org.work.list", {"a": 1}, False),
        ("tools['github.org.work.list']({ a: 1 })", "github.org.work.list", {"a": 1}, False),
        ("tools.github['org.work'].list()", "github.org.work.list", {}, False),
        ("tools.a.b.c.d(undefined)", "a.b.c.d", {}, False),
        ("tools.a[0][1]({})", "a.0.1", {}, False),
        ("tools.call('a.b.c.d', { x: [1n, new Uint8Array([1])] })", "a.b.c.d", {"x": [1, b"\x01"]}, False),
        ("tools.call('a.b.c.d', { x: 1 }, { meta: true })", "a.b.c.d", {"x": 1}, True),
        ("tools.call(tools.a.b.c.d, { x: 1 })", "a.b.c.d", {"x": 1}, False),
        ("tools.call('a.b.c.d')", "a.b.c.d", {}, False),
        ("tools.search('issues')", "$search", {"query": "issues"}, False),
        ("tools.search('issues', { limit: 5, cursor: 'c', integration: 'g' })",
         "$search", {"query": "issues", "limit": 5, "cursor": "c", "integration": "g"}, False),
        ("tools.search('issues', { limt: 5, cursor: null })", "$search", {"query": "issues", "limt": 5}, False),
        ("tools.search({ query: 'issues', limit: 5 })", "$search", {"query": "issues", "limit": 5}, False),
        ("tools.describe('a.b.c.d')", "$describe", {"path": "a.b.c.d"}, False),
        ("tools.describe(tools.a.b.c.d)", "$describe", {"path": "a.b.c.d"}, False),
        ("tools.describe({ path: 'a.b' })", "$describe", {"path": "a.b"}, False),
        ("tools.search.org.main.find({ q: 1 })", "search.org.main.find", {"q": 1}, False),
        ("tools.call.me.maybe.now({})", "call.me.maybe.now", {}, False),
        ("const { a: { b } } = tools; b({ x: 1 })", "a.b", {"x": 1}, False),
        ("const t = tools.a; t.b({})", "a.b", {}, False),
        ("[{ x: 1 }].map((args) => tools.a.b(args))[0]", "a.b", {"x": 1}, False),
        ("tools.a.b.call({ x: 1 })", "a.b.call", {"x": 1}, False),
        ("tools.a.constructor({ x: 1 })", "a.constructor", {"x": 1}, False),
        ("tools.__proto__.hasOwnProperty({})", "__proto__.hasOwnProperty", {}, False),
        ("tools['ä.日本']({})", "ä.日本", {}, False),
        ("tools['a\\0b']({})", "a\0b", {}, False),
        ("tools.a.b(Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true } }))", "a.b", {"own": 2}, False),
        ("tools.a.b(new Map([['k', 1]]))", "a.b", {"k": 1}, False),
        ("tools.a.b({ constructor: { prototype: { polluted: 1 } } })", "a.b", {"constructor": {"prototype": {"polluted": 1}}}, False),
        ("tools.a.b({ toJSON() { return { from: 'json' } } })", "a.b", {"from": "json"}, False),
    ],
)  # fmt: skip
def test_a_call_leaves_with_its_path_and_arguments(source: str, path: str, args: Any, meta: bool) -> None:
    """ESC-07, ESC-16"""
    assert calls(
        f"await ({source})" if not source.startswith("const") else f"{source}; await new Promise(() => {{}})"
    ) == [[1, path, args, meta]]


@pytest.mark.parametrize(
    ("source", "name", "words"),
    [
        ("tools()", "TypeError", "tools is not a tool"),
        ("tools({ a: 1 })", "TypeError", "tools is not a tool"),
        ("tools.a.b({}, {})", "TypeError", "not 2 arguments"),
        ("tools.a.b('x', 1, 2)", "TypeError", "not 3 arguments"),
        ("tools.a.b(5)", "ToolError", "one object of named arguments"),
        ("tools.a.b(null)", "ToolError", "one object of named arguments"),
        ("tools.a.b([1])", "ToolError", "one object of named arguments"),
        ("tools.a.b('x')", "ToolError", "one object of named arguments"),
        ("tools.a.b(new Date())", "ToolError", "one object of named arguments"),
        ("tools.a.b({ f: () => 1 })", "ToolError", "$.f: a function"),
        ("tools.a.b({ deep: [{ n: NaN }] })", "ToolError", "$.deep[0].n: NaN"),
        ("const o = {}; o.o = o; tools.a.b(o)", "ToolError", "cycle"),
        ("tools.a.b({ t: tools.c.d })", "ToolError", "tool that was not called"),
        ("tools.a.b({ get x() { throw new RangeError('mine') } })", "RangeError", "mine"),
        ("tools.a.b({ x: 'y'.repeat(2000) })", "ToolError", "larger than 1000 bytes"),
        ("tools['x'.repeat(1025)]({})", "ToolError", "too long"),
        ("tools.search(5)", "TypeError", "tools.search takes a text"),
        ("tools.search()", "TypeError", "tools.search takes a text"),
        ("tools.describe(5)", "TypeError", "tools.describe takes the path"),
        ("tools.call(5, {})", "TypeError", "tools.call takes the path"),
        ("tools.call('$search', { query: 'x' })", "TypeError", "tools.call takes the path"),
        ("new tools.a.b({})", "TypeError", "constructor"),
    ],
)
def test_a_call_that_cannot_leave_is_an_error_to_catch(source: str, name: str, words: str) -> None:
    setup, _, call = source.rpartition("; ")
    step = run(f"{setup}; try {{ await {call}; 'left' }} catch (e) {{ [e.name, e.message] }}", args_bytes=1000)
    assert step.calls == []
    assert step.payload[0] == name
    assert words in step.payload[1]


def test_a_call_that_cannot_leave_rejects_and_does_not_throw() -> None:
    assert value("await tools.a.b(5).catch((e) => [e.code, e.path, e instanceof ToolError])") == [
        "invalid_arguments",
        "a.b",
        True,
    ]
    assert value("await tools.a.b({ x: 'y'.repeat(2000) }).catch((e) => [e.code, typeof e.hint])", args_bytes=1000) == [
        "too_large",
        "string",
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("try { Object.keys(tools) } catch (e) { e.message.includes('tools.search') }", True),
        ("try { for (const k in tools) {} } catch (e) { e.message.includes('tools.search') }", True),
        ("try { 'github' in tools } catch (e) { e.message.includes('tools.search') }", True),
        ("try { ({ ...tools }) } catch (e) { e.message.includes('tools.search') }", True),
        ("try { Object.entries(tools.github) } catch (e) { e.message.includes('tools.search') }", True),
        ("try { [...tools] } catch (e) { e.name }", "TypeError"),
        ("try { tools.a = 1; 'set' } catch (e) { e.message }", "tools cannot be changed"),
        ("try { delete tools.a; 'gone' } catch (e) { e.message }", "tools cannot be changed"),
        ("try { Object.defineProperty(tools, 'a', { value: 1 }) } catch (e) { e.message }", "tools cannot be changed"),
        ("typeof tools + typeof tools.a.b", "functionfunction"),
        ("`${tools.a.b}` + tools", "tools.a.btools"),
        ("tools.a.toString()", "tools.a"),
        ("String(tools.a.b)", "tools.a.b"),
        ("JSON.stringify({ t: tools.a })", "{}"),
        ("tools.then === undefined && tools.a.then === undefined && tools.a.toJSON === undefined", True),
        ("tools[Symbol.iterator] === undefined && tools.a[Symbol('x')] === undefined", True),
        ("(await tools) === tools", True),
        ("tools.a !== tools.a", True),
        ("Object.getPrototypeOf(tools)", None),
        ("tools instanceof Function", False),
        ("this.constructor === Object && typeof process", "undefined"),
    ],
)
def test_tools_is_lazy_and_says_so(source: str, expected: Any) -> None:
    """ESC-01"""
    assert value(source) == expected


def test_answers_arrive_in_any_order_each_to_its_own_call() -> None:
    isolate = Isolate()
    step = isolate.start("const done = []; const mark = (n) => (v) => { done.push(n); return v };"
                         "const r = await Promise.all([1, 2, 3].map((n) => tools.a.b({ n }).then(mark(n)))); [r, done]")  # fmt: skip
    assert [call[0] for call in step.calls] == [1, 2, 3]
    assert isolate.resume({3: "c"}).status == "pending"
    assert isolate.resume({2: "b", 1: "a"}).payload == [["a", "b", "c"], [3, 2, 1]]


def test_only_new_calls_come_out_of_a_step() -> None:
    isolate = Isolate()
    assert len(isolate.start("await Promise.all([tools.a({}), tools.b({}).then(() => tools.c({}))])").calls) == 2
    assert [call[:2] for call in isolate.resume({2: None}).calls] == [[3, "c"]]
    assert isolate.resume({}).calls == []


ERROR = {
    "code": "upstream_error", "message": "no such issue", "path": "g.o.w.get", "retryable": False,
    "hint": "look again", "details": {"n": [1]}, "status": 404,
}  # fmt: skip


def test_a_failed_call_throws_a_tool_error_with_every_field_as_own_data() -> None:
    isolate = Isolate()
    isolate.start("""
      try { await tools.g.o.w.get({}) } catch (e) {
        [e instanceof ToolError, e instanceof Error, e.name, e.message, { ...e }, Object.keys(e), String(e), e]
      }""")
    got = isolate.resume(errors={1: ERROR}).payload
    fields = {k: v for k, v in ERROR.items() if k != "message"}
    assert got[:4] == [True, True, "ToolError", "no such issue"]
    assert got[4] == fields
    assert sorted(got[5]) == sorted(fields)
    assert got[6] == "ToolError: no such issue"
    assert got[7] == {"name": "ToolError", **ERROR}


@pytest.mark.parametrize(
    "sent", [{}, {"message": 5}, {"message": "m", "code": None}, {"__proto__": 1, "message": "m"}, [], "text", None]
)
def test_an_error_of_any_shape_is_a_tool_error(sent: Any) -> None:
    isolate = Isolate()
    isolate.start(
        "try { await tools.a({}) } catch (e) { [e.name, typeof e.message, Object.getPrototypeOf(e) === ToolError.prototype] }"
    )
    assert isolate.resume(errors={1: sent}).payload == ["ToolError", "string", True]


def test_a_script_can_make_a_tool_error_of_its_own() -> None:
    assert value(
        "const e = new ToolError('m', { code: 'blocked', nonsense: 1 }); [e.message, e.code, 'nonsense' in e]"
    ) == ["m", "blocked", False]


def test_an_answer_nobody_waits_for_changes_nothing() -> None:
    isolate = Isolate()
    isolate.start("await tools.a({})")
    assert isolate.resume({7: "x"}).status == "pending"
    assert isolate.resume({1: "y"}).payload == "y"


def test_a_value_with_a_then_is_not_called() -> None:
    """ESC-20"""
    isolate = Isolate()
    isolate.start("const v = await tools.a({}); [v.then, Object.getPrototypeOf(v) === Object.prototype]")
    assert isolate.resume({1: {"then": "data", "__proto__": None}}).payload == ["data", True]


def test_a_call_from_inside_the_encoding_of_a_call_is_a_call_of_its_own() -> None:
    """ESC-12"""
    step = run("await tools.outer({ x: { toJSON() { tools.inner({ y: 1 }); return 2 } } })")
    assert step.calls == [[1, "inner", {"y": 1}, False], [2, "outer", {"x": 2}, False]]


def test_calls_that_nobody_awaits_are_made_before_the_run_ends() -> None:
    isolate = Isolate()
    step = isolate.start("[1, 2].forEach(async (n) => { await tools.write({ n }); await tools.log({ n }) }); 'result'")
    assert (step.status, len(step.calls)) == ("pending", 2)
    step = isolate.resume({1: None, 2: None})
    assert (step.status, [call[1] for call in step.calls]) == ("pending", ["log", "log"])
    assert isolate.resume({3: None, 4: None}).payload == "result"


def test_the_loser_of_a_race_is_not_waited_for() -> None:
    isolate = Isolate()
    step = isolate.start("await Promise.race([tools.slow({}), new Promise((r) => setTimeout(r, 10, 'timeout'))])")
    assert (step.status, step.wake_us) == ("pending", 10_000)
    assert isolate.resume(now_us=10_000).payload == "timeout"


def test_a_rejection_that_nobody_saw_is_a_warning() -> None:
    isolate = Isolate()
    isolate.start("tools.a({}); Promise.reject(new TypeError('mine')); const p = Promise.reject(1); setTimeout(() => p.catch(() => {}), 1);"
                  "await new Promise((r) => setTimeout(r, 5)); 'ok'")  # fmt: skip
    step = isolate.resume(errors={1: {"code": "blocked", "message": "no"}}, now_us=5000)
    assert step.payload == "ok"
    assert [level for level, _ in step.logs] == ["warn", "warn"]
    assert "TypeError: mine" in "".join(text for _, text in step.logs)
    assert "ToolError: no" in "".join(text for _, text in step.logs)


def test_many_rejections_that_nobody_saw_are_counted() -> None:
    step = run(
        "for (let i = 0; i < 1000; i++) Promise.reject(i); const p = Promise.reject('seen'); await p.catch(() => 1)"
    )
    assert step.payload == 1
    assert len(step.logs) == 17
    assert "984 more" in step.logs[-1][1]


def test_a_call_made_while_the_result_is_written_is_not_made() -> None:
    step = run("({ toJSON() { tools.danger({}); return 'result' } })")
    assert (step.status, step.payload, step.calls) == ("done", "result", [])


def test_overriding_the_builtins_disturbs_neither_calls_nor_results() -> None:
    """ESC-09, ESC-22, ESC-23"""
    source = """
      const set = new Set([1]), map = new Map([[1, 2]]), bytes = new Uint8Array([104, 105]);
      const thief = () => { throw new Error('stolen') };
      JSON.stringify = Uint8Array.prototype.set = Map.prototype.get = Map.prototype.set = Array.prototype.map = thief;
      Array.prototype.push = Array.prototype[Symbol.iterator] = String.prototype.slice = Object.keys = Reflect.apply = thief;
      Function.prototype.call = Function.prototype.apply = Function.prototype.bind = Object.defineProperty = thief;
      TextEncoder.prototype.encode = Error.prototype.toString = Promise.resolve = thief;
      Object.prototype.get = thief; RegExp.prototype.exec = thief; Symbol.prototype.toString = thief;
      Promise.prototype.catch = Promise.prototype.finally = thief;
      const v = await tools.a.b({ n: [1, { m: 2 }], d: new Date(0), s: set });
      console.log('seen %s', v, { a: [1, 2] }, map, new Error('shown'));
      const c = structuredClone({ a: [v] });
      let caught; try { await tools.c.d({}) } catch (e) { caught = [e.code, e.message] }
      const u = new URL('http://a.b/c?d=e'); u.searchParams.append('f', 'g');
      ({ v, c, caught, href: u.href, text: new TextDecoder().decode(bytes), id: crypto.randomUUID().length })
    """
    isolate = Isolate()
    step = isolate.start(source)
    assert step.calls == [[1, "a.b", {"n": [1, {"m": 2}], "d": "1970-01-01T00:00:00.000Z", "s": [1]}, False]]
    step = isolate.resume({1: {"k": [1, 2]}})
    assert step.logs[0][1].startswith("seen { k: [ 1, 2 ] } { a: [ 1, 2 ] } Map(1) { 1 => 2 } Error: shown")
    step = isolate.resume(errors={2: {"code": "blocked", "message": "no"}})
    assert step.payload == {
        "v": {"k": [1, 2]}, "c": {"a": [{"k": [1, 2]}]}, "caught": ["blocked", "no"],
        "href": "http://a.b/c?d=e&f=g", "text": "hi", "id": 36,
    }  # fmt: skip


def test_a_script_that_deletes_every_global_still_ends_properly() -> None:
    """ESC-22"""
    isolate = Isolate()
    isolate.start(
        "const t = tools; Object.freeze(Object.prototype); const g = globalThis; for (const k of Object.getOwnPropertyNames(g)) delete g[k]; await t.a({})"
    )
    assert isolate.resume({1: {"x": [1]}}).payload == {"x": [1]}


def test_replacing_promise_then_hurts_only_the_script() -> None:
    isolate = Isolate()
    isolate.start("Promise.prototype.then = () => { throw new Error('x') }; await tools.a({})")
    assert isolate.resume({1: 5}).payload == 5


def test_a_thousand_calls_in_one_step_come_out_in_order() -> None:
    isolate = Isolate()
    step = isolate.start(
        "(await Promise.all(Array.from({ length: 1000 }, (_, n) => tools.a({ n })))).length", calls=1000
    )
    assert [(call[0], call[2]["n"]) for call in step.calls] == [(n + 1, n) for n in range(1000)]
    assert isolate.resume({n + 1: n for n in range(1000)}).payload == 1000


GLOBALS = {
    "AbortController", "AbortSignal", "AggregateError", "Array", "ArrayBuffer", "AsyncDisposableStack", "BigInt", "BigInt64Array",
    "Headers", "Request", "Response",
    "BigUint64Array", "Boolean", "CustomEvent", "DOMException", "DataView", "Date", "DisposableStack", "Error", "EvalError", "Event",
    "EventTarget", "Float16Array", "Float32Array", "Float64Array", "Function", "Infinity", "Int16Array", "Int32Array", "Int8Array",
    "InternalError", "Iterator", "JSON", "Map", "Math", "NaN", "Number", "Object", "Promise", "Proxy", "RangeError", "ReferenceError",
    "Reflect", "RegExp", "Set", "String", "SuppressedError", "Symbol", "SyntaxError", "TextDecoder", "TextEncoder", "ToolError",
    "TypeError", "URIError", "URL", "URLSearchParams", "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray", "WeakMap",
    "WeakRef", "WeakSet", "atob", "btoa", "clearImmediate", "clearInterval", "clearTimeout", "console", "crypto", "decodeURI",
    "decodeURIComponent", "emit", "encodeURI", "encodeURIComponent", "escape", "eval", "fetch", "globalThis", "input", "isFinite",
    "isNaN", "parseFloat", "parseInt", "performance", "queueMicrotask", "setImmediate", "setInterval", "setTimeout",
    "structuredClone", "tools", "undefined", "unescape",
}  # fmt: skip


def test_the_global_names_are_exactly_these() -> None:
    """ESC-02"""
    assert set(value("Object.getOwnPropertyNames(globalThis)")) == GLOBALS
    assert set(value("(async () => {}).constructor('return Object.getOwnPropertyNames(globalThis)')()")) == GLOBALS
    assert value("Object.getOwnPropertySymbols(globalThis).map(String)") == ["Symbol(Symbol.toStringTag)"]
