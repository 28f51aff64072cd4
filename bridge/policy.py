"""What may be called: rules, and how they decide.

A rule sits on a target (`*`, an integration, or `integration.scope.connection`) with a glob over the tool part and an
effect, and is said by a scope. Without a rule the side effect decides: read is approved, everything else needs a
human. Within one scope the connection's rule beats the integration's, which beats `*`; then the more specific glob
beats the broader; ties go to the most restrictive. Where several scopes have a rule, the most restrictive wins.
Where several scopes are equally strict, the outer one's rule is named: the inner one added nothing.

A rule that requires approval may say that it takes another person than the one whose run makes the call (four eyes).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, Protocol

from bridge.glob import Glob
from bridge.view import EVERYTHING, LensRule, View
from bridge.wire.errors import InvalidRequest
from catalog import address
from catalog.model import SideEffect, Tool
from catalog.registry import Registry
from catalog.signal import Signal

Effect = Literal["approve", "require_approval", "block"]
Approver = Literal["anyone", "another"]
"""Who may allow a call: anyone who may answer at all, or only a principal other than the one that the run is of."""

SEVERITY: Final[dict[Effect, int]] = {"approve": 0, "require_approval": 1, "block": 2}
APPROVERS: Final[tuple[Approver, ...]] = ("anyone", "another")
DEFAULTS: Final[dict[SideEffect, Effect]] = {
    "read": "approve",
    "write": "require_approval",
    "delete": "require_approval",
    "unknown": "require_approval",
}


class RuleRow(NamedTuple):
    """A rule as it is stored."""

    id: str
    scope: str
    target: str
    pattern: str
    effect: str
    reason: str
    created_at: float
    approver: str = "anyone"


class PolicyStore(Protocol):
    """Each method is one transaction, durable when it returns."""

    async def rules(self) -> list[RuleRow]: ...

    async def put_rule(self, row: RuleRow) -> None: ...

    async def delete_rule(self, rule_id: str) -> bool: ...


class MemoryPolicies:
    """A PolicyStore that forgets everything when the process ends."""

    def __init__(self) -> None:
        self._rows: dict[str, RuleRow] = {}

    async def rules(self) -> list[RuleRow]:
        return list(self._rows.values())

    async def put_rule(self, row: RuleRow) -> None:
        self._rows[row.id] = row

    async def delete_rule(self, rule_id: str) -> bool:
        return self._rows.pop(rule_id, None) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    scope: str
    target: str
    glob: Glob
    effect: Effect
    reason: str
    created_at: float
    approver: Approver = "anyone"

    @property
    def level(self) -> int:
        """0 for `*`, 1 for an integration, 2 for a connection."""
        return 0 if self.target == "*" else 2 if "." in self.target else 1

    @property
    def rank(self) -> tuple[int, tuple[bool, int], tuple[int, bool]]:
        """Of the rules of one scope that apply, the one of the highest rank decides."""
        return self.level, self.glob.specificity, self.strictness

    @property
    def strictness(self) -> tuple[int, bool]:
        return SEVERITY[self.effect], self.approver == "another"

    def applies(self, tool: Tool) -> bool:
        return self._targets(tool) and self.glob.matches(tool.name)

    def _targets(self, tool: Tool) -> bool:
        return self.target in ("*", tool.integration, f"{tool.integration}.{tool.scope}.{tool.connection}")

    def as_dict(self) -> dict[str, Any]:
        facts = {"id": self.id, "scope": self.scope, "target": self.target, "pattern": self.glob.pattern}
        facts |= {"effect": self.effect, "reason": self.reason}
        return facts | {"approver": self.approver} if self.effect == "require_approval" else facts

    def row(self) -> RuleRow:
        glob = self.glob.pattern
        return RuleRow(self.id, self.scope, self.target, glob, self.effect, self.reason, self.created_at, self.approver)


def new_rule(target: str, pattern: str, effect: str, *, scope: str, reason: str = "", approver: str = "anyone") -> Rule:
    """A rule fit to be stored. Raises InvalidRequest for a target, pattern, effect, approver or scope that is not
    one."""
    if effect not in SEVERITY:
        raise InvalidRequest(f"{effect[:40]!r} is not an effect.", hint="Effects: approve, require_approval, block.")
    if approver not in APPROVERS:
        raise InvalidRequest(f"{approver[:40]!r} is not an approver.", hint="Approvers: anyone, another.")
    if approver == "another" and effect != "require_approval":
        raise InvalidRequest("Only a rule that requires approval says who approves.")
    parts = target.split(".")
    if target != "*" and (len(parts) not in (1, 3) or not all(address.is_name(part) for part in parts)):
        raise InvalidRequest(
            f"{target[:80]!r} is not a policy target.",
            hint="A target is *, an integration's name, or <integration>.<scope>.<connection>.",
        )
    address.check_scope(scope)
    rule_id = "pol_" + secrets.token_hex(8)
    return Rule(rule_id, scope, target, Glob(pattern), effect, reason[:500], time.time(), approver)


def check_target(target: str, registry: Registry) -> None:
    """Raises InvalidRequest unless `target` is `*` or something that exists: a rule for what does not would wait for
    the next thing of that name, whoever makes it."""
    name, *account = target.split(".")
    installed = registry.installed(name)
    if target == "*" or (installed is not None and (not account or tuple(account) in installed.connections)):
        return
    if installed is None:
        known = ["*", *(one.name for one in registry.integrations())]
    else:
        known = [name, *(f"{name}.{scope}.{connection}" for scope, connection in installed.connections)]
    shown = ", ".join(known[:40]) + (f" and {len(known) - 40} more" if len(known) > 40 else "")
    raise InvalidRequest(f"There is nothing {target[:80]!r} for a rule to target.", hint=f"Known targets: {shown}.")


def read_rule(row: RuleRow) -> Rule:
    """A stored rule. Raises InvalidRequest when the row does not hold one: a rule that cannot be read is never
    skipped, because skipping it could allow what it forbids."""
    rule = new_rule(row.target, row.pattern, row.effect, scope=row.scope, reason=row.reason, approver=row.approver)
    return replace(rule, id=row.id, created_at=row.created_at)


class Decision(NamedTuple):
    """`rule` is the one that decided; None when the side effect's default did, or the tool awaits review. `approver`
    counts where the effect is `require_approval`."""

    effect: Effect
    rule: Rule | LensRule | None
    reason: str
    approver: Approver = "anyone"


def decide(tool: Tool, rules: Iterable[Rule]) -> Decision:
    """What the rules say about a call of `tool`; their order does not matter."""
    best: dict[str, Rule] = {}
    for rule in rules:
        if rule.applies(tool):
            rival = best.get(rule.scope)
            if rival is None or (rule.rank, rule.id) > (rival.rank, rival.id):
                best[rule.scope] = rule
    if not best:
        effect = DEFAULTS[tool.side_effect]
        return Decision(
            effect, None, f"no rule applies, and the default for side effect {tool.side_effect} is {effect}"
        )
    # max() keeps the first of equals: the outer scope's rule is the one that is named.
    rule = max((best[scope] for scope in address.SCOPES if scope in best), key=lambda rule: rule.strictness)
    reason = f"rule {rule.id} of scope {rule.scope}: {rule.effect} {rule.target} {rule.glob.pattern}"
    if len(best) > 1:
        reason += ", the strictest of the scopes"
    if rule.approver == "another":
        reason += ", by another person than the one who asks"
    return Decision(rule.effect, rule, reason, rule.approver)


def tightened(tool: Tool, decision: Decision, view: View) -> Decision:
    """`decision` as it is within `view`: the same, or a stricter one."""
    rule = view.strictest(tool)
    if rule is None or SEVERITY[rule.effect] <= SEVERITY[decision.effect]:
        return decision
    return Decision(rule.effect, rule, f"{rule.lens}: {rule.effect} {rule.glob.pattern}")


class Policy:
    """The rules in force, with a decision remembered for each tool until a rule changes. `approver` `another`: whatever
    requires approval requires another person's."""

    def __init__(self, rules: Sequence[Rule] = (), approver: Approver = "anyone") -> None:
        self._approver = approver
        self._rules = {rule.id: rule for rule in rules}
        self._decided: dict[tuple[str, str], Decision] = {}
        self.version = 0
        self.changed = Signal()

    def add(self, rule: Rule) -> None:
        self._rules[rule.id] = rule
        self._changed()

    def remove(self, rule_id: str) -> None:
        del self._rules[rule_id]
        self._changed()

    def _changed(self) -> None:
        self._decided.clear()
        self.version += 1
        self.changed.fire()

    def get(self, rule_id: str) -> Rule | None:
        return self._rules.get(rule_id)

    def rules(self) -> list[Rule]:
        return sorted(self._rules.values(), key=lambda rule: (rule.created_at, rule.id))

    def targeting(self, target: str) -> list[Rule]:
        """The rules for `target` and for what is within it."""
        return [rule for rule in self.rules() if f"{rule.target}.".startswith(f"{target}.")]

    def decide(self, tool: Tool, view: View = EVERYTHING) -> Decision:
        """What happens to a call of a tool that `view` holds."""
        if tool.awaits:
            return Decision("block", None, f"it awaits review: {tool.awaits}")
        decision = self._by_rules(tool)
        if view.lenses:
            decision = tightened(tool, decision, view)
        return decision._replace(approver="another") if self._approver == "another" else decision

    def _by_rules(self, tool: Tool) -> Decision:
        key = (tool.path, tool.side_effect)
        decision = self._decided.get(key)
        if decision is None:
            decision = self._decided[key] = decide(tool, self._rules.values())
        return decision

    def hides(self, tool: Tool, view: View = EVERYTHING) -> bool:
        """Whether list, search and describe act as if the tool were not there."""
        if tool.awaits:
            return True
        if not view.lenses:
            return bool(self._rules) and self._by_rules(tool).effect == "block"
        return not view.holds(tool) or self.decide(tool, view).effect == "block"

    def shows_awaiting(self, tool: Tool, view: View) -> bool:
        """Whether a tool that awaits review may be described: once it is let in, it would be there."""
        return bool(tool.awaits) and view.holds(tool) and self._by_rules(tool).effect != "block"
