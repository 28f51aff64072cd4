"""`executor call` and `executor tools`"""

from __future__ import annotations

from typing import Any

from bridge.wire.errors import ExecutorError
from executor.cli.app import DONE, exit_status
from executor.cli.options import HERE, Count, Flag, UsageError, Where, read_json
from executor.cli.session import open_session


async def call(
    path: str,
    args: str = "{}",
    /,
    *,
    meta: Flag = False,
    ask: Flag = False,
    toolkit: str | None = None,
    where: Where = HERE,
) -> int:
    """Call one tool and print its value as JSON. At a terminal the person there is asked where one must allow it.

    Parameters
    ----------
    path
        The tool, such as petstore.org.main.getPetById.
    args
        Its arguments: a JSON object, @file, or @- for standard input.
    meta
        Also print the HTTP status and headers.
    ask
        Where a person must allow it, or its server asks one, make it in a run that waits, and exit with 3.
    toolkit
        Only if this toolkit holds it.
    """
    from executor.cli import asking, output

    given = read_json(args, "the arguments")
    if not isinstance(given, dict):
        raise UsageError("the arguments must be a JSON object", hint="""such as '{"id": 7}'""")
    async with open_session(where) as session:
        if not ask and (args == "@-" or not asking.can_ask()):
            try:
                value = await session.call(path, given, meta=meta, toolkit=toolkit)
            except ExecutorError as e:
                if e.code == "approval_required":
                    e.hint = "; or ".join(filter(None, (e.hint, "have a person asked about this one call: --ask")))
                raise
            output.print_value(value)
            return DONE
        value, run = await session.call_or_ask(path, given, meta=meta, toolkit=toolkit)
        if run is None:
            output.print_value(value)
            return DONE
        if asking.can_ask() and args != "@-":
            run = await asking.settle(session, run)
    output.show_run(run)
    return exit_status(run)


async def search(
    query: str,
    /,
    *,
    limit: Count = 10,
    integration: str | None = None,
    cursor: str | None = None,
    toolkit: str | None = None,
    json: Flag = False,
    where: Where = HERE,
) -> None:
    """Search the tools by what they do.

    Parameters
    ----------
    query
        A few words, such as "list open issues".
    limit
        How many to show.
    integration
        Only tools of this integration.
    cursor
        Go on where another page ended.
    toolkit
        Only tools of this toolkit.
    json
        Print the answer as JSON.
    """
    async with open_session(where) as session:
        try:
            found = await session.search(query, limit=limit, integration=integration, cursor=cursor, toolkit=toolkit)
        except ExecutorError as e:
            if e.code != "invalid_arguments":
                raise
            raise UsageError(e.message, hint=e.hint) from None
    _show(found, json)


async def list_tools(
    *,
    integration: str | None = None,
    limit: Count = 100,
    cursor: str | None = None,
    toolkit: str | None = None,
    json: Flag = False,
    where: Where = HERE,
) -> None:
    """List the tools by path.

    Parameters
    ----------
    integration
        Only tools of this integration.
    limit
        How many to show.
    cursor
        Go on where another page ended.
    toolkit
        Only tools of this toolkit.
    json
        Print the answer as JSON.
    """
    async with open_session(where) as session:
        found = await session.list_tools(integration=integration, limit=limit, cursor=cursor, toolkit=toolkit)
    _show(found, json)


async def describe(path: str, /, *, toolkit: str | None = None, json: Flag = False, where: Where = HERE) -> None:
    """Show a tool's signature and docs.

    Parameters
    ----------
    path
        The tool, such as petstore.org.main.getPetById. Behind it, #2 to #4 shows more of large types, and
        '#Pet' the type Pet alone.
    toolkit
        As it is in this toolkit.
    json
        Print the answer as JSON.
    """
    from rich.syntax import Syntax

    from executor.cli import output

    async with open_session(where) as session:
        tool = await session.describe(path, toolkit=toolkit)
    if json:
        output.print_json(tool)
        return
    _head(tool)
    output.out.print(Syntax("", "typescript", theme="ansi_dark").highlight(tool["signature"]))
    if deeper := tool.get("more", {}).get("deeper"):
        output.say(f"more with {deeper}", "quiet")


def _head(tool: dict[str, Any]) -> None:
    """What stands above the signature of a tool; a type has none."""
    from rich.text import Text

    from executor.cli import output

    if "type" in tool:
        return
    effects = {"approve": "good", "require_approval": "odd", "block": "bad"}
    facts = [
        (tool["path"], "name"),
        ("  ", ""),
        (f"{tool['side_effect']}: ", "quiet"),
        (tool["effect"], effects.get(tool["effect"], "")),
    ]
    if tool.get("idempotent"):
        facts += [("  ", ""), ("idempotent", "quiet")]
    if tool.get("status"):
        facts += [("  ", ""), (f"{tool['status']}: {tool['reason']}", "odd")]
    if tool.get("deprecated"):
        facts += [("  ", ""), ("deprecated", "odd")]
    output.out.print(Text.assemble(*facts))
    if tool.get("description"):
        output.out.print(Text(tool["description"].strip()))
    output.out.print()


def _show(found: dict[str, Any], as_json: bool) -> None:
    from rich.text import Text

    from executor.cli import output

    if as_json:
        output.print_json(found)
        return
    items = found["items"]
    if not items:
        output.say("no tool matches", "quiet")
        return
    for item in items:
        effect = item.get("side_effect", "")
        mark = {"read": ("read   ", "good"), "write": ("write  ", "odd"), "delete": ("delete ", "bad")}
        output.out.print(Text.assemble(mark.get(effect, ("unknown", "quiet")), "  ", (item["path"], "name")))
        text = " ".join(str(item.get("description") or item.get("title") or "").split())
        if text:
            output.out.print(Text(f"         {text[:160]}", style="dim"))
    total = found.get("total", len(items))
    if found.get("next"):
        output.say(f"\n{len(items)} of {total}; more with --cursor {found['next']}", "quiet")
