"""`executor backup`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from executor.cli.options import Flag, home_directory


async def backup(
    file: Path, /, *, home: Annotated[Path | None, Parameter(env_var="EXECUTOR_HOME")] = None, json: Flag = False
) -> None:
    """Copy everything that a home keeps into one file, while a server uses it or not.

    To restore, put the file in an empty home as executor.db. The master key of local secrets is not in it: keep a copy
    of the key elsewhere.

    Parameters
    ----------
    file
        The new file.
    home
        The home directory.
    json
        Print what was written as JSON.
    """
    import anyio.to_thread

    from executor.cli import output
    from runtime.store.backup import backup as copy

    size = await anyio.to_thread.run_sync(copy, home_directory(home), file)
    if json:
        output.print_json({"file": str(file), "bytes": size})
    else:
        output.say(f"✔ {output.size(size)} in {file}", "good")
