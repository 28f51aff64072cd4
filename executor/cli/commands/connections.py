"""`executor connect` and `executor connections`"""

from __future__ import annotations

from typing import Any, Literal

from executor.cli.credentials import NONE, Credentials
from executor.cli.options import HERE, Flag, UsageError, Where
from executor.cli.session import open_session

Scope = Literal["org", "user"]


async def connect(
    integration: str,
    /,
    *,
    connection: str = "main",
    scope: Scope = "org",
    replace: Flag = False,
    json: Flag = False,
    credentials: Credentials = NONE,
    where: Where = HERE,
) -> None:
    """Connect one more account to an integration: its tools come under a path of their own.

    Parameters
    ----------
    integration
        The integration, as it was added.
    connection
        What the account is called, the third part of the paths.
    scope
        Whose it is, the second part of the paths.
    replace
        Replace a connection of the same name.
    json
        Print the answer as JSON.
    """
    from rich.text import Text

    from executor.cli import output

    options = credentials.options()
    async with open_session(where) as session:
        report = await session.connect(integration, connection=connection, scope=scope, replace=replace, **options)
    if json:
        output.print_json(report)
        return
    tools = len(report["tools"])
    label = f"{integration}.{scope}.{connection}"
    output.say(f"✔ connected {label}: {tools} tool{'s' if tools != 1 else ''}", "good")
    for each in report.get("diagnostics") or []:
        if each["where"] == "secret":
            output.out.print(Text.assemble(("  ! ", "odd"), each["message"]))


async def list_connections(
    *, integration: str | None = None, scope: Scope | None = None, json: Flag = False, where: Where = HERE
) -> None:
    """List the accounts.

    Parameters
    ----------
    integration
        Only those of this integration.
    scope
        Only those of this scope.
    json
        Print the answer as JSON.
    """
    from executor.cli import output

    async with open_session(where) as session:
        found = await session.connections(integration=integration, scope=scope)
    if json:
        output.print_json({"connections": found})
        return
    if not found:
        output.say("there is none: executor connect INTEGRATION", "quiet")
        return
    rows = output.table("connection", "tools", "secrets", "sent as", "probe", right=("tools",))
    for each in found:
        sent = ", ".join(_sent(one) for one in each["placements"])
        rows.add_row(each["path"], str(each["tools"]), ", ".join(each["secrets"]), sent, each.get("probe") or "")
    output.out.print(rows)


async def show(name: str, /, *, json: Flag = False, where: Where = HERE) -> None:
    """Show one account. Its secrets are named, never shown.

    Parameters
    ----------
    name
        The account, such as petstore.org.main; petstore alone is short for that.
    json
        Print the answer as JSON.
    """
    from rich.text import Text

    from executor.cli import output

    async with open_session(where) as session:
        found = await session.connection(*_label(name))
    if json:
        output.print_json(found)
        return
    output.out.print(Text(found["path"], style="name"))
    output.out.print(f"  tools    {found['tools']}")
    for one in found["placements"]:
        secrets = ", ".join(one[key] for key in ("username_secret", "secret") if key in one) or "a literal value"
        output.out.print(Text.assemble(("  sent as  ", ""), _sent(one), ("  from ", "quiet"), secrets))
    if not found["placements"]:
        output.out.print("  sends no credential")
    output.out.print(f"  probe    {found.get('probe') or 'chosen when it is checked'}")


async def check(name: str, /, *, json: Flag = False, where: Where = HERE) -> int:
    """Try an account with one call that only reads. Exits with 1 when its credential does not work.

    Parameters
    ----------
    name
        The account, such as petstore.org.main; petstore alone is short for that.
    json
        Print the answer as JSON.
    """
    from rich.text import Text

    from executor.cli import output

    async with open_session(where) as session:
        found = await session.check_connection(*_label(name))
    good = found["status"] == "ok"
    if json:
        output.print_json(found)
        return 0 if good else 1
    status = found.get("http_status")
    facts = f"  {found['probe']}{f' answered {status}' if status else ''} in {found['duration_ms']:.0f} ms"
    mark = ("✔ ", "good") if good else ("✘ ", "bad")
    output.out.print(Text.assemble(mark, (found["connection"], "name"), f" {found['status']}", (facts, "quiet")))
    if found.get("message"):
        output.out.print(Text(f"  {found['message']}"))
    if found.get("hint"):
        output.out.print(Text(f"  hint: {found['hint']}", style="quiet"))
    return 0 if good else 1


async def remove(name: str, /, *, where: Where = HERE) -> None:
    """Disconnect an account. The integration stays, and so do its secrets.

    Parameters
    ----------
    name
        The account, such as petstore.org.main; petstore alone is short for that.
    """
    from executor.cli import output

    integration, scope, connection = _label(name)
    async with open_session(where) as session:
        await session.remove_connection(integration, scope, connection)
    output.say(f"✔ disconnected {integration}.{scope}.{connection}", "good")


def _label(name: str) -> tuple[str, str, str]:
    parts = name.split(".")
    if len(parts) == 1 and parts[0]:
        return parts[0], "org", "main"
    if len(parts) != 3 or not all(parts):
        raise UsageError(f"{name!r} is not a connection", hint="write it like petstore.org.main")
    return parts[0], parts[1], parts[2]


def _sent(placement: dict[str, Any]) -> str:
    kind = placement["type"]
    if kind == "basic":
        return f"basic {placement.get('username', '')}".strip()
    return f"{kind} {placement['name']}{': ' + placement['prefix'].strip() if placement.get('prefix') else ''}"
