"""Why a call is decided as it is: every step, in the order in which it is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridge.policy import DEFAULTS, Policy, Rule
from bridge.view import EVERYTHING, View
from catalog import address
from catalog.model import Tool


def explain(tool: Tool, policy: Policy, view: View = EVERYTHING) -> dict[str, Any]:
    """`{path, side_effect, effect, approver, rule, reason, steps, applying}`; `approver` is None where nobody is asked.

    `steps` are in order: the review that the tool awaits, the default of the side effect (`auto`), then each scope that
    has a rule for the tool, the outer one first, then each lens of the view. A step has `effect` (None: it says
    nothing), `why`, and its `rules`, the one that wins first. `applying` is every rule of the home that applies, in
    that order.
    """
    applying = [rule for rule in policy.rules() if rule.applies(tool)]
    by_scope = {scope: _ranked(applying, scope) for scope in address.SCOPES}
    steps = [_review(tool)] if tool.awaits else []
    steps += [_default(tool, replaced=bool(applying))]
    steps += [_scope(scope, rules) for scope, rules in by_scope.items() if rules]
    steps += _lenses(tool, view)
    decision = policy.decide(tool, view)
    effect, reason = decision.effect, decision.reason
    if not view.holds(tool):
        outside = next(lens for lens in view.lenses if not lens.holds(tool))
        effect, reason = "block", f"{outside.name} does not hold the tool"
    return {
        "path": tool.path,
        "side_effect": tool.side_effect,
        "effect": effect,
        "approver": decision.approver if effect == "require_approval" else None,
        "rule": decision.rule.as_dict() if decision.rule is not None and view.holds(tool) else None,
        "reason": reason,
        "steps": steps,
        "applying": [rule.as_dict() for rules in by_scope.values() for rule in rules],
    }


def _ranked(rules: Sequence[Rule], scope: str) -> list[Rule]:
    ours = [rule for rule in rules if rule.scope == scope]
    return sorted(ours, key=lambda rule: (rule.rank, rule.id), reverse=True)


def _review(tool: Tool) -> dict[str, Any]:
    return {"step": "review", "effect": "block", "why": f"{tool.awaits}; nothing else counts before it is let in"} | {
        "rules": []
    }


def _default(tool: Tool, *, replaced: bool) -> dict[str, Any]:
    effect = DEFAULTS[tool.side_effect]
    why = f"the default for side effect {tool.side_effect}"
    why += "; replaced, because a rule applies" if replaced else "; no rule of the home applies"
    return {"step": "auto", "effect": None if replaced else effect, "why": why, "rules": []}


def _scope(scope: str, rules: Sequence[Rule]) -> dict[str, Any]:
    why = _beats(rules[0], rules[1]) if len(rules) > 1 else "the only rule of this scope that applies"
    return {"step": "scope", "name": scope, "effect": rules[0].effect, "why": why} | {
        "rules": [rule.as_dict() for rule in rules]
    }


def _beats(winner: Rule, other: Rule) -> str:
    if winner.level != other.level:
        targets = ("*", "the integration", "the connection")
        return f"a rule for {targets[winner.level]} beats one for {targets[other.level]}"
    if winner.glob.specificity != other.glob.specificity:
        return f"{winner.glob.pattern} is more specific than {other.glob.pattern}"
    if winner.effect != other.effect:
        return f"of equally specific rules the strictest wins: {winner.effect} over {other.effect}"
    if winner.approver != other.approver:
        return "of equally specific rules the strictest wins: approval by another person"
    return "equally specific rules that say the same"


def _lenses(tool: Tool, view: View) -> list[dict[str, Any]]:
    steps = []
    for lens in view.lenses:
        rules = lens.applying(tool)
        if not lens.holds(tool):
            effect, why = "block", "it does not hold the tool"
        elif rules:
            effect, why = rules[0].effect, "its own rule; it counts where it is stricter"
        else:
            effect, why = None, "it holds the tool and has no rule for it"
        steps.append(
            {"step": "view", "name": lens.name, "effect": effect, "why": why}
            | {"rules": [rule.as_dict() for rule in rules]}
        )
    return steps
