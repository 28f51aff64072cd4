"""TypeScript as agents write it: what each construct means when it runs, and where its errors stand."""

from __future__ import annotations

import pytest
from guest_host import Step, Trapped
from strip_host import failure, start, strip, stripped, value

MEANINGS: dict[str, tuple[str, object]] = {
    "annotations": ("const a: number = 1; let b: string | null = null; [a, b]", [1, None]),
    "functions": ("function f(a: number, b?: string, ...c: any[]): number { return a + c.length }\nf(1, 'x', 2, 3)", 3),
    "arrows": ("const f = (a: number, b = 2): number => a + b; f(1)", 3),
    "async arrows": ("const f = async (a: number): Promise<number> => a; await f(4)", 4),
    "generic arrows": (
        "const f = <T,>(x: T): T => x, g = <T extends object>(x: T) => x; [f<number>(1), g({ a: 2 })]",
        [1, {"a": 2}],
    ),
    "generic calls": (
        "const m = new Map<string, Array<Array<number>>>([['a', [[1]]]]); [...m.entries()]",
        [["a", [[1]]]],
    ),
    "one generic argument": ("const f = <T,>(x: T): T => x; const string = 0; f<string>('x')", "x"),
    "generic tags": ("const t = <T,>(s: any, ...v: T[]) => v; t<number>`a${1}b${2}`", [1, 2]),
    "optional generic calls": (
        "const o: any = { f: (x: any) => x }; [o?.f?.<number>(1), o.g?.<string>('x')]",
        [1, None],
    ),
    "instantiation expressions": ("const f = <T,>(x: T) => x; const g = f<number>; g(5)", 5),
    "interfaces and aliases": (
        "interface A<T> extends B { readonly x?: T; [k: string]: any; (y: T): void; new (): A<T> }\n"
        "interface B {}\ntype C<K extends keyof any = string> = { [P in K]?: C<P> } & (A<K> | null)\n"
        "const c: C = {}\nc",
        {},
    ),
    "types that look like code": (
        "type F = (a: { b: string; c(): void }) => a is string\n"
        "type G = `x-${string}` | typeof import('m') | -1 | unique symbol | [a: number, b?: string, ...c: any[]]\n"
        "type H<T> = T extends (infer U extends string)[] ? U : abstract new () => never\n1",
        1,
    ),
    "as, satisfies and const": (
        "const a = { b: [1] as const } satisfies object as unknown as { b: number[] }; a.b[0] as any",
        1,
    ),
    "assertions in front": ("const a = <any>{ x: 1 }; const f = () => <any>{ y: 2 }; [a.x, f().y]", [1, 2]),
    "not null": ("const a: { b?: { c: number[] } } = { b: { c: [7] } }; a!.b!.c![0]! + 1", 8),
    "definite": ("let a!: number; class A { b!: string } a = 1; [a, 'b' in new A()]", [1, True]),
    "predicates": (
        "function f(x: any): x is string { return true }\nfunction g(x: any): asserts x is string {}\ng(f(1)); f(2)",
        True,
    ),
    "this parameters": ("function f(this: { x: number }, y: number) { return this.x + y }\nf.call({ x: 1 }, 2)", 3),
    "overloads": (
        "function f(a: string): string;\nfunction f(a: number): number;\nfunction f(a: any) { return a }\nf(3)",
        3,
    ),
    "catch": ("try { throw 1 } catch (e: unknown) { e }", 1),
    "declare": (
        "declare const a: number; declare function f(): void; declare class C {}; declare global { interface W {} }\n2",
        2,
    ),
    "types of modules": (
        "import type { A } from 'a'; import type B from 'b'; import { type C, type D } from 'c'; export type { A };\n3",
        3,
    ),
    "a namespace of types": (
        "namespace N { export interface A {} export type B = 1 }\ndeclare namespace M { const x: number }\n4",
        4,
    ),
    "classes": (
        "abstract class A<T = {}> { abstract f(): T; abstract x: number; g(): number { return 1 } }\n"
        "class B extends A<string> implements I, J { override f(): string { return 'f' } x: number = 5;\n"
        "  static readonly y?: number = 6;\n"
        "  private z = 7; protected declare w: string; [k: string]: any;\n"
        "  get v(): number { return this.z } accessor(): void {} }\n"
        "interface I {} interface J {}\nconst b = new B(); [b.f(), b.g(), b.x, B.y, b.v, Object.keys(b)]",
        ["f", 1, 5, 6, 7, ["x", "z"]],
    ),
    "uninitialised fields": ("class A { x: number; y? }\nObject.keys(new A())", ["x", "y"]),
    "fields named get and set": (
        "class A { readonly get: () => number\n  set: number\n  static: string\n  m() { return 1 } }\n"
        "Object.keys(new A())",
        ["get", "set", "static"],
    ),
    "private names": (
        "class A { #x: number = 1; static #y?: string; get(): number { return this.#x } }\nnew A().get()",
        1,
    ),
    "parameter properties": (
        "class A { c = 1; constructor(private readonly a: string, public b?: number, d = 4) { this.d = d } d }\n"
        "const a = new A('q', 2); a",
        {"a": "q", "b": 2, "c": 1, "d": 4},
    ),
    "parameter properties below super": (
        "class A { p = 1 }\n"
        "class B extends A { constructor(public q: number) { super(); this.r = this.q + 1 } r: number }\nnew B(2)",
        {"p": 1, "q": 2, "r": 3},
    ),
    "constructor overloads": ("class A { constructor(a: string); constructor(private a: any) {} }\nnew A(9)", {"a": 9}),
    "decorator-free emails": ("const mail: string = 'a@b.c'; mail", "a@b.c"),
    "object methods": (
        "const o = { m<T>(x: T): T { return x }, async n(): Promise<number> { return 2 },\n"
        "  get p(): number { return 3 } };\n"
        "[o.m(1), await o.n(), o.p]",
        [1, 2, 3],
    ),
    "loops": (
        "let n: number = 0; for (const x of [1, 2] as number[]) n += x; for (let i: number = 0; i < 3; i++) n += i; n",
        6,
    ),
    "destructuring": (
        "const { a, b: { c } }: { a: number; b: { c: string } } = { a: 1, b: { c: 'x' } }\n"
        "const [d]: number[] = [2]; [a, c, d]",
        [1, "x", 2],
    ),
    "new syntax stays": ("const a: any = null; [a?.b ?? 1, 1_000, 2 ** 3, a?.[0]?.()]", [1, 1000, 8, None]),
    "comparisons": (
        "const a: number = 1, b = 2, c = 3, d = 4; [a < b && c > (d), a < b == (c > (d)), 1 << 2 >> (1)]",
        [False, False, 2],
    ),
    "regular expressions": ("const a: RegExp = /[/<>]+/g; 'a<b>/c'.match(a)", ["<", ">/"]),
    "a lone typed function": ("async (): Promise<number> => 8", 8),
    "export default": ("type A = number\nexport default async function main(): Promise<A> { return 3 }", 3),
    "return at top level": ("const a: number = 1\nreturn a + 1", 2),
    "await at top level": ("const a: number = await Promise.resolve<number>(1)\na", 1),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_it_means_what_typescript_says(name: str) -> None:
    text, expected = MEANINGS[name]
    assert value(text) == expected


ENUMS: dict[str, tuple[str, object]] = {
    "numbers": (
        "enum A { B, C, D = 5, E } A",
        {"0": "B", "1": "C", "5": "D", "6": "E", "B": 0, "C": 1, "D": 5, "E": 6},
    ),
    "strings": ("enum A { B = 'b', C = `c` } A", {"B": "b", "C": "c"}),
    "computed": ("enum A { B = 1 << 1, C = B | 4, D = 'x'.length, E = A.B } [A.B, A.C, A.D, A.E]", [2, 6, 1, 2]),
    "strings that are computed": ("enum A { B = 'b' + 1, C = `${B}c` } A", {"B": "b1", "C": "b1c"}),
    "odd keys": (
        "enum A { 'a-b' = 1, default, 'c' = 'd', E } [A['a-b'], A.default, A.c, A[2]]",
        [1, 2, "d", "default"],
    ),
    "casts in values": ("enum A { B = 'b' as any, C = (<number>2) } [A.B, A.C]", ["b", 2]),
    "const": ("const enum A { B = 3 } A.B", 3),
    "empty": ("enum A {} A", {}),
    "merged": ("enum A { B } enum A { C = 1 } [A.B, A.C]", [0, 1]),
    "in a function": ("function f() { enum A { B = 4 } return A.B }\nf()", 4),
    "a comment behind a member": ("enum A {\n  B = 'b', // first\n  C, // second\n}\nA.B", "b"),
}


@pytest.mark.parametrize("name", ENUMS)
def test_an_enum_is_the_object_that_typescript_makes(name: str) -> None:
    text, expected = ENUMS[name]
    if name == "a comment behind a member":
        text = text.replace("C,", "C = 'c',")
    assert value(text) == expected


SEAMS: dict[str, tuple[str, object]] = {
    "a type above a parenthesis": (
        "let n = 0\nconst f = () => n++\ntype A = string\n;(f)()\ntype B = string\n(f)()\nn",
        2,
    ),
    "an interface above a bracket": ("const a = 1\ninterface A {}\n[2].length + a", 2),
    "a cast above a parenthesis": ("const a = 1 as any\n(2)\na", 1),
    "a cast that goes on": ("const a = 1 as number\n  + 2\na", 3),
    "a cast above a template": ("const a = 1 as any\n`x`\na", 1),
    "an import of types above a bracket": ("const a = 5\nimport type { B } from 'b'\n[1].length + a", 6),
    "generics behind return": ("function f() { return <T,>\n  (x: T) => x }\nf()(6)", 6),
    "generics on lines behind return": ("function f() { return <\n  T,\n>(x: T) => x }\nf()(6)", 6),
    "an assertion behind return": ("function f() { return <any>\n  7 }\nf()", 7),
    "generics behind async": ("const f = async <T>\n  (x: T) => x\nawait f(8)", 8),
    "a return type on lines": (
        "const f = (a: number):\n  Promise<\n    number\n  > => Promise.resolve(a)\nawait f(9)",
        9,
    ),
    "a modifier before a generator": (
        "class A { x = 1\n  private *g() { yield this.x } h() { return [...this.g()] } }\nnew A().h()",
        [1],
    ),
    "a modifier before a computed name": (
        "class A { x = 1\n  readonly ['y'] = 2\n  static z = 3\n  private static ['w'] = 4 }\n[new A().y, A.w]",
        [2, 4],
    ),
    "an index signature between fields": (
        "class A { x = 1;\n  [k: string]: any\n  ['y'] = 2 }\nnew A()",
        {"x": 1, "y": 2},
    ),
}


@pytest.mark.parametrize("name", SEAMS)
def test_what_is_erased_joins_no_two_statements_and_splits_none(name: str) -> None:
    text, expected = SEAMS[name]
    assert value(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "let a: string\n= 'x' // é 😀\nfunction f(a: number,\n  b: { c: string;\n d: number }): void {}",
        "type A = {\n  b: '😀';\n}\nlet c: '😀é' = x;",
        "class A { constructor(a?: number) {} abstract b: number; private c!: string }",
        "import { type A, b, type C } from 'd'; export { type E, f }",
    ],
)
def test_every_character_that_stays_keeps_its_line_and_its_column(text: str) -> None:
    answer = strip(text)
    assert answer[0] is True
    assert answer[2] == []
    for old, new in zip(text.split("\n"), answer[1].split("\n"), strict=True):
        assert all(b in (a, ord(" "), ord(";")) for a, b in zip(units(old), units(new), strict=True))


def units(text: str) -> list[int]:
    """A text's UTF-16 units, which columns count."""
    return list(memoryview(text.encode("utf-16-le")).cast("H"))


@pytest.mark.parametrize(
    "text",
    [
        "const a = { b: 1, 'c': [2] }; for (const [k, v] of Object.entries(a)) { console.log(`${k} ${`${v}`}`) }",
        "async function* g() { yield* h(); await x; label: for (;;) break label }",
        "class A extends (B, C) { static { this.x = 1 } #y = 2; static async *z() {} get get() { return 1 } }",
        "a ? (b) : c => d; x = y / 2 / z; /re[/]x/g.test(s); i++ + ++j; ({ type, declare, as, of } = z)",
        "type = 1; declare(a); interface; namespace\n.x; abstract\nclass Q {}; let as = 1, satisfies = 2; module.x()",
        "if (a < b || c > d) { e << f >>> g >= h } else if (i<j) k = l<m",
        "import x, { y as z } from 'w'; export const q = 1; export default class {}",
        "",
    ],
)
def test_javascript_comes_out_as_it_went_in(text: str) -> None:
    assert strip(text) == [True, text, []]


def place(text: str, mark: str = "null.x") -> tuple[int, int]:
    """Line and column of the first `mark` in a text, the column in UTF-16 units."""
    before = text[: text.index(mark)]
    return before.count("\n") + 1, len(units(before[before.rfind("\n") + 1 :])) + 1


PLACES = [
    "const a: number = 1; null.x",
    "interface A {\n  b: string\n}\ntype C = A\nconst d: C = null.x",
    "const a = (b: { c: string;\n  d: number }, e?: Array<\n  string>): void => { null.x }\na()",
    "let a: '😀é' = '😀é' as '😀é'; null.x",
    "const s: string = `é\n  ${1 as number}\n${null.x}`",
    "enum A { B, C = 'c', D = 2 } null.x",
    "enum A { B, C = 'é', D } enum E { F = 1 } const g: string = 'é'; null.x",
    "enum A {\n  B,\n  C = null.x,\n}",
    "class A { constructor(private a: number, readonly b = 2) { null.x } }\nnew A(1)",
    "class A {} class B extends A { constructor(private a: number) { super(); null.x } }\nnew B(1)",
    "const f = async <T,>(x: T): Promise<T> => { await x; return null.x }\nawait f<number>(1)",
    "Sure! Here it is:\n\n```ts\nconst a: number = 1\n  null.x\n```\nDone.",
    "\ufeff#!/usr/bin/env node\r\nlet a: number\r\nnull.x",
    "'a\u2028b'; let c: number = 1; null.x",
]


@pytest.mark.parametrize("text", PLACES)
def test_an_error_stands_where_it_stands_in_the_text_that_was_sent(text: str) -> None:
    """ESC-28"""
    found = failure(text)
    line, column = place(text.removeprefix("\ufeff"))
    assert (found.line, found.column) == (line, column)
    assert found.stack is not None
    assert f"script:{line}:{column}" in found.stack


def test_each_frame_of_a_stack_stands_where_it_stands_in_the_text_that_was_sent() -> None:
    text = "enum A { B } const g = (x: number): number => h(x), h = (y: number) => { throw new Error('no') };\n\n  g(1)"
    stack = failure(text).stack or ""
    first = text.index("Error") + 1, text.index("h(x)") + 1
    assert f"script:1:{first[0]}" in stack
    assert f"script:1:{first[1]}" in stack
    assert "script:3:3" in stack


@pytest.mark.parametrize(
    ("text", "mark", "words"),
    [
        ("const a: number = ;", ";", "';'"),
        ("const a: string = 'x'\nconst b = foo(1 2)", "2)", "'2'"),
        ("interface A { b: string }\nlet c = {", "", "end of the code"),
        ("let a: number = 1\nlet a = 2", "= 2", "redefinition"),
        ("type A = {\n  b: string\nlet c = 1", "c = 1", "'c'"),
        ("const f = <T,>(a: T) => {\n  return a +\n}", "}", "'}'"),
        ("foo<string>((a: number) => {\n  a b\n})", "b\n", "'b'"),
        ("const f = (a: number) => {\n  return a +\n}", "}", "'}'"),
        ("enum A { B } let c; let c", "", "redefinition"),
        ("let a: number = 1; import fs from 'fs'", "import", "import"),
    ],
)
def test_a_mistake_is_reported_at_its_place_and_not_at_the_first_type(text: str, mark: str, words: str) -> None:
    found = failure(text)
    assert found.code == "syntax_error"
    assert words in found.message
    if mark:
        assert (found.line, found.column) == place(text, mark)


@pytest.mark.parametrize(
    ("text", "words", "mark"),
    [
        ("let a: number\n  @sealed class A {}", "Decorators are not supported: call the function yourself", "@sealed"),
        ("class A { @prop x: string }", "Decorators are not supported", "@prop"),
        ("class A { m(@param x: string) {} }", "Decorators are not supported: call the function yourself", "@param"),
        ("class A { accessor v = 5 }", "`accessor` is not supported: use a plain property, or `get`", "accessor"),
        ("class A { static accessor #v: number }", "`accessor` is not supported", "accessor"),
        ("class A { constructor(@inject x: string) {} }", "Decorators", "@inject"),
        (
            "let a: number\nnamespace N { export const b = 1 }",
            "namespace with code in it is not supported: use an object",
            "namespace",
        ),
        ("import a = require('a')\nlet b: number", "`import =` is not supported: there are no modules", "import"),
        ("let b: number\nexport = b", "`export =` is not supported: end the script with the value", "export"),
        ("const a: any = <div className='b'>hi</div>", "JSX is not supported: build text or objects", ""),
        ("const a: any = <><b/></>", "JSX is not supported", ""),
    ],
)
def test_what_is_not_supported_is_named_at_its_place(text: str, words: str, mark: str) -> None:
    found = failure(text)
    assert found.code == "syntax_error"
    assert words in found.message
    if mark:
        assert (found.line, found.column) == place(text, mark)


def test_comparisons_in_javascript_are_not_taken_for_type_arguments() -> None:
    text = "const i = 3, n = 2, x = 1; i<n>(x)"
    assert value(text, "javascript") is False
    found = start(text, "typescript")
    assert not isinstance(found, Step)
    assert found.message == "not a function"


def test_types_in_a_text_sent_as_javascript_run_too() -> None:
    assert value("const a: number = 1; a", "javascript") == 1


# ---- hostile texts


DEEP = {
    "parentheses": "let a: number = " + "(" * 10**6 + "1" + ")" * 10**6,
    "brackets": "let a: any = " + "[" * 10**5,
    "objects": "let a: any = " + "{a:" * 10**5,
    "templates": "let a: string = " + "`${" * 10**5 + "1" + "}`" * 10**5,
    "types": "type A = " + "Array<" * 10**5,
    "type brackets": "type A = " + "[" * 10**5,
    "comparisons": "let a: T = " + "b<" * 10**5,
    "conditions": "let a: T = " + "b?" * 10**5,
    "blocks": "let a: T;" + "{" * 10**5,
    "arrows": "let a: T = " + "b=>" * 10**5,
}


@pytest.mark.parametrize("name", DEEP)
def test_nesting_without_end_is_refused_as_nested_too_deeply(name: str) -> None:
    """ESC-28"""
    answer = strip(DEEP[name])
    assert answer[0] is False
    assert answer[1][0] == "The code is nested too deeply"


@pytest.mark.parametrize("depth", [100, 200])
def test_nesting_as_a_person_or_a_serialiser_writes_it_is_fine(depth: int) -> None:
    text = "const a: any = " + "[" * depth + "1" + "]" * depth
    assert strip(text)[0] is True


def test_a_long_sum_and_a_long_name_are_not_deep() -> None:
    """ESC-28"""
    assert strip("let a: number = " + "+".join(["1"] * 20_000))[0] is True
    name = "a" * 10**6
    assert strip(f"let {name}: number = 1")[1] == f"let {name}         = 1"


def test_an_enum_of_ten_thousand_members_on_one_line_takes_no_quadratic_time() -> None:
    text = "enum A {" + ",".join(f"B{i}" for i in range(10_000)) + "}"
    assert strip(text, fuel=5 * 10**9)[0] is True


def test_backtracking_without_end_ends_with_the_fuel() -> None:
    """ESC-28"""
    text = "let a: T = " + "(a=" * 30 + "1" + ")=>1" * 30
    with pytest.raises(Trapped, match="fuel"):
        strip(text, fuel=10**9)


def test_a_text_that_takes_more_memory_than_there_is_says_so() -> None:
    assert strip("a;" * 100_000, memory=8 << 20) == [None]


@pytest.mark.parametrize(
    "text", ["", "\0", "let a: string = '", "`", "/*", "\ud800: number", "\u2028", "#!", "a:::b", "<", "@", "\\u"]
)
def test_fragments_get_an_answer(text: str) -> None:
    """ESC-28"""
    assert strip(text)[0] in (True, False)


def test_a_source_map_comment_is_a_comment() -> None:
    """ESC-28"""
    assert value("const a: number = 1; a\n//# sourceMappingURL=file:///etc/passwd") == 1


def test_stripping_the_same_text_twice_takes_the_same_fuel_and_gives_the_same_code() -> None:
    text = "enum A { B } class C { constructor(private d: string) {} }"
    assert stripped(text) == stripped(text)
