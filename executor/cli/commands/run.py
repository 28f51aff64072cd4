"""`executor run`"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import anyio
from cyclopts import Parameter

from bridge.wire.errors import ExecutorError
from executor.cli.app import exit_status
from executor.cli.options import HERE, Flag, UsageError, Where, read_amounts, read_json, read_pairs, read_text
from executor.cli.session import Session, open_session

if TYPE_CHECKING:
    from executor.cli.output import Progress

START_S: Final = 3.0
"""How long a run may take to start before the command says why nothing happens."""
CANCEL_S: Final = 5.0
"""How long an interrupted command waits for its run to be cancelled."""

_LANGUAGES: Final[dict[str, str]] = {
    ".ts": "typescript",
    ".mts": "typescript",
    ".js": "javascript",
    ".mjs": "javascript",
    ".py": "python",
}


async def run(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    input: str | None = None,
    language: Literal["typescript", "javascript", "python"] | None = None,
    budget: Annotated[list[str] | None, Parameter(negative="")] = None,
    label: Annotated[list[str] | None, Parameter(negative="")] = None,
    toolkit: str | None = None,
    isolation: Literal["shared", "run"] | None = None,
    json: Flag = False,
    where: Where = HERE,
) -> int:
    """Run a script, and show what it logs as it happens.

    Exits with 0 when it completed, 1 when it did not, 3 when it waits for a person. At a terminal the person there is
    asked.

    Parameters
    ----------
    file
        The script, or - for standard input.
    input
        What the script sees as `input`: JSON, @file, or @- for standard input.
    language
        Left out, the file's ending decides; else typescript.
    budget
        A limit such as wall_ms=5000, fuel=1e9 or memory_bytes=32MiB. May be repeated.
    label
        A label such as job=nightly, to find the run by. May be repeated.
    toolkit
        Narrow the tools to this subset.
    isolation
        `run` gives the run a worker process of its own.
    json
        Print the whole answer as JSON.
    """
    from executor.cli import output

    if file.startswith("-") and file != "-":
        raise UsageError(f"unknown option {file}", hint="executor run --help")
    code = read_text(file, "the script")
    options: dict[str, Any] = {
        "language": language or _LANGUAGES.get(Path(file).suffix.lower()),
        "input": read_json(input, "the input") if input is not None else None,
        "budgets": read_amounts(budget, "budget") if budget else None,
        "labels": read_pairs(label, "label") if label else None,
        "toolkit": toolkit,
        "isolation": isolation,
    }
    async with open_session(where, learns=True) as session:
        progress = None if json else output.Progress()
        answer = await (session.run(code, **options) if progress is None else _seen(session, code, options, progress))
        if answer["status"] == "waiting" and not json:
            from executor.cli import asking

            if file != "-" and asking.can_ask():
                answer = await asking.settle(session, answer)
    if progress is None:
        output.print_json(answer)
    else:
        output.show_run(answer, code, progress)
    return exit_status(answer)


async def _seen(session: Session, code: str, options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """The run once it has ended or waits for a person, what happened on the way told to `progress`."""
    run_id = (await session.run(code, wait=False, **options))["run_id"]
    patience = asyncio.get_running_loop().call_later(START_S, progress.waits)
    try:
        async for event in session.watch(run_id):
            if event["type"] != "status" or event["data"]["status"] != "queued":
                patience.cancel()
            if event["type"] == "result":
                return dict(event["data"])
            progress.seen(event["type"], event["data"])
            if event["type"] == "status" and event["data"]["status"] == "waiting":
                run = await session.get_run(run_id)
                if run["status"] == "waiting":
                    return run
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True), anyio.move_on_after(CANCEL_S), contextlib.suppress(ExecutorError):
            await session.cancel_run(run_id)
        raise
    finally:
        patience.cancel()
    return await session.get_run(run_id)
