"""`executor key`: works beside a running server, which sees the change within a second."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from executor.cli.options import Flag, home_directory
from executor.keys import Keyring

Home = Annotated[Path | None, Parameter(env_var="EXECUTOR_HOME")]


@contextlib.asynccontextmanager
async def open_keyring(home: Path | None) -> AsyncIterator[Keyring]:
    """The keys of a home, without opening the rest of it. Raises ConfigError."""
    from bridge.wire.errors import ConfigError
    from executor import logs
    from runtime.store.keys import Keys
    from runtime.store.privacy import close_home
    from runtime.store.sqlite import Database
    from runtime.store.store import FILE

    logs.configure()
    directory = home_directory(home)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        close_home(directory)
    except OSError as e:
        raise ConfigError(f"the home {str(directory)!r} cannot be used: {e.strerror}") from None
    database = await Database.open(directory / FILE)
    try:
        yield Keyring(Keys(database))
    finally:
        await database.close()


async def create(name: str = "default", /, *, home: Home = None, json: Flag = False) -> None:
    """Make a key for the HTTP API. It is printed once; what is stored cannot be turned back into it.

    Parameters
    ----------
    name
        What to call it, such as the name of the program that will use it.
    home
        The home directory.
    json
        Print the key and its facts as JSON.
    """
    from executor.cli import output

    async with open_keyring(home) as keyring:
        row, key = await keyring.create(name)
    if json:
        output.print_json({"id": row.id, "name": row.name, "key": key, "created_at": row.created_at})
        return
    sys.stdout.write(key + "\n")
    sys.stdout.flush()
    output.say(f"✔ key {row.name} ({row.id}); keep it now, it is not shown again", "good")
    output.say("  export EXECUTOR_KEY=…  or send  Authorization: Bearer …", "quiet")


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
    rows = output.table("id", "name", "state", "created", "last used")
    for key in keys:
        state = Text("live", style="good") if key.revoked_at is None else Text("revoked", style="quiet")
        rows.add_row(key.id, key.name, state, output.moment(key.created_at), output.moment(key.last_used_at))
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
