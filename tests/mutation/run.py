"""Changes guard modules, one decision at a time, and runs their tests: a change that no test notices survives.

`./scripts/mutate [--each N] [--seed N] [--report] [MODULE …]`: a sample of N changes of each module (default 20), the
same for the same seed. `--report` writes docs/mutation.md. Changes that make no difference (equivalent.py) are told
apart and not run. What was noticed is kept in `.mutation.json` and not run again while the module is the same, so that
a run goes on where one ended, or looks at survivors alone after tests were added; `--fresh` runs all.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import random
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from tests.calibration.builds import ROOT, copied
from tests.mutation.changes import Change, changes
from tests.mutation.equivalent import why

GUARDS: dict[str, tuple[str, ...]] = {
    "bridge/approvals.py": ("tests/unit/test_approvals.py",),
    "bridge/egress.py": ("tests/unit/test_egress.py",),
    "bridge/glob.py": ("tests/unit/test_policy.py",),
    "bridge/http1.py": ("tests/unit/test_http1.py",),
    "bridge/placement.py": ("tests/unit/test_placement.py",),
    "bridge/policy.py": (
        "tests/unit/test_policy.py",
        "tests/unit/test_toolkits.py::test_a_view_agrees_with_the_oracle_and_never_gives_more",
    ),
    "bridge/wire/codec.py": ("tests/unit/test_wire_codec.py",),
    "bridge/wire/distrust.py": ("tests/unit/test_wire_frames.py",),
    "bridge/wire/frames.py": ("tests/unit/test_wire_frames.py",),
    "executor/http/strictjson.py": ("tests/unit/test_http_strictjson.py",),
    "executor/keys.py": ("tests/unit/test_keys.py",),
    "runtime/engine/sealed.py": ("tests/unit/test_engine_modules.py",),
}
LIMIT_S = 120
KEPT = ROOT / ".mutation.json"
_OURS = frozenset({"tests", "bridge", "catalog", "executor", "guest", "runtime"})
_OTHERS = (
    *("anyio", "anyio.pytest_plugin", "cryptography.hazmat.primitives.ciphers.aead", "h11", "httpx2", "hypothesis"),
    *("hypothesis.strategies", "idna", "jsonschema", "msgpack", "pydantic", "referencing", "structlog", "yaml"),
)


@dataclass
class Score:
    """What became of a module's sample."""

    module: str
    there: int
    tried: int = 0
    survivors: list[Change] = field(default_factory=list)
    equivalent: list[tuple[Change, str]] = field(default_factory=list)

    @property
    def killed(self) -> int:
        return self.tried - len(self.survivors)


def warmed() -> None:
    """Import once what every run of the tests needs, and nothing of ours: the runs are forked from here."""
    for name in _OTHERS:
        importlib.import_module(name)


def noticed(place: Path, tests: tuple[str, ...]) -> bool:
    """Whether the tests fail in the changed tree; ones that crash or do not end have noticed as well."""
    child = os.fork()
    if child == 0:
        _test(place, tests)
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _test(place: Path, tests: tuple[str, ...]) -> NoReturn:
    """Run the tests of the tree at `place` in this process, and end it."""
    code = 70
    try:
        os.chdir(place)
        os.environ |= {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        sys.path[:0] = [str(place)]
        for name in [name for name in sys.modules if name.partition(".")[0] in _OURS]:
            del sys.modules[name]
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        # Plugins were imported with the rest, which pytest warns of.
        quietly = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
        code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--timeout", "60", *quietly, *tests]))
    finally:
        os._exit(code)


class Noticed:
    """The changes that tests noticed before, each by the text of its module."""

    def __init__(self, fresh: bool) -> None:
        self._known: dict[str, list[str]] = json.loads(KEPT.read_text()) if KEPT.exists() and not fresh else {}

    def has(self, source: str, change: Change) -> bool:
        return _key(change) in self._known.get(_digest(source), ())

    def add(self, source: str, change: Change) -> None:
        self._known.setdefault(_digest(source), []).append(_key(change))
        KEPT.write_text(json.dumps(self._known))


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def _key(change: Change) -> str:
    return f"{change.start} {change.end} {change.text}"


def scored(module: str, place: Path, known: Noticed, *, each: int, seed: int) -> Score:
    file = place / module
    source = file.read_text()
    there = changes(source)
    score = Score(module, len(there))
    assert not noticed(place, GUARDS[module]), f"the tests of {module} fail without a change"
    for change in sorted(random.Random(f"{seed} {module}").sample(there, min(each, len(there))), key=lambda c: c.start):
        if (reason := why(module, source, change)) is not None:
            score.equivalent.append((change, reason))
            continue
        score.tried += 1
        if known.has(source, change):
            continue
        file.write_text(change.made(source))
        try:
            seen = noticed(place, GUARDS[module])
        finally:
            file.write_text(source)
        if seen:
            known.add(source, change)
        else:
            score.survivors.append(change)
            print(f"  {module}:{change.line} survives: {change.says}, {change.text.strip()!r}", flush=True)
    print(f"{module:32} {score.killed:3} of {score.tried:3} noticed, of {score.there} that there are", flush=True)
    return score


def report(scores: list[Score], seed: int) -> str:
    """The text of docs/mutation.md."""
    tried, killed = sum(one.tried for one in scores), sum(one.killed for one in scores)
    lines = [
        "# Mutation testing of the guards",
        "",
        "A change turns one decision of a guard module: a comparison, an `and`, a `not`, a condition, an error that is",
        "raised, a flag, a number, what is returned. Its tests must fail. Written by `./scripts/mutate --report`; the",
        f"sample is the same for the same seed (here {seed}).",
        "",
        f"**{killed} of {tried} changes that make a difference are noticed ({100 * killed // max(tried, 1)}%).**",
        "",
        "| module | noticed | tried | no difference | there are | by |",
        "|---|---|---|---|---|---|",
    ]
    for one in scores:
        by = ", ".join(f"`{test.removeprefix('tests/')}`" for test in GUARDS[one.module])
        lines.append(f"| `{one.module}` | {one.killed} | {one.tried} | {len(one.equivalent)} | {one.there} | {by} |")
    survivors = [(one.module, change) for one in scores for change in one.survivors]
    if survivors:
        lines += ["", "What survived in this sample:", ""]
        lines += [f"- `{module}:{c.line}`: {c.says} (`{c.text.strip()}`)" for module, c in survivors]
    equivalent = [(one.module, change, reason) for one in scores for change, reason in one.equivalent]
    if equivalent:
        lines += ["", "What makes no difference that anybody could see, and why (`tests/mutation/equivalent.py`):", ""]
        lines += [f"- `{module}:{c.line}`: {c.says} (`{c.text.strip()}`): {reason}" for module, c, reason in equivalent]
    lines += [
        "",
        "Only the tests in the table were run: the quick ones of each module, without those that start servers.",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Exit status 1 when fewer than nine in ten changes were noticed."""
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__)
    parser.add_argument("modules", nargs="*", default=list(GUARDS))
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    given = parser.parse_args()
    warmed()
    scores: list[Score] = []
    known = Noticed(given.fresh)
    with copied() as place:
        for module in given.modules:
            scores.append(scored(module, place, known, each=given.each, seed=given.seed))
            if given.report:
                (ROOT / "docs" / "mutation.md").write_text(report(scores, given.seed))
    tried = sum(one.tried for one in scores)
    return 0 if sum(one.killed for one in scores) >= 0.9 * tried else 1


if __name__ == "__main__":
    sys.exit(main())
