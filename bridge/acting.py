"""Tools whose arguments decide what a call does: such a call may do what the tools named for it may do, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bridge.policy import SEVERITY, Decision, Policy
from bridge.view import View
from bridge.wire.errors import ToolError
from catalog.model import Integration, Tool
from catalog.registry import Registry

NAMED: Final = 5


def acting(
    registry: Registry, integration: Integration, tool: Tool, args: Mapping[str, Any], view: View
) -> tuple[Tool, tuple[Tool, ...]]:
    """The tool with the side effect that this call has, and the tools that may do the same alone; none for most tools.

    Raises ToolError: invalid_arguments, or blocked where one of those is not there for the caller.
    """
    acts = getattr(integration, "acts", None)
    found = acts(tool, args) if acts is not None else None
    if found is None:
        return tool, ()
    parts = []
    for name in found.names:
        part = registry.find(f"{tool.integration}.{tool.scope}.{tool.connection}.{name}")
        if part is None or not view.holds(part):
            where = f" in {view.names}" if part is not None else ""
            raise ToolError(
                "blocked",
                f"This call asks for {name}, and there is no such tool{where}.",
                hint="A document may do what the tools of its root fields may do, and nothing else.",
            )
        parts.append(part)
    return replace(tool, spec=replace(tool.spec, side_effect=found.side_effect)), tuple(parts)


def strictest(policy: Policy, tools: Sequence[Tool], view: View) -> tuple[Tool, Decision]:
    """Of the decisions about the tools the strictest, and the first tool that it is about. Where a person is asked,
    the reason names what the call does."""
    about, chosen = tools[0], policy.decide(tools[0], view)
    asking = []
    for tool in tools[1:]:
        decision = policy.decide(tool, view)
        if decision.effect == "require_approval":
            asking.append(tool.name)
        if _strictness(decision) > _strictness(chosen):
            about, chosen = tool, decision
    if chosen.effect == "require_approval" and asking:
        more = f" and {len(asking) - NAMED} more" if len(asking) > NAMED else ""
        chosen = chosen._replace(reason=f"it asks for {', '.join(asking[:NAMED])}{more}; {chosen.reason}")
    return about, chosen


def _strictness(decision: Decision) -> tuple[int, bool]:
    return SEVERITY[decision.effect], decision.approver == "another"
