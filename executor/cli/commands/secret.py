"""`executor secret`"""

from __future__ import annotations

import sys
from typing import Literal

from bridge.secrets.ports import MIN_LENGTH
from executor.cli.options import HERE, Flag, UsageError, Where
from executor.cli.session import open_session

Scope = Literal["org", "user"]


async def set_secret(name: str, /, *, scope: Scope = "org", where: Where = HERE) -> None:
    """Keep a secret, sealed, in the home. Use it in a connection as local:NAME.

    The value is read from standard input, or asked for on a terminal: an argument would be visible to every process.

    Parameters
    ----------
    name
        What to call it.
    scope
        Whose it is.
    """
    from executor.cli import output

    value = _read_value(name)
    async with open_session(where) as session:
        await session.set_secret(name, value, scope=scope)
    output.say(f"✔ kept; use it as local:{name}", "good")


async def list_secrets(*, scope: Scope = "org", json: Flag = False, where: Where = HERE) -> None:
    """List the names of secrets. Nothing shows their values.

    Parameters
    ----------
    scope
        Whose secrets.
    json
        Print the answer as JSON.
    """
    from executor.cli import output

    async with open_session(where) as session:
        names = await session.secrets(scope=scope)
    if json:
        output.print_json({"secrets": names})
    for name in names if not json else []:
        output.out.print(name)


async def remove(name: str, /, *, scope: Scope = "org", where: Where = HERE) -> None:
    """Forget a secret.

    Parameters
    ----------
    name
        The secret.
    scope
        Whose it is.
    """
    from executor.cli import output

    async with open_session(where) as session:
        await session.remove_secret(name, scope=scope)
    output.say(f"✔ forgot {name}", "good")


async def rotate_key(*, forget_old: Flag = False, json: Flag = False, where: Where = HERE) -> None:
    """Seal every secret of this home under a new master key.

    Every secret opens whatever happens on the way. The old key stays in the key file, because other homes and backups
    may be sealed with it.

    Parameters
    ----------
    forget_old
        Drop every other key from the file: only where no other home and no backup needs one.
    json
        Print the answer as JSON.
    """
    from executor.cli import output

    async with open_session(where) as session:
        done = await session.rotate_key(forget_old=forget_old)
    if json:
        output.print_json(done)
        return
    output.say(f"✔ sealed under a new key: {done['secrets']} secret{'s' if done['secrets'] != 1 else ''}", "good")
    if done["damaged"]:
        output.say(f"  could not be opened, before as now: {', '.join(done['damaged'])}", "odd")


def _read_value(name: str) -> str:
    if sys.stdin.isatty():
        import getpass

        value = getpass.getpass(f"value of {name} (not shown): ")
    else:
        value = sys.stdin.read(1024 * 1024).removesuffix("\n").removesuffix("\r")
    if not value:
        raise UsageError("the secret is empty", hint=f'printf %s "$TOKEN" | executor secret set {name}')
    if len(value) < MIN_LENGTH:
        raise UsageError(f"the secret has fewer than {MIN_LENGTH} characters: it could not be kept out of answers")
    return value
