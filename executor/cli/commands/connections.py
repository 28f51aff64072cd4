"""`executor connect` and `executor connections`"""

from __future__ import annotations

from typing import Any, Literal

from executor.cli.credentials import NONE, Credentials
from executor.cli.options import HERE, Flag, Port, UsageError, Where
from executor.cli.session import Session, open_session

Scope = Literal["org", "user"]


async def connect(
    integration: str,
    /,
    *,
    connection: str = "main",
    scope: Scope = "org",
    replace: Flag = False,
    no_browser: Flag = False,
    no_sign_in: Flag = False,
    callback_port: Port = 0,
    at_server: Flag = False,
    json: Flag = False,
    credentials: Credentials = NONE,
    where: Where = HERE,
) -> None:
    """Connect one more account to an integration: its tools come under a path of their own.

    With OAuth a browser is opened to sign in, and comes back to this machine. For an account that is there already,
    without an option for credentials, that is done again.

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
    no_browser
        With OAuth, show the page to sign in on and open no browser.
    no_sign_in
        With OAuth, connect the account and leave signing in for later.
    callback_port
        With OAuth, the port of 127.0.0.1 that the browser comes back to, where the authorization server wants one.
    at_server
        With OAuth, the browser comes back to the server instead: it may be another machine's.
    json
        Print the answer as JSON.
    """
    from executor.cli import output

    options = credentials.options()
    label = integration, scope, connection
    more: list[str] = []
    report: dict[str, Any] = {}
    async with open_session(where, learns=True) as session:
        again = credentials.asks_again and not replace and await _signs_in(session, label)
        if again:
            more = (credentials.oauth_scopes or "").split()
        else:
            report = await session.connect(integration, connection=connection, scope=scope, replace=replace, **options)
        if not json and report:
            _show_connected(label, report)
        if again or (options["auth"] and not no_sign_in and await _signs_in(session, label)):
            from executor.cli import signing

            signs: dict[str, Any] = {"scopes": more, "browser": not no_browser}
            if at_server:
                done = await signing.sign_in_at_server(session, label, **signs)
            else:
                done = await signing.sign_in(session, label, port=callback_port, **signs)
            report |= done
            if not json:
                scopes = " ".join(done["oauth"].get("scopes") or ())
                output.say(f"✔ signed in to {done['connection']}{': ' + scopes if scopes else ''}", "good")
                if "tools" in done:
                    output.say(f"  {len(done['tools'])} tools: executor tools list --integration {integration}")
                if "problem" in done:
                    output.say(f"  ! {done['problem']}", "odd")
    if json:
        output.print_json(report)


async def _signs_in(session: Session, label: tuple[str, str, str]) -> bool:
    """Whether the account is there and a person signs in to it."""
    for each in await session.connections(integration=label[0], scope=label[1]):
        if each["name"] == label[2]:
            return bool((each.get("oauth") or {}).get("flow") == "authorization_code")
    return False


def _show_connected(label: tuple[str, str, str], report: dict[str, Any]) -> None:
    from rich.text import Text

    from executor.cli import output

    tools = len(report["tools"])
    output.say(f"✔ connected {'.'.join(label)}: {tools} tool{'s' if tools != 1 else ''}", "good")
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
    if oauth := found.get("oauth"):
        server = oauth.get("issuer") or oauth["token_url"]
        output.out.print(Text(f"  oauth    {oauth['flow']} at {server}"))
        output.out.print(Text(f"  client   {oauth.get('client_id') or 'registers itself'}"))
        output.out.print(Text(f"  signed   {_signed(oauth)}"))
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
    """Disconnect an account. The integration stays, and so do its secrets: those that nothing refers to are named.

    Parameters
    ----------
    name
        The account, such as petstore.org.main; petstore alone is short for that.
    """
    from executor.cli import output

    integration, scope, connection = _label(name)
    async with open_session(where) as session:
        had = (await session.connection(integration, scope, connection))["secrets"]
        gone = await session.remove_connection(integration, scope, connection)
        left = await session.connections(integration=None, scope=scope)
        kept = set(await session.secrets(scope=scope)) if had else set()
    output.say(f"✔ disconnected {integration}.{scope}.{connection}", "good")
    if (why := gone.get("unrevoked")) is not None:
        output.say_unrevoked(f"{integration}.{scope}.{connection}", why)
    used = {ref for one in left for ref in one["secrets"]}
    for ref in had:
        provider, _, secret = ref.partition(":")
        if provider == "local" and secret in kept and ref not in used:
            option = "" if scope == "org" else f" --scope {scope}"
            output.say(f"  no account uses {ref} any more: executor secret remove {secret}{option}", "quiet")


def _signed(oauth: dict[str, Any]) -> str:
    if not oauth.get("signed_in"):
        failed = f" ({oauth['failed']})" if oauth.get("failed") else ""
        return f"not in{failed}"
    scopes = f", for {' '.join(oauth['scopes'])}" if oauth.get("scopes") else ""
    renewed = "in, renewed as needed" if oauth.get("renewable") else "in, until the token expires"
    return renewed + scopes


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
