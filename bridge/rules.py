"""The rules of a home: kept in the store, in force in the policy, changed one at a time."""

from __future__ import annotations

from typing import Any

from bridge.policy import Approver, Effect, Policy, PolicyStore, Rule, check_target, new_rule, read_rule
from bridge.wire.errors import ConfigError, NotFound, RequestRefused
from catalog.registry import Registry


class Rules:
    """Whoever changes rules and integrations takes turns: the toolbox sees to that."""

    def __init__(self, store: PolicyStore, policy: Policy, registry: Registry) -> None:
        self._store = store
        self._policy = policy
        self._registry = registry

    async def load(self) -> None:
        """Raises ConfigError for a stored rule that cannot be read."""
        for row in await self._store.rules():
            try:
                self._policy.add(read_rule(row))
            except RequestRefused as e:
                raise ConfigError(
                    f"The stored policy {row.id} cannot be read: {e}",
                    hint="Nothing is served while a rule is unreadable, because it may forbid something.",
                ) from None

    async def add(
        self, target: str, pattern: str, effect: Effect, *, scope: str, reason: str, approver: Approver
    ) -> dict[str, Any]:
        """See `Toolbox.add_policy`."""
        rule = new_rule(target, pattern, effect, scope=scope, reason=reason, approver=approver)
        check_target(target, self._registry)
        await self._store.put_rule(rule.row())
        self._policy.add(rule)
        return rule.as_dict() | {"matches": sum(rule.applies(tool) for tool in self._registry.tools())}

    async def remove(self, rule_id: str) -> None:
        """Raises NotFound."""
        if self._policy.get(rule_id) is None:
            raise NotFound(f"There is no policy {rule_id[:80]!r}.", hint="`GET /policies` lists them with their ids.")
        await self._store.delete_rule(rule_id)
        self._policy.remove(rule_id)

    async def forget(self, rules: list[Rule], *, loosening: bool) -> None:
        """Remove those of `rules` that are still there and approve (`loosening`), or those that do not."""
        for rule in rules:
            if (rule.effect == "approve") is loosening and self._policy.get(rule.id) is not None:
                await self._store.delete_rule(rule.id)
                self._policy.remove(rule.id)

    def targeting(self, target: str) -> list[Rule]:
        return self._policy.targeting(target)

    def all(self) -> list[dict[str, Any]]:
        return [rule.as_dict() for rule in self._policy.rules()]
