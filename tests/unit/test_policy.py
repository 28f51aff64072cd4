"""Policy: which rule decides, whatever the order in which the rules were made."""

from __future__ import annotations

import fnmatch
import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.glob import MAX_PATTERN, Glob
from bridge.policy import DEFAULTS, SEVERITY, Policy, Rule, decide, new_rule, read_rule
from bridge.toolbox import Toolbox
from bridge.wire.errors import ConfigError, InvalidRequest, ToolError
from catalog.model import Tool, ToolSpec
from tests.unit.upstream import call, toolbox

pytestmark = pytest.mark.anyio


def tool(name: str = "pets.delete", *, effect: Any = "read", scope: str = "org", connection: str = "main") -> Tool:
    spec = ToolSpec(name, side_effect=effect)
    return Tool(f"shop.{scope}.{connection}.{name}", "shop", scope, connection, spec, {})


def rule(target: str, pattern: str, effect: str, scope: str = "org") -> Rule:
    return new_rule(target, pattern, effect, scope=scope)


@pytest.mark.parametrize(("side_effect", "effect"), list(DEFAULTS.items()))
def test_without_a_rule_the_side_effect_decides(side_effect: Any, effect: str) -> None:
    assert decide(tool(effect=side_effect), []).effect == effect


def test_a_rule_replaces_the_default_in_both_directions() -> None:
    assert decide(tool(effect="delete"), [rule("shop", "*", "approve")]).effect == "approve"
    assert decide(tool(effect="read"), [rule("shop", "*", "require_approval")]).effect == "require_approval"


def test_the_connections_rule_beats_the_integrations_which_beats_the_general_one() -> None:
    rules = [
        rule("*", "pets.delete", "block"),
        rule("shop", "pets.*", "require_approval"),
        rule("shop.org.main", "*", "approve"),
    ]
    assert decide(tool(), rules).effect == "approve"
    assert decide(tool(connection="other"), rules).effect == "require_approval"


def test_the_more_specific_glob_beats_the_broader_and_a_tie_is_the_most_restrictive() -> None:
    broad, narrow, exact = (
        rule("shop", "*", "block"),
        rule("shop", "pets.*", "approve"),
        rule("shop", "pets.get", "block"),
    )
    assert decide(tool("pets.delete"), [broad, narrow, exact]).effect == "approve"
    assert decide(tool("pets.get"), [broad, narrow, exact]).effect == "block"
    tie = [rule("shop", "pets.d*", "approve"), rule("shop", "*delete", "require_approval")]
    assert decide(tool("pets.delete"), tie).effect == "require_approval"
    tie = [rule("shop", "pets*", "approve"), rule("shop", "*pets", "block"), rule("shop", "p*ets", "approve")]
    assert decide(tool("pets"), tie).effect == "block"


def test_of_several_scopes_the_most_restrictive_wins() -> None:
    rules = [rule("shop.org.main", "*", "approve", "user"), rule("*", "*", "require_approval", "org")]
    assert decide(tool(), rules).effect == "require_approval"
    rules = [rule("shop", "*", "block", "user"), rule("shop.org.main", "pets.delete", "approve", "org")]
    assert decide(tool(), rules).effect == "block"


def _oracle(one: Tool, rules: list[Rule]) -> str:
    """The documented precedence, said in the slowest and plainest way."""
    effects = []
    for scope in ("org", "user"):
        ours = [
            each
            for each in rules
            if each.scope == scope
            and each.target in ("*", "shop", f"shop.{one.scope}.{one.connection}")
            and fnmatch.fnmatchcase(one.name, each.glob.pattern)
        ]
        for target in (f"shop.{one.scope}.{one.connection}", "shop", "*"):
            here = [each for each in ours if each.target == target]
            if here:
                exact = [each for each in here if "*" not in each.glob.pattern] or here
                longest = max(len(each.glob.pattern.replace("*", "")) for each in exact)
                best = [each for each in exact if len(each.glob.pattern.replace("*", "")) == longest]
                effects.append(max((each.effect for each in best), key=lambda effect: SEVERITY[effect]))
                break
    return max(effects, key=lambda effect: SEVERITY[effect]) if effects else DEFAULTS[one.side_effect]


PATTERNS = st.text("ab.*", min_size=1, max_size=5).filter(lambda text: "**" not in text)
RULES = st.builds(
    rule,
    st.sampled_from(["*", "shop", "shop.org.main", "shop.user.main", "other"]),
    PATTERNS,
    st.sampled_from(list(SEVERITY)),
    st.sampled_from(["org", "user"]),
)
TOOLS = st.builds(
    tool,
    st.text("ab", min_size=1, max_size=3) | st.sampled_from(["a.b", "ab.a", "a.b.a"]),
    effect=st.sampled_from(list(DEFAULTS)),
    scope=st.sampled_from(["org", "user"]),
    connection=st.sampled_from(["main", "other"]),
)


@given(TOOLS, st.lists(RULES, max_size=6))
def test_the_decision_agrees_with_the_oracle(one: Tool, rules: list[Rule]) -> None:
    assert decide(one, rules).effect == _oracle(one, rules)


@given(TOOLS, st.lists(RULES, max_size=4))
def test_the_order_of_rules_does_not_matter(one: Tool, rules: list[Rule]) -> None:
    decisions = {decide(one, order).effect for order in itertools.permutations(rules)}
    assert len(decisions) == 1


@given(PATTERNS, st.text("ab.", max_size=8))
def test_a_glob_matches_what_fnmatch_matches(pattern: str, name: str) -> None:
    assert Glob(pattern).matches(name) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize("pattern", ["", "a.**", "[a-z]", "{a,b}", "a?", "!x", "a b", "a\n", "ａ", "a/b", "x" * 300])
def test_a_pattern_outside_the_grammar_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRequest):
        Glob(pattern)


def test_many_stars_against_a_very_long_name_come_to_an_answer() -> None:
    """Anything worse than linear would not return from this."""
    assert not Glob("*a" * 120 + "b").matches("a" * (1 << 22))
    assert Glob("*a" * 120 + "b").matches("a" * (1 << 22) + "b")


@pytest.mark.parametrize("target", ["", "Shop", "shop.org", "shop.org.main.x", "a b", "shop.org.", "**"])
def test_a_target_that_is_not_one_is_refused(target: str) -> None:
    with pytest.raises(InvalidRequest):
        rule(target, "*", "block")


def test_a_decision_is_remembered_until_a_rule_changes() -> None:
    policy = Policy()
    one = tool(effect="write")
    assert policy.decide(one).effect == "require_approval"
    allowed = rule("shop", "*", "approve")
    policy.add(allowed)
    assert policy.decide(one).effect == "approve"
    policy.remove(allowed.id)
    assert policy.decide(one).effect == "require_approval"


def test_a_rule_comes_back_from_its_row_as_it_went_in() -> None:
    one = rule("shop.org.main", "pets.*", "block", "user")
    again = read_rule(one.row())
    assert again.as_dict() == one.as_dict()
    assert again.created_at == one.created_at


async def test_a_blocked_tool_is_absent_from_list_search_and_describe_and_its_call_is_refused() -> None:
    async with toolbox() as box:
        for name in ("keep", "hide"):
            box.add_code_tool(f"shop.org.main.{name}", lambda args: 1, description="pets", side_effect="read")
        await box.add_policy("shop", "hide", "block")
        assert [item["path"] for item in box.list_tools()["items"]] == ["shop.org.main.keep"]
        assert box.search("pets") == box.search("pets") | {"total": 1, "next": None}
        with pytest.raises(ToolError, match="no tool") as caught:
            box.describe("shop.org.main.hide")
        assert "shop.org.main.hide" not in (caught.value.hint or "")
        with pytest.raises(ToolError) as caught:
            await call(box, "shop.org.main.hide")
        assert caught.value.code == "blocked"


async def test_a_call_that_needs_a_person_says_so_and_how_to_allow_it() -> None:
    async with Toolbox() as box:
        made = []
        box.add_code_tool("shop.org.main.pay", made.append, side_effect="write")
        with pytest.raises(ToolError) as caught:
            await call(box, "shop.org.main.pay")
        assert caught.value.code == "approval_required"
        assert "executor policy set shop pay approve" in str(caught.value.hint)
        assert made == []


async def test_explain_names_the_rule_that_decides_and_the_others_that_apply() -> None:
    async with Toolbox() as box:
        box.add_code_tool("shop.org.main.pay", lambda args: 1, side_effect="write")
        assert box.explain("shop.org.main.pay")["rule"] is None
        broad = await box.add_policy("shop", "*", "block", reason="audit")
        exact = await box.add_policy("shop", "pay", "approve")
        told = box.explain("shop.org.main.pay")
        assert told["effect"] == "approve"
        assert told["rule"]["id"] == exact["id"]
        assert [one["id"] for one in told["applying"]] == [exact["id"], broad["id"]]
        assert broad["matches"] == exact["matches"] == 1


def test_where_scopes_are_equally_strict_the_outer_one_is_named() -> None:
    for order in itertools.permutations([rule("shop", "*", "block", "user"), rule("shop", "*", "block", "org")]):
        decided = decide(tool(), order).rule
        assert isinstance(decided, Rule)
        assert decided.scope == "org"


async def test_explain_says_every_step_in_order_and_why_one_rule_beats_another() -> None:
    async with Toolbox() as box:
        box.add_code_tool("shop.org.main.pets.sell", lambda args: 1, side_effect="read")
        await box.toolkits.create("careful", ["shop.*"], rules={"*.sell": "block"})
        assert [step["step"] for step in box.explain("shop.org.main.pets.sell")["steps"]] == ["auto"]
        for target, pattern, effect, scope in (
            ("*", "pets.sell", "block", "org"),
            ("shop", "*", "block", "org"),
            ("shop.org.main", "pets.*", "approve", "org"),
            ("shop.org.main", "*", "block", "org"),
            ("shop", "pets.s*", "require_approval", "user"),
            ("shop", "*ts.sell", "approve", "user"),
        ):
            await box.add_policy(target, pattern, effect, scope=scope)  # type: ignore[arg-type]
        told = box.explain("shop.org.main.pets.sell", toolkit="careful")
        auto, org, user, toolkit = told["steps"]
        assert (auto["effect"], org["effect"], user["effect"], toolkit["effect"]) == (
            None,
            "approve",
            "approve",
            "block",
        )
        assert org["why"] == "pets.* is more specific than *"
        assert [one["target"] for one in org["rules"]] == ["shop.org.main", "shop.org.main", "shop", "*"]
        assert user["why"] == "*ts.sell is more specific than pets.s*"
        assert (told["effect"], told["rule"]["id"]) == ("block", "toolkit careful:block:*.sell")
        await box.toolkits.update("careful", tools=["other.*"])
        told = box.explain("shop.org.main.pets.sell", toolkit="careful")
        assert (told["effect"], told["rule"], told["reason"]) == (
            "block",
            None,
            "toolkit careful does not hold the tool",
        )


async def test_a_stored_rule_that_cannot_be_read_keeps_the_toolbox_from_opening() -> None:
    class Store:
        async def rules(self) -> list[Any]:
            return [rule("shop", "*", "block").row()._replace(pattern="[a-z]")]

    with pytest.raises(ConfigError, match="cannot be read"):
        async with Toolbox(policies=Store()):  # type: ignore[arg-type]
            pass


def test_the_longest_pattern_is_one() -> None:
    assert Glob("x" * MAX_PATTERN).matches("x" * MAX_PATTERN)
    with pytest.raises(InvalidRequest):
        Glob("x" * (MAX_PATTERN + 1))


def test_a_reason_names_scopes_only_where_several_spoke() -> None:
    one, other = rule("shop", "*", "block"), rule("shop", "*", "approve", "user")
    assert "scopes" not in decide(tool(), [one]).reason
    assert decide(tool(scope="user"), [one, other]).reason.endswith(", the strictest of the scopes")
    another = new_rule("shop", "*", "require_approval", scope="org", approver="another")
    assert decide(tool(), [another]).reason.endswith(", by another person than the one who asks")


@pytest.mark.parametrize(
    "wrong",
    [
        {"effect": "allow"},
        {"effect": ""},
        {"approver": "nobody"},
        {"approver": "another", "effect": "block"},
        {"approver": "another", "effect": "approve"},
        {"scope": "team"},
        {"target": "shop.org"},
        {"target": "shop.org.main.op"},
        {"target": "Shop.org.main"},
    ],
    ids=str,
)
def test_a_rule_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    """POL-15"""
    facts = {
        "target": "shop",
        "pattern": "*",
        "effect": "require_approval",
        "scope": "org",
        "approver": "anyone",
    } | wrong
    with pytest.raises(InvalidRequest):
        new_rule(facts["target"], facts["pattern"], facts["effect"], scope=facts["scope"], approver=facts["approver"])


def test_a_rule_says_who_approves_where_it_asks() -> None:
    asking = new_rule("*", "*", "require_approval", scope="org", approver="another", reason="r" * 600)
    assert (asking.as_dict()["approver"], len(asking.reason)) == ("another", 500)
    assert "approver" not in rule("*", "*", "block").as_dict()


def test_a_tool_that_awaits_review_is_blocked_and_hidden_whatever_the_rules_say() -> None:
    waiting = replace(tool(), awaits="it is new")
    policy = Policy([rule("*", "*", "approve")])
    decision = policy.decide(waiting)
    assert (decision.effect, decision.rule) == ("block", None)
    assert "it is new" in decision.reason
    assert policy.hides(waiting)
    assert not policy.hides(tool())
    assert Policy([rule("*", "*", "block")]).hides(tool())
    assert not Policy().hides(tool())


def test_who_approves_may_be_set_for_all() -> None:
    """POL-15"""
    assert Policy([rule("*", "*", "require_approval")], "another").decide(tool()).approver == "another"
    assert Policy([rule("*", "*", "require_approval")]).decide(tool()).approver == "anyone"


def test_each_change_of_the_rules_is_another_version() -> None:
    policy, seen = Policy(), set()
    one = rule("*", "*", "block")
    for change in (lambda: None, lambda: policy.add(one), lambda: policy.remove(one.id)):
        change()
        seen.add(policy.version)
    assert len(seen) == 3
    assert policy.get(one.id) is None
