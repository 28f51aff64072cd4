"""Toolkits and scopes: what they leave of everything, and that nothing in them can give more."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.calls import CallContext
from bridge.policy import SEVERITY, decide, new_rule, tightened
from bridge.toolbox import Toolbox
from bridge.toolkits import ToolkitRow
from bridge.view import Narrowing, View, make_lens, narrowing
from bridge.wire.errors import ConfigError, Conflict, InvalidRequest, NotFound, ToolError
from catalog.model import Tool, ToolSpec
from executor import Executor
from runtime.store.store import Store
from tests.unit.upstream import call

pytestmark = pytest.mark.anyio

PATHS = (
    "github.org.work.issues.list",
    "github.org.work.issues.delete",
    "github.user.me.issues.list",
    "shop.org.main.x",
)


def _fill(box: Any) -> None:
    for path in PATHS:
        box.add_code_tool(path, lambda args: "done", description="things to see", side_effect="read")


async def _code(box: Toolbox, path: str, toolkit: str) -> str:
    try:
        await call(box, path, ctx=CallContext(toolkit=toolkit))
    except ToolError as e:
        return e.code
    return "done"


async def test_a_toolkit_narrows_search_list_describe_and_calls_alike() -> None:
    async with Toolbox() as box:
        _fill(box)
        made = await box.toolkits.create("readers", ["github.*.issues.list", "nothing.*"])
        assert made["holds"] == 2
        held = [PATHS[0], PATHS[2]]
        assert [one["path"] for one in box.list_tools(toolkit="readers")["items"]] == held
        assert sorted(one["path"] for one in box.search("things", toolkit="readers")["items"]) == held
        inside = await call(box, "$search", {"query": "things"}, ctx=CallContext(toolkit="readers"))
        assert inside.value["total"] == 2
        for path in PATHS:
            expected = "done" if path in held else "tool_not_found"
            assert await _code(box, path, "readers") == expected
            if path not in held:
                with pytest.raises(ToolError, match="toolkit readers") as caught:
                    box.describe(path, toolkit="readers")
                assert not set(caught.value.details["suggestions"]) - set(held)  # type: ignore[index]
        assert box.describe(held[0], toolkit="readers")["path"] == held[0]


async def test_a_rule_of_a_toolkit_only_tightens_and_names_itself() -> None:
    async with Toolbox() as box:
        _fill(box)
        await box.add_policy("shop", "*", "block")
        await box.toolkits.create(
            "careful", ["*"], rules={"github.*": "require_approval", "*.delete": "block", "shop.*": "require_approval"}
        )
        assert await _code(box, PATHS[0], "careful") == "approval_required"
        assert await _code(box, PATHS[1], "careful") == "blocked"
        assert await _code(box, PATHS[3], "careful") == "blocked"
        told = box.explain(PATHS[1], toolkit="careful")
        assert told["rule"]["id"] == "toolkit careful:block:*.delete"
        assert [step["step"] for step in told["steps"]] == ["auto", "view"]
        assert PATHS[1] not in [one["path"] for one in box.list_tools(toolkit="careful")["items"]]
        with pytest.raises(InvalidRequest, match="cannot approve"):
            await box.toolkits.create("generous", ["*"], rules={"*": "approve"})


async def test_a_toolkit_is_changed_for_everyone_at_once_and_a_removed_one_holds_nothing() -> None:
    async with Toolbox() as box:
        _fill(box)
        await box.toolkits.create("mine", ["github.*"], description="first")
        with pytest.raises(Conflict):
            await box.toolkits.create("mine", ["*"])
        assert await _code(box, PATHS[0], "mine") == "done"
        updated = await box.toolkits.update("mine", tools=["shop.*"])
        assert (updated["description"], updated["holds"]) == ("first", 1)
        assert await _code(box, PATHS[0], "mine") == "tool_not_found"
        assert await _code(box, PATHS[3], "mine") == "done"
        await box.toolkits.remove("mine")
        assert await _code(box, PATHS[3], "mine") == "tool_not_found"
        for asking in (box.toolkits.get, box.toolkits.show):
            with pytest.raises(NotFound):
                asking("mine")
        for asked in (box.search, box.describe, box.explain):
            with pytest.raises(InvalidRequest, match="no toolkit"):
                asked(PATHS[3], toolkit="mine")  # type: ignore[operator]


@pytest.mark.parametrize("name", ["", "Mine", "a b", "mine\n", "mine.", "mіne", "x" * 64])
async def test_a_toolkit_has_a_plain_name(name: str) -> None:
    async with Toolbox() as box:
        with pytest.raises(InvalidRequest):
            await box.toolkits.create(name, ["*"])


@pytest.mark.parametrize("tools", [[], "github.*", ["**"], ["a?"], ["gіthub.*"], [""], ["*"] * 201, [" *"]])
async def test_a_pattern_outside_the_grammar_makes_no_toolkit(tools: Any) -> None:
    async with Toolbox() as box:
        with pytest.raises(InvalidRequest):
            await box.toolkits.create("mine", tools)
        assert box.toolkits.all() == []


async def test_toolkits_are_there_again_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        store = await Store.open(tmp_path)
        async with Toolbox(toolkits=store.toolkits) as box:
            if not box.toolkits.all():
                await box.toolkits.create("mine", ["a.*", "b.*"], description="two", rules=[("a.*", "block")])
            kept = box.toolkits.all()
        await store.close()
    rules = [{"pattern": "a.*", "effect": "block"}]
    assert kept == [{"name": "mine", "description": "two", "tools": ["a.*", "b.*"], "rules": rules}]


@pytest.mark.parametrize("rules", ["[", '[["*", "approve"]]', '[["[a]", "block"]]', "7"])
async def test_a_stored_toolkit_that_cannot_be_read_keeps_the_toolbox_from_opening(rules: str) -> None:
    """POL-20"""

    class Broken:
        async def toolkits(self) -> list[ToolkitRow]:
            return [ToolkitRow("mine", "", '["*"]', rules, 1.0)]

    with pytest.raises(ConfigError, match="cannot be read"):
        async with Toolbox(toolkits=Broken()):  # type: ignore[arg-type]
            pass


async def test_a_run_with_a_toolkit_that_does_not_exist_is_refused_before_it_starts() -> None:
    async with Executor.open() as ex:
        for asking in (ex.run("1", toolkit="nope"), ex.call("a.org.b.c", toolkit="nope"), ex.tools(toolkit="nope")):
            with pytest.raises(InvalidRequest, match="no toolkit 'nope'"):
                await asking
        assert (await ex.list_runs()).as_dict()["runs"] == []


async def test_a_scope_leaves_what_it_and_the_scope_around_it_leave() -> None:
    async with Executor.open() as ex:
        _fill(ex.toolbox)
        await ex.toolbox.toolkits.create("readers", ["*.list"])
        outer = ex.scope(toolkit="readers", budgets={"wall_ms": 5000, "fuel": 10**9})
        inner = outer.scope(tools=["*"], scopes=["user"], budgets={"wall_ms": 600_000, "fuel": 10**8})
        assert [one["path"] for one in (await outer.tools())["items"]] == [PATHS[0], PATHS[2]]
        assert [one["path"] for one in (await inner.tools())["items"]] == [PATHS[2]]
        assert await inner.call(PATHS[2]) == "done"
        for path in (PATHS[0], PATHS[3]):
            with pytest.raises(ToolError) as caught:
                await inner.call(path)
            assert caught.value.code == "tool_not_found"
            with pytest.raises(ToolError):
                await inner.explain(path)
        answer = await inner.run("(await tools.search('things')).items.map(one => one.path)", budgets={"fuel": 10**12})
        assert answer.result == [PATHS[2]]
        budgets = (await ex.get_run(answer.run_id)).budgets
        assert (budgets["wall_ms"], budgets["fuel"]) == (5000, 10**8)
        script = f"try {{ await tools.call('{PATHS[0]}', {{}}) }} catch (e) {{ e.code }}"
        assert (await inner.run(script)).result == "tool_not_found"
        assert (await inner.run(script, toolkit="readers")).result == "tool_not_found"


async def test_a_scope_tightens_policies_and_its_budgets_never_raise_a_default() -> None:
    async with Executor.open() as ex:
        _fill(ex.toolbox)
        careful = ex.scope(policies={"shop.*": "require_approval"}, budgets={"wall_ms": 600_000})
        with pytest.raises(ToolError) as caught:
            await careful.call(PATHS[3])
        assert caught.value.code == "approval_required"
        assert "scope()" in str(caught.value.hint)
        assert await careful.call(PATHS[0]) == "done"
        answer = await careful.run("1")
        assert (await ex.get_run(answer.run_id)).budgets["wall_ms"] == 30_000


@pytest.mark.parametrize(
    "parts",
    [
        {"policies": {"*": "approve"}},
        {"tools": ["[a]"]},
        {"tools": "a.*"},
        {"scopes": ["team"]},
        {"toolkit": "nope"},
        {"budgets": {"time": 1}},
        {"budgets": {"fuel": -1}},
    ],
)
async def test_a_scope_that_makes_no_sense_is_refused_when_it_is_made(parts: Any) -> None:
    async with Executor.open() as ex:
        with pytest.raises(InvalidRequest):
            ex.scope(**parts)


TEXT = st.text("ab.*", min_size=1, max_size=5).filter(lambda text: "**" not in text)
LENSES = st.builds(
    lambda tools, rules, scopes: make_lens("lens", tools, rules, scopes),
    st.none() | st.lists(TEXT, max_size=3),
    st.lists(st.tuples(TEXT, st.sampled_from(["require_approval", "block"])), max_size=3),
    st.none() | st.lists(st.sampled_from(["org", "user"]), max_size=2),
)


@given(st.lists(LENSES, max_size=4), st.sampled_from(["a.org.b.x", "b.user.a.ab", "ab.org.a.a.b"]), st.booleans())
def test_a_view_agrees_with_the_oracle_and_never_gives_more(lenses: Any, path: str, blocked: bool) -> None:
    """POL-21"""
    integration, scope, connection, name = path.split(".", 3)
    tool = Tool(path, integration, scope, connection, ToolSpec(name, side_effect="read"), {})
    rules = [new_rule("*", "*", "require_approval", scope="org")] if blocked else []
    before = decide(tool, rules)
    after = tightened(tool, before, View(lenses))
    effects = [before.effect]
    held = True
    for lens in lenses:
        held = held and (lens.scopes is None or scope in lens.scopes)
        held = held and (lens.tools is None or any(fnmatch.fnmatchcase(path, one.pattern) for one in lens.tools))
        effects += [rule.effect for rule in lens.rules if fnmatch.fnmatchcase(path, rule.glob.pattern)]
    assert View(lenses).holds(tool) is held
    assert after.effect == max(effects, key=lambda effect: SEVERITY[effect])
    assert SEVERITY[after.effect] >= SEVERITY[before.effect]


def test_a_narrowing_comes_back_from_plain_data_and_one_that_cannot_be_read_is_never_left_out() -> None:
    made = narrowing(toolkit="mine", tools=["a.*"], rules={"a.b": "block"}, scopes=["org"])
    assert Narrowing.from_dict(made.as_dict()) == made
    for data in ({"tool": ["a"]}, {"rules": [["a", "approve"]]}, {"scopes": ["team"]}):
        with pytest.raises(InvalidRequest):
            Narrowing.from_dict(data)
