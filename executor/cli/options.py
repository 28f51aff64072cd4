"""Options that commands share, and how their values are read."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter, validators

from bridge.wire.errors import ExecutorError

MAX_FILE_BYTES: Final = 64 * 1024 * 1024

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""An option that is there or not; cyclopts would add a `--no-…` to each."""

Port = Annotated[int, Parameter(validator=validators.Number(gte=0, lte=65535))]
Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]

_UNITS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_AMOUNT: Final = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE]\+?[0-9]{1,2})?)\s*(k|M|G|KiB|MiB|GiB)?")


class UsageError(ExecutorError):
    """Raised when an argument cannot be what was meant."""

    code = "usage"


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Which Executor a command talks to.

    Parameters
    ----------
    home
        The home directory to open, unless a URL is given.
    url
        A running server to use instead, such as http://127.0.0.1:8321.
    key
        The key for that server. Better given in the environment than here.
    verbose
        Write the whole log to standard error, not its warnings alone.
    """

    home: Annotated[Path | None, Parameter(env_var="EXECUTOR_HOME", group="Where")] = None
    url: Annotated[str | None, Parameter(env_var="EXECUTOR_URL", group="Where")] = None
    key: Annotated[str | None, Parameter(env_var="EXECUTOR_KEY", group="Where")] = None
    verbose: Annotated[Flag, Parameter(name=("--verbose", "-v"), group="Where")] = False

    @property
    def directory(self) -> Path:
        return home_directory(self.home)


HERE: Final = Where()


@Parameter(name="*")
@dataclass(frozen=True)
class Via(Where):
    """The same for a command whose own `--url` is something else.

    Parameters
    ----------
    url
        A running server of Executor to use instead, such as http://127.0.0.1:8321.
    """

    url: Annotated[str | None, Parameter(name="--via", env_var="EXECUTOR_URL", group="Where")] = None


HERE_VIA: Final = Via()


def home_directory(home: Path | None) -> Path:
    """The home to use when none is named: `EXECUTOR_HOME`, else the platform's place for a user's data."""
    if home is not None:
        return home.expanduser()
    named = os.environ.get("EXECUTOR_HOME")
    if named:
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("executor", appauthor=False))


def read_text(name: str, what: str) -> str:
    """The text of the file `name`, or of standard input for `-`. Raises UsageError."""
    try:
        data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1) if name == "-" else _read_file(Path(name))
        if len(data) > MAX_FILE_BYTES:
            raise UsageError(f"{what} is larger than {MAX_FILE_BYTES} bytes")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{what} {name!r} is not UTF-8 text") from None
    except OSError as e:
        raise UsageError(f"cannot read {what} {name!r}: {e.strerror}") from None


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def read_json(text: str, what: str) -> Any:
    """The JSON value of `text`, of the file in `@file`, or of standard input for `@-`. Raises UsageError."""
    if text.startswith("@"):
        text = read_text(text[1:], what)
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as e:
        raise UsageError(
            f"{what} cannot be read as JSON: {e}", hint="""quote it for the shell: '{"name": "value"}'"""
        ) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def read_amounts(pairs: list[str], what: str) -> dict[str, int]:
    """`name=amount` pairs; an amount may carry k, M, G, KiB, MiB or GiB. Raises UsageError."""
    amounts: dict[str, int] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        match = _AMOUNT.fullmatch(text.strip())
        if not equals or not name or match is None:
            raise UsageError(
                f"{pair!r} is not a {what}", hint="write it like wall_ms=5000, fuel=1e9 or memory_bytes=32MiB"
            )
        amounts[name.strip()] = int(float(match[1].replace("_", "")) * _UNITS[match[2] or ""])
    return amounts


def read_pairs(pairs: list[str], what: str) -> dict[str, str]:
    """`name=value` pairs. Raises UsageError."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"{pair!r} is not a {what}", hint="write it like name=value")
        found[name] = value
    return found


def document_source(source: str) -> str | Path:
    """A URL as it is, anything else as the path of a file. Raises UsageError when there is no such file."""
    if source.lower().startswith(("http://", "https://")):
        return source
    path = Path(source).expanduser()
    if not path.is_file():
        raise UsageError(
            f"there is no file {source!r}", hint="give a file, or a URL that starts with http:// or https://"
        )
    return path
