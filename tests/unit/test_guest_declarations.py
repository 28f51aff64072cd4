# ruff: noqa: E501 (a script is read in one piece)
"""`let`, `const` and `class`: what is read before it is declared is an error, wherever that stands (ECMA-262, 14.3.1)."""

import pytest
from guest_host import value

EARLY = {
    "before": "x; let x = 1",
    "in its own initializer": "let x = x + 1",
    "in its own pattern": "const [a, b = c, c] = [1, undefined, 3]",
    "in a pattern's default": "const { a = a } = {}",
    "typeof": "typeof x; let x",
    "assigned": "x = 1; let x",
    "counted up": "x++; let x = 1",
    "added to": "x += 1; let x = 1",
    "as a property of a place": "[x] = [1]; let x",
    "over a case": "switch (1) { case 0: let x = 1; break; case 1: x }",
    "assigned over a case": "switch (1) { case 0: let x = 1; break; case 1: x = 2 }",
    "over a case in a loop": "for (const k of [0, 1]) switch (k) { case 0: let x = 1; x; break; default: x++ }",
    "over a case from a block": "switch (1) { case 0: let x = 1; case 1: { { x } } }",
    "as a case": "switch (1) { case x: let x = 1 }",
    "in the list of a loop": "for (const x of [x]) x",
    "in the keys of a loop": "for (const x in { a: x }) x",
    "in the list of a loop that hides one": "const x = [1]; for (const x of x) x",
    "in the next turn": "for (let i = 0; i < 2; i++) { if (i) y; let y = i }",
    "assigned in the next turn": "for (let i = 0; i < 2; i++) { if (i) y = 1; let y = i; y }",
    "in a block that hides one": "const x = 1; { x; let x = 2 }",
    "by a function that is called before": "const f = () => x; f(); let x = 1",
    "by a function of a case": "switch (1) { case 0: let x = 1; case 1: (() => x)() }",
    "by eval": "eval('x'); let x = 1",
    "by eval in a case": "switch (1) { case 0: let x = 1; case 1: eval('x') }",
    "a class in its own heritage": "class A extends A {}",
    "a class in its own key": "class A { [A]() {} }",
    "a class before": "new A(); class A {}",
    "this before super": "class A {} class B extends A { constructor() { this.a } } new B()",
    "this where super is not for sure": "class A {} class B extends A { constructor(c) { if (c) super(); this.a } } new B(0)",
    "this in an arrow before super": "class A {} class B extends A { constructor() { (() => this)(); super() } } new B()",
    "a parameter in an earlier default": "(function (a = b, b) {})()",
    "a parameter in its own default": "(function (a = a) {})()",
    "in a finally": "try { null.a } catch { x } finally { 0 } let x = 1",
    "in a generator": "function* f() { yield x; let x = 1 } [...f()]",
    "in an async function": "async function f() { await 0; x; let x = 1 } await f()",
}

LATE = {
    "let x = 1; x += 2; x++; x": 4,
    "const a = [1, 2, 3]; let s = 0; for (const x of a) { s += x } s": 6,
    "let s = 0; for (let i = 0; i < 3; i++) { for (let j = i; j < 3; j++) s += j } s": 8,
    "const f = []; for (let i = 0; i < 3; i++) f.push(() => i++); [f[0](), f[0](), f[1](), f[2]()]": [0, 1, 1, 2],
    "let f; { let x = 1; f = () => x++; x = 5 } [f(), f()]": [5, 6],
    "let x = 1; { let x = 2; x = 3 } x": 1,
    "switch (0) { case 0: let x = 1; x += 1; x; break; default: 0 }": 2,
    "let r = []; for (const k of [0, 1, 2]) { let y; r.push(y); y = k } r": [None, None, None],
    "let r = 0; l: { let a = 1; if (a) break l; let b = 2; r = b } r": 0,
    "let { a, b: { c = a } } = { a: 1, b: {} }; [a, c]": [1, 1],
    "const x = 1; try { x = 2 } catch (e) { e.name }": "TypeError",
    "let x = 1; const f = () => { x = 2 }; f(); x": 2,
    "let x = 1; eval('x = 3'); x": 3,
    "(function (a, b = a + 1) { let c = b; return c + a })(1)": 3,
    "class A { static b = 1; static c = A.b + 1 } A.c": 2,
    "const A = class B { static c() { return B.name } }; A.c()": "B",
    "function* f() { let x = yield 1; while (x < 3) x += yield x; return x } const g = f(); g.next(); g.next(1); g.next(5).value": 6,
    "async function f() { let x = 1; await 0; x += 1; await 0; return x } await f()": 2,
    "let n = 0; try { let x = 1; n += x; throw 0 } catch (e) { let x = 2; n += x + e } finally { let x = 4; n += x } n": 7,
    "let i = 0; do { let x = i; i = x + 1 } while (i < 3); i": 3,
}


@pytest.mark.parametrize("name", EARLY)
def test_what_is_read_too_early_is_an_error(name: str) -> None:
    source = f"let error; try {{ await (async () => {{ {EARLY[name]} }})() }} catch (e) {{ error = e.name }} error"
    assert value(source) == "ReferenceError"


@pytest.mark.parametrize("source", LATE)
def test_what_is_declared_is_there(source: str) -> None:
    assert value(source) == LATE[source]
