"""`executor integrations`"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from executor.cli.options import HERE, Flag, Where, document_source
from executor.cli.session import open_session


async def list_integrations(*, json: Flag = False, where: Where = HERE) -> None:
    """List the integrations and their connections."""
    from executor.cli import output

    async with open_session(where) as session:
        found = await session.integrations()
    if json:
        output.print_json({"integrations": found})
        return
    if not found:
        output.say("there is none yet: executor add openapi FILE|URL --name NAME", "quiet")
        return
    rows = output.table("name", "kind", "tools", "connections", "may reach", right=("tools",))
    for each in found:
        tools = each.get("tools")
        rows.add_row(
            each["name"],
            each["kind"],
            str(len(tools) if isinstance(tools, list) else tools or ""),
            ", ".join(_name(connection) for connection in each.get("connections") or []),
            ", ".join(each.get("origins") or []),
        )
    output.out.print(rows)


def _name(connection: object) -> str:
    if isinstance(connection, dict):
        return f"{connection.get('scope')}.{connection.get('name') or connection.get('connection')}"
    return str(connection)


async def remove(name: str, /, *, connections: Flag = False, where: Where = HERE) -> None:
    """Remove an integration, its tools and the rules for them. Its connections are kept for when it is added again.

    Parameters
    ----------
    name
        The integration.
    connections
        Forget its connections too, also those that an earlier removal kept.
    """
    from executor.cli import output

    async with open_session(where) as session:
        gone = await session.remove_integration(name, connections=connections)
    output.say(f"✔ removed {name}{' and its connections' if connections else ''}", "good")
    for account, why in (gone.get("unrevoked") or {}).items():
        output.say_unrevoked(account, why)


async def refresh(name: str, source: str | None = None, /, *, json: Flag = False, where: Where = HERE) -> None:
    """Read the description of an integration again, and show what changed.

    What is new, and what changed its side effect or where it goes, awaits review.

    Parameters
    ----------
    name
        The integration.
    source
        A new file or URL; left out, where it came from.
    json
        Print the answer as JSON.
    """
    from executor.cli import output

    async with open_session(where, learns=True) as session:
        report = await session.refresh(name, None if source is None else document_source(source))
    if json:
        output.print_json(report)
        return
    output.say(
        f"✔ refreshed {name}: {len(report['added'])} added, {len(report['removed'])} removed,"
        f" {len(report['changed'])} changed, {report['unchanged']} as before",
        "good",
    )
    for each in report["added"]:
        _line("+", "good", each["tool"], f"{each['side_effect']}  {each['destination']}")
    for each in report["removed"]:
        _line("-", "bad", each["tool"], each["side_effect"])
    for each in report["changed"]:
        _line("~", "odd" if each["awaits_review"] else "quiet", each["tool"], ", ".join(each["what"]))
        for part in ("side_effect", "destination"):
            if each["before"][part] != each["after"][part]:
                output.out.print(_text(f"      {each['before'][part]} → {each['after'][part]}"))
    for place in report["held"]:
        _line("+", "odd", place, "a new place, held back")
    if report["awaiting"] or report["held"]:
        count = len(report["awaiting"])
        what = f"{count} tool awaits" if count == 1 else f"{count} tools await"
        output.say(f"{what} review: executor review {name}", "odd")


async def review(
    name: str,
    /,
    *,
    accept: Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)] = None,
    json: Flag = False,
    where: Where = HERE,
) -> None:
    """Show what awaits review, or let it in.

    Parameters
    ----------
    name
        The integration.
    accept
        What to let in: `all`, or names and paths of tools and places that are held back.
    json
        Print the answer as JSON.
    """
    from executor.cli import output

    async with open_session(where, learns=True) as session:
        if accept:
            told = await session.review(name, "all" if accept == ["all"] else accept)
        else:
            told = await session.awaiting_review(name)
    if json:
        output.print_json(told)
        return
    if accept:
        count = len(told["accepted"])
        output.say(f"✔ let in {count} tool{'s' if count != 1 else ''} of {name}", "good")
    for label in told.get("unconnected", []):
        output.say(f"  the credential of {label} was not given for the new place: connect it again", "odd")
    for each in told["tools"]:
        _line("?", "odd", each["tool"], f"{', '.join(each['why'])}  {each['side_effect']}  {each['destination']}")
    for place in told["held"]:
        _line("?", "odd", place, "a new place")
    if not told["tools"] and not told["held"]:
        output.say("nothing awaits review", "quiet")


def _line(mark: str, style: str, name: str, more: str) -> None:
    from rich.text import Text

    from executor.cli import output

    output.out.print(Text.assemble((f"  {mark} ", style), (name, "name"), (f"  {more}", "quiet")))


def _text(text: str) -> object:
    from rich.text import Text

    return Text(text, style="quiet")
