"""`executor policy`"""

from __future__ import annotations

from typing import Any, Literal

from executor.cli.options import HERE, Flag, Where
from executor.cli.session import open_session

_STYLES = {"approve": "good", "require_approval": "odd", "block": "bad"}


async def list_policies(*, json: Flag = False, where: Where = HERE) -> None:
    """List the rules. Without one, a tool that reads is approved and any other needs a person."""
    from executor.cli import output

    async with open_session(where) as session:
        rules = await session.policies()
    if json:
        output.print_json({"policies": rules})
    elif rules:
        output.out.print(_rows(rules))
    else:
        output.say("there is no rule: reads are approved, anything else needs approval", "quiet")


async def set_policy(
    target: str,
    pattern: str,
    effect: Literal["approve", "require_approval", "block"],
    /,
    *,
    scope: Literal["org", "user"] = "org",
    reason: str = "",
    approver: Literal["anyone", "another"] = "anyone",
    json: Flag = False,
    where: Where = HERE,
) -> None:
    """Add a rule.

    Parameters
    ----------
    target
        `*`, an integration, or integration.scope.connection.
    pattern
        A glob over the tool's name, such as issues.* or *.
    effect
        What happens to a call.
    scope
        Who says so.
    reason
        Why, for whoever reads it later.
    approver
        `another`: whoever's run makes the call cannot approve it.
    json
        Print the rule as JSON.
    """
    from executor.cli import output

    async with open_session(where) as session:
        rule = await session.add_policy(target, pattern, effect, scope=scope, reason=reason, approver=approver)
    if json:
        output.print_json(rule)
    else:
        by = " by another person" if approver == "another" else ""
        output.say(f"✔ {rule['id']}: {effect}{by} {target} {pattern}", "good")
        matches = rule["matches"]
        if matches:
            output.say(f"  it is for {matches} tool{'s' if matches != 1 else ''} now", "quiet")
        else:
            output.say("  it is for no tool now: `executor tools list` shows their names", "odd")


async def remove(rule_id: str, /, *, where: Where = HERE) -> None:
    """Remove a rule.

    Parameters
    ----------
    rule_id
        Its id, as `executor policy list` shows it.
    """
    from executor.cli import output

    async with open_session(where) as session:
        await session.remove_policy(rule_id)
    output.say(f"✔ removed {rule_id}", "good")


async def explain(path: str, /, *, toolkit: str | None = None, json: Flag = False, where: Where = HERE) -> None:
    """Say what happens to a call of a tool, which rule decides, and why.

    Parameters
    ----------
    path
        The tool.
    toolkit
        Within this toolkit.
    json
        Print the answer as JSON.
    """
    from rich.text import Text

    from executor.cli import output

    async with open_session(where) as session:
        told = await session.explain(path, toolkit=toolkit)
    if json:
        output.print_json(told)
        return
    output.out.print(Text.assemble((_said(told), _STYLES.get(told["effect"], "")), "  ", (path, "name")))
    output.out.print(Text(f"  {told['reason']}", style="quiet"))
    output.out.print()
    for number, step in enumerate(told["steps"], 1):
        name = f"scope {step['name']}" if step["step"] == "scope" else step.get("name") or step["step"]
        effect = step["effect"] or "—"
        output.out.print(
            Text.assemble(
                (f"{number}. ", "quiet"),
                name,
                "  ",
                (effect, _STYLES.get(effect, "quiet")),
                (f"  {step['why']}", "quiet"),
            )
        )
        for rule in step["rules"]:
            where_to = f"{rule['target']} " if "target" in rule else ""
            output.out.print(Text(f"     {_said(rule)} {where_to}{rule['pattern']}  ({rule['id']})", style="quiet"))


def _said(rule: dict[str, Any]) -> str:
    return f"{rule['effect']} by another" if rule.get("approver") == "another" else str(rule["effect"])


def _rows(rules: list[dict[str, Any]]) -> Any:
    from rich.text import Text

    from executor.cli import output

    rows = output.table("id", "effect", "target", "pattern", "scope", "reason")
    for each in rules:
        rows.add_row(
            each["id"],
            Text(_said(each), style=_STYLES.get(each["effect"], "")),
            each["target"],
            each["pattern"],
            each["scope"],
            each.get("reason", ""),
        )
    return rows
