"""What a Python script may be, what it sees, and how its calls leave and come back."""

from __future__ import annotations

import pytest
from python_host import NOW_US, Refusal, run, value

CALL = "tools.a.b.c"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 1", 2),
        ("x = 20\nx * 2 + 2", 42),
        ("return 5", 5),
        ("if True:\n    return 'early'\nreturn 'late'", "early"),
        ("def f(n):\n    return n * 2\nf(4)", 8),
        ("for i in range(3):\n    pass\ni", 2),
        ("x = 1", None),
        ("if input > 3:\n    'big'\nelse:\n    'small'", "big"),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    'caught'", "caught"),
        ("match input:\n    case 4:\n        'four'\n    case _:\n        'other'", "four"),
        ("await asyncio.sleep(0)\n'awaited'", "awaited"),
        ("[await asyncio.sleep(0, i) for i in range(3)]", [0, 1, 2]),
        ("async def f():\n    return 7\nawait f()", 7),
        ("async def f():\n    return 7\nf()", 7),
        ("async def main():\n    return input + 1", 5),
        ("def main(given):\n    return given * 2", 8),
        ("def main():\n    return 3\nif __name__ == '__main__':\n    main()", 3),
        ("async def main():\n    return 3\nimport asyncio\nasyncio.run(main())", 3),
        ("list = list(range(3))\nlist", [0, 1, 2]),
        ("from math import *\nsqrt(16)", 4.0),
        ("exec('y = 3')\ny", 3),
        ("x = 5\nglobals()['x']", 5),
        ("x: int = 5\ny: str\nx", 5),
        ("count = 0\ndef add():\n    global count\n    count += 1\nadd()\nadd()\ncount", 2),
        ("(total := 0)\nfor n in [1, 2]:\n    total += n\ntotal", 3),
        ("import sys\nsys.exit()", None),
    ],
)
def test_a_script_gives_what_its_last_expression_or_return_says(source: str, expected: object) -> None:
    assert value(source, 4) == expected


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("def f(: pass", 1, 7),
        ("x = 1\ny = = 2", 2, 5),
        ("yield 1", 1, 1),
        ("x = 1\nnonlocal x", 2, 1),
        ("'unfinished", 1, 1),
        ("(" * 3000, 1, 1),
        ("x = 1\0", 1, 1),
    ],
)
def test_a_text_that_does_not_compile_is_a_syntax_error_where_it_is_wrong(source: str, line: int, column: int) -> None:
    failure = run(source).failed
    assert (failure.code, failure.name, failure.line) == ("syntax_error", "SyntaxError", line)
    assert failure.column is not None
    if column > 1:
        assert failure.column == column


def test_an_exception_names_the_innermost_line_of_the_script_and_shows_its_frames() -> None:
    failure = run("import json\n\ndef load(text):\n    é = 1; return json.loads(text)\n\nload('{')\n").failed
    assert (failure.code, failure.name, failure.line, failure.column) == ("script_error", "JSONDecodeError", 4, 19)
    assert failure.stack is not None
    assert 'File "<script>", line 6, in <module>' in failure.stack
    assert "return json.loads(text)" in failure.stack
    assert "executor" not in failure.stack


def test_an_exception_group_says_what_is_in_it_and_where() -> None:
    source = (
        "async def f():\n    raise ValueError('inner')\nasync with asyncio.TaskGroup() as g:\n    g.create_task(f())"
    )
    failure = run(source).failed
    assert (failure.name, failure.line) == ("ExceptionGroup", 2)
    assert "ValueError: inner" in failure.message


def test_a_call_in_plain_code_waits_and_gives_the_value() -> None:
    outcome = run(f"r = {CALL}(x=1)\ns = {CALL}({{'y': 2}})\n[r['x'] + 1, s]")
    assert outcome.value == [2, {"y": 2}]
    assert outcome.paths() == ["a.b.c", "a.b.c"]


def test_a_call_inside_a_plain_function_waits_in_the_middle_of_the_step() -> None:
    outcome = run(f"def get(i):\n    return {CALL}(x=i)['x']\n[get(i) for i in range(3)] + list(map(get, [7]))")
    assert outcome.value == [0, 1, 2, 7]
    assert outcome.steps == 5


def test_an_answer_larger_than_the_input_buffer_reaches_a_waiting_function() -> None:
    text = "y" * 300_000
    assert value(f"def get():\n    return {CALL}(x=1)\nlen(get())", handler=lambda call: text) == len(text)


def test_calls_that_are_awaited_together_leave_together() -> None:
    outcome = run(f"r = await asyncio.gather(*[{CALL}(x=i) for i in range(5)])\n[v['x'] for v in r]")
    assert outcome.value == [0, 1, 2, 3, 4]
    assert outcome.steps == 2


def test_calls_that_asyncio_awaits_leave_together_without_a_word_of_async() -> None:
    outcome = run(f"[v['x'] for v in asyncio.run(asyncio.gather({CALL}(x=1), {CALL}(x=2)))]")
    assert (outcome.value, outcome.steps) == ([1, 2], 2)


def test_a_call_that_was_not_awaited_is_its_value_where_it_is_used() -> None:
    source = (
        f"async def f():\n    r = {CALL}(x=[1, 2])\n"
        "    return r['x'][0], len(r), list(r), str(r), 'x' in r, r.get('x')\n"
        "list(await f())"
    )
    assert value(source) == [1, 1, ["x"], "{'x': [1, 2]}", True, [1, 2]]


def test_a_call_that_is_a_statement_by_itself_is_seen_through_in_async_code() -> None:
    outcome = run(f"done = []\nasync def f():\n    {CALL}(x=1)\n    done.append(1)\nawait f()\ndone")
    assert (outcome.value, outcome.steps) == ([1], 2)


def test_calls_that_nobody_awaited_are_answered_before_the_run_ends() -> None:
    def refuse(call: object) -> None:
        raise Refusal({"code": "blocked", "message": "no", "path": "a.b.c"})

    outcome = run(f"kept = {CALL}(x=1)\nawait asyncio.sleep(0)\n5", handler=refuse)
    assert (outcome.value, outcome.steps) == (5, 2)
    assert outcome.text("error") == ["a tool call that was never awaited failed: no"]


def test_a_tool_error_carries_its_fields_and_can_be_caught() -> None:
    def refuse(call: object) -> None:
        raise Refusal(
            {
                "code": "upstream_error",
                "message": "no pets",
                "path": "a.b.c",
                "retryable": False,
                "hint": "buy one",
                "details": {"n": 1},
                "status": 404,
            }
        )

    source = (
        f"try:\n    {CALL}(x=1)\nexcept ToolError as e:\n"
        "    [e.code, str(e), e.path, e.retryable, e.hint, e.details, e.status]"
    )
    expected = ["upstream_error", "no pets", "a.b.c", False, "buy one", {"n": 1}, 404]
    assert value(source, handler=refuse) == expected
    failure = run(f"{CALL}(x=1)", handler=refuse).failed
    assert (failure.code, failure.name, failure.message) == ("script_error", "ToolError", "no pets")


def test_paths_are_spelled_by_attributes_or_by_strings() -> None:
    source = "[tools['a.b-c'](), tools.a['d'].e(), tools.call('f.g', {'x': 1}), tools.call(tools.h.i, x=2)]"
    assert run(source).paths() == ["a.b-c", "a.d.e", "f.g", "h.i"]


def test_search_describe_and_meta_are_ordinary_calls() -> None:
    outcome = run("tools.search('pets', limit=2)\ntools.describe(tools.a.b)\ntools.call('a.b', {'x': 1}, meta=True)")
    assert outcome.paths() == ["$search", "$describe", "a.b"]
    assert [call.meta for call in outcome.calls] == [False, False, True]
    assert outcome.result == {"x": 1}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("list(tools)", "tools.search"),
        ("await tools.a.b", "write tools.a.b(…)"),
        ("tools.a.b(1)", "keyword arguments or one dict"),
        ("tools.a.b({}, {})", "2 positional arguments"),
        ("tools()", "cannot be called"),
        ("tools.x = 1", "cannot be changed"),
    ],
)
def test_a_wrong_use_of_tools_says_what_is_right(source: str, words: str) -> None:
    assert words in run(source).failed.message


def test_arguments_that_cannot_cross_are_named_by_their_path_and_nothing_is_sent() -> None:
    outcome = run("tools.a.b(rows=[{'v': float('nan')}])")
    assert (outcome.failed.code, outcome.failed.path) == ("unserializable", "$.rows[0].v")
    assert outcome.calls == []


def test_arguments_over_their_budget_are_a_tool_error_of_code_too_large() -> None:
    source = "try:\n    tools.a.b(x='y' * 5000)\nexcept ToolError as e:\n    [e.code, e.path]"
    outcome = run(source, args_bytes=4096)
    assert (outcome.value, outcome.calls) == (["too_large", "a.b"], [])


def test_a_run_ends_when_its_calls_are_used_up_whatever_the_script_catches() -> None:
    source = (
        "n = 0\nwhile True:\n    try:\n        tools.a.b()\n        n += 1\n    except BaseException:\n        break\nn"
    )
    outcome = run(source, calls=5)
    assert (outcome.failed.code, len(outcome.calls)) == ("calls_exhausted", 5)


def test_timers_run_on_the_clock_of_the_host_in_their_order() -> None:
    source = (
        "import time\nout = []\nasync def at(s):\n    await asyncio.sleep(s)\n    out.append(s)\n"
        "start = time.time()\nawait asyncio.gather(at(2), at(1), at(3))\n[out, round(time.time() - start)]"
    )
    assert value(source) == [[1, 2, 3], 3]


def test_time_sleep_pauses_the_isolate_until_the_clock_says_so() -> None:
    outcome = run("import time\nt = time.time()\ntime.sleep(90)\nround(time.time() - t)")
    assert outcome.value == 90
    assert outcome.now_us >= NOW_US + 90_000_000


def test_the_monotonic_clocks_count_from_the_start_and_hold_each_microsecond() -> None:
    source = (
        "import asyncio, time\nloop = asyncio.get_running_loop()\n"
        "def steps(clock):\n    first, then = clock(), clock()\n"
        "    return [round((then - first) * 1e6, 3), 0 <= first < 3600]\n"
        "found = [steps(c) for c in (loop.time, time.monotonic, time.perf_counter, time.process_time)]\n"
        "woken = asyncio.Event()\nloop.call_at(time.monotonic() + 5, woken.set)\nbegan = time.monotonic()\n"
        "await woken.wait()\n[found, round(time.monotonic() - began)]"
    )
    assert value(source) == [[[1, True]] * 4, 5]


def test_asyncio_timeouts_and_task_groups_work_over_calls() -> None:
    source = (
        "try:\n    await asyncio.wait_for(asyncio.sleep(60), 1)\nexcept TimeoutError:\n    late = True\n"
        f"async def get(i):\n    return await {CALL}(x=i)\n"
        "async with asyncio.TaskGroup() as g:\n    tasks = [g.create_task(get(i)) for i in range(3)]\n"
        "[late, [t.result()['x'] for t in tasks]]"
    )
    assert value(source) == [True, [0, 1, 2]]


@pytest.mark.parametrize("source", ["await asyncio.get_running_loop().create_future()", "await asyncio.Event().wait()"])
def test_waiting_for_what_nothing_can_bring_about_is_named_at_once(source: str) -> None:
    assert run(source).failed.code == "never_settles"


def test_asyncio_run_works_inside_a_function_of_a_running_script() -> None:
    assert value(f"async def f():\n    return await {CALL}(x=1)\ndef g():\n    return asyncio.run(f())\ng()") == {
        "x": 1
    }


def test_what_is_printed_is_logged_line_by_line_with_its_stream() -> None:
    outcome = run(
        "import sys\nprint('a', end='')\nprint('b')\nprint('c\\nd')\nprint('bad', file=sys.stderr)\nprint('e', end='')"
    )
    assert outcome.text() == ["ab", "c\nd", "e"]
    assert outcome.text("error") == ["bad"]


def test_a_log_is_cut_between_characters_and_says_so() -> None:
    outcome = run("for i in range(100):\n    print('é' * 100)", log_bytes=1000)
    texts = [log.text for log in outcome.logs]
    assert texts[-1] == "… log truncated"
    assert sum(len(text.encode()) for text in texts) <= 1000
    assert set("".join(texts[:-1])) == {"é"}


def test_emitted_values_come_out_in_order_and_stop_at_their_budget() -> None:
    outcome = run(
        "emit({'n': 1})\nemit([2])\ntry:\n    emit('x' * 5000)\nexcept ValueError as e:\n    str(e)", result_bytes=4096
    )
    assert outcome.emitted == [{"n": 1}, [2]]
    assert "result_bytes" in outcome.value
