"""Reading a text that was sent: the order of attempts, fences and prose, and positions that are those of the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.errors import FrameError
from bridge.wire.frames import Failure
from runtime.worker import fences
from runtime.worker.source import Attempt, Columns, Reading, looks_generic, normal


def refusal(line: int, column: int, message: str = "unexpected token") -> Failure:
    return Failure("syntax_error", "SyntaxError", message, line, column, f"    at script:{line}:{column}\n", None)


def texts(text: str, language: str = "typescript") -> list[str]:
    """The texts that are tried when nothing compiles and there are no types to strip."""
    reading = Reading(text, language)
    seen: list[str] = []
    attempt = reading.first()
    while attempt is not None:
        if attempt.text not in seen:
            seen.append(attempt.text)
        if attempt.kind == "strip":
            attempt = reading.stripped([True, attempt.text, []])
        else:
            attempt = reading.refused(refusal(1, 1))
    return seen


def first_text(text: str, language: str = "typescript") -> str:
    attempt = Reading(text, language).first()
    assert attempt is not None
    return attempt.text


# ---- the order of attempts


def test_plain_code_is_compiled_as_javascript_first() -> None:
    assert Reading("1 + 1", "typescript").first() == Attempt("javascript", "1 + 1")


def test_types_are_stripped_after_javascript_refused() -> None:
    reading = Reading("let a: number = 1", "typescript")
    reading.first()
    assert reading.refused(refusal(1, 6)) == Attempt("strip", "let a: number = 1")
    assert reading.stripped([True, "let a         = 1", []]) == Attempt("javascript", "let a         = 1")


def test_a_generic_call_is_stripped_before_javascript_can_misread_it() -> None:
    assert Reading("f<string>(x)", "typescript").first() == Attempt("strip", "f<string>(x)")


def test_comparisons_stay_comparisons_in_javascript() -> None:
    assert Reading("i<n>(x)", "javascript").first() == Attempt("javascript", "i<n>(x)")


def test_types_in_a_text_sent_as_javascript_are_stripped_when_it_does_not_compile() -> None:
    reading = Reading("let a: number = 1", "javascript")
    reading.first()
    assert reading.refused(refusal(1, 6)) == Attempt("strip", "let a: number = 1")


def test_a_text_without_types_is_not_compiled_twice() -> None:
    reading = Reading("let a = ;", "typescript")
    reading.first()
    reading.refused(refusal(1, 9))
    assert reading.stripped([True, "let a = ;", []]) is None


def test_a_text_that_only_looked_generic_is_compiled_as_it_is_when_it_cannot_be_stripped() -> None:
    reading = Reading("f<a>(b) }", "typescript")
    reading.first()
    assert reading.stripped([False, ["Unexpected token", 1, 9, False]]) == Attempt("javascript", "f<a>(b) }")


def test_a_text_that_only_looked_generic_runs_as_it_came_out_of_stripping() -> None:
    reading = Reading("f<a>(b)", "typescript")
    reading.first()
    assert reading.stripped([True, "f<a>(b)", []]) == Attempt("javascript", "f<a>(b)")


# ---- which error is reported


def test_javascripts_error_is_reported_when_both_parsers_stop_at_the_same_place() -> None:
    reading = Reading("const b = ;", "typescript")
    reading.first()
    reading.refused(refusal(1, 11, "unexpected token in expression: ';'"))
    assert reading.stripped([False, ["Unexpected token", 1, 11, False]]) is None
    assert reading.failure().message == "unexpected token in expression: ';'"


def test_the_parser_that_got_further_is_believed() -> None:
    reading = Reading("const a: number = 1\nconst b = ;", "typescript")
    reading.first()
    reading.refused(refusal(1, 8))
    reading.stripped([False, ["Unexpected token", 2, 11, False]])
    assert (reading.failure().line, reading.failure().column) == (2, 11)


def test_an_unsupported_construct_is_named_though_javascript_stopped_there_too() -> None:
    reading = Reading("@sealed class A {}", "typescript")
    reading.first()
    reading.refused(refusal(1, 1))
    reading.stripped([False, ["Decorators are not supported", 1, 1, True]])
    assert reading.failure() == Failure("syntax_error", "SyntaxError", "Decorators are not supported", 1, 1, None, None)


def test_an_error_in_stripped_code_is_javascripts_with_the_columns_of_the_text() -> None:
    reading = Reading("enum A { B } let a; let a", "typescript")
    reading.first()
    reading.refused(refusal(1, 1))
    reading.stripped([True, "var  A;(12345) { B } let a; let a", [[1, 7, 7, 15, 7]]])
    assert reading.refused(refusal(1, 33)) is None
    assert (reading.failure().line, reading.failure().column) == (1, 25)


def test_an_image_that_ran_out_of_memory_ends_the_run_as_that() -> None:
    reading = Reading("let a: number = 1", "typescript")
    reading.first()
    reading.refused(refusal(1, 6))
    assert reading.stripped([None]) is None
    assert reading.failure().code == "memory_exhausted"


@pytest.mark.parametrize(
    "answer", [None, [], [True], [True, "x"], [False, ["m", 1]], [True, 1, []], {"a": 1}, [True, "x", [1]]]
)
def test_an_answer_of_another_shape_is_refused(answer: object) -> None:
    reading = Reading("let a: number", "typescript")
    reading.first()
    reading.refused(refusal(1, 6))
    with pytest.raises(FrameError):
        reading.stripped(answer)


def test_an_empty_text_is_a_program() -> None:
    assert first_text("") == ""


# ---- positions


def test_columns_behind_inserted_text_are_those_of_the_text_that_was_sent() -> None:
    columns = Columns([[3, 10, 10, 20, 10, 31, 21, 35, 21]])
    assert [columns.original(3, at) for at in (1, 9, 10, 15, 19, 20, 25, 30, 31, 34, 35, 40)] == [
        *(1, 9, 10, 10, 10, 10, 15, 20, 21, 21, 21, 26),
    ]
    assert columns.original(2, 77) == 77


def test_frames_of_the_script_in_a_stack_are_moved_and_no_others() -> None:
    reading = Reading("enum A { B } f()", "typescript")
    reading.first()
    reading.refused(refusal(1, 1))
    reading.stripped([True, "var  A;(12345) { B } f()", [[1, 7, 7, 15, 7]]])
    failure = Failure("script_error", "Error", "m", 1, 22, "    at f (script:1:22)\n    at map (native)\n", None)
    located = reading.located(failure)
    assert (located.line, located.column) == (1, 14)
    assert located.stack == "    at f (script:1:14)\n    at map (native)\n"


def test_a_line_that_the_text_does_not_have_is_passed_on() -> None:
    reading = Reading('"é"', "typescript")
    reading.first()
    assert reading.located(refusal(9, 4)).line == 9


# ---- what surrounds the code


def test_a_fence_around_everything_is_blanked_and_lines_stay() -> None:
    assert first_text("```ts\nconst a = 1\na\n```\n") == "\nconst a = 1\na\n"


def test_prose_around_a_fence_is_blanked_and_lines_stay() -> None:
    sent = "Sure! Here is the code, it's short:\n\n```js\nreturn 1\n```\n\nIt gives `1`."
    assert first_text(sent) == "\n\n\nreturn 1\n"


@pytest.mark.parametrize("word", ["Sure", "Code:", "Done."])
def test_a_word_before_a_fence_does_not_make_it_a_tagged_template(word: str) -> None:
    assert first_text(f"{word}\n```\n1 + 1\n```") == "\n\n1 + 1\n"


def test_blocks_in_other_languages_are_not_code() -> None:
    sent = "```json\n{}\n```\n```bash\nls\n```\n```typescript\n2\n```\n```text\nout\n```"
    assert first_text(sent).strip() == "2"
    assert first_text(sent).index("2") == 7


def test_a_tagged_block_is_preferred_to_an_earlier_one_without_a_tag() -> None:
    assert first_text("```\nsample output\n```\n```js\n2\n```").strip() == "2"


def test_a_block_without_a_tag_is_code_when_none_is_tagged() -> None:
    assert first_text("```json\n1\n```\n```\n2\n```").strip() == "2"


def test_text_with_no_block_in_our_languages_says_so() -> None:
    reading = Reading("```python\nprint(1)\n```", "typescript")
    assert reading.first() is None
    assert reading.failure().code == "syntax_error"
    assert "tagged python" in reading.failure().message


def test_a_later_block_that_uses_names_of_the_first_goes_on_from_it() -> None:
    sent = "First:\n```ts\nconst a = 1\n```\nthen:\n```ts\na + 1\n```"
    assert first_text(sent) == "\n\nconst a = 1\n\n\n\na + 1\n"


def test_a_later_block_that_stands_alone_is_another_version_and_is_not_run() -> None:
    assert first_text("```js\nlet a = 1\na\n```\nor\n```js\nlet a = 2\na\n```") == "\nlet a = 1\na\n"
    assert first_text("```js\nawait send(1)\n```\nor\n```js\nawait send(2)\n```") == "\nawait send(1)\n"


def test_the_first_block_alone_is_tried_when_the_joined_ones_do_not_compile() -> None:
    assert texts("```js\nlet a = 1\n```\n```js\nconst b = a +\n```") == [
        "\nlet a = 1\n\n\nconst b = a +\n",
        "\nlet a = 1\n",
    ]


def test_a_fence_may_be_longer_than_those_inside_it() -> None:
    sent = "````js\nconst md = `\n```js\nx\n```\n`\n````"
    assert first_text(sent) == "\nconst md = `\n```js\nx\n```\n`\n"


def test_backticks_of_templates_inside_a_block_do_not_end_it() -> None:
    sent = "```js\nconst a = `x ${`y`} \\`\\`\\``\nconst b = ``\n```"
    assert first_text(sent) == "\nconst a = `x ${`y`} \\`\\`\\``\nconst b = ``\n"


@pytest.mark.parametrize(
    "sent", ["```js\n1 + 1", "~~~\n1 + 1\n~~~", "   ```js\n1 + 1\n   ```", "1 + 1\n```", "```1 + 1```"]
)
def test_odd_fences_hold_their_code(sent: str) -> None:
    assert first_text(sent).strip() == "1 + 1"


def test_code_on_the_line_of_its_fence_keeps_its_column() -> None:
    assert first_text("```js 1 + 1 ```") == "      1 + 1 "
    assert first_text("```js\n  f()```") == "\n  f()"


def test_a_fence_in_a_comment_or_template_of_code_is_no_fence() -> None:
    comment = "/*\n```js\nexample()\n```\n*/\n1 + 1"
    template = "const a = `\n```js\nexample()\n```\n`"
    assert first_text(comment) == comment
    assert texts(template) == [template]


def test_a_script_that_counting_would_misread_is_tried_before_the_fence_in_its_text() -> None:
    sent = "const r = /['\"`]/\nconst s = `\n~~~js\nexample()\n~~~\n`"
    assert texts(sent) == [sent]


def test_a_fence_of_tildes_below_a_word_is_a_fence_when_the_text_does_not_compile() -> None:
    assert texts("script\n~~~js\n1 + 1\n~~~") == ["script\n~~~js\n1 + 1\n~~~", "\n\n1 + 1\n"]


def test_a_fence_at_the_end_of_a_line_of_prose_is_tried_second() -> None:
    sent = "Here it is: ```ts\nconst a: number = 1\n```"
    assert texts(sent) == [sent, "\nconst a: number = 1\n"]


def test_sentences_without_a_fence_are_blanked_when_the_text_does_not_compile() -> None:
    sent = "Here is the script you asked for:\n\nconst a = 1\na\n\nThis returns 1."
    assert texts(sent) == [sent, "\n\nconst a = 1\na"]


@pytest.mark.parametrize(
    "line",
    [
        "Here is the code",
        "Sure!",
        "Sure, here you go.",
        "I'll list the issues first.",
        "The following script (which uses two tools) does it:",
        "## Solution",
        "- It calls `tools.search` first.",
        "1. Find the tool.",
        "**Note:** This prints nothing.",
        "here is the code:",
        "if you want to count the rows, use this:",
        "with that done, the rest is:",
        "for each of the rows we write:",
    ],
)
def test_a_sentence_is_prose(line: str) -> None:
    assert fences.is_prose(line)


@pytest.mark.parametrize(
    "line",
    [
        "const a = 1",
        "await tools.a.b()",
        "Math.max(a, b)",
        "Foo instanceof Bar",
        "Promise.all(xs)",
        "X as any",
        "// A comment about it.",
        "return { a: 1 }",
        "case 1:",
        "default:",
        "a ? b : c",
        "`text`",
        "",
        "if ready:",
        "while not done:",
        "with lock:",
        "for row in rows:",
        "class Account:",
        "elif ready:",
        "except OSError:",
    ],
)
def test_a_line_of_code_is_not_prose(line: str) -> None:
    assert not fences.is_prose(line)


# ---- characters around it


def test_a_byte_order_mark_a_hashbang_and_line_ends_change_no_position() -> None:
    """ESC-28"""
    assert normal("\ufeff#!/usr/bin/env node\r\n1\r2\n") == "///usr/bin/env node\n1\n2\n"


@given(st.text(alphabet="`~js\n tab1(){};\r\ufeff#!/*", max_size=60))
def test_no_attempt_moves_a_line_or_a_column(sent: str) -> None:
    lines = normal(sent).split("\n")
    for text in texts(sent):
        for got, was in zip(text.split("\n"), lines, strict=False):
            assert all(a == b or a == " " for a, b in zip(got, was, strict=False))
            assert len(got) <= len(was)


@given(st.text(max_size=80), st.sampled_from(["javascript", "typescript"]))
def test_any_text_comes_to_an_end_with_one_error(sent: str, language: str) -> None:
    assert len(texts(sent, language)) <= 4
    reading = Reading(sent, language)
    attempt = reading.first()
    while attempt is not None:
        strip = attempt.kind == "strip"
        attempt = reading.stripped([False, ["m", 1, 1, False]]) if strip else reading.refused(refusal(1, 1))
    assert reading.failure().code == "syntax_error"


# ---- calls with type arguments


@pytest.mark.parametrize(
    "text",
    [
        "f<string>(x)",
        "new Map<string, number>()",
        "foo<Array<string>>(x)",
        "foo<Array<Array<string>>>(x)",
        "sql<Row>`select`",
        "useState<number | null>(null)",
        "f<{ a: number, b: [string, X] }>(x)",
        "f<typeof x>(y)",
        "a?.b<string>(x)",
        "a[0]<T>(x)",
        "a()<T>(x)",
        'pick<"a" | "b">(x)',
        "xs.reduce<Record<string, number[]>>((a, b) => a, {})",
        "f<\n  A,\n  B\n>(x)",
        "if (a < b) { new Set<string>(xs) }",
        "i<n>(x)",
    ],
)
def test_a_call_with_type_arguments_is_seen(text: str) -> None:
    assert looks_generic(text)


@pytest.mark.parametrize(
    "text",
    [
        "a < b && c > (d)",
        "a < b || c > (d)",
        "if (a < b) { f(c) } if (c > (d)) {}",
        "for (let i = 0; i < n; i++) { if (i > (n - 1)) f() }",
        "x = a < b\ny = c > (d)",
        "xs.map(x => (x)).filter(x => x < (3))",
        "const a = b < c ? d : e > (f)",
        "1 << 2 >> (3)",
        "a <= b, c >= (d)",
        "x < 1; y > (2)",
        "'<b>(x)</b>'",
        "() => ({})",
    ],
)
def test_comparisons_and_arrows_are_not_calls_with_type_arguments(text: str) -> None:
    assert not looks_generic(text)


@pytest.mark.parametrize("piece", ["a<", "(a<", "[a<b>(", "a< ", "a > (", "}", "a<b,"])
def test_looking_for_type_arguments_reads_each_character_a_bounded_number_of_times(piece: str) -> None:
    """ESC-28: half a million characters at once; quadratic work would not come back."""
    looks_generic(piece * (2**19 // len(piece)) + "x>(")
