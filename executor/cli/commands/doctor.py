"""`executor doctor`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from executor.cli.app import DONE, FAILED
from executor.cli.options import Flag, home_directory

_MARKS = {"ok": ("✔", "good"), "warn": ("!", "odd"), "fail": ("✘", "bad")}


async def doctor(*, home: Annotated[Path | None, Parameter(env_var="EXECUTOR_HOME")] = None, json: Flag = False) -> int:
    """Check this machine and this home, wall by wall. Exits with 1 when something does not work.

    Parameters
    ----------
    home
        The home directory.
    json
        Print the findings as JSON.
    """
    from rich.text import Text

    from executor import doctor as examination
    from executor import logs
    from executor.cli import output

    logs.configure_for_command()
    found = []
    async for check in examination.examine(home_directory(home)):
        found.append(check)
        if json:
            continue
        mark, style = _MARKS[check.status]
        output.out.print(Text.assemble(" ", (mark, style), f" {check.name:<18}", (check.detail, "quiet")))
        if check.hint:
            output.out.print(Text(f"   {'':<18}→ {check.hint}", style=style))
    failed = [check for check in found if check.status == "fail"]
    if json:
        output.print_json({"ok": not failed, "checks": [check.as_dict() for check in found]})
    elif failed:
        output.say(f"\n{len(failed)} of {len(found)} do not work", "bad")
    else:
        output.say("\nready to run", "good")
    return FAILED if failed else DONE
