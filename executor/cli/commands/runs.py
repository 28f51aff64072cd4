"""`executor runs`"""

from __future__ import annotations

from typing import Any, Literal

from executor.cli.app import DONE, FAILED, exit_status
from executor.cli.options import HERE, Flag, UsageError, Where, read_json
from executor.cli.session import open_session

Status = Literal["queued", "running", "waiting", "completed", "failed", "cancelled", "expired"]


async def list_runs(
    *,
    status: Status | None = None,
    label: str | None = None,
    limit: int = 20,
    cursor: str | None = None,
    json: Flag = False,
    where: Where = HERE,
) -> None:
    """List runs, newest first.

    Parameters
    ----------
    status
        Only runs of this status.
    label
        Only runs with this label: key, or key=value.
    limit
        How many to show.
    cursor
        Go on where another page ended.
    json
        Print the answer as JSON.
    """
    from rich.text import Text

    from executor.cli import output

    async with open_session(where) as session:
        page = await session.list_runs(status=status, label=label, limit=limit, cursor=cursor)
    if json:
        output.print_json(page)
        return
    if not page["runs"]:
        output.say("there is no such run", "quiet")
        return
    rows = output.table("run", "status", "code", "started", "took", "labels", right=("took",), whole=("run",))
    for each in page["runs"]:
        style = {"completed": "good", "failed": "bad", "running": "name"}.get(each["status"], "odd")
        rows.add_row(
            each["run_id"],
            Text(each["status"], style=style),
            (each.get("error") or {}).get("code", ""),
            output.moment(each["created_at"]),
            output.duration((each.get("usage") or {}).get("wall_ms")),
            " ".join(f"{key}={value}" for key, value in each["labels"].items()),
        )
    output.out.print(rows)
    if page["next"]:
        output.say(f"\nmore with --cursor {page['next']}", "quiet")


async def show(run_id: str, /, *, json: Flag = False, where: Where = HERE) -> None:
    """Show a run: its logs, calls, result or error, and what it used.

    Parameters
    ----------
    run_id
        The run.
    json
        Print the answer as JSON.
    """
    from executor.cli import output

    async with open_session(where) as session:
        run = await session.get_run(run_id)
    if json:
        output.print_json(run)
    else:
        output.show_run(run, run.get("code"))


async def cancel(run_id: str, /, *, json: Flag = False, where: Where = HERE) -> None:
    """Cancel a run and wait until it has ended.

    Parameters
    ----------
    run_id
        The run.
    json
        Print the answer as JSON.
    """
    from executor.cli import output

    async with open_session(where) as session:
        run = await session.cancel_run(run_id)
    if json:
        output.print_json(run)
    else:
        output.say(f"the run is {run['status']}")


async def resume(
    run_id: str,
    interaction: str | None = None,
    /,
    *,
    approve: Flag = False,
    deny: Flag = False,
    dismiss: Flag = False,
    cancel: Flag = False,
    answer: str | None = None,
    reason: str | None = None,
    json: Flag = False,
    where: Where = HERE,
) -> int:
    """Answer a call that waits for a person, and wait until the run has ended or waits again.

    At a terminal, without --approve, --answer, --deny, --dismiss or --cancel, the person there is asked.

    Parameters
    ----------
    run_id
        The run.
    interaction
        What to answer; may be left out when the run waits for one answer.
    approve
        Let the call be made.
    deny
        Refuse it: the script gets an error that it can catch.
    dismiss
        Leave a server's question without a choice.
    cancel
        Cancel the whole run.
    answer
        What goes into the form of a server's question: a JSON object, @file, or @- for standard input.
    reason
        Why; the script of a denied call can read it.
    json
        Print the answer as JSON.
    """
    from executor.cli import asking, output

    flags = (("approve", approve or answer is not None), ("deny", deny), ("dismiss", dismiss), ("cancel", cancel))
    chosen = [name for name, given in flags if given]
    if len(chosen) > 1 or (not chosen and (json or not asking.can_ask())):
        raise UsageError(
            "say one of --approve, --answer, --deny, --dismiss and --cancel", hint="executor runs resume --help"
        )
    filled_in = None if answer is None else read_json(answer, "the answer")
    async with open_session(where) as session:
        if chosen:
            id = interaction or _only(await session.get_run(run_id))
            content = filled_in if reason is None else {"reason": reason}
            run = await session.resume(run_id, id, chosen[0], content)
        else:
            run = await asking.settle(session, await session.get_run(run_id))
    if json:
        output.print_json(run)
    else:
        output.show_run(run, run.get("code"))
    return exit_status(run)


def _only(run: dict[str, Any]) -> str:
    """The one interaction that the run waits for."""
    asked = run.get("interactions") or []
    if len(asked) == 1:
        return str(asked[0]["id"])
    if not asked:
        raise UsageError(f"the run waits for no answer: it is {run['status']}")
    raise UsageError("the run waits for several answers", hint="name one: " + ", ".join(one["id"] for one in asked))


async def watch(run_id: str, /, *, json: Flag = False, where: Where = HERE) -> int:
    """Follow a run until it has ended: its logs, calls and emitted values as they come.

    Parameters
    ----------
    run_id
        The run.
    json
        Print each event as a line of JSON.
    """
    from executor.cli import output

    status = FAILED
    async with open_session(where) as session:
        async for event in session.watch(run_id):
            if event["type"] == "result":
                status = exit_status(event["data"])
            if json:
                output.print_line(event)
            else:
                output.show_event(event)
                if event["type"] == "status" and event["data"]["status"] == "waiting":
                    output.show_waiting(await session.get_run(run_id))
    return status


async def replay(run_id: str, /, *, json: Flag = False, where: Where = HERE) -> int:
    """Do a run again from its journal, without any call outside. Exits with 0 when it did the same, 1 when it did not.

    Parameters
    ----------
    run_id
        The run.
    json
        Print the answer as JSON.
    """
    from executor.cli import output

    async with open_session(where) as session:
        report = await session.replay_run(run_id)
    if json:
        output.print_json(report)
    else:
        output.show_replay(report)
    return DONE if report["same"] else FAILED
