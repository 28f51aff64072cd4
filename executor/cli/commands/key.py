"""`executor key`: works beside a running server, which sees the change within a second."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from executor.cli.options import Flag, home_directory
from executor.keys import Keyring

if TYPE_CHECKING:
    from runtime.store.sqlite import Database

Home = Annotated[Path | None, Parameter(env_var="EXECUTOR_HOME")]


@contextlib.asynccontextmanager
async def open_keyring(home: Path | None) -> AsyncIterator[Keyring]:
    """The keys of a home, without opening the rest of it. Raises ConfigError."""
    from runtime.store.keys import Keys

    async with _open_database(home) as database:
        yield Keyring(Keys(database))


@contextlib.asynccontextmanager
async def _open_database(home: Path | None) -> AsyncIterator[Database]:
    from bridge.wire.errors import ConfigError
    from executor import logs
    from runtime.store.privacy import close_home
    from runtime.store.sqlite import Database
    from runtime.store.store import FILE

    logs.configure_for_command(for_good=False)
    directory = home_directory(home)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        close_home(directory)
    except OSError as e:
        raise ConfigError(f"the home {str(directory)!r} cannot be used: {e.strerror}") from None
    database = await Database.open(directory / FILE)
    try:
        yield database
    finally:
        await database.close()


async def create(
    name: str = "default",
    /,
    *,
    access: Literal["full", "run", "read", "admin"] | None = None,
    toolkit: str | None = None,
    home: Home = None,
    json: Flag = False,
) -> None:
    """Make a key for the HTTP API. It is printed once; what is stored cannot be turned back into it.

    Parameters
    ----------
    name
        What to call it, such as the name of the program that will use it.
    access
        What it may do: everything (full), run scripts and see its own runs (run), look at everything (read), or look
        and change the home but run nothing (admin).
    toolkit
        Tie it to a toolkit: all that it runs, calls and sees is within that.
    home
        The home directory.
    json
        Print the key and its facts as JSON.
    """
    from executor.cli import output

    if toolkit is not None:
        await _check_toolkit(home, toolkit)
    async with open_keyring(home) as keyring:
        row, key = await keyring.create(name, access=access, toolkit=toolkit)
    if json:
        facts = {"access": row.access, "toolkit": row.toolkit, "created_at": row.created_at}
        output.print_json({"id": row.id, "name": row.name, "key": key} | facts)
        return
    sys.stdout.write(key + "\n")
    sys.stdout.flush()
    output.say(f"✔ key {row.name} ({row.id}); keep it now, it is not shown again", "good")
    output.say("  export EXECUTOR_KEY=…  or send  Authorization: Bearer …", "quiet")


async def _check_toolkit(home: Path | None, name: str) -> None:
    from bridge.wire.errors import NotFound
    from runtime.store.toolkits import Toolkits

    async with _open_database(home) as database:
        if name not in [row.name for row in await Toolkits(database).toolkits()]:
            raise NotFound(f"there is no toolkit {name!r}", hint="`executor toolkit list` shows the toolkits")


async def list_keys(*, home: Home = None, json: Flag = False) -> None:
    """List the keys, never their values.

    Parameters
    ----------
    home
        The home directory.
    json
        Print the answer as JSON.
    """
    from rich.text import Text

    from executor.cli import output

    async with open_keyring(home) as keyring:
        keys = await keyring.list()
    if json:
        output.print_json({"keys": [{k: v for k, v in key._asdict().items() if k != "digest"} for key in keys]})
        return
    if not keys:
        output.say("there is no key yet: executor key create", "quiet")
        return
    rows = output.table("id", "name", "state", "access", "toolkit", "created", "last used")
    for key in keys:
        state = Text("live", style="good") if key.revoked_at is None else Text("revoked", style="quiet")
        used = output.moment(key.last_used_at)
        rows.add_row(key.id, key.name, state, key.access, key.toolkit or "", output.moment(key.created_at), used)
    output.out.print(rows)


async def revoke(key: str, /, *, home: Home = None) -> None:
    """Revoke a key; a running server refuses it within a second.

    Parameters
    ----------
    key
        Its id or name.
    home
        The home directory.
    """
    from executor.cli import output

    async with open_keyring(home) as keyring:
        row = await keyring.revoke(key)
    output.say(f"✔ revoked {row.name} ({row.id})", "good")
