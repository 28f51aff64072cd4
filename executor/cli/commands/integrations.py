"""`executor integrations`"""

from __future__ import annotations

from executor.cli.options import HERE, Flag, Where
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


async def remove(name: str, /, *, where: Where = HERE) -> None:
    """Remove an integration, its tools and its connections.

    Parameters
    ----------
    name
        The integration.
    """
    from executor.cli import output

    async with open_session(where) as session:
        await session.remove_integration(name)
    output.say(f"✔ removed {name}", "good")
