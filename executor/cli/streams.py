"""The three standard streams, made fit before anything else is opened."""

from __future__ import annotations

import io
import os
import sys


def prepare() -> None:
    """Open on nothing what the caller has closed, and let no character end a command.

    A descriptor from 0 to 2 that is free would go to the next file, such as the store, and what is printed into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Send what standard output still holds to nowhere, when it cannot be written where it was to go.

    Python writes it once more as it exits, and a second failure there would replace the status of the command.
    """
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def is_utf8() -> bool:
    """Whether standard output takes every character as it is."""
    return (sys.stdout.encoding or "").lower().replace("-", "").replace("_", "") == "utf8"
