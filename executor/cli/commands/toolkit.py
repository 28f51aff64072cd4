"""`executor toolkit`"""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from executor.cli.options import HERE, Flag, Where, read_pairs
from executor.cli.session import open_session

Patterns = Annotated[list[str], Parameter(negative="", consume_multiple=True)]
MaybePatterns = Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)]
Rules = Annotated[list[str] | None, Parameter(negative="")]


async def create(
    name: str,
    /,
    *,
    tools: Patterns,
    rule: Rules = None,
    description: str = "",
    json: Flag = False,
    where: Where = HERE,
) -> None:
    """Make a toolkit: a named subset of the tools.

    Parameters
    ----------
    name
        What it is called.
    tools
        Patterns over whole paths, such as github.org.work.issues.* or *.list*.
    rule
        A rule of its own, PATTERN=require_approval or PATTERN=block. It can only be stricter than the policies are.
    description
        What it is for.
    json
        Print the toolkit as JSON.
    """
    async with open_session(where) as session:
        made = await session.create_toolkit(name, tools=tools, description=description, rules=_rules(rule) or [])
    _show(made, json, "✔ made ")


async def list_toolkits(*, json: Flag = False, where: Where = HERE) -> None:
    """List the toolkits."""
    from executor.cli import output

    async with open_session(where) as session:
        found = await session.toolkits()
    if json:
        output.print_json({"toolkits": found})
        return
    if not found:
        output.say("there is none yet: executor toolkit create NAME --tools PATTERN", "quiet")
        return
    rows = output.table("name", "tools", "rules", "description")
    for each in found:
        rules = ", ".join(f"{rule['pattern']}={rule['effect']}" for rule in each["rules"])
        rows.add_row(each["name"], ", ".join(each["tools"]), rules, each["description"])
    output.out.print(rows)


async def show(name: str, /, *, json: Flag = False, where: Where = HERE) -> None:
    """Show a toolkit, and how many tools it holds now.

    Parameters
    ----------
    name
        The toolkit.
    json
        Print the toolkit as JSON.
    """
    async with open_session(where) as session:
        found = await session.toolkit(name)
    _show(found, json)


async def update(
    name: str,
    /,
    *,
    tools: MaybePatterns = None,
    rule: Rules = None,
    no_rules: Flag = False,
    description: str | None = None,
    json: Flag = False,
    where: Where = HERE,
) -> None:
    """Replace parts of a toolkit; in force for the next call of everyone who uses it.

    Parameters
    ----------
    name
        The toolkit.
    tools
        Patterns over whole paths, in place of those it had.
    rule
        Rules, PATTERN=require_approval or PATTERN=block, in place of those it had.
    no_rules
        Take away the rules it had.
    description
        What it is for.
    json
        Print the toolkit as JSON.
    """
    rules = [] if no_rules else _rules(rule)
    async with open_session(where) as session:
        made = await session.update_toolkit(name, tools=tools, description=description, rules=rules)
    _show(made, json, "✔ ")


async def remove(name: str, /, *, where: Where = HERE) -> None:
    """Remove a toolkit. Runs and keys that are tied to it find no tool from now on.

    Parameters
    ----------
    name
        The toolkit.
    """
    from executor.cli import output

    async with open_session(where) as session:
        await session.remove_toolkit(name)
    output.say(f"✔ removed {name}", "good")


def _rules(given: list[str] | None) -> list[tuple[str, str]] | None:
    return None if given is None else list(read_pairs(given, "rule of a toolkit").items())


def _show(toolkit: dict[str, Any], as_json: bool, mark: str = "") -> None:
    from rich.text import Text

    from executor.cli import output

    if as_json:
        output.print_json(toolkit)
        return
    holds = toolkit["holds"]
    output.out.print(
        Text.assemble(
            (mark, "good"), (toolkit["name"], "strong"), f": it holds {holds} tool{'s' if holds != 1 else ''} now"
        )
    )
    if toolkit["description"]:
        output.out.print(Text(f"  {toolkit['description']}", style="quiet"))
    for pattern in toolkit["tools"]:
        output.out.print(Text(f"  {pattern}", style="name"))
    for rule in toolkit["rules"]:
        output.out.print(Text(f"  {rule['effect']}  {rule['pattern']}", style="odd"))
