"""`executor run`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from executor.cli.app import exit_status
from executor.cli.options import HERE, Flag, UsageError, Where, read_amounts, read_json, read_pairs, read_text
from executor.cli.session import open_session

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
    """Run a script. Exits with 0 when it completed, 1 when it did not, 3 when it waits for a person.

    At a terminal the person there is asked.

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
    async with open_session(where) as session:
        answer = await session.run(code, **options)
        if answer["status"] == "waiting" and not json:
            from executor.cli import asking

            if file != "-" and asking.can_ask():
                answer = await asking.settle(session, answer)
    if json:
        output.print_json(answer)
    else:
        output.show_run(answer, code)
    return exit_status(answer)
