"""The tree of commands, and how every one of them ends.

Commands are named by import path: `executor --help` loads none of them.
"""

from __future__ import annotations

import errno
import itertools
import os
import sys
from typing import Any, Final

from cyclopts import App, CycloptsError

import executor
from bridge.wire.errors import ExecutorError
from executor.cli.streams import drop_output

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
WAITING: Final = 3
INTERRUPTED: Final = 130

_COMMANDS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "": {
        "serve": ("serve:serve", "Serve the HTTP API."),
        "mcp": ("mcp:mcp", "Serve MCP on standard input and output."),
        "run": ("run:run", "Run a script."),
        "call": ("tools:call", "Call one tool."),
        "connect": ("connections:connect", "Connect an account to an integration."),
        "refresh": ("integrations:refresh", "Read the description of an integration again."),
        "review": ("integrations:review", "See and let in what a refresh brought."),
        "remove": ("integrations:remove", "Remove an integration."),
        "backup": ("backup:backup", "Copy what a home keeps into one file."),
        "doctor": ("doctor:doctor", "Check this machine and this home, wall by wall."),
    },
    "tools": {
        "search": ("tools:search", "Search the tools."),
        "describe": ("tools:describe", "Show a tool's signature and docs."),
        "list": ("tools:list_tools", "List the tools."),
    },
    "add": {
        "openapi": ("add:openapi", "Add an API from its OpenAPI document."),
        "graphql": ("add:graphql", "Add a GraphQL API from its endpoint or its schema."),
        "http": ("add:http", "Add plain HTTP to hosts that you name."),
        "mcp": ("add:mcp", "Add the tools of an MCP server."),
        "npm": ("add:npm", "Add the tools of an npm package."),
    },
    "integrations": {
        "list": ("integrations:list_integrations", "List the integrations."),
        "remove": ("integrations:remove", "Remove an integration; the same as executor remove."),
    },
    "connections": {
        "list": ("connections:list_connections", "List the accounts."),
        "show": ("connections:show", "Show one account."),
        "check": ("connections:check", "Try an account with one call that only reads."),
        "remove": ("connections:remove", "Disconnect an account."),
    },
    "secret": {
        "set": ("secret:set_secret", "Keep a secret; its value comes from standard input."),
        "list": ("secret:list_secrets", "List the names of secrets."),
        "remove": ("secret:remove", "Forget a secret."),
        "rotate-key": ("secret:rotate_key", "Seal every secret under a new master key."),
    },
    "policy": {
        "list": ("policy:list_policies", "List the rules."),
        "set": ("policy:set_policy", "Add a rule."),
        "remove": ("policy:remove", "Remove a rule."),
        "explain": ("policy:explain", "Say which rule decides for a tool."),
    },
    "toolkit": {
        "create": ("toolkit:create", "Make a named subset of the tools."),
        "list": ("toolkit:list_toolkits", "List the toolkits."),
        "show": ("toolkit:show", "Show a toolkit."),
        "update": ("toolkit:update", "Replace parts of a toolkit."),
        "remove": ("toolkit:remove", "Remove a toolkit."),
    },
    "key": {
        "create": ("key:create", "Make a key for the HTTP API; it is shown once."),
        "list": ("key:list_keys", "List the keys."),
        "revoke": ("key:revoke", "Revoke a key."),
    },
    "runs": {
        "list": ("runs:list_runs", "List runs, newest first."),
        "show": ("runs:show", "Show a run."),
        "cancel": ("runs:cancel", "Cancel a run."),
        "resume": ("runs:resume", "Answer a call that waits for a person."),
        "watch": ("runs:watch", "Follow a run."),
        "replay": ("runs:replay", "Do a run again from its journal and compare."),
    },
    "images": {
        "build": ("images:build", "Build the guest images."),
        "list": ("images:list_images", "List the guest images."),
    },
    "bench": {
        "run": ("bench:run", "Measure isolates, guests, doors and limits on this machine."),
        "peers": ("bench:peers", "Measure other sandboxes beside this one."),
        "calibrate": ("bench:calibrate", "Propose budgets for this machine."),
        "plot": ("bench:plot", "Draw figures as PNG and SVG."),
        "report": ("bench:report", "Write figures as a Markdown page."),
    },
}

_GROUPS: Final[dict[str, str]] = {
    "tools": "Find and inspect tools.",
    "add": "Add an API as tools.",
    "integrations": "The APIs that were added.",
    "connections": "The accounts that are connected.",
    "secret": "Secrets that connections use.",
    "policy": "Rules that decide calls.",
    "toolkit": "Named subsets of the tools, to run with.",
    "key": "Keys of the HTTP API.",
    "runs": "Runs that were made.",
    "images": "The guest images.",
    "bench": "Measure this machine.",
}


def exit_status(run: dict[str, Any]) -> int:
    """The exit status that says how a run stands."""
    return {"completed": DONE, "waiting": WAITING}.get(run["status"], FAILED)


def build() -> App:
    app = App(
        name="executor",
        help="Run agent scripts in sandboxed isolates, with budgets, and give them tools.",
        version=f"executor {executor.__version__}",
        version_flags=["--version"],
        help_format="plaintext",
    )
    places = itertools.count()
    for group, commands in _COMMANDS.items():
        target = app
        if group:
            target = App(name=group, help=_GROUPS[group], version_flags=[], sort_key=next(places))
            app.command(target)
        for name, (path, text) in commands.items():
            target.command(f"executor.cli.commands.{path}", name=name, help=text, sort_key=next(places))
    return app


def run(arguments: list[str]) -> int:
    """Run one command line. Returns the exit status; every failure has been said on standard error."""
    app = build()
    try:
        status: Any = app(
            arguments, exit_on_error=False, print_error=False, result_action="return_value", backend="asyncio"
        )
        sys.stdout.flush()
    except CycloptsError as e:
        return _wrong_usage(e)
    except ExecutorError as e:
        from executor.cli.output import say_error

        say_error(e)
        return USAGE if e.code in ("usage", "invalid_request") else FAILED
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        drop_output()
        return FAILED
    except OSError as e:
        drop_output()
        return _refused(e)
    except Exception as e:
        return _defect(e)
    return status if isinstance(status, int) else DONE


def _wrong_usage(error: CycloptsError) -> int:
    lines = str(error).strip().splitlines()
    command = " ".join(["executor", *(error.command_chain or ())])
    sys.stderr.write(f"error: {' '.join(line.strip() for line in lines)}\n  hint: {command} --help\n")
    return USAGE


_HINTS: Final[dict[int, str]] = {
    errno.EMFILE: "a process may have more open files: ulimit -n 1024",
    errno.ENFILE: "this machine has no open files left",
    errno.ENOSPC: "make room where the output, the home or the cache is",
}


def _refused(error: OSError) -> int:
    """The operating system's own refusal; one that nobody foresaw is a defect."""
    hint = _HINTS.get(error.errno or 0)
    if hint is None:
        return _defect(error)
    sys.stderr.write(f"error: {error.strerror}\n  hint: {hint}\n")
    return FAILED


def _defect(error: Exception) -> int:
    if os.environ.get("EXECUTOR_DEBUG"):
        raise error
    sys.stderr.write(
        f"error: executor itself failed ({type(error).__name__}: {error})\n"
        "  hint: set EXECUTOR_DEBUG=1 to see where, and please report it\n"
    )
    return FAILED
