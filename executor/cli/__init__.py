"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import sys


def main() -> None:
    """The `executor` program. Exits with 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    from executor.cli.streams import prepare

    prepare()
    from executor.cli.app import run

    sys.exit(run(sys.argv[1:]))
