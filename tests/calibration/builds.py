"""Builds that are broken on purpose: each a patch, what it breaks, and the tests that must fail for it.

`./scripts/calibrate` applies each to a copy of this tree and runs those tests there; a build that they do not notice is
a hole in the suite. `--report` writes docs/calibration.md.
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
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIMIT_S = 300
CRASH = "a crash of the tests' process"
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?::[^\[\s]+)", re.MULTILINE)


@dataclass(frozen=True)
class Build:
    """One broken build. `tests` are pytest ids, of which at least one must fail."""

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
    tests = tuple(line.removeprefix("must fail: ") for line in lines)
    return Build(path.stem, says, tests, path)


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of this tree, to be broken."""
    with tempfile.TemporaryDirectory(prefix="executor-calibration-") as folder:
        place = Path(folder) / "tree"
        shutil.copytree(ROOT, place, ignore=_LEFT_OUT, symlinks=True)
        yield place


def applies(build: Build, place: Path, *, really: bool = False, back: bool = False) -> bool:
    """Whether the patch fits the tree at `place`; `really` applies it, `back` takes it out again."""
    options = [] if really else ["--check"]
    options += ["--reverse"] if back else []
    # Outside of a repository, so that the patch is about files and nothing else.
    env = os.environ | {"GIT_DIR": os.devnull}
    command = ["git", "apply", "--unidiff-zero", *options, str(build.patch)]
    return subprocess.run(command, cwd=place, env=env, capture_output=True, check=False, timeout=60).returncode == 0


def tried(build: Build, place: Path) -> Outcome:
    """Run the tests of a build in a tree that is broken by it. Raises AssertionError where the patch does not fit."""
    assert applies(build, place, really=True), f"{build.name} does not apply any more"
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout", "60", *build.tests]
    env = os.environ | {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        # A build may be broken so badly that the process which runs the tests dies: that is noticed as well.
        crashed = (CRASH,) if done.returncode < 0 else ()
        failed = tuple(sorted(set(_FAILED.findall(done.stdout)))) if done.returncode == 1 else crashed
    except subprocess.TimeoutExpired:
        failed = ()
    finally:
        assert applies(build, place, really=True, back=True)
    return Outcome(build, failed, time.monotonic() - began)


def report(outcomes: list[Outcome]) -> str:
    """The text of docs/calibration.md."""
    caught = sum(bool(one.noticed_by) for one in outcomes)
    lines = [
        "# Calibration",
        "",
        "Does the suite notice when a guard is taken out? Each line is a build that is broken on purpose, a patch in",
        "`tests/calibration`, and the test that failed first. Written by `./scripts/calibrate --report`.",
        "",
        f"**{caught} of {len(outcomes)} broken builds are noticed.**",
        "",
        "| build | what is broken | noticed by |",
        "|---|---|---|",
    ]
    for one in outcomes:
        by = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in one.noticed_by) or "**nobody**"
        lines.append(f"| `{one.build.name}` | {one.build.says} | {by} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Try the builds that are named, or all. Exit status 1 when one is not noticed."""
    wanted = [one for one in arguments if not one.startswith("-")]
    outcomes = []
    with copied() as place:
        for build in builds():
            if wanted and build.name not in wanted:
                continue
            outcome = tried(build, place)
            by = ", ".join(outcome.noticed_by) or "NOBODY"
            print(f"{build.name:24} {outcome.seconds:6.1f} s  {by}", flush=True)
            outcomes.append(outcome)
    if "--report" in arguments:
        (ROOT / "docs" / "calibration.md").write_text(report(outcomes))
    return 0 if outcomes and all(one.noticed_by for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
