"""What a person or a model writes without having read the docs, and what it means."""

from __future__ import annotations

import pytest
from python_host import Refusal, run, value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("lambda: 5", 5),
        ("lambda x: x['n'] * 2", 8),
        ("async def main(tools):\n    return await tools.a.b(x=1)", {"x": 1}),
        ("def run(tools, input):\n    return [tools.a.b(x=1), input['n']]", [{"x": 1}, 4]),
        ("1 + input['n']", 5),
        ("[x for x in range(3)]", [0, 1, 2]),
        ("(y := 5) + y", 10),
        ("'text'", "text"),
        ("with asyncio.Runner() as r:\n    x = r.run(asyncio.sleep(0.01, 7))\nx", 7),
        ("await asyncio.gather(*[asyncio.create_task(tools.a.b(x=i)) for i in range(2)])", [{"x": 0}, {"x": 1}]),
        (
            "async with asyncio.TaskGroup() as g:\n    ts = [g.create_task(tools.a.b(x=i)) for i in range(2)]\n"
            "[t.result() for t in ts]",
            [{"x": 0}, {"x": 1}],
        ),
        ("import json\nc = tools.a.b(x=1)\nawait asyncio.sleep(0)\njson.dumps([c])", '[{"x": 1}]'),
    ],
)
def test_a_script_means_what_its_writer_meant(source: str, expected: object) -> None:
    assert value(source, {"n": 4}) == expected


def test_a_lambda_that_wants_more_than_there_is_is_a_value_that_cannot_cross() -> None:
    assert run("lambda a, b: a").failed.code == "unserializable"


def test_time_zones_are_known_by_name() -> None:
    source = (
        "import zoneinfo, datetime\n"
        "at = datetime.datetime(2026, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin'))\n"
        "[at.isoformat(), zoneinfo.ZoneInfo('UTC').key, len(zoneinfo.available_timezones()) > 500]"
    )
    assert value(source) == ["2026-07-01T12:00:00+02:00", "UTC", True]
    failure = run("import zoneinfo\nzoneinfo.ZoneInfo('Middle/Earth')").failed
    assert (failure.name, failure.line) == ("ZoneInfoNotFoundError", 2)


def test_a_task_that_failed_unseen_is_logged_before_the_run_ends() -> None:
    outcome = run(
        "async def bad():\n    raise ValueError('lost')\nasyncio.create_task(bad())\nawait asyncio.sleep(0)\n1"
    )
    assert outcome.value == 1
    assert any("lost" in text for text in outcome.text("error"))


def test_an_async_generator_that_was_left_is_closed_and_its_calls_are_made() -> None:
    source = (
        "async def rows():\n    try:\n        yield 1\n        yield 2\n    finally:\n        await tools.done(x=1)\n"
        "async for row in rows():\n    break\nrow"
    )
    outcome = run(source)
    assert (outcome.value, outcome.paths()) == (1, ["done"])
    assert outcome.text("error") == []


def test_a_generator_that_is_held_to_the_end_is_closed_too() -> None:
    source = (
        "async def g():\n    try:\n        yield 1\n    finally:\n        await tools.done()\n"
        "x = g()\nawait x.asend(None)"
    )
    assert run(source).paths() == ["done"]


@pytest.mark.parametrize(
    "source",
    [
        "def g():\n    yield\nx = g(); next(x)\nx.throw({0})",
        "f = asyncio.Future()\nf.set_exception({0})\nawait f",
        "raise {0}",
    ],
)
@pytest.mark.parametrize("error", ["MemoryError()", "RecursionError('mine')", "RecursionError('Stack overflow')"])
def test_an_exception_that_a_script_made_is_no_limit_however_it_is_raised(source: str, error: str) -> None:
    assert run(source.format(error)).failed.code == "script_error"


@pytest.mark.parametrize(
    "verdict",
    [
        "'fuel_exhausted'",
        "'internal'",
        "'deadline_exceeded'",
        "'cancelled'",
        "'calls_exhausted'",
        "'result_too_large'",
        "17",
    ],
)
def test_a_script_that_takes_the_guest_over_cannot_tell_what_is_the_hosts_to_tell(verdict: str) -> None:
    source = (
        "import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\n"
        f"f.f_globals['failures']._code = lambda e: {verdict}\n1 / 0"
    )
    failure = run(source).failed
    assert failure.code == "script_error"
    assert "changed the interpreter" in failure.message


def test_nothing_ran_is_not_said_of_a_script_that_made_calls() -> None:
    source = (
        "import sys\ntools.a.b(x=1)\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\n"
        "f.f_globals['failures']._code = lambda e: 'syntax_error'\n1 / 0"
    )
    assert run(source).failed.code == "script_error"


def test_the_path_of_a_tool_has_an_end() -> None:
    source = "try:\n    tools['x' * 10**7]()\nexcept ToolError as e:\n    r = [e.code, len(e.path)]\nr"
    assert value(source) == ["too_large", 200]


def test_what_arguments_do_while_they_are_packed_is_charged_as_well() -> None:
    lazy = (
        "import collections.abc\nclass M(collections.abc.Mapping):\n    def __getitem__(self, k): return {0}\n"
        "    def __len__(self): return 1\n    def __iter__(self): return iter(['a'])\n"
    )
    calls = run(lazy.format("tools.a.b(x=1)") + "def f(): return tools.a.b(M())\nf()", calls=1)
    assert calls.failed.code == "calls_exhausted"
    emitted = run(
        lazy.format("(emit('x' * 600), 'x' * 600)[1]")
        + "try:\n    emit(M())\nexcept Exception as e:\n    r = str(e)\nr",
        result_bytes=1000,
    )
    assert "result_bytes" in emitted.value
    assert len(emitted.emitted) == 1


def test_an_image_object_is_immortal_so_that_using_it_writes_nothing() -> None:
    assert value("import sys, json\n[sys._is_immortal(json.dumps), sys._is_immortal(object())]") == [True, False]


def test_a_refusal_is_the_same_from_a_task() -> None:
    def refuse(call: object) -> object:
        raise Refusal({"code": "upstream_error", "message": "no", "path": "a.b", "retryable": True})

    source = (
        "t = asyncio.create_task(tools.a.b())\ntry:\n    await t\n"
        "except ToolError as e:\n    r = [e.code, e.retryable]\nr"
    )
    assert value(source, handler=refuse) == ["upstream_error", True]
