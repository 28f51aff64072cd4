"""Builds that are broken on purpose: each a patch, what it breaks, and the tests that must fail for it.

`./scripts/calibrate` runs those tests in a copy of this tree, where all must pass, then applies each build to it and
runs its tests again; a build that they do not notice is a hole in the suite. `--report` writes docs/calibration.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIMIT_S = 300
CRASH = "a crash of the tests' process"
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?::[^\[\s]+)", re.MULTILINE)


@dataclass(frozen=True)
class Build:
    """One broken build. `tests` are ids of pytest, of which at least one must fail."""

    name: str
    says: str
    tests: tuple[str, ...]
    patch: Path


@dataclass(frozen=True)
class Outcome:
    """What became of a build: the tests that failed for it, and how long that took. None failed: nobody noticed."""

    build: Build
    noticed_by: tuple[str, ...]
    seconds: float


def builds() -> list[Build]:
    return [_read(path) for path in sorted(HERE.glob("*.patch"))]


def _read(path: Path) -> Build:
    head, _, _ = path.read_text().partition("\n--- ")
    says, *lines = [line for line in head.splitlines() if line]
    tests = tuple(placed(line.removeprefix("must fail: ")) for line in lines)
    return Build(path.stem, says, tests, path)


def placed(test: str) -> str:
    """The pytest id of a test by its name, whichever file it is in; a file stays what it is.

    Raises LookupError for a name that no file or more than one has.
    """
    if "/" in test:
        return test
    found = [path for path, text in _texts() if f"def {test}(" in text]
    if len(found) != 1:
        raise LookupError(f"{len(found)} test files define {test}")
    return f"{found[0].relative_to(ROOT)}::{test}"


@cache
def _texts() -> list[tuple[Path, str]]:
    return [(path, path.read_text()) for path in sorted((ROOT / "tests").rglob("test_*.py"))]


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of this tree, to be broken."""
    with tempfile.TemporaryDirectory(prefix="executor-calibration-") as folder:
        place = Path(folder) / "tree"
        shutil.copytree(ROOT, place, ignore=_LEFT_OUT, symlinks=True)
        yield place


def broken(build: Build, place: Path) -> dict[Path, str]:
    """The files below `place` as the build has them. Empty where its patch does not fit.

    A hunk is found by its text and not by its line, and by the lines that it takes out alone where those around it have
    changed, so that a patch outlives most changes of the module that it breaks.
    """
    found: dict[Path, str] = {}
    file = place
    for part in re.split(r"^(?=--- |@@ )", build.patch.read_text(), flags=re.MULTILINE):
        if part.startswith("--- "):
            file = place / part.splitlines()[1].removeprefix("+++ b/")
            continue
        if not part.startswith("@@ "):
            continue
        lines = part.splitlines(keepends=True)[1:]
        text = found.get(file) or file.read_text()
        for kept in (" ", ""):
            old = "".join(line[1:] for line in lines if line[0] in f"-{kept}")
            if text.count(old) == 1:
                break
        else:
            return {}
        found[file] = text.replace(old, "".join(line[1:] for line in lines if line[0] in f"+{kept}"))
    return found


def tried(build: Build, place: Path) -> Outcome:
    """Run the tests of a build in a tree that is broken by it. Raises AssertionError where the patch does not fit."""
    files = broken(build, place)
    assert files, f"{build.name} does not apply any more"
    whole = {path: path.read_text() for path in files}
    for path, text in files.items():
        path.write_text(text)
    began = time.monotonic()
    try:
        status, failed = _tested(place, build.tests, LIMIT_S, "-x")
    finally:
        for path, text in whole.items():
            path.write_text(text)
    # A build may be broken so badly that the process which runs the tests dies: that is noticed as well.
    seen = failed if status == 1 else (CRASH,) if status is not None and status < 0 else ()
    return Outcome(build, seen, time.monotonic() - began)


def failing(tested: list[Build], place: Path) -> tuple[str, ...]:
    """The tests of these builds that fail in a tree that nobody broke: they would notice nothing. Empty: all pass."""
    tests = tuple(dict.fromkeys(test for build in tested for test in build.tests))
    status, failed = _tested(place, tests, LIMIT_S * len(tested))
    return failed or (() if status == 0 else (f"the tests ended with {status}",))


def _tested(place: Path, tests: tuple[str, ...], limit: float, *options: str) -> tuple[int | None, tuple[str, ...]]:
    """The exit status of pytest in the tree at `place`, None when it did not end in time, and which tests failed."""
    command = [sys.executable, "-m", "pytest", "-q", *options, "-p", "no:cacheprovider", "--timeout", "60", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env=os.environ | {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ()
    return done.returncode, tuple(sorted(set(_FAILED.findall(done.stdout))))


def report(outcomes: list[Outcome]) -> str:
    """The text of docs/calibration.md."""
    caught = sum(bool(one.noticed_by) for one in outcomes)
    lines = [
        "# Calibration",
        "",
        "Does the suite notice when a guard is taken out? Each line is a build that is broken on purpose, a patch in",
        "`tests/calibration`, and the test that failed first. Written by `./scripts/calibrate --report`.",
        "",
        f"**{caught} of {len(outcomes)} broken builds are noticed**, by tests that all pass while nothing is broken.",
        "",
        "| build | what is broken | noticed by |",
        "|---|---|---|",
    ]
    for one in outcomes:
        by = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in one.noticed_by) or "**nobody**"
        lines.append(f"| `{one.build.name}` | {one.build.says} | {by} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Try the builds that are named, or all. Exit status 1 when one is not noticed, 2 when tests fail without one."""
    wanted = [one for one in arguments if not one.startswith("-")]
    chosen = [build for build in builds() if not wanted or build.name in wanted]
    outcomes = []
    with copied() as place:
        for test in (failed := failing(chosen, place)):
            print(f"fails although nothing is broken: {test}", file=sys.stderr)
        if failed:
            return 2
        print(f"{'nothing broken':24} all tests pass", flush=True)
        for build in chosen:
            outcome = tried(build, place)
            by = ", ".join(outcome.noticed_by) or "NOBODY"
            print(f"{build.name:24} {outcome.seconds:6.1f} s  {by}", flush=True)
            outcomes.append(outcome)
    if "--report" in arguments:
        (ROOT / "docs" / "calibration.md").write_text(report(outcomes))
    return 0 if outcomes and all(one.noticed_by for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
